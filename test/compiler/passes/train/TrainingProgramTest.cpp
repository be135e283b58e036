// Losses, schedules, entries.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs what the passes write through the evaluator. Expected numbers come from make_references.py and, for a file in
// Inputs/losses, from PyTorch by make_torch_references.py.
#include "compiler/passes/train/TrainingProgram.h"

#include "compiler/passes/train/Losses.h"
#include "compiler/passes/train/Optimizers.h"
#include "compiler/passes/train/ScheduledRate.h"
#include "test/compiler/passes/train/TrainingPrograms.h"

namespace ortc::train {

using namespace mlir;

namespace {

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
      text.replace(at, 1, ORTC_TEST_DATA "/compiler/passes/train/Inputs/factors/");
    Status status = parseLoss(text).moveTo(spec);
    ASSERT_TRUE(status.isOk()) << status.getMessage();
    for (Type element : {Type(Float64Type::get(&context)), Type(Float32Type::get(&context))}) {
      SCOPED_TRACE(reference.getName().str() + (element.isF64() ? " in float64" : " in float32"));
      compareLoss(reference, spec, element);
    }
    tested.insert(spec.name);
  }
  for (const LossDefinition *each : listLosses())
    EXPECT_TRUE(tested.count(each->name)) << each->name << " needs test/compiler/passes/train/losses/"
                                          << each->name << ".py, and make_torch_references.py";
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

/// The same formulas, in numbers and as operations.
TEST_F(TrainingProgramTest, SchedulesHaveTheBitsOfHosts) {
  for (const char *text :
       {"constant:warmup=7", "linear:warmup=49,total=300,min=0.001", "step:step_size=49,gamma=0.87",
        "multistep:milestones=3/100/200", "exponential:warmup=5,gamma=0.99", "polynomial:total=250,power=1.7",
        "cosine:warmup=13,total=290,min=1e-05", "cosine_restarts:period=49",
        "cosine_restarts:period=3,mult=3,min=0.01", "one_cycle:total=260", "one_cycle:total=1",
        "inverse_sqrt:warmup=9", "wsd:decay=91,total=281,anneal=sqrt"}) {
    SCOPED_TRACE(text);
    Schedule rates;
    ASSERT_TRUE(Schedule::parse(text, rates).isOk());
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
} // namespace ortc::train
