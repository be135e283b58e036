// Losses, optimizers, entries.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs what the passes write through the evaluator. Expected numbers come from make_references.py and, for a file in
// Inputs/losses or Inputs/optimizers, from PyTorch by make_torch_references.py.
#include "passes/train/TrainingProgram.h"

#include "compiler/evaluator/Evaluator.h"
#include "passes/train/ByteStates.h"
#include "passes/train/Losses.h"
#include "passes/train/Optimizers.h"
#include "passes/train/ProgramParts.h"
#include "passes/train/ScheduledRate.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <set>

using namespace mlir;
using namespace ortc;
using namespace ortc::train;
using evaluator::Evaluator;
using evaluator::HostTensor;

namespace {

class TrainingProgramTest : public ::testing::Test {
protected:
  TrainingProgramTest() {
    DialectRegistry registry;
    registry.insert<func::FuncDialect, arith::ArithDialect, math::MathDialect, nn::NnDialect, TrainDialect>();
    autodiff::registerGradientRules(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.allowUnregisteredDialects();
  }
  OwningOpRef<ModuleOp> load(StringRef file) {
    return parseSourceFile<ModuleOp>((ORTC_TEST_DATA "/passes/train/Inputs/" + file).str(), &context);
  }
  /// The functions of Inputs/NAME.mlir and of every file in Inputs/NAME.
  std::vector<func::FuncOp> loadCases(const std::string &name) {
    std::set<std::string> files;
    for (const auto &file :
         std::filesystem::directory_iterator(ORTC_TEST_DATA "/passes/train/Inputs/" + name))
      files.insert(name + "/" + file.path().filename().string());
    files.insert(name + ".mlir");
    std::vector<func::FuncOp> cases;
    for (const std::string &file : files) {
      modules.push_back(load(file));
      EXPECT_TRUE(modules.back()) << file;
      if (modules.back())
        llvm::append_range(cases, modules.back()->getOps<func::FuncOp>());
    }
    return cases;
  }
  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::vector<OwningOpRef<ModuleOp>> modules;
};

HostTensor attributeOf(func::FuncOp function, unsigned i, StringRef name) {
  return *HostTensor::fromAttribute(function.getArgAttrOfType<ElementsAttr>(i, name));
}

/// The largest distance relative to the largest expected magnitude (at least `floor`).
double distance(const HostTensor &got, const HostTensor &expected, double floor = 1e-3) {
  EXPECT_EQ(got.getType(), expected.getType());
  if (got.getType() != expected.getType())
    return INFINITY;
  double span = floor, off = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    span = std::max(span, std::fabs(expected.getFloat(i)));
    double difference = std::fabs(got.getFloat(i) - expected.getFloat(i));
    off = std::isnan(difference) ? INFINITY : std::max(off, difference);
  }
  return off / span;
}

/// Float64 against float64: only the order of operations differs.
constexpr double kTolerance = 1e-12;

/// Float32 against float64, as for the models of the zoo (docs/testing.md).
constexpr double kLossTolerance32 = 2e-6, kGradientTolerance32 = 1e-5;

/// The same numbers in another float type, rounded; integers as they are.
HostTensor convert(const HostTensor &from, Type element) {
  if (!from.isFloat())
    return from;
  HostTensor to(from.getType().clone(element));
  for (int64_t i = 0; i < from.size(); ++i)
    to.setFloat(i, evaluator::roundTo(element, from.getFloat(i)));
  return to;
}

/// Builds the loss of a case in that float type, and compares it and its gradient.
void compareLoss(func::FuncOp reference, const LossSpec &spec, Type element) {
  const bool isDouble = element.isF64();
  std::vector<HostTensor> inputs;
  SmallVector<Type> types;
  for (unsigned i = 0; i < reference.getNumArguments(); ++i) {
    inputs.push_back(convert(attributeOf(reference, i, "test.value"), element));
    types.push_back(inputs.back().getType());
  }
  MLIRContext *context = reference.getContext();
  auto location = reference.getLoc();
  func::FuncOp function = func::FuncOp::create(location, "loss", FunctionType::get(context, types, {}));
  Block &block = *function.addEntryBlock();
  nn::TensorBuilder builder(location, context);
  builder.setInsertionPointToEnd(&block);
  ArrayRef<Value> arguments(block.getArguments().begin(), block.getArguments().end());
  auto prediction = cast<RankedTensorType>(types.front());
  SmallVector<Value> predictions(arguments.take_front(findLoss(spec.name)->predictions.size()));
  SmallVector<Value> others(arguments.drop_front(predictions.size()));
  Value label;
  if (needsLabel(spec)) {
    label = others.front();
    others.erase(others.begin());
    auto labelType = inferLabelType(spec, prediction, location);
    ASSERT_TRUE(succeeded(labelType));
    EXPECT_EQ(Type(*labelType), label.getType());
  }
  auto listed = inferLossInputs(spec, prediction, location);
  ASSERT_TRUE(succeeded(listed));
  ASSERT_EQ(listed->size(), others.size());
  for (auto [input, other] : llvm::zip(*listed, others)) {
    unsigned i = cast<BlockArgument>(other).getArgNumber();
    EXPECT_EQ(reference.getArgAttrOfType<StringAttr>(i, "test.name").getValue(), input.name);
    EXPECT_EQ(Type(input.type), other.getType());
  }
  auto loss = buildLossValue(builder, spec, predictions, label, others);
  ASSERT_TRUE(succeeded(loss));
  auto gradients = autodiff::differentiate(builder, *loss, builder.constantLike(*loss, 1), predictions);
  ASSERT_TRUE(succeeded(gradients));
  SmallVector<Value> returned{*loss};
  for (auto [each, gradient] : llvm::zip_equal(predictions, gradients->gradients))
    returned.push_back(gradient ? gradient : builder.zerosLike(each));
  func::ReturnOp::create(builder, returned);

  auto values = Evaluator(isDouble ? evaluator::Precision::f64 : evaluator::Precision::declared)
                    .evaluate(block, inputs);
  ASSERT_TRUE(succeeded(values));
  double expected = reference->getAttrOfType<FloatAttr>("test.result").getValueAsDouble();
  EXPECT_NEAR((*values)[0].getFloat(0), expected,
              (isDouble ? kTolerance : kLossTolerance32) * std::max(1.0, std::fabs(expected)));
  for (unsigned i = 0; i < predictions.size(); ++i) {
    HostTensor gradient = attributeOf(reference, i, "test.gradient");
    EXPECT_LE(distance(convert((*values)[i + 1], gradient.getType().getElementType()), gradient),
              isDouble ? kTolerance : kGradientTolerance32)
        << i;
  }
  function.erase();
}

TEST_F(TrainingProgramTest, LossesAgreeWithTheirDefinitions) {
  std::set<std::string> tested;
  for (func::FuncOp reference : loadCases("losses")) {
    LossSpec spec;
    std::string text = reference->getAttrOfType<StringAttr>("test.loss").str();
    if (size_t at = text.find('@'); at != std::string::npos) // a file
      text.replace(at, 1, ORTC_TEST_DATA "/passes/train/Inputs/factors/");
    Status status = parseLoss(text).moveTo(spec);
    ASSERT_TRUE(status.isOk()) << status.getMessage();
    for (Type element : {Type(Float64Type::get(&context)), Type(Float32Type::get(&context))}) {
      SCOPED_TRACE(reference.getName().str() + (element.isF64() ? " in float64" : " in float32"));
      compareLoss(reference, spec, element);
    }
    tested.insert(spec.name);
  }
  for (const LossDefinition *each : listLosses())
    EXPECT_TRUE(tested.count(each->name)) << each->name << " needs test/passes/train/losses/" << each->name
                                          << ".py, and make_torch_references.py";
}

/// What PyTorch's references cannot hold: numbers that are infinite, and steps that end.
TEST_F(TrainingProgramTest, SequencesAtTheirLimits) {
  auto parsed = parseLoss("ctc:labels=2");
  ASSERT_TRUE(bool(parsed));
  Type f64 = Float64Type::get(&context), i64 = IntegerType::get(&context, 64);
  SmallVector<Type> types = {RankedTensorType::get({2, 1, 3}, f64), RankedTensorType::get({1, 2}, i64),
                             RankedTensorType::get({1}, i64), RankedTensorType::get({1}, i64)};
  auto location = UnknownLoc::get(&context);
  func::FuncOp function = func::FuncOp::create(location, "loss", FunctionType::get(&context, types, {}));
  Block &block = *function.addEntryBlock();
  nn::TensorBuilder builder(location, &context);
  builder.setInsertionPointToEnd(&block);
  SmallVector<Value> others(block.getArguments().drop_front(2));
  auto loss = buildLossValue(builder, *parsed, block.getArgument(0), block.getArgument(1), others);
  ASSERT_TRUE(succeeded(loss));
  auto gradients =
      autodiff::differentiate(builder, *loss, builder.constantLike(*loss, 1), block.getArgument(0));
  ASSERT_TRUE(succeeded(gradients));
  func::ReturnOp::create(builder, ValueRange{*loss, gradients->gradients.front()});
  auto evaluate = [&](std::vector<double> x, std::vector<int64_t> integers) {
    std::vector<HostTensor> inputs;
    for (Type type : types)
      inputs.emplace_back(cast<RankedTensorType>(type));
    for (int64_t i = 0; i < 6; ++i)
      inputs[0].setFloat(i, x[i]);
    for (int64_t i = 0; i < 4; ++i)
      inputs[i < 2 ? 1 : i].setInt(i < 2 ? i : 0, integers[i]);
    return Evaluator(evaluator::Precision::f64).evaluate(block, inputs);
  };
  std::vector<double> even(6, std::log(1.0 / 3));
  auto repeated = evaluate(even, {1, 1, 2, 2}); // needs a blank between, in a third frame
  ASSERT_TRUE(succeeded(repeated));
  EXPECT_EQ((*repeated)[0].getFloat(0), INFINITY);
  const double never = -INFINITY;
  auto certain = evaluate({0, never, never, never, 0, never}, {1, 0, 2, 1}); // blank, then class 1
  ASSERT_TRUE(succeeded(certain));
  EXPECT_EQ((*certain)[0].getFloat(0), 0);
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_NEAR((*certain)[1].getFloat(i), 0, 1e-15) << i;
  auto impossible = evaluate({0, never, never, 0, never, never}, {1, 0, 2, 1});
  ASSERT_TRUE(succeeded(impossible));
  EXPECT_EQ((*impossible)[0].getFloat(0), INFINITY);
  for (std::vector<int64_t> bad :
       {std::vector<int64_t>{0, 1, 2, 1}, {3, 1, 2, 1}, {1, 1, 3, 1}, {1, 1, 2, 3}, {1, 1, -1, 1}})
    EXPECT_TRUE(failed(evaluate(even, bad))) << bad[0] << " " << bad[2] << " " << bad[3];
  function.erase();
}

/// Tensors of a program between steps, by symbol.
using Memory = std::map<std::string, HostTensor>;

std::string symbolOf(Attribute attribute) { return cast<FlatSymbolRefAttr>(attribute).getValue().str(); }

/// Memory as declared: initial values, or zeros, in stored layout (tests use no permutation with initial
/// values).
Memory initialMemory(ModuleOp module) {
  Memory memory;
  for (auto tensor : module.getOps<TensorOp>())
    memory[tensor.getSymName().str()] = tensor.getInitialAttr()
                                            ? *HostTensor::fromAttribute(tensor.getInitialAttr())
                                            : HostTensor(tensor.getStoredType());
  return memory;
}

/// Runs `function`: arguments come from memory, `gradients` and `inputs`; updates go to memory, gradients to
/// `gradients`, outputs, which are numbers, to `outputs`. Returns the loss, if there is one.
double step(func::FuncOp function, Memory &memory, Memory &gradients, const Memory &inputs,
            evaluator::Precision precision, std::map<std::string, double> *outputs = nullptr) {
  SmallVector<HostTensor> arguments;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    if (Attribute tensor = function.getArgAttr(i, kTensor))
      arguments.push_back(memory.at(symbolOf(tensor)));
    else if (Attribute gradient = function.getArgAttr(i, kGradient))
      arguments.push_back(gradients.at(symbolOf(gradient)));
    else
      arguments.push_back(inputs.at(function.getArgAttrOfType<StringAttr>(i, kInput).str()));
  }
  auto values = Evaluator(precision).evaluate(function.front(), arguments);
  EXPECT_TRUE(succeeded(values));
  double loss = NAN;
  for (auto [i, value] : llvm::enumerate(*values)) {
    if (Attribute update = function.getResultAttr(i, kUpdate))
      memory[symbolOf(update)] = value;
    else if (Attribute gradient = function.getResultAttr(i, kGradient))
      gradients[symbolOf(gradient)] = value;
    else if (function.getResultAttr(i, kLoss))
      loss = value.getFloat(0);
    else if (auto name = function.getResultAttrOfType<StringAttr>(i, kOutput); name && outputs)
      (*outputs)[name.str()] = value.getFloat(0);
  }
  return loss;
}

/// One case of an optimizer: a program with its parameters, and what they are after some steps.
class OptimizerCase {
public:
  explicit OptimizerCase(func::FuncOp reference) : reference(reference) {}

  /// Parses the flags and writes the update.
  void build(UpdateOptions &options) {
    MLIRContext *context = reference.getContext();
    program = ModuleOp::create(reference.getLoc());
    OpBuilder builder = OpBuilder::atBlockEnd(program->getBody());
    for (unsigned i = 0; i < reference.getNumArguments(); ++i) {
      auto value = reference.getArgAttrOfType<ElementsAttr>(i, "test.value");
      auto permutation = reference.getArgAttrOfType<DenseI64ArrayAttr>(i, "test.permutation");
      TensorOp::create(builder, reference.getLoc(), nameOf(i), RoleAttr::get(context, Role::parameter),
                       nameOf(i), TypeAttr::get(value.getShapedType()), permutation, value,
                       FlatSymbolRefAttr(), StringAttr());
    }
    Status status = parseOptimizer(reference->getAttrOfType<StringAttr>("test.optimizer").getValue())
                        .moveTo(options.optimizer);
    ASSERT_TRUE(status.isOk()) << status.getMessage();
    SmallVector<StringRef> groups;
    reference->getAttrOfType<StringAttr>("test.groups").getValue().split(groups, ';', -1, false);
    for (StringRef group : groups) {
      status = parseGroup(group).moveTo(options.groups.emplace_back());
      ASSERT_TRUE(status.isOk()) << status.getMessage();
    }
    if (auto limit = reference->getAttrOfType<FloatAttr>("test.clip_norm"))
      options.clipNorm = limit.getValueAsDouble();
    if (auto limit = reference->getAttrOfType<FloatAttr>("test.clip_value"))
      options.clipValue = limit.getValueAsDouble();
    ASSERT_TRUE(succeeded(buildUpdate(*program, options)));
  }

  /// The largest distance of a parameter from what is expected, each step scaled by `scale`.
  double run(double scale = 1) {
    Memory memory = initialMemory(*program), gradients;
    for (unsigned i = 0; i < reference.getNumArguments(); ++i)
      memory[nameOf(i).str()] = store(i, memory[nameOf(i).str()]);
    int64_t steps = reference->getAttrOfType<IntegerAttr>("test.steps").getInt();
    for (int64_t t = 0; t < steps; ++t) {
      for (unsigned i = 0; i < reference.getNumArguments(); ++i)
        gradients[nameOf(i).str()] = store(i, gradientOf(i, t));
      Memory before = memory;
      step(program->lookupSymbol<func::FuncOp>("update"), memory, gradients, {},
           evaluator::Precision::declared); // f64, but for what is kept in bytes
      for (unsigned i = 0; scale != 1 && i < reference.getNumArguments(); ++i) {
        HostTensor &now = memory[nameOf(i).str()], &old = before[nameOf(i).str()];
        for (int64_t j = 0; j < now.size(); ++j)
          now.setFloat(j, old.getFloat(j) + scale * (now.getFloat(j) - old.getFloat(j)));
      }
    }
    EXPECT_EQ(memory.at("step").getInt(0), steps);
    double worst = 0;
    for (unsigned i = 0; i < reference.getNumArguments(); ++i) {
      const HostTensor &value = memory.at(nameOf(i).str());
      worst = std::max(worst, reference.getArgAttr(i, "test.sums")
                                  ? distance(weighRows(i, value), attributeOf(reference, i, "test.sums"))
                                  : distance(value, store(i, attributeOf(reference, i, "test.expected"))));
      if (scale == 1)
        expectStates(i, memory);
    }
    return worst;
  }

private:
  StringAttr nameOf(unsigned i) { return reference.getArgAttrOfType<StringAttr>(i, "test.name"); }

  /// Sums over columns, the first one once, the second one twice, and so on.
  HostTensor weighRows(unsigned i, const HostTensor &value) {
    HostTensor sums(attributeOf(reference, i, "test.sums").getType());
    int64_t rows = sums.size(), columns = value.size() / rows;
    bool isTransposed = bool(reference.getArgAttr(i, "test.permutation"));
    for (int64_t j = 0; j < value.size(); ++j) {
      int64_t row = isTransposed ? j % rows : j / columns, column = isTransposed ? j / rows : j % columns;
      sums.setFloat(row, sums.getFloat(row) + static_cast<double>(column + 1) * value.getFloat(j));
    }
    return sums;
  }

  /// Integers are equal, and f32 numbers are as far apart as rounding of f64 may take them.
  void expectStates(unsigned i, const Memory &memory) {
    auto states = reference.getArgAttrOfType<DictionaryAttr>(i, "test.states");
    for (NamedAttribute state : states ? states.getValue() : ArrayRef<NamedAttribute>()) {
      std::string name = (nameOf(i).getValue() + "." + state.getName().getValue()).str();
      HostTensor expected = *HostTensor::fromAttribute(cast<ElementsAttr>(state.getValue()));
      ASSERT_TRUE(memory.count(name)) << name;
      ASSERT_EQ(memory.at(name).getType(), expected.getType()) << name;
      int64_t different = 0;
      for (int64_t j = 0; j < expected.size(); ++j)
        different += expected.isFloat()
                         ? std::fabs(memory.at(name).getFloat(j) / expected.getFloat(j) - 1) > 0x1p-23
                         : memory.at(name).getInt(j) != expected.getInt(j);
      EXPECT_EQ(different, 0) << name;
    }
  }

  /// The tensor of parameter `i` as the program sees it.
  HostTensor store(unsigned i, const HostTensor &file) {
    if (!reference.getArgAttr(i, "test.permutation"))
      return file;
    int64_t rows = file.getShape()[0], columns = file.getShape()[1];
    HostTensor stored(RankedTensorType::get({columns, rows}, file.getType().getElementType()));
    for (int64_t j = 0; j < file.size(); ++j)
      stored.copy(j % columns * rows + j / columns, file, j);
    return stored;
  }

  /// The file's numbers, or those of make_torch_references.py.
  HostTensor gradientOf(unsigned i, int64_t t) {
    HostTensor one(attributeOf(reference, i, "test.value").getType());
    if (reference.getArgAttr(i, "test.gradients")) {
      HostTensor all = attributeOf(reference, i, "test.gradients");
      for (int64_t j = 0; j < one.size(); ++j)
        one.copy(j, all, t * one.size() + j);
      return one;
    }
    for (int64_t j = 0; j < one.size(); ++j)
      one.setFloat(j, static_cast<double>((7 * t * t + 13 * j + 5 * t * j + 3 * i) % 23 - 11) / 8);
    return one;
  }

  func::FuncOp reference;
  OwningOpRef<ModuleOp> program;
};

/// Fifty steps of float64 in another order of operations: rounding of 1e-16 that averages and roots carry on.
constexpr double kOptimizerTolerance = 1e-11;

TEST_F(TrainingProgramTest, OptimizersAgreeWithTheirDefinitions) {
  std::set<std::string> tested;
  for (func::FuncOp reference : loadCases("optimizers")) {
    SCOPED_TRACE(reference.getName().str());
    OptimizerCase each(reference);
    UpdateOptions options;
    each.build(options);
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_LE(each.run(), kOptimizerTolerance);
    EXPECT_GT(each.run(1.01), 1e6 * kOptimizerTolerance) << "a formula off by a hundredth must be seen";
    tested.insert(options.optimizer.name);
  }
  for (const OptimizerDefinition *each : listOptimizers())
    EXPECT_TRUE(tested.count(each->name)) << each->name << " needs test/passes/train/optimizers/"
                                          << each->name << ".py, and make_torch_references.py";
}

/// Codes of bytes are equal to bitsandbytes' after every step, as the numbers behind them are f64.
TEST_F(TrainingProgramTest, ByteStatesAreThoseOfBitsandbytes) {
  modules.push_back(load("byte_states.mlir"));
  ASSERT_TRUE(modules.back());
  for (func::FuncOp reference : modules.back()->getOps<func::FuncOp>()) {
    if (reference.getName() == "maps")
      continue;
    SCOPED_TRACE(reference.getName().str());
    OptimizerCase each(reference);
    UpdateOptions options;
    each.build(options);
    ASSERT_FALSE(HasFatalFailure());
    EXPECT_LE(each.run(), 2000 * kOptimizerTolerance); // sums of 64 numbers, with weights up to 64
  }
}

/// Every code, and f32 numbers around the middle of every two, against the definition.
TEST_F(TrainingProgramTest, BytesAreTheNearestOfTheMap) {
  modules.push_back(load("byte_states.mlir"));
  ASSERT_TRUE(modules.back());
  auto maps = modules.back()->lookupSymbol<func::FuncOp>("maps");
  for (bool isSigned : {true, false}) {
    HostTensor map =
        *HostTensor::fromAttribute(maps->getAttrOfType<DenseElementsAttr>(isSigned ? "signed" : "positive"));
    std::array<float, 256> own = createDynamicMap(isSigned);
    std::vector<float> values;
    for (int64_t i = 0; i < 256; ++i) {
      EXPECT_EQ(own[i], static_cast<float>(map.getFloat(i))) << i;
      float value = own[i], middle = i < 255 ? (own[i] + own[i + 1]) / 2 : 1;
      for (float each : {value, middle})
        for (float limit : {-2.0f, 2.0f}) {
          float near = each;
          for (int ulp = 0; ulp < 4; ++ulp, near = std::nextafter(near, limit))
            if (std::fabs(near) <= 1 && (isSigned || near >= 0))
              values.push_back(near);
        }
    }
    if (isSigned)
      values.insert(values.end(), {-1.0f, -0.0f, 1e-30f, -1e-30f});
    // In front of 255 of them a 1, so that they are shares.
    int64_t rows = (static_cast<int64_t>(values.size()) + 254) / 255;
    values.resize(rows * 255);
    HostTensor input(RankedTensorType::get({rows, 256}, Float32Type::get(&context)));
    for (int64_t j = 0; j < input.size(); ++j)
      input.setFloat(j, j % 256 == 0 ? 1 : values[j - j / 256 - 1]);
    nn::TensorBuilder b(UnknownLoc::get(&context), &context);
    func::FuncOp function =
        func::FuncOp::create(b.getLoc(), "encode", b.getFunctionType({input.getType()}, {}));
    Block &block = *function.addEntryBlock();
    b.setInsertionPointToEnd(&block);
    ByteState state = encode(b, block.getArgument(0), isSigned);
    func::ReturnOp::create(
        b, ValueRange{state.codes, state.largest, decode(b, state, isSigned, b.getF32Type())});
    auto results = Evaluator(evaluator::Precision::declared).evaluate(block, input);
    ASSERT_TRUE(succeeded(results));
    for (int64_t j = 0; j < input.size(); ++j) {
      double value = input.getFloat(j);
      int64_t nearest = 0; // the first of equal ones
      for (int64_t code = 1; code < 256; ++code)
        if (std::fabs(own[code] - value) < std::fabs(own[nearest] - value))
          nearest = code;
      EXPECT_EQ((*results)[0].getInt(j) & 255, nearest) << value;
      EXPECT_EQ((*results)[2].getFloat(j), static_cast<double>(own[nearest]));
    }
    function.erase();
  }
}

/// The flags of a reference.
UpdateSpecs specsOf(func::FuncOp reference) {
  UpdateSpecs specs;
  auto textOf = [&](StringRef flag) {
    auto text = reference->getAttrOfType<StringAttr>(flag);
    return text ? text.getValue() : StringRef();
  };
  if (StringRef text = textOf("test.ema"); !text.empty())
    EXPECT_TRUE(parseEma(text).moveTo(specs.ema.emplace()).isOk());
  if (StringRef text = textOf("test.swa"); !text.empty())
    EXPECT_TRUE(parseSwa(text).moveTo(specs.swa.emplace()).isOk());
  SmallVector<StringRef> regularizers;
  textOf("test.regularize").split(regularizers, ';', -1, false);
  for (StringRef text : regularizers)
    EXPECT_TRUE(parseRegularize(text).moveTo(specs.regularizers.emplace_back()).isOk());
  auto masks = std::make_shared<Masks>();
  for (unsigned i = 0; i < reference.getNumArguments(); ++i)
    if (auto values = reference.getArgAttrOfType<DenseIntElementsAttr>(i, "test.mask")) {
      Mask &mask = (*masks)[reference.getArgAttrOfType<StringAttr>(i, "test.name").str()];
      mask.shape = values.getType().getShape().vec();
      for (const APInt &value : values.getValues<APInt>())
        mask.keeps.push_back(value.getBoolValue());
    }
  if (!masks->empty())
    specs.masks = masks;
  specs.gradientNorm = specs.parameterNorm = true;
  return specs;
}

TEST_F(TrainingProgramTest, UpdatesAgreeWithTheirDefinitions) {
  modules.push_back(load("updates.mlir"));
  ASSERT_TRUE(modules.back());
  for (bool isTransposed : {false, true}) // as the program stores the weight
    for (func::FuncOp reference : modules.back()->getOps<func::FuncOp>()) {
      SCOPED_TRACE(reference.getName().str() + (isTransposed ? " transposed" : ""));
      OwningOpRef<ModuleOp> program = ModuleOp::create(reference.getLoc());
      OpBuilder builder = OpBuilder::atBlockEnd(program->getBody());
      std::vector<bool> isSwapped;
      for (unsigned i = 0; i < reference.getNumArguments(); ++i) {
        auto name = reference.getArgAttrOfType<StringAttr>(i, "test.name");
        auto value = reference.getArgAttrOfType<ElementsAttr>(i, "test.value");
        isSwapped.push_back(isTransposed && value.getShapedType().getRank() == 2);
        TensorOp::create(builder, reference.getLoc(), name, RoleAttr::get(&context, Role::parameter), name,
                         TypeAttr::get(value.getShapedType()),
                         isSwapped.back() ? builder.getDenseI64ArrayAttr({1, 0}) : DenseI64ArrayAttr(), value,
                         FlatSymbolRefAttr(), StringAttr());
      }
      // Of a 3x2 tensor, or of one of steps of these, the element at a place of the layout of the file.
      auto placeOf = [&](unsigned i, int64_t j) { return isSwapped[i] ? j % 2 * 3 + j / 2 : j; };
      UpdateOptions options;
      ASSERT_TRUE(parseOptimizer(reference->getAttrOfType<StringAttr>("test.optimizer").getValue())
                      .moveTo(options.optimizer)
                      .isOk());
      options.specs = specsOf(reference);
      ASSERT_TRUE(succeeded(buildUpdate(*program, options)));
      auto update = program->lookupSymbol<func::FuncOp>("update");

      Memory memory, gradients;
      std::vector<std::string> names;
      for (auto tensor : program->getOps<TensorOp>()) {
        HostTensor &value = memory[tensor.getSymName().str()] = HostTensor(tensor.getStoredType());
        if (tensor.getRole() == Role::scalar)
          value = *HostTensor::fromAttribute(tensor.getInitialAttr());
      }
      for (unsigned i = 0; i < reference.getNumArguments(); ++i) {
        names.push_back(reference.getArgAttrOfType<StringAttr>(i, "test.name").str());
        auto mask = reference.getArgAttrOfType<DenseIntElementsAttr>(i, "test.mask");
        HostTensor initial = attributeOf(reference, i, "test.value"), &stored = memory.at(names.back());
        for (int64_t j = 0; j < initial.size();
             ++j) // the program's own initial value is tested with the tool
          stored.setFloat(placeOf(i, j),
                          mask && mask.getValues<APInt>()[j].isZero() ? 0 : initial.getFloat(j));
      }
      std::map<std::string, double> outputs;
      for (int64_t t = 0; t < reference->getAttrOfType<IntegerAttr>("test.steps").getInt(); ++t) {
        for (unsigned i = 0; i < names.size(); ++i) {
          HostTensor all = attributeOf(reference, i, "test.gradients");
          HostTensor &one = gradients[names[i]] = HostTensor(memory.at(names[i]).getType());
          for (int64_t j = 0; j < one.size(); ++j)
            one.setFloat(placeOf(i, j), all.getFloat(t * one.size() + j));
        }
        step(update, memory, gradients, {}, evaluator::Precision::f64, &outputs);
      }
      for (unsigned i = 0; i < names.size(); ++i)
        for (const auto &[attribute, suffix] :
             {std::pair("test.expected", ""),
              std::pair("test.average", options.specs.ema ? ".ema" : ".swa")}) {
          if (!reference.getArgAttr(i, attribute))
            continue;
          HostTensor expected = attributeOf(reference, i, attribute), got(expected.getType());
          for (int64_t j = 0; j < got.size(); ++j)
            got.setFloat(j, memory.at(names[i] + suffix).getFloat(placeOf(i, j)));
          EXPECT_LE(distance(got, expected), kTolerance) << names[i] << suffix;
        }
      for (const char *norm : {"grad_norm", "param_norm"})
        EXPECT_NEAR(outputs.at(norm),
                    reference->getAttrOfType<FloatAttr>((Twine("test.") + norm).str()).getValueAsDouble(),
                    kTolerance)
            << norm;
    }
}

/// The same formulas, in numbers and as operations.
TEST_F(TrainingProgramTest, SchedulesHaveTheBitsOfHosts) {
  for (const char *text :
       {"constant:warmup=7", "linear:warmup=49,total=300,min=0.001", "step:step_size=49,gamma=0.87",
        "multistep:milestones=3/100/200", "exponential:warmup=5,gamma=0.99", "polynomial:total=250,power=1.7",
        "cosine:warmup=13,total=290,min=1e-05", "cosine_restarts:period=49",
        "cosine_restarts:period=3,mult=3,min=0.01", "one_cycle:total=260", "one_cycle:total=1",
        "inverse_sqrt:warmup=9", "wsd:decay=91,total=281,anneal=sqrt"}) {
    SCOPED_TRACE(text);
    host::Schedule rates;
    ASSERT_TRUE(host::Schedule::parse(text, rates).isOk());
    func::FuncOp function =
        func::FuncOp::create(UnknownLoc::get(&context), "f", FunctionType::get(&context, {}, {}));
    auto type = RankedTensorType::get({}, Float64Type::get(&context)),
         whole = RankedTensorType::get({}, IntegerType::get(&context, 64));
    Block &block = function.getBody().emplaceBlock();
    block.addArguments({type, whole}, {function.getLoc(), function.getLoc()});
    nn::TensorBuilder builder(function.getLoc(), &context);
    builder.setInsertionPointToEnd(&block);
    func::ReturnOp::create(builder, schedule(builder, rates, block.getArgument(0), block.getArgument(1)));
    HostTensor arguments[] = {HostTensor(type), HostTensor(whole)};
    arguments[0].setFloat(0, 0.3);
    for (int64_t step = 0; step < 310; ++step) {
      arguments[1].setInt(0, step);
      auto values = Evaluator().evaluate(block, arguments);
      ASSERT_TRUE(succeeded(values));
      EXPECT_EQ(values->front().getFloat(0), rates.getRate(0.3, step)) << step;
    }
    function.erase();
  }
}

TEST_F(TrainingProgramTest, BiasCorrectionNeedsNoPower) {
  func::FuncOp function =
      func::FuncOp::create(UnknownLoc::get(&context), "f", FunctionType::get(&context, {}, {}));
  auto type = RankedTensorType::get({}, Float64Type::get(&context));
  Block &block = function.getBody().emplaceBlock();
  block.addArguments({type, type}, {function.getLoc(), function.getLoc()});
  nn::TensorBuilder builder(function.getLoc(), &context);
  builder.setInsertionPointToEnd(&block);
  func::ReturnOp::create(builder, advanceCorrection(builder, block.getArgument(0), block.getArgument(1)));
  for (double beta : {0.8, 0.9, 0.999, 0.9999}) {
    HostTensor arguments[] = {HostTensor(type), HostTensor(type)};
    arguments[1].setFloat(0, beta);
    double worst = 0;
    for (int t = 1; t <= 20000; ++t) {
      auto values = Evaluator().evaluate(block, arguments);
      ASSERT_TRUE(succeeded(values));
      arguments[0] = values->front();
      // expm1 has no cancellation either.
      double expected = -std::expm1(t * std::log(beta));
      worst = std::max(worst, std::fabs(arguments[0].getFloat(0) / expected - 1));
    }
    EXPECT_LE(worst, 1e-12) << "beta " << beta; // far below one unit in the last place of f32, 6e-8
  }
  function.erase();
}

/// Deterministic values of about unit size.
void fill(HostTensor &tensor, unsigned seed) {
  for (int64_t i = 0; i < tensor.size(); ++i)
    if (tensor.isFloat())
      tensor.setFloat(i, evaluator::roundTo(tensor.getType().getElementType(), std::sin(1.7 * i + seed)));
    else
      tensor.setInt(i, (i * 7 + seed) % 3);
}

TEST_F(TrainingProgramTest, GradientsThenUpdateGiveTheBitsOfTrain) {
  OwningOpRef<ModuleOp> module = load("mlp.mlir");
  ASSERT_TRUE(module);
  LossSpec loss;
  UpdateOptions options;
  ASSERT_TRUE(parseOptimizer("adamw:lr=0.01").moveTo(options.optimizer).isOk());
  options.clipNorm = 1;
  ASSERT_TRUE(succeeded(buildLoss(*module, loss, "")));
  ASSERT_TRUE(succeeded(differentiateLoss(*module)));
  ASSERT_TRUE(succeeded(buildUpdate(*module, options)));
  ASSERT_TRUE(succeeded(composeEntries(*module, {/*gradients=*/true})));

  auto entry = [&](const char *name) { return module->lookupSymbol<func::FuncOp>(name); };
  Memory inputs, whole = initialMemory(*module), unused;
  for (func::FuncOp function : {entry("train_0")})
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto name = function.getArgAttrOfType<StringAttr>(i, kInput)) {
        HostTensor &value = inputs[name.str()] =
            HostTensor(cast<RankedTensorType>(function.getArgument(i).getType()));
        fill(value, i);
      }
  for (auto tensor : module->getOps<TensorOp>())
    if (tensor.getRole() == Role::parameter)
      fill(whole.at(tensor.getSymName().str()), 3);
  Memory cut = whole;
  for (int t = 0; t < 3; ++t) {
    double expected = step(entry("train_0"), whole, unused, inputs, evaluator::Precision::declared);
    Memory gradients, before = cut;
    EXPECT_EQ(step(entry("gradients_0"), cut, gradients, inputs, evaluator::Precision::declared), expected);
    for (auto &[name, tensor] : cut) // gradients changes nothing
      for (int64_t i = 0; i < tensor.size(); ++i)
        EXPECT_EQ(tensor.isFloat() ? tensor.getFloat(i) : tensor.getInt(i),
                  tensor.isFloat() ? before.at(name).getFloat(i) : before.at(name).getInt(i))
            << name;
    step(entry("update_0"), cut, gradients, {}, evaluator::Precision::declared);
    for (auto &[name, tensor] : whole)
      for (int64_t i = 0; i < tensor.size(); ++i)
        EXPECT_EQ(tensor.isFloat() ? tensor.getFloat(i) : tensor.getInt(i),
                  tensor.isFloat() ? cut.at(name).getFloat(i) : cut.at(name).getInt(i))
            << name;
  }
  EXPECT_EQ(whole.at("step").getInt(0), 3);
}

/// A parameter whose gradient is made of zeros decays by the rule of AdamW; without a gradient it is a constant.
TEST_F(TrainingProgramTest, MaterializedGradientsLetDecayGoOn) {
  for (bool isMaterialized : {false, true}) {
    OwningOpRef<ModuleOp> module = load("mlp.mlir");
    ASSERT_TRUE(module);
    UpdateOptions options;
    LossOptions what;
    ASSERT_TRUE(parseOptimizer("adamw:lr=0.1,weight_decay=0.5").moveTo(options.optimizer).isOk());
    if (isMaterialized)
      ASSERT_TRUE(NamePattern::parse("unused").moveTo(what.materialized.emplace_back()).isOk());
    ASSERT_TRUE(succeeded(buildLoss(*module, LossSpec(), "")));
    ASSERT_TRUE(succeeded(differentiateLoss(*module, {}, what)));
    ASSERT_TRUE(succeeded(buildUpdate(*module, options)));
    ASSERT_TRUE(succeeded(composeEntries(*module, {})));
    auto unused = module->lookupSymbol<TensorOp>("unused");
    EXPECT_EQ(unused.getRole() == Role::parameter, isMaterialized);
    if (!isMaterialized)
      continue;
    auto entry = module->lookupSymbol<func::FuncOp>("train_0");
    Memory inputs, memory = initialMemory(*module), gradients;
    for (unsigned i = 0; i < entry.getNumArguments(); ++i)
      if (auto name = entry.getArgAttrOfType<StringAttr>(i, kInput)) {
        inputs[name.str()] = HostTensor(cast<RankedTensorType>(entry.getArgument(i).getType()));
        fill(inputs[name.str()], i);
      }
    fill(memory.at("unused"), 3);
    HostTensor before = memory.at("unused");
    for (int t = 0; t < 3; ++t)
      step(entry, memory, gradients, inputs, evaluator::Precision::declared);
    for (int64_t i = 0; i < before.size(); ++i)
      EXPECT_NEAR(memory.at("unused").getFloat(i), before.getFloat(i) * std::pow(1 - 0.1 * 0.5, 3), 1e-6);
  }
}

} // namespace
