// Arithmetic of f64 in integers, against that of this processor, and without a call of a library.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/object/SoftDoubles.h"

#include "compiler/backends/emit/LlvmModule.h"
#include "test/compiler/backends/cpu/KernelFixture.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/SourceMgr.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <random>

using namespace llvm;
using namespace ortc::cpu;

namespace {

constexpr int kRandomCount = 200'000; ///< of operands for each operation

using Function = uint64_t(uint64_t, uint64_t, uint64_t);

double toDouble(uint64_t bits) { return std::bit_cast<double>(bits); }
uint64_t toBits(double value) { return std::bit_cast<uint64_t>(value); }
float toFloat(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }

/// What is compared of a result.
enum class Result { F64, F32, F16, BF16, Integer };

/// `code` makes %r of `type` of %x, %y and %z of f64, whose bits are %a, %b and %c.
struct Operation {
  std::string name, type, code;
  Result result;
  std::function<Function> expected;
  unsigned operands = 2;
  /// Whether the operation is defined for these bits.
  std::function<bool(uint64_t)> isDefined = [](uint64_t) { return true; };
};

uint64_t convert(uint64_t bits, const fltSemantics &to) {
  APFloat value(toDouble(bits));
  bool losesInfo;
  value.convert(to, APFloat::rmNearestTiesToEven, &losesInfo);
  return value.bitcastToAPInt().getZExtValue();
}

std::vector<Operation> makeOperations() {
  std::vector<Operation> all;
  auto binary = [&](std::string name, std::string op, double (*expected)(double, double)) {
    all.push_back(
        {name, "double", "%r = " + op + " double %x, %y", Result::F64,
         [=](uint64_t a, uint64_t b, uint64_t) { return toBits(expected(toDouble(a), toDouble(b))); }});
  };
  auto unary = [&](std::string name, std::string code, double (*expected)(double)) {
    all.push_back({name, "double", "%r = " + code, Result::F64,
                   [=](uint64_t a, uint64_t, uint64_t) { return toBits(expected(toDouble(a))); }, 1});
  };
  binary("add", "fadd", [](double x, double y) { return x + y; });
  binary("sub", "fsub", [](double x, double y) { return x - y; });
  binary("mul", "fmul", [](double x, double y) { return x * y; });
  binary("div", "fdiv", [](double x, double y) { return x / y; });
  unary("neg", "fneg double %x", [](double x) { return -x; });
  all.push_back(
      {"copysign", "double", "%r = call double @llvm.copysign.f64(double %x, double %y)", Result::F64,
       [](uint64_t a, uint64_t b, uint64_t) { return toBits(std::copysign(toDouble(a), toDouble(b))); }});
  std::pair<const char *, double (*)(double)> functions[] = {
      {"fabs", [](double x) { return std::fabs(x); }},
      {"sqrt", [](double x) { return std::sqrt(x); }},
      {"floor", [](double x) { return std::floor(x); }},
      {"ceil", [](double x) { return std::ceil(x); }},
      {"trunc", [](double x) { return std::trunc(x); }},
      {"rint", [](double x) { return std::nearbyint(x); }},
      {"nearbyint", [](double x) { return std::nearbyint(x); }},
      {"roundeven", [](double x) { return std::nearbyint(x); }}};
  for (auto [name, function] : functions)
    unary(name, "call double @llvm." + std::string(name) + ".f64(double %x)", function);

  for (unsigned p = CmpInst::FIRST_FCMP_PREDICATE; p <= CmpInst::LAST_FCMP_PREDICATE; ++p) {
    std::string predicate = CmpInst::getPredicateName(static_cast<CmpInst::Predicate>(p)).str();
    all.push_back({predicate, "i1", "%r = fcmp " + predicate + " double %x, %y", Result::Integer,
                   [=](uint64_t a, uint64_t b, uint64_t) -> uint64_t {
                     double x = toDouble(a), y = toDouble(b);
                     return ((p & CmpInst::FCMP_OEQ) && x == y) || ((p & CmpInst::FCMP_OGT) && x > y) ||
                            ((p & CmpInst::FCMP_OLT) && x < y) ||
                            ((p & CmpInst::FCMP_UNO) && (std::isnan(x) || std::isnan(y)));
                   }});
  }

  auto truncate = [&](std::string name, std::string type, Result result, const fltSemantics &format) {
    all.push_back({name, type, "%r = fptrunc double %x to " + type, result,
                   [&](uint64_t a, uint64_t, uint64_t) { return convert(a, format); }, 1});
  };
  truncate("to_float", "float", Result::F32, APFloat::IEEEsingle());
  truncate("to_half", "half", Result::F16, APFloat::IEEEhalf());
  truncate("to_bfloat", "bfloat", Result::BF16, APFloat::BFloat());
  all.push_back({"from_float", "double",
                 "%w = trunc i64 %a to i32\n %s = bitcast i32 %w to float\n %r = fpext float %s to double",
                 Result::F64, [](uint64_t a, uint64_t, uint64_t) { return toBits(toFloat(a)); }, 1});

  for (std::string sign : {"s", "u"}) {
    all.push_back({sign + "i64_to_float", "float", "%r = " + sign + "itofp i64 %a to float", Result::F32,
                   [=](uint64_t a, uint64_t, uint64_t) -> uint64_t {
                     float x = sign == "s" ? static_cast<float>(int64_t(a)) : static_cast<float>(a);
                     return std::bit_cast<uint32_t>(x);
                   },
                   1});
    all.push_back(
        {"float_to_" + sign + "i64", "i64",
         "%w = trunc i64 %a to i32\n %s = bitcast i32 %w to float\n %r = fpto" + sign + "i float %s to i64",
         Result::Integer,
         [=](uint64_t a, uint64_t, uint64_t) {
           return sign == "s" ? uint64_t(static_cast<int64_t>(toFloat(a))) : uint64_t(toFloat(a));
         },
         1,
         [=](uint64_t a) {
           float x = toFloat(a);
           return sign == "s" ? x >= -0x1p63f && x < 0x1p63f : x > -1 && x < 0x1p64f;
         }});
  }
  auto fromInteger = [&]<typename Integer>(std::string type, Integer) {
    bool isSigned = std::is_signed_v<Integer>;
    std::string op = isSigned ? "sitofp " : "uitofp ";
    std::string narrow = type == "i64" ? "%n = add i64 %a, 0\n" : "%n = trunc i64 %a to " + type + "\n";
    all.push_back({(isSigned ? "from_s" : "from_u") + type, "double",
                   narrow + "%r = " + op + type + " %n to double", Result::F64,
                   [](uint64_t a, uint64_t, uint64_t) { return toBits(static_cast<double>(Integer(a))); },
                   1});
  };
  fromInteger("i8", int8_t());
  fromInteger("i8", uint8_t());
  fromInteger("i16", int16_t());
  fromInteger("i16", uint16_t());
  fromInteger("i32", int32_t());
  fromInteger("i32", uint32_t());
  fromInteger("i64", int64_t());
  fromInteger("i64", uint64_t());
  for (bool isSigned : {true, false})
    all.push_back(
        {isSigned ? "from_sbit" : "from_ubit", "double",
         std::string("%n = trunc i64 %a to i1\n %r = ") + (isSigned ? "si" : "ui") + "tofp i1 %n to double",
         Result::F64,
         [=](uint64_t a, uint64_t, uint64_t) { return toBits(a & 1 ? (isSigned ? -1.0 : 1.0) : 0.0); }, 1});
  auto toInteger = [&]<typename Integer>(std::string type, Integer) {
    bool isSigned = std::is_signed_v<Integer>;
    std::string op = isSigned ? "fptosi" : "fptoui";
    double least = isSigned ? double(std::numeric_limits<Integer>::min()) : 0.0;
    double end = std::ldexp(1.0, std::numeric_limits<Integer>::digits);
    all.push_back({op + type, type, "%r = " + op + " double %x to " + type, Result::Integer,
                   [](uint64_t a, uint64_t, uint64_t) -> uint64_t {
                     return std::make_unsigned_t<Integer>(static_cast<Integer>(toDouble(a)));
                   },
                   1,
                   [=](uint64_t a) {
                     double whole = std::trunc(toDouble(a));
                     return whole >= least && whole < end;
                   }});
  };
  toInteger("i16", int16_t());
  toInteger("i16", uint16_t());
  toInteger("i32", int32_t());
  toInteger("i32", uint32_t());
  toInteger("i64", int64_t());
  toInteger("i64", uint64_t());
  return all;
}

Operation makeFma(std::string name) {
  return {name,
          "double",
          "%r = call double @llvm." + name + ".f64(double %x, double %y, double %z)",
          Result::F64,
          [](uint64_t a, uint64_t b, uint64_t c) {
            return toBits(std::fma(toDouble(a), toDouble(b), toDouble(c)));
          },
          3};
}

/// `i64 op_NAME(i64, i64, i64)`. Without `op_` a function could be the library's that is not to be called.
std::string makeText(const Operation &operation) {
  unsigned bits = operation.type == "double"                               ? 64
                  : operation.type == "float"                              ? 32
                  : operation.type == "half" || operation.type == "bfloat" ? 16
                                                                           : 0;
  std::string text = "define i64 @op_" + operation.name + "(i64 %a, i64 %b, i64 %c) nounwind {\n";
  for (auto [number, word] : {std::pair("%x", "%a"), std::pair("%y", "%b"), std::pair("%z", "%c")})
    text += std::string(number) + " = bitcast i64 " + word + " to double\n";
  text += operation.code + "\n";
  std::string integer = bits ? "i" + std::to_string(bits) : operation.type;
  text += "%i = bitcast " + operation.type + " %r to " + integer + "\n";
  if (integer == "i64")
    return text + "ret i64 %i\n}\n";
  return text + "%e = zext " + integer + " %i to i64\nret i64 %e\n}\n";
}

/// A module of `text`, its operations of f64 written out.
std::unique_ptr<Module> makeModule(const std::string &text, LLVMContext &context) {
  SMDiagnostic diagnostic;
  std::unique_ptr<Module> module = parseAssemblyString(text, diagnostic, context);
  if (!module) {
    ADD_FAILURE() << diagnostic.getMessage().str() << "\n" << text;
    std::abort();
  }
  expandDoubles(*module);
  EXPECT_FALSE(verifyModule(*module, &errs()));
  return module;
}

/// A module in this process.
class Loaded {
public:
  explicit Loaded(const std::string &text) {
    std::string message;
    ortc::emit::findLlvmTarget(Triple(), message); // LLVM knows this processor
    jit = cantFail(orc::LLJITBuilder().create());
    auto context = std::make_unique<LLVMContext>();
    std::unique_ptr<Module> module = makeModule(text, *context);
    cantFail(jit->addIRModule(orc::ThreadSafeModule(std::move(module), std::move(context))));
  }
  template <typename Type = Function> Type *find(const std::string &name) {
    return cantFail(jit->lookup(name)).toPtr<Type *>();
  }

private:
  std::unique_ptr<orc::LLJIT> jit;
};

std::vector<uint64_t> makeSpecial() {
  // Of f32, in the lower half: infinities, NaN, the ends of the subnormal numbers, a negative zero.
  std::vector<uint64_t> all{0x7f800000, 0xff800000, 0x7f800001, 0x007fffff, 0x00800000, 0x80000000};
  for (uint64_t magnitude : {uint64_t(0),
                             uint64_t(1),
                             uint64_t(2),
                             uint64_t(3),
                             uint64_t(1) << 51,
                             (uint64_t(1) << 52) - 1,
                             uint64_t(1) << 52,
                             (uint64_t(1) << 52) + 1,
                             uint64_t(2) << 52,
                             toBits(0x1p-537),
                             toBits(0x1p-1000),
                             toBits(0x1p-150),
                             toBits(0x1.8p-149),
                             toBits(0x1.fffffep-127),
                             toBits(0x1.fffffffp-127),
                             toBits(0x1p-25),
                             toBits(0x1p-53),
                             toBits(0x1.0000000000001p-53),
                             toBits(0x1p-52),
                             toBits(0.25),
                             toBits(0.5) - 1,
                             toBits(0.5),
                             toBits(0.5) + 1,
                             toBits(1) - 1,
                             toBits(1),
                             toBits(1) + 1,
                             toBits(1.5),
                             toBits(2) - 1,
                             toBits(2.5),
                             toBits(3),
                             toBits(0x1.000001p0),
                             toBits(0x1.000003p0),
                             toBits(0x1.0000010000001p0),
                             toBits(65519.999),
                             toBits(65520),
                             toBits(0x1p31),
                             toBits(0x1p32),
                             toBits(0x1.8p51),
                             toBits(0x1.fffffffffffffp51),
                             toBits(0x1p52),
                             toBits(0x1p53),
                             toBits(0x1p53) - 1,
                             toBits(0x1p53) + 1,
                             toBits(0x1p63),
                             toBits(0x1p63) - 1,
                             toBits(0x1p64) - 1,
                             toBits(0x1.fffffep127),
                             toBits(0x1.ffffffp127),
                             toBits(0x1.fffffefffffffp127),
                             toBits(0x1p511),
                             toBits(0x1p512),
                             toBits(0x1p1022),
                             toBits(0x1.fffffffffffffp1022),
                             toBits(0x1p1023),
                             toBits(0x1.fffffffffffffp1023) - 1,
                             toBits(0x1.fffffffffffffp1023),
                             uint64_t(2047) << 52,
                             (uint64_t(2047) << 52) + 1,
                             uint64_t(0xfff) << 51,
                             ~uint64_t(0) >> 1})
    for (uint64_t sign : {uint64_t(0), uint64_t(1) << 63})
      all.push_back(magnitude | sign);
  return all;
}

bool isNan(uint64_t bits, Result result) {
  switch (result) {
  case Result::F64:
    return std::isnan(toDouble(bits));
  case Result::F32:
    return std::isnan(toFloat(bits));
  case Result::F16:
    return (bits & 0x7fff) > 0x7c00;
  case Result::BF16:
    return (bits & 0x7fff) > 0x7f80;
  default:
    return false;
  }
}

/// Compares one operation at special and at random operands.
class Comparison {
public:
  Comparison(const Operation &operation, Loaded &loaded)
      : operation(operation), function(loaded.find("op_" + operation.name)) {}

  void run() {
    const std::vector<uint64_t> special = makeSpecial(), none{0};
    bool two = operation.operands > 1, three = operation.operands > 2;
    for (uint64_t a : special)
      for (uint64_t b : two ? special : none)
        for (uint64_t c : three ? special : none)
          check(a, b, c);
    std::mt19937_64 random(5);
    for (int i = 0; i < kRandomCount; ++i) {
      uint64_t a = random(), b = random(), c = random();
      switch (i % 4) {
      case 1: // exponents near each other; integers of all sizes
        b = nearby(a, 60, random), c = nearby(a, 60, random);
        a = two || i % 8 == 1 ? a : a >> random() % 64;
        break;
      case 2: // a sum of a product and c; in half of them near the ends of the range, too
        if (i % 8 == 2)
          a = nearby(toBits(1), 60, random), b = nearby(toBits(1), 60, random);
        c = nearby(toBits(toDouble(a) * toDouble(b)), i % 16 < 8 ? 3 : 120, random);
        break;
      case 3: // few bits, which make ties and exact results; products that c takes away again
        a = fewBits(nearby(toBits(1), 70, random), random), b = fewBits(nearby(a, 40, random), random);
        c = i % 8 == 3 ? toBits(-(toDouble(a) * toDouble(b))) : fewBits(nearby(a, 60, random), random);
        break;
      }
      check(a, b, c);
    }
  }
  uint64_t count() const { return checked; }

private:
  /// Random bits whose exponent is that of `bits`, up to `range` more or less.
  static uint64_t nearby(uint64_t bits, int range, std::mt19937_64 &random) {
    int64_t exponent =
        static_cast<int64_t>(bits >> 52 & 2047) + static_cast<int64_t>(random() % (2 * range + 1)) - range;
    exponent = std::clamp<int64_t>(exponent, 0, 2046);
    return (random() & ~(uint64_t(2047) << 52)) | static_cast<uint64_t>(exponent) << 52;
  }
  static uint64_t fewBits(uint64_t bits, std::mt19937_64 &random) {
    unsigned dropped = random() % 53;
    return bits >> dropped << dropped;
  }

  void check(uint64_t a, uint64_t b, uint64_t c) {
    if (!operation.isDefined(a))
      return;
    uint64_t got = function(a, b, c), expected = operation.expected(a, b, c);
    ++checked;
    if (got == expected || (isNan(got, operation.result) && isNan(expected, operation.result)))
      return;
    if (++failures <= 3)
      ADD_FAILURE() << operation.name << std::hex << " of " << a << " " << b << " " << c << " is " << got
                    << ", not " << expected;
  }

  const Operation &operation;
  Function *function;
  uint64_t checked = 0, failures = 0;
};

} // namespace

namespace {

std::string makeText(const std::vector<Operation> &operations) {
  std::string text;
  for (const Operation &operation : operations)
    text += makeText(operation);
  return text;
}

void compare(const std::vector<Operation> &operations) {
  Loaded loaded(makeText(operations));
  uint64_t count = 0;
  for (const Operation &operation : operations) {
    Comparison comparison(operation, loaded);
    comparison.run();
    count += comparison.count();
  }
  testing::Test::RecordProperty("results", std::to_string(count));
}

TEST(SoftDoublesTest, AreThoseOfTheProcessor) { compare(makeOperations()); }

/// Where sums and products are multiply-adds.
TEST(SoftDoublesTest, AreThoseOfTheProcessorWhenFused) {
  std::vector<Operation> operations = makeOperations();
  operations.resize(3);
  operations.push_back(makeFma("fma"));
  operations.push_back(makeFma("fmuladd"));
  compare(operations);
}

TEST(SoftDoublesTest, VectorsAreTakenApart) {
  Loaded loaded(R"(
    define void @f(ptr %p, ptr %q) {
      %x = load <2 x double>, ptr %p
      %y = load <2 x double>, ptr %q
      %less = fcmp olt <2 x double> %x, %y
      %product = fmul <2 x double> %x, <double 3.0, double 5.0>
      %sum = fadd <2 x double> %product, %y
      %r = select <2 x i1> %less, <2 x double> %sum, <2 x double> %product
      %s = fptrunc <2 x double> %r to <2 x float>
      %d = fpext <2 x float> %s to <2 x double>
      %n = fptosi <2 x double> %d to <2 x i32>
      %e = sitofp <2 x i32> %n to <2 x double>
      %f = call <2 x double> @llvm.copysign.v2f64(<2 x double> %d, <2 x double> %e)
      %g = fsub <2 x double> %f, %e
      store <2 x double> %g, ptr %p
      ret void
    })");
  alignas(16) double x[] = {1.7, -2.3}, y[] = {2.9, -100.25}, expected[2];
  for (int i = 0; i < 2; ++i) {
    double product = x[i] * (i ? 5 : 3), sum = product + y[i];
    double rounded = static_cast<float>(x[i] < y[i] ? sum : product);
    expected[i] = rounded - std::trunc(rounded);
  }
  loaded.find<void(double *, double *)>("f")(x, y);
  EXPECT_EQ(x[0], expected[0]);
  EXPECT_EQ(x[1], expected[1]);
}

TEST(SoftDoublesTest, ValuesOfLoopsStayDoubles) {
  Loaded loaded(R"(
    define double @f(double %x, i32 %n) {
    entry:
      br label %loop
    loop:
      %i = phi i32 [ 0, %entry ], [ %j, %loop ]
      %sum = phi double [ 1.0, %entry ], [ %next, %loop ]
      %product = fmul double %sum, %x
      %number = uitofp i32 %i to double
      %next = fadd double %product, %number
      %j = add i32 %i, 1
      %more = icmp ult i32 %j, %n
      br i1 %more, label %loop, label %after
    after:
      ret double %next
    })");
  double expected = 1;
  for (int i = 0; i < 50; ++i) {
    double product = expected * 1.1;
    expected = product + i;
  }
  EXPECT_EQ(loaded.find<double(double, int)>("f")(1.1, 50), expected);
}

/// Code for a Cortex-M4, as an object or in assembly.
std::string compileForThumb(const std::string &text, CodeGenFileType type) {
  LLVMContext context;
  std::unique_ptr<Module> module = makeModule(text, context);
  Triple triple("thumbv7em-none-eabihf");
  std::string message;
  const llvm::Target *target = ortc::emit::findLlvmTarget(triple, message);
  std::unique_ptr<TargetMachine> machine(
      target->createTargetMachine(triple, "cortex-m4", "", ortc::emit::makeTargetOptions(), Reloc::PIC_,
                                  CodeModel::Small, CodeGenOptLevel::Aggressive));
  module->setDataLayout(machine->createDataLayout());
  module->setTargetTriple(triple);
  SmallString<0> bytes;
  raw_svector_ostream stream(bytes);
  legacy::PassManager passes;
  EXPECT_FALSE(machine->addPassesToEmitFile(passes, stream, nullptr, type));
  passes.run(*module);
  return std::string(bytes);
}

/// Names of symbols that an object imports, and sizes of its functions.
struct Symbols {
  explicit Symbols(const std::string &bytes) {
    auto object = cantFail(object::ObjectFile::createObjectFile(MemoryBufferRef(bytes, "object")));
    for (object::ELFSymbolRef symbol : cast<object::ELFObjectFileBase>(*object).symbols()) {
      std::string name = cantFail(symbol.getName()).str();
      if (cantFail(symbol.getFlags()) & object::SymbolRef::SF_Undefined && !name.empty())
        imports.push_back(name);
      else if (symbol.getELFType() == ELF::STT_FUNC)
        sizes[name] = symbol.getSize();
    }
  }
  std::vector<std::string> imports;
  std::map<std::string, uint64_t> sizes;
};

TEST(SoftDoublesTest, ImportNothing) {
  std::vector<Operation> operations = makeOperations();
  operations.push_back(makeFma("fma"));
  operations.push_back(makeFma("fmuladd"));
  for (const char *mask : {"3", "96", "144", "264", "504", "516", "519"}) // what LLVM may make of comparisons
    operations.push_back({"fpclass" + std::string(mask),
                          "i1",
                          "%r = call i1 @llvm.is.fpclass.f64(double %x, i32 " + std::string(mask) + ")",
                          Result::Integer,
                          {}});
  operations.push_back({"from_half",
                        "double",
                        "%w = trunc i64 %a to i16\n%h = bitcast i16 %w to half\n%r = fpext half %h to double",
                        Result::F64,
                        {}});
  const std::vector<std::string> none;
  for (const Operation &operation : operations)
    EXPECT_EQ(Symbols(compileForThumb(makeText(operation), CodeGenFileType::ObjectFile)).imports, none)
        << operation.name;
  EXPECT_EQ(Symbols(compileForThumb(makeText(operations), CodeGenFileType::ObjectFile)).imports, none);
  // For size LLVM would load an address that it calls three times in a block; then stack use is not known.
  std::string assembly = compileForThumb(makeText(operations), CodeGenFileType::AssemblyFile);
  EXPECT_NE(assembly.find("bl\t"), std::string::npos);
  EXPECT_EQ(assembly.find("blx\t"), std::string::npos);
  EXPECT_EQ(assembly.find("OUTLINED"), std::string::npos);
}

/// In bytes; a change that adds some is to be looked at.
TEST(SoftDoublesTest, AreSmall) {
  std::vector<Operation> operations = makeOperations();
  for (auto [isFused, most] : {std::pair(false, 1500), std::pair(true, 1720)}) {
    if (isFused)
      operations.push_back(makeFma("fma"));
    uint64_t total = 0;
    for (auto [name, size] :
         Symbols(compileForThumb(makeText(operations), CodeGenFileType::ObjectFile)).sizes)
      if (size_t at = name.find(".f64."); at != std::string::npos) {
        RecordProperty((isFused ? "fused" : "plain") + name.substr(at + 4), static_cast<int>(size));
        total += size;
      }
    EXPECT_GT(total, 0u);
    EXPECT_LE(total, uint64_t(most));
  }
}

/// By way of the target's description.
TEST(SoftDoublesTest, AreInKernels) {
  auto run = [](bool isSoft) {
    test::KernelModule m;
    mlir::OpBuilder &b = m.builder;
    mlir::Location loc = b.getUnknownLoc();
    KernelInfo info;
    info.name = "k";
    auto kernel = createKernelFunction(b, *m.module, info, {{b.getF64Type(), 2, true, true}});
    mlir::Value at = mlir::arith::ConstantIndexOp::create(b, loc, 0);
    mlir::Value x = mlir::memref::LoadOp::create(b, loc, kernel.buffers[0], at);
    mlir::memref::StoreOp::create(b, loc, mlir::arith::DivFOp::create(b, loc, x, x), kernel.buffers[0], at);
    ortc::cpu::Target target = *findTarget("x86-64");
    target.isa.softDoubles = isSoft;
    LoadedBlob blob = m.load(target);
    test::AlignedArray<double> data(2);
    void *args[] = {data.begin()};
    blob.kernel("k")(args, 0, 0);
    return toBits(data[0]);
  };
  EXPECT_EQ(run(true) >> 63, 0u); // of 0 / 0; this processor's has a sign
  EXPECT_EQ(run(false) >> 63, 1u);
}

} // namespace
