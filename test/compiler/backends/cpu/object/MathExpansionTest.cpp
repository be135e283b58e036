// Elementary functions against the C library in higher precision, on every target this machine runs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/backends/cpu/KernelFixture.h"

#include "compiler/backends/cpu/isa/Architecture.h"
#include "compiler/backends/emit/MathExpansion.h"
#include "compiler/backends/emit/StorageConversion.h"

#include <cmath>
#include <cstring>
#include <random>

using namespace mlir;
using namespace ortc::cpu;
using namespace ortc::emit;
using namespace ortc::kernels;
using namespace ortc::cpu::test;

namespace {

using Reference = long double (*)(long double, long double);

struct Case {
  const char *name;
  MathFunction function;
  Reference reference;
  double low, high;    ///< samples are uniform here, and uniform in the exponent within it
  double ulp32, ulp64; ///< limits
};

constexpr int kSamples = 1 << 15;

template <typename T> struct Limits;
template <> struct Limits<float> {
  static Type type(OpBuilder &b) { return b.getF32Type(); }
  static double ulp(const Case &c) { return c.ulp32; }
};
template <> struct Limits<double> {
  static Type type(OpBuilder &b) { return b.getF64Type(); }
  static double ulp(const Case &c) { return c.ulp64; }
};

const Case kCases[] = {
    {"exp", MathFunction::Exp, [](long double x, long double) { return std::exp(x); }, -800, 800, 2, 2},
    {"exp2", MathFunction::Exp2, [](long double x, long double) { return std::exp2(x); }, -1100, 1100, 2, 2},
    {"expm1", MathFunction::Expm1, [](long double x, long double) { return std::expm1(x); }, -50, 800, 3, 3},
    {"log", MathFunction::Log, [](long double x, long double) { return std::log(x); }, 0, 1e300, 2, 2},
    {"log2", MathFunction::Log2, [](long double x, long double) { return std::log2(x); }, 0, 1e300, 4, 4},
    {"log10", MathFunction::Log10, [](long double x, long double) { return std::log10(x); }, 0, 1e300, 4, 4},
    {"log1p", MathFunction::Log1p, [](long double x, long double) { return std::log1p(x); }, -1, 1e300, 3, 3},
    {"sqrt", MathFunction::Sqrt, [](long double x, long double) { return std::sqrt(x); }, 0, 1e300, 0.5001,
     0.5001},
    {"rsqrt", MathFunction::Rsqrt, [](long double x, long double) { return 1 / std::sqrt(x); }, 0, 1e300, 2,
     2},
    {"tanh", MathFunction::Tanh, [](long double x, long double) { return std::tanh(x); }, -30, 30, 4, 4},
    {"sinh", MathFunction::Sinh, [](long double x, long double) { return std::sinh(x); }, -720, 720, 4, 4},
    {"cosh", MathFunction::Cosh, [](long double x, long double) { return std::cosh(x); }, -720, 720, 4, 4},
    {"asinh", MathFunction::Asinh, [](long double x, long double) { return std::asinh(x); }, -1e300, 1e300, 4,
     4},
    {"acosh", MathFunction::Acosh, [](long double x, long double) { return std::acosh(x); }, 1, 1e300, 4, 4},
    {"atanh", MathFunction::Atanh, [](long double x, long double) { return std::atanh(x); }, -1, 1, 4, 4},
    {"erf", MathFunction::Erf, [](long double x, long double) { return std::erf(x); }, -7, 7, 3, 3},
    {"sin", MathFunction::Sin, [](long double x, long double) { return std::sin(x); }, -1e6, 1e6, 2, 3},
    {"cos", MathFunction::Cos, [](long double x, long double) { return std::cos(x); }, -1e6, 1e6, 2, 3},
    {"tan", MathFunction::Tan, [](long double x, long double) { return std::tan(x); }, -1e6, 1e6, 4, 4},
    {"asin", MathFunction::Asin, [](long double x, long double) { return std::asin(x); }, -1, 1, 3, 3},
    {"acos", MathFunction::Acos, [](long double x, long double) { return std::acos(x); }, -1, 1, 3, 3},
    {"atan", MathFunction::Atan, [](long double x, long double) { return std::atan(x); }, -1e300, 1e300, 3,
     3},
    {"atan2", MathFunction::Atan2, [](long double x, long double y) { return std::atan2(x, y); }, -100, 100,
     4, 4},
    {"pow", MathFunction::Pow, [](long double x, long double y) { return std::pow(x, y); }, -100, 100, 2, 8},
    {"floor", MathFunction::Floor, [](long double x, long double) { return std::floor(x); }, -1e10, 1e10, 0,
     0},
    {"ceil", MathFunction::Ceil, [](long double x, long double) { return std::ceil(x); }, -1e10, 1e10, 0, 0},
    {"trunc", MathFunction::Trunc, [](long double x, long double) { return std::trunc(x); }, -1e10, 1e10, 0,
     0},
    {"round", MathFunction::Round, [](long double x, long double) { return std::round(x); }, -1e10, 1e10, 0,
     0},
    {"roundeven", MathFunction::RoundEven, [](long double x, long double) { return std::nearbyint(x); },
     -1e10, 1e10, 0, 0},
};

bool isBinary(MathFunction f) { return f == MathFunction::Pow || f == MathFunction::Atan2; }

/// z[i] = function(x[i], y[i]).
void emitLoop(KernelModule &m, const Case &c, Type element, const Target &target, Numerics numerics) {
  OpBuilder &b = m.builder;
  Location loc = b.getUnknownLoc();
  KernelInfo info;
  info.name = c.name;
  KernelBuffer in{element, kSamples, false, true}, out{element, kSamples, true, true};
  KernelFunction kernel = createKernelFunction(b, *m.module, info, {in, in, out});
  int64_t lanes = target.lanes(element.getIntOrFloatBitWidth());
  Value zero = arith::ConstantIndexOp::create(b, loc, 0),
        step = arith::ConstantIndexOp::create(b, loc, lanes);
  auto loop = scf::ForOp::create(b, loc, zero, arith::ConstantIndexOp::create(b, loc, kSamples), step);
  b.setInsertionPointToStart(loop.getBody());
  auto type = VectorType::get({lanes}, element);
  Value x = vector::LoadOp::create(b, loc, type, kernel.buffers[0], loop.getInductionVar());
  Value y = vector::LoadOp::create(b, loc, type, kernel.buffers[1], loop.getInductionVar());
  SmallVector<Value> operands = {x};
  if (isBinary(c.function))
    operands.push_back(y);
  Value z = expandMath(b, loc, c.function, operands, mathOptionsOf(target, numerics));
  vector::StoreOp::create(b, loc, z, kernel.buffers[2], loop.getInductionVar());
}

template <typename T> void fillSamples(AlignedArray<T> &x, const Case &c, unsigned seed) {
  std::mt19937_64 random(seed);
  const T special[] = {T(0),
                       T(-0.0),
                       T(1),
                       T(-1),
                       T(0.5),
                       T(-0.5),
                       T(2),
                       T(-2),
                       T(3),
                       T(-3),
                       T(2.5),
                       T(-2.5),
                       T(1.5),
                       INFINITY,
                       -INFINITY,
                       NAN,
                       std::numeric_limits<T>::min(),
                       std::numeric_limits<T>::denorm_min(),
                       std::numeric_limits<T>::min() / 3,
                       std::numeric_limits<T>::max(),
                       -std::numeric_limits<T>::max(),
                       T(4503599627370497.0),
                       T(8388609.0),
                       T(0.49999997f)};
  constexpr size_t specials = std::size(special);
  double low = std::max(c.low, double(-std::numeric_limits<T>::max()));
  double high = std::min(c.high, double(std::numeric_limits<T>::max()));
  std::uniform_real_distribution<double> uniform(low, high), unit(0, 1);
  double largest = std::log2(std::max(std::abs(low), std::abs(high)));
  double smallest = std::log2(double(std::numeric_limits<T>::min()));
  for (size_t i = 0; i < x.size; ++i) {
    if (i < specials * specials) {
      x[i] = special[seed == 1 ? i % specials : i / specials];
    } else if (i % 3 == 0) {
      x[i] = T(uniform(random));
    } else if (i % 3 == 1) {
      double v = std::exp2(smallest + (largest - smallest) * unit(random));
      x[i] = T(low < 0 && (random() & 1) ? -v : v);
    } else {
      double v = 8 * (unit(random) - 0.5);
      x[i] = T(std::clamp(v, low, high));
    }
  }
}

/// Error in units of the last place of the reference.
template <typename T> double errorInUlps(T got, long double want) {
  if (std::isnan(want))
    return std::isnan(got) ? 0 : INFINITY;
  T rounded = T(want);
  if (got == rounded)
    return std::signbit(got) == std::signbit(rounded) || want != 0 ? 0 : INFINITY;
  if (std::isinf(got) || std::isnan(got) || std::isinf(rounded)) {
    // One ulp beside overflow.
    T edge = std::numeric_limits<T>::max();
    bool beside = (std::isinf(got) && std::abs(rounded) > edge * T(0.9999)) ||
                  (std::isinf(rounded) && std::abs(got) > edge * T(0.9999));
    return beside && std::signbit(got) == std::signbit(rounded) ? 1 : INFINITY;
  }
  T magnitude = std::abs(rounded);
  long double unit =
      std::max<long double>(static_cast<long double>(std::nextafter(magnitude, T(INFINITY))) - magnitude,
                            std::numeric_limits<T>::denorm_min());
  return double(std::abs(static_cast<long double>(got) - want) / unit);
}

template <typename T> void check(const Target &target, Numerics numerics) {
  KernelModule m;
  for (const Case &c : kCases)
    emitLoop(m, c, Limits<T>::type(m.builder), target, numerics);
  LoadedBlob blob = m.load(target);
  for (const Case &c : kCases) {
    AlignedArray<T> x(kSamples), y(kSamples), z(kSamples);
    fillSamples(x, c, 1);
    fillSamples(y, c, 2);
    void *args[] = {x.begin(), y.begin(), z.begin()};
    ASSERT_NE(blob.kernel(c.name), nullptr);
    blob.kernel(c.name)(args, 0, 0);
    double worst = 0;
    int at = 0;
    for (int i = 0; i < kSamples; ++i) {
      bool trigonometric = c.function == MathFunction::Sin || c.function == MathFunction::Cos ||
                           c.function == MathFunction::Tan;
      if (trigonometric && std::isfinite(x[i]) && std::abs(x[i]) > c.high) {
        EXPECT_TRUE(c.function == MathFunction::Tan || std::abs(z[i]) <= 1)
            << c.name << "(" << x[i] << ") = " << z[i];
        continue;
      }
      long double want = c.reference(x[i], y[i]);
      bool isExp = c.function == MathFunction::Exp || c.function == MathFunction::Exp2;
      if (isExp && !denormalsAreZero(numerics) && want < std::numeric_limits<T>::min())
        want = 0; // what portable numerics flush
      // GELU multiplies by x what erf misses of one.
      if (c.function == MathFunction::Erf && 1 - std::abs(want) < std::numeric_limits<T>::epsilon() / 64)
        EXPECT_EQ(z[i], std::copysign(T(1), x[i])) << target.name << " erf(" << x[i] << ")";
      double e = errorInUlps(z[i], want);
      if (!(e <= worst))
        worst = e, at = i;
    }
    EXPECT_LE(worst, Limits<T>::ulp(c)) << target.name << " " << c.name << "(" << x[at] << ", " << y[at]
                                        << ") = " << z[at] << ", want " << double(c.reference(x[at], y[at]));
    testing::Test::RecordProperty(std::string(c.name) + std::to_string(sizeof(T) * 8), std::to_string(worst));
    if (std::getenv("ORTC_PRINT_ULPS"))
      std::printf("%-10s %s f%zu %.2f ulp\n", target.name.c_str(), c.name, sizeof(T) * 8, worst);
  }
}

TEST(MathExpansionTest, F32IsWithinLimits) {
  for (const Target &target : runnableTargets())
    check<float>(target, Numerics::Fast);
}

TEST(MathExpansionTest, F64IsWithinLimits) {
  for (const Target &target : runnableTargets())
    check<double>(target, Numerics::Fast);
}

TEST(MathExpansionTest, PortableIsWithinLimits) {
  check<float>(runnableTargets().back(), Numerics::Portable);
  check<double>(runnableTargets().back(), Numerics::Portable);
}

/// Bits of every function over the samples.
std::vector<uint32_t> bitsOn(const Target &target, Numerics numerics) {
  KernelModule m;
  for (const Case &c : kCases)
    emitLoop(m, c, m.builder.getF32Type(), target, numerics);
  LoadedBlob blob = m.load(target);
  std::vector<uint32_t> all;
  for (const Case &c : kCases) {
    AlignedArray<float> x(kSamples), y(kSamples), z(kSamples);
    fillSamples(x, c, 1);
    fillSamples(y, c, 2);
    void *args[] = {x.begin(), y.begin(), z.begin()};
    blob.kernel(c.name)(args, 0, 0);
    for (float v : z) {
      uint32_t bits;
      std::memcpy(&bits, &v, 4);
      all.push_back(std::isnan(v) ? 0x7fc00000 : bits);
    }
  }
  return all;
}

TEST(MathExpansionTest, PortableBitsAreEqualOnAllTargets) {
  std::vector<Target> targets = runnableTargets();
  std::vector<uint32_t> first = bitsOn(targets.front(), Numerics::Portable);
  for (const Target &target : llvm::drop_begin(targets))
    EXPECT_TRUE(first == bitsOn(target, Numerics::Portable)) << target.name;
}

TEST(MathExpansionTest, FastBitsAreEqualOnTargetsWithFma) {
  std::vector<std::vector<uint32_t>> bits;
  for (const Target &target : runnableTargets())
    if (target.has(Instruction::FusedMultiplyAdd))
      bits.push_back(bitsOn(target, Numerics::Fast));
  for (size_t i = 1; i < bits.size(); ++i)
    EXPECT_TRUE(bits[0] == bits[i]);
}

/// Every f16 and bf16 value goes to f32 and back in both modes of a step: with fast numerics denormal f32 numbers are
/// zero there, and a subnormal f16 is none.
TEST(MathExpansionTest, NarrowFloatsConvertExactly) {
  for (const Target &target : runnableTargets()) {
    for (auto [brain, areZero] : {std::pair(false, false), {false, true}, {true, false}, {true, true}}) {
      KernelModule m;
      OpBuilder &b = m.builder;
      Location loc = b.getUnknownLoc();
      Type narrow = brain ? Type(b.getBF16Type()) : Type(b.getF16Type());
      KernelInfo info;
      info.name = "convert";
      KernelBuffer in{b.getI16Type(), 65536, false, true}, wide{b.getF32Type(), 65536, true, true},
          out{b.getI16Type(), 65536, true, true};
      KernelFunction kernel = createKernelFunction(b, *m.module, info, {in, wide, out});
      Value zero = arith::ConstantIndexOp::create(b, loc, 0),
            step = arith::ConstantIndexOp::create(b, loc, 8);
      auto loop = scf::ForOp::create(b, loc, zero, arith::ConstantIndexOp::create(b, loc, 65536), step);
      b.setInsertionPointToStart(loop.getBody());
      Value i = loop.getInductionVar();
      Value bits = vector::LoadOp::create(b, loc, VectorType::get({8}, b.getI16Type()), kernel.buffers[0], i);
      Value value = extendToF32(b, loc, bits, narrow);
      vector::StoreOp::create(b, loc, value, kernel.buffers[1], i);
      vector::StoreOp::create(b, loc, truncateFromF32(b, loc, value, narrow), kernel.buffers[2], i);
      LoadedBlob blob = m.load(target);
      AlignedArray<uint16_t> x(65536), y(65536);
      AlignedArray<float> w(65536);
      for (int k = 0; k < 65536; ++k)
        x[k] = uint16_t(k);
      void *args[] = {x.begin(), w.begin(), y.begin()};
      {
        DenormalModeHere mode(areZero);
        blob.kernel("convert")(args, 0, 0);
      }
      for (int k = 0; k < 65536; ++k) {
        int exponent = brain ? k >> 7 & 0xff : k >> 10 & 0x1f, mantissa = brain ? k & 0x7f : k & 0x3ff;
        if (exponent == (brain ? 0xff : 0x1f) && mantissa) {
          EXPECT_TRUE(std::isnan(w[k]));
          continue;
        }
        double want = exponent == (brain ? 0xff : 0x1f) ? INFINITY
                      : exponent
                          ? std::ldexp(1 + mantissa / (brain ? 128.0 : 1024.0), exponent - (brain ? 127 : 15))
                          : std::ldexp(mantissa / (brain ? 128.0 : 1024.0), brain ? -126 : -14);
        ASSERT_EQ(w[k], float(k & 0x8000 ? -want : want)) << k;
        ASSERT_EQ(y[k], x[k]);
      }
    }
  }
}

/// Numbers of all sizes, halves between two, infinities and NaN: instructions and integer operations give equal bits.
TEST(MathExpansionTest, HalfConversionsHaveTheSameBits) {
  constexpr int kCount = 1 << 18;
  AlignedArray<float> x(kCount);
  std::mt19937 random(1);
  for (int k = 0; k < kCount; ++k) {
    uint32_t bits = random();
    if (k % 4 == 1) // of f16's range
      bits = (bits & 0x80007fff) | (random() % (48 << 10) + (96 << 10)) << 13;
    if (k % 4 == 2) // at or beside a half of f16's last place
      bits = (bits & 0xffffe000) + 0x1000 + static_cast<uint32_t>(int(random() % 3) - 1);
    if (k % 64 == 3) // infinity or NaN
      bits |= 0x7f800000;
    if (k % 256 == 3)
      bits &= 0xff800000;
    std::memcpy(&x[k], &bits, 4);
  }
  auto convert = [&](Target target, bool isInstruction) {
    target.isa.set(Instruction::HalfConversion, isInstruction);
    KernelModule m;
    OpBuilder &b = m.builder;
    Location loc = b.getUnknownLoc();
    KernelInfo info;
    info.name = "convert";
    KernelFunction kernel = createKernelFunction(b, *m.module, info,
                                                 {{b.getF32Type(), kCount, false, true},
                                                  {b.getI16Type(), kCount, true, true},
                                                  {b.getF32Type(), kCount, true, true}});
    auto at = [&](int64_t i) -> Value { return arith::ConstantIndexOp::create(b, loc, i); };
    auto loop = scf::ForOp::create(b, loc, at(0), at(kCount), at(8));
    b.setInsertionPointToStart(loop.getBody());
    Value i = loop.getInductionVar();
    Value value = vector::LoadOp::create(b, loc, VectorType::get({8}, b.getF32Type()), kernel.buffers[0], i);
    Value half = truncateFromF32(b, loc, value, b.getF16Type());
    vector::StoreOp::create(b, loc, half, kernel.buffers[1], i);
    // Every pattern of 16 bits comes by four times.
    auto halves = cast<VectorType>(half.getType());
    SmallVector<int16_t> lanes{0, 1, 2, 3, 4, 5, 6, 7};
    Value pattern = arith::IndexCastOp::create(b, loc, b.getI16Type(), i);
    pattern = vector::BroadcastOp::create(b, loc, halves, pattern);
    Value places =
        arith::ConstantOp::create(b, loc, DenseElementsAttr::get(halves, ArrayRef<int16_t>(lanes)));
    Value wide = extendToF32(b, loc, arith::AddIOp::create(b, loc, pattern, places), b.getF16Type());
    vector::StoreOp::create(b, loc, wide, kernel.buffers[2], i);
    LoadedBlob blob = m.load(target);
    AlignedArray<uint16_t> narrow(kCount);
    AlignedArray<uint32_t> widened(kCount);
    void *args[] = {x.begin(), narrow.begin(), widened.begin()};
    DenormalModeHere mode(true);
    blob.kernel("convert")(args, 0, 0);
    std::vector<uint32_t> bits(narrow.begin(), narrow.end());
    bits.insert(bits.end(), widened.begin(), widened.end());
    return bits;
  };
  std::vector<uint32_t> wanted = convert(*findTarget("x86-64"), false);
  for (const Target &target : runnableTargets())
    if (target.has(Instruction::HalfConversion))
      for (bool isInstruction : {false, true}) {
        std::vector<uint32_t> bits = convert(target, isInstruction);
        auto differs = std::mismatch(bits.begin(), bits.end(), wanted.begin());
        EXPECT_TRUE(differs.first == bits.end())
            << target.name << ", " << isInstruction << ": number " << differs.first - bits.begin() << " is "
            << (differs.first == bits.end() ? 0 : *differs.first) << ", not "
            << (differs.first == bits.end() ? 0 : *differs.second);
      }
}

} // namespace
