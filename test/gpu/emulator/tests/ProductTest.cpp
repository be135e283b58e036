// mma.sync to the bit: results of real GPUs, cases computed by hand, and sums of integers over random factors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <map>
#include <random>
#include <sstream>

#include "test/gpu/emulator/tests/Emulator.h"

namespace ortc::emulator::test {
namespace {

/// A number format: bits of the register's element, of the fraction and of the exponent.
struct Format {
  const char *name;
  int width, fraction, exponent, unused; ///< unused: low bits that count for nothing
  int bias() const { return (1 << (exponent - 1)) - 1; }
};
const Format kBf16 = {"bf16", 16, 7, 8, 0}, kF16 = {"f16", 16, 10, 5, 0}, kTf32 = {"tf32", 32, 10, 8, 13},
             kF32 = {"f32", 32, 23, 8, 0};

/// A product m16n8k`depth`.
struct Shape {
  const Format *in, *sum;
  int depth;
  std::string name() const {
    const std::string type = in->name, sums = sum->name;
    return "m16n8k" + std::to_string(depth) + ".row.col." + sums + "." + type + "." + type + "." + sums;
  }
};
const Shape kShapes[] = {{&kBf16, &kF32, 16}, {&kBf16, &kF32, 8}, {&kF16, &kF32, 16}, {&kF16, &kF32, 8},
                         {&kF16, &kF16, 16},  {&kF16, &kF16, 8},  {&kTf32, &kF32, 8}, {&kTf32, &kF32, 4}};

/// Bits of A (rows of `depth`), B (columns of `depth`), C and the result (rows of 8).
struct Tile {
  explicit Tile(int depth) : a(16 * depth), b(8 * depth), c(128) {}
  std::vector<uint32_t> a, b, c, d;
};

/// Three numbers of a format: where a finite one stands on the line of numbers.
struct Parts {
  bool isNegative;
  int64_t significand;
  int exponent; ///< of the bit in front of the fraction
};
Parts partsOf(const Format &f, uint32_t bits) {
  bits >>= f.unused;
  const int width = f.fraction + f.exponent;
  const int field = int(bits >> f.fraction & ((1u << f.exponent) - 1));
  const int64_t fraction = bits & ((1u << f.fraction) - 1);
  return {(bits >> width & 1) != 0, fraction + (field ? int64_t(1) << f.fraction : 0),
          (field ? field : 1) - f.bias()};
}
double valueOf(const Format &f, uint32_t bits) {
  const Parts p = partsOf(f, bits);
  if (p.exponent == f.bias() + 1) // infinities and NaNs
    return p.significand == int64_t(1) << f.fraction ? (p.isNegative ? -INFINITY : INFINITY) : NAN;
  return std::ldexp(double(p.isNegative ? -p.significand : p.significand), p.exponent - f.fraction);
}

/// What the published model says of a group of products and `c`.
struct Model {
  int group, tf32Group, extra, lowest, halfLowest;
};
Model modelOf(int capability) {
  return capability < 90 ? Model{8, 4, 1, -132, -20} : Model{16, 8, 2, -133, -21};
}

/// An integer times 2^quantum, without its bits below 2^quantum.
int64_t cut(int64_t significand, int lastBit, int quantum) {
  const int shift = lastBit - quantum;
  if (shift >= 0)
    return significand << shift;
  return shift < -62 ? 0 : significand >> -shift;
}

uint32_t addGroup(const Shape &shape, const Model &m, const uint32_t *a, const uint32_t *b, int count,
                  uint32_t c) {
  const Format &in = *shape.in, &out = *shape.sum;
  const uint32_t infinity = ((1u << out.exponent) - 1) << out.fraction, sign = 1u << (out.width - 1);
  const uint32_t nan = sign - 1;
  double special = valueOf(out, c);
  special = std::isfinite(special) ? 0 : special;
  for (int k = 0; k < count; ++k) {
    const double product = valueOf(in, a[k]) * valueOf(in, b[k]);
    special += std::isfinite(product) ? 0 : product;
  }
  if (special != 0)
    return std::isnan(special) ? nan : infinity | (special < 0 ? sign : 0);
  const bool isHalf = out.width == 16;
  std::vector<Parts> terms;
  std::vector<int> lastBits;
  for (int k = 0; k < count; ++k) {
    const Parts x = partsOf(in, a[k]), y = partsOf(in, b[k]);
    if (x.significand && y.significand) {
      terms.push_back({x.isNegative != y.isNegative, x.significand * y.significand, x.exponent + y.exponent});
      lastBits.push_back(x.exponent + y.exponent - 2 * in.fraction);
    }
  }
  Parts before = partsOf(out, c);
  if (before.significand) {
    lastBits.push_back(before.exponent - out.fraction);
    while (before.significand >> out.fraction == 0 && isHalf) // subnormal f16 are normal in f32
      before.significand *= 2, --before.exponent;
    if (isHalf)
      lastBits.back() = before.exponent - out.fraction;
    terms.push_back(before);
  }
  int most = isHalf ? m.halfLowest : m.lowest;
  for (const Parts &term : terms)
    most = std::max(most, term.exponent);
  const int quantum = most - 23 - m.extra;
  int64_t sum = 0;
  for (size_t k = 0; k < terms.size(); ++k) {
    const int64_t aligned = cut(terms[k].significand, lastBits[k], quantum);
    sum += terms[k].isNegative ? -aligned : aligned;
  }
  if (sum == 0)
    return 0;
  const uint64_t magnitude = uint64_t(std::llabs(sum));
  int exponent = std::max(63 - __builtin_clzll(magnitude) + quantum, 1 - out.bias());
  const int shift = exponent - out.fraction - quantum;
  uint64_t kept = uint64_t(cut(int64_t(magnitude), 0, shift));
  if (isHalf && shift > 0) { // to the nearest, of two the even one
    const uint64_t rest = magnitude - (kept << shift), half = uint64_t(1) << (shift - 1);
    kept += rest > half || (rest == half && (kept & 1));
  }
  // A fraction that overflows goes on in the exponent.
  const uint64_t bits = kept + (uint64_t(exponent + out.bias() - 1) << out.fraction);
  return uint32_t(std::min<uint64_t>(bits, infinity)) | (sum < 0 ? sign : 0);
}

class ProductTest : public EmulatorTest {
protected:
  /// Multiplies tiles on a GPU of this compute capability.
  void multiply(int capability, const Shape &shape, std::vector<Tile> &tiles) {
    close();
    set("SM", std::to_string(capability));
    const int pack = 32 / shape.in->width, sumPack = 32 / shape.sum->width;
    const size_t inA = size_t(shape.depth) / 2 / pack, inB = inA / 2, sums = 4 / size_t(sumPack);
    std::vector<uint32_t> a, b, c;
    auto put = [&](std::vector<uint32_t> &to, const std::vector<uint32_t> &from, size_t at, int count,
                   int width) {
      uint32_t cell = from[at];
      if (count == 2)
        cell |= from[at + 1] << width;
      to.push_back(cell);
    };
    const size_t depth = size_t(shape.depth);
    for (const Tile &tile : tiles) {
      for (size_t r = 0; r < inA; ++r)
        for (size_t l = 0; l < 32; ++l)
          put(a, tile.a, (l / 4 + r % 2 * 8) * depth + l % 4 * pack + r / 2 * 4 * pack, pack, 16);
      for (size_t r = 0; r < inB; ++r)
        for (size_t l = 0; l < 32; ++l)
          put(b, tile.b, l / 4 * depth + l % 4 * pack + r * 4 * pack, pack, 16);
      for (size_t r = 0; r < sums; ++r)
        for (size_t l = 0; l < 32; ++l)
          put(c, tile.c, sumPlace(l, r, sumPack), sumPack, 16);
    }
    ortc_cu_pointer out = allocate(c.size() * 4);
    run(kernel(makeProduct(shape, inA, inB, sums)), unsigned(tiles.size()), 32,
        {upload(a), upload(b), upload(c), out});
    const std::vector<uint32_t> d = download<uint32_t>(out, c.size());
    for (size_t t = 0; t < tiles.size(); ++t) {
      tiles[t].d.assign(128, 0);
      for (size_t r = 0; r < sums; ++r)
        for (size_t l = 0; l < 32; ++l) {
          const uint32_t cell = d[(t * sums + r) * 32 + l];
          uint32_t *to = &tiles[t].d[sumPlace(l, r, sumPack)];
          to[0] = sumPack == 2 ? cell & 0xffff : cell;
          if (sumPack == 2)
            to[1] = cell >> 16;
        }
    }
  }

  /// One sum, of the first row and the first column.
  uint32_t sumOf(int capability, const Shape &shape, double c,
                 std::vector<std::pair<double, double>> products) {
    Tile tile(shape.depth);
    tile.c[0] = bitsOf(*shape.sum, c);
    for (size_t k = 0; k < products.size(); ++k) {
      tile.a[k] = bitsOf(*shape.in, products[k].first);
      tile.b[k] = bitsOf(*shape.in, products[k].second);
    }
    std::vector<Tile> tiles = {tile};
    multiply(capability, shape, tiles);
    for (size_t k = 1; k < 128; ++k)
      if (k / 8 && k % 8) // zero times an infinity is a NaN in the first row and column
        EXPECT_EQ(tiles[0].d[k], 0u) << k;
    return tiles[0].d[0];
  }

  /// Of a number that the format has.
  static uint32_t bitsOf(const Format &f, double value) {
    const uint32_t sign = std::signbit(value) ? 1u << (f.width - 1) : 0;
    const uint32_t infinity = ((1u << f.exponent) - 1) << f.fraction << f.unused;
    if (std::isnan(value))
      return infinity | 1u << (f.width - f.exponent - 2);
    if (std::isinf(value))
      return sign | infinity;
    if (value == 0)
      return sign;
    const int exponent = std::max(std::ilogb(value), 1 - f.bias());
    const double significand = std::ldexp(std::fabs(value), f.fraction - exponent);
    EXPECT_EQ(significand, std::floor(significand)) << value;
    const uint32_t bits = uint32_t(int64_t(significand) + (int64_t(exponent + f.bias() - 1) << f.fraction));
    EXPECT_LT(bits << f.unused, infinity) << value;
    return sign | bits << f.unused;
  }

private:
  static size_t sumPlace(size_t lane, size_t r, int pack) {
    return pack == 2 ? (lane / 4 + r * 8) * 8 + lane % 4 * 2
                     : (lane / 4 + r / 2 * 8) * 8 + lane % 4 * 2 + r % 2;
  }

  /// A warp a block: registers are loaded from arrays in which 32 lanes follow each other.
  static std::string makeProduct(const Shape &shape, size_t inA, size_t inB, size_t sums) {
    std::ostringstream body;
    std::string lists[4];
    const size_t counts[] = {inA, inB, sums, sums};
    int next = 10;
    body << "mov.u32 %r1, %ctaid.x;\n";
    for (size_t k = 0; k < 4; ++k)
      for (size_t r = 0; r < counts[k]; ++r, ++next) {
        lists[k] += (r ? ", %r" : "%r") + std::to_string(next);
        if (k < 3)
          body << "mad.lo.u32 %r2, %r1, " << counts[k] << ", " << r << "; mad.lo.u32 %r2, %r2, 32, %tid; "
               << "mad.wide.u32 %rd1, %r2, 4, %a" << k << "; ld.global.b32 %r" << next << ", [%rd1];\n";
      }
    body << "mma.sync.aligned." << shape.name() << " {" << lists[3] << "}, {" << lists[0] << "}, {"
         << lists[1] << "}, {" << lists[2] << "};\n";
    for (size_t r = 0; r < sums; ++r)
      body << "mad.lo.u32 %r2, %r1, " << sums << ", " << r << "; mad.lo.u32 %r2, %r2, 32, %tid; "
           << "mad.wide.u32 %rd1, %r2, 4, %a3; st.global.b32 [%rd1], %r" << next - int(sums - r) << ";\n";
    return makeKernel({"b64", "b64", "b64", "b64"}, body.str());
  }
};

constexpr double kInfinity = INFINITY;

TEST_F(ProductTest, ResultsOfRealGpus) {
  // Eight products at a time: the diagonal of a tile.
  struct Case {
    std::string gpu;
    std::vector<uint32_t> a, b;
    uint32_t c, d;
  };
  std::map<std::pair<int, std::string>, std::vector<Case>> cases;
  std::istringstream text(readPtx("tensor-cores.txt"));
  for (std::string line; std::getline(text, line);) {
    if (line[0] == '#')
      continue;
    std::istringstream head(line);
    int capability, count;
    std::string type, sums;
    Case one;
    head >> capability >> one.gpu >> type >> sums >> count >> std::hex >> one.c >> one.d;
    for (std::vector<uint32_t> *side : {&one.a, &one.b}) {
      std::getline(text, line);
      std::istringstream numbers(line);
      for (uint32_t bits; numbers >> std::hex >> bits;)
        side->push_back(bits);
      ASSERT_EQ(int(side->size()), count);
    }
    // Results are those of one group; the rest of it is zero.
    for (const Shape &shape : kShapes)
      if (type == shape.in->name && sums == shape.sum->name && count <= shape.depth)
        cases[{capability, shape.name()}].push_back(one);
  }
  EXPECT_EQ(cases.size(), 3u * 8 + 2 * 5); // three devices with groups of 8, two with groups of 16
  size_t checked = 0;
  for (const auto &[key, list] : cases)
    for (const Shape &shape : kShapes) {
      if (shape.name() != key.second)
        continue;
      std::vector<Tile> tiles((list.size() + 7) / 8, Tile(shape.depth));
      for (size_t n = 0; n < list.size(); ++n) {
        Tile &tile = tiles[n / 8];
        std::copy(list[n].a.begin(), list[n].a.end(), tile.a.begin() + long(n % 8) * shape.depth);
        std::copy(list[n].b.begin(), list[n].b.end(), tile.b.begin() + long(n % 8) * shape.depth);
        tile.c[n % 8 * 9] = list[n].c;
      }
      multiply(key.first, shape, tiles);
      for (size_t n = 0; n < list.size(); ++n, ++checked)
        EXPECT_EQ(tiles[n / 8].d[n % 8 * 9], list[n].d) << list[n].gpu << " " << shape.name() << " " << n;
    }
  EXPECT_GE(checked, 376u);
}

TEST_F(ProductTest, TermsAreCutBehindTheBitsThatAreKept) {
  const Shape &bf16 = kShapes[0];
  const double ulp = 0x1p-23;
  auto terms = [](int count, double value) {
    return std::vector<std::pair<double, double>>(size_t(count), {value, 1});
  };
  for (int capability : {80, 89, 90, 100, 120}) {
    const bool isNew = capability >= 90;
    // Below the last bit of the sum, but kept: two halves are one.
    EXPECT_EQ(sumOf(capability, bf16, 1, terms(1, ulp / 2)), 0x3f800000u);
    EXPECT_EQ(sumOf(capability, bf16, 1, terms(2, ulp / 2)), 0x3f800001u);
    // Quarters are kept by two extra bits only; eighths by none.
    EXPECT_EQ(sumOf(capability, bf16, 1, terms(4, ulp / 4)), isNew ? 0x3f800001u : 0x3f800000u);
    EXPECT_EQ(sumOf(capability, bf16, 1, terms(8, ulp / 8)), 0x3f800000u);
    // Towards zero: 1 - 2^-25 is cut to 1 - 2^-24 where the term is kept.
    EXPECT_EQ(sumOf(capability, bf16, 1, terms(1, -ulp / 2)), 0x3f7fffffu);
    EXPECT_EQ(sumOf(capability, bf16, 1, terms(1, -ulp / 4)), isNew ? 0x3f7fffffu : 0x3f800000u);
    EXPECT_EQ(sumOf(capability, bf16, 1, terms(1, -ulp / 8)), 0x3f800000u);
    EXPECT_EQ(sumOf(capability, bf16, -1, terms(1, ulp / 8)), 0xbf800000u);
    EXPECT_EQ(sumOf(capability, bf16, -1, terms(2, -ulp / 2)), 0xbf800001u);
    // Cancellation keeps what was kept.
    const double least = isNew ? ulp / 4 : ulp / 2;
    EXPECT_EQ(sumOf(capability, bf16, -1, {{1, 1}, {least, 1}}), bitsOf(kF32, least));
    EXPECT_EQ(sumOf(capability, bf16, -1, {{1, 1}, {least / 2, 1}}), 0u);
    // Products are not normalised: 1.5 * 1.5 has the exponent 0 and costs no bit.
    EXPECT_EQ(sumOf(capability, bf16, 0, {{1.5, 1.5}, {least, 1}, {-1.5, 1.5}}), bitsOf(kF32, least));
    EXPECT_EQ(sumOf(capability, bf16, 0, {{1.5, 1.5}, {least / 2, 1}, {-1.5, 1.5}}), 0u);
    EXPECT_EQ(sumOf(capability, bf16, -2.25, {{1.5, 1.5}, {least, 1}}), 0u);
  }
}

TEST_F(ProductTest, GroupsFollowEachOther) {
  const double half = 0x1p-24;
  for (int capability : {80, 86, 89, 90, 100, 120}) {
    const uint32_t apart = capability < 90 ? 0x3f800000u : 0x3f800001u;
    for (const Shape &shape : kShapes) {
      if (shape.sum != &kF32 || (shape.depth != 16 && shape.in != &kTf32) || shape.depth == 4)
        continue;
      // The last of the first half of products and the first of the other half.
      std::vector<std::pair<double, double>> products(size_t(shape.depth), {0, 0});
      const size_t middle = products.size() / 2;
      products[middle] = {half, 1};
      products[middle - 1] = {half, 1};
      if (shape.in == &kF16)
        products[middle] = products[middle - 1] = {0x1p-12, 0x1p-12};
      EXPECT_EQ(sumOf(capability, shape, 1, products), apart) << shape.name();
      std::swap(products[middle], products[middle - 2]);
      EXPECT_EQ(sumOf(capability, shape, 1, products), 0x3f800001u) << shape.name();
    }
  }
}

TEST_F(ProductTest, SubnormalNumbersAreKept) {
  const Shape &bf16 = kShapes[0], &f16 = kShapes[2];
  for (int capability : {80, 90}) {
    EXPECT_EQ(sumOf(capability, bf16, 0, {{0x1p-75, 0x1p-74}}), 1u);
    EXPECT_EQ(sumOf(capability, bf16, 0, {{0x1p-75, 0x1p-75}}), 0u);
    EXPECT_EQ(sumOf(capability, bf16, 0, {{0x1p-75, 0x1p-75}, {0x1p-75, 0x1p-75}}), 1u);
    EXPECT_EQ(sumOf(capability, bf16, 0x1p-149, {{0x1p-133, 1}}), 0x10001u); // the least bf16
    EXPECT_EQ(sumOf(capability, bf16, -0x1p-126, {{0x1p-100, 0x1p-49}}), 0x807fffffu);
    EXPECT_EQ(sumOf(capability, f16, 0, {{0x1p-24, 0x1p-24}}), 0x27800000u);
    EXPECT_EQ(sumOf(capability, f16, 0, {{0x1.ff8p-15, 1}}), 0x387fc000u);
    // The least exponent that terms are brought to, -132 and -133, with 24 and 25 bits behind.
    const int last = capability == 80 ? -156 : -158;
    auto lessOf = [&](int exponent) {
      return std::pair<double, double>{-0x1p-79, std::ldexp(1, exponent + 79)};
    };
    EXPECT_EQ(sumOf(capability, bf16, 0, {{0x1p-75, 0x1p-74}, lessOf(last)}), 0u);
    EXPECT_EQ(sumOf(capability, bf16, 0, {{0x1p-75, 0x1p-74}, lessOf(last - 1)}), 1u);
  }
}

TEST_F(ProductTest, OverflowInfinitiesAndNans) {
  const Shape &bf16 = kShapes[0], &half = kShapes[4];
  const double most = 0x1.fffffep127;
  for (int capability : {80, 90}) {
    EXPECT_EQ(sumOf(capability, bf16, most, {{0x1p103, 1}}), 0x7f7fffffu); // half of its last bit
    EXPECT_EQ(sumOf(capability, bf16, most, {{0x1p104, 1}}), 0x7f800000u);
    EXPECT_EQ(sumOf(capability, bf16, -0x1p127, {{-0x1p100, 0x1p27}}), 0xff800000u);
    // Products beyond f32's range may cancel, or not.
    EXPECT_EQ(sumOf(capability, bf16, 3, {{0x1p127, 0x1p127}, {-0x1p127, 0x1p127}}), 0u);
    EXPECT_EQ(sumOf(capability, bf16, 0, {{0x1.8p127, 0x1p127}, {-0x1p127, 0x1p127}}), 0x7f800000u);
    EXPECT_EQ(sumOf(capability, bf16, 1, {{kInfinity, -2}}), 0xff800000u);
    EXPECT_EQ(sumOf(capability, bf16, kInfinity, {{1, 1}}), 0x7f800000u);
    EXPECT_EQ(sumOf(capability, bf16, kInfinity, {{-kInfinity, 1}}), 0x7fffffffu);
    EXPECT_EQ(sumOf(capability, bf16, 0, {{kInfinity, 1}, {1, kInfinity}}), 0x7f800000u);
    EXPECT_EQ(sumOf(capability, bf16, 0, {{kInfinity, 1}, {1, -kInfinity}}), 0x7fffffffu);
    EXPECT_EQ(sumOf(capability, bf16, -NAN, {{1, 1}}), 0x7fffffffu);
    EXPECT_EQ(sumOf(capability, half, 65504, {{1, 15.5}}), 0x7bffu);
    EXPECT_EQ(sumOf(capability, half, 65504, {{1, 16}}), 0x7c00u);
    EXPECT_EQ(sumOf(capability, half, -65504, {{-256, 256}}), 0xfc00u);
    EXPECT_EQ(sumOf(capability, half, -kInfinity, {{kInfinity, 1}}), 0x7fffu);
    // Zeros have no sign.
    EXPECT_EQ(sumOf(capability, bf16, -0.0, {{-1, 0}}), 0u);
    EXPECT_EQ(sumOf(capability, half, -0.0, {{1, -0.0}}), 0u);
  }
  // An infinity stays with its row and column: a product of zero and infinity is none, and makes a NaN.
  Tile tile(16);
  tile.a[5 * 16 + 3] = bitsOf(kBf16, kInfinity);
  tile.b[2 * 16 + 3] = bitsOf(kBf16, 1);
  std::vector<Tile> tiles = {tile};
  multiply(90, bf16, tiles);
  for (size_t k = 0; k < 128; ++k)
    EXPECT_EQ(tiles[0].d[k], k / 8 != 5 ? 0u : k % 8 == 2 ? 0x7f800000u : 0x7fffffffu) << k;
}

TEST_F(ProductTest, SumsOfHalvesAreRoundedToTheNearest) {
  const Shape &half = kShapes[4];
  for (int capability : {80, 90}) {
    EXPECT_EQ(sumOf(capability, half, 1, {{0x1p-11, 1}}), 0x3c00u); // a tie, to the even one
    EXPECT_EQ(sumOf(capability, half, 1, {{0x1p-10, 1}, {0x1p-11, 1}}), 0x3c02u);
    EXPECT_EQ(sumOf(capability, half, 1, {{0x1p-11, 1}, {0x1p-12, 0x1p-8}}), 0x3c01u);
    EXPECT_EQ(sumOf(capability, half, -1, {{0x1p-12, -1}, {0x1p-13, -1}}), 0xbc00u);
    EXPECT_EQ(sumOf(capability, half, 0, {{0x1p-12, 0x1.8p-13}}), 1u); // subnormal: 0.75 of the least
    EXPECT_EQ(sumOf(capability, half, 0, {{0x1p-12, 0x1p-13}}), 0u);   // a tie
    // It is none by a term at the least exponent, -20 or -21, with 24 or 25 bits behind.
    const int last = capability == 80 ? -44 : -46;
    EXPECT_EQ(sumOf(capability, half, 0, {{0x1p-12, 0x1p-13}, {0x1p-24, std::ldexp(1, last + 24)}}), 1u);
    EXPECT_EQ(sumOf(capability, half, 0, {{0x1p-12, 0x1p-13}, {0x1p-24, std::ldexp(1, last + 23)}}), 0u);
  }
}

TEST_F(ProductTest, RandomNumbersOfManyBinades) {
  std::mt19937 random(7);
  for (int capability : {80, 86, 89, 90, 100, 120}) {
    const Model model = modelOf(capability);
    for (const Shape &shape : kShapes) {
      std::vector<Tile> tiles;
      for (int n = 0; n < 24; ++n) {
        Tile tile(shape.depth);
        // Of everything there is, or around 1: exponents within `spread`.
        const int spread = n % 4 == 0 ? 1000 : 1 << (n % 4 * 2 - 1);
        auto fill = [&](const Format &f, std::vector<uint32_t> &bits, int zeros, int specials) {
          for (uint32_t &each : bits) {
            each = random() >> (32 - f.width);
            const int width = f.fraction + f.unused;
            const int most = (1 << f.exponent) - 1, bias = f.bias();
            int field = spread == 1000 ? int(random() % unsigned(most))
                                       : bias - spread + int(random() % unsigned(2 * spread));
            field = std::min(std::max(field, 0), most - 1);
            if (specials && random() % 64 == 0)
              field = most;
            each = (each & ~(uint32_t(most) << width)) | uint32_t(field) << width;
            if (zeros && random() % 8 == 0)
              each &= 1u << (f.width - 1);
          }
        };
        fill(*shape.in, tile.a, n & 1, n == 8);
        fill(*shape.in, tile.b, n & 1, n == 8);
        fill(*shape.sum, tile.c, n & 1, n == 8);
        tiles.push_back(tile);
      }
      multiply(capability, shape, tiles);
      const int whole = shape.in == &kTf32 ? model.tf32Group : model.group;
      for (size_t t = 0; t < tiles.size(); ++t)
        for (size_t k = 0; k < 128; ++k) {
          uint32_t sum = tiles[t].c[k];
          for (int first = 0; first < shape.depth; first += whole)
            sum = addGroup(shape, model, &tiles[t].a[k / 8 * size_t(shape.depth) + size_t(first)],
                           &tiles[t].b[k % 8 * size_t(shape.depth) + size_t(first)],
                           std::min(whole, shape.depth), sum);
          ASSERT_EQ(tiles[t].d[k], sum)
              << shape.name() << " of sm_" << capability << ", tile " << t << ", sum " << k;
        }
    }
  }
}

} // namespace
} // namespace ortc::emulator::test
