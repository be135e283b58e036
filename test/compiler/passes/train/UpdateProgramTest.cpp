// Updates of tensors that a host owns.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs what buildUpdateProgram() writes through the evaluator, for the references of optimizers: parameters after fifty
// steps of PyTorch.
#include "compiler/passes/train/UpdateProgram.h"

#include "compiler/passes/train/Optimizers.h"
#include "test/compiler/passes/train/TrainingPrograms.h"

namespace ortc::train {

using namespace mlir;

namespace {

class UpdateProgramTest : public TrainingProgramTest {
protected:
  HostTensor number(double value) {
    HostTensor scalar(RankedTensorType::get({}, Float64Type::get(&context)));
    scalar.setFloat(0, value);
    return scalar;
  }
};

OptimizerSpec parse(StringRef text) {
  OptimizerSpec spec;
  Status status = parseOptimizer(text).moveTo(spec);
  EXPECT_TRUE(status.isOk()) << status.getMessage();
  return spec;
}

/// The numbers that hosts count, as the packages have it that the optimizers are of.
class Counts {
public:
  explicit Counts(const Settings &settings) : settings(settings) {}

  void advance() {
    ++steps;
    if (!settings.has("weight_lr_power"))
      return;
    const double warmup = numberOf("warmup_steps");
    largest = std::max(largest, numberOf("lr") * (warmup > 0 ? std::min(steps / warmup, 1.0) : 1.0));
    weights += std::pow(steps, numberOf("r")) * std::pow(largest, numberOf("weight_lr_power"));
  }

  double get(StringRef name) const {
    return name == "updates"            ? steps
           : name == "bias_correction1" ? 1 - std::pow(numberOf("beta1"), steps)
           : name == "bias_correction2" ? 1 - std::pow(numberOf("beta2"), steps)
           : name == "lr_max"           ? largest
           : name == "weight_sum"       ? weights
                                        : numberOf(name);
  }

private:
  double numberOf(StringRef name) const { return settings.getNumber(std::string_view(name)); }

  const Settings &settings;
  double steps = 0, largest = -1, weights = 0;
};

/// A parameter of a reference, updated on its own.
class Updated {
public:
  Updated(func::FuncOp reference, unsigned i, const OptimizerSpec &optimizer)
      : reference(reference), number(i), optimizer(optimizer), settings(settingsOf(optimizer)),
        module(ModuleOp::create(reference.getLoc())) {}

  /// The parameter after the steps of the reference.
  HostTensor run(double gradientScale) {
    HostTensor value = attributeOf(reference, number, "test.value");
    UpdateForm form{value.getShape().vec(), /*isDouble=*/true};
    EXPECT_TRUE(checkUpdateForm(optimizer, form).isOk());
    EXPECT_TRUE(succeeded(buildUpdateProgram(*module, optimizer, form, form.shape, 0)));
    auto function = module->lookupSymbol<func::FuncOp>("forward_eval_0");
    HostTensor one(RankedTensorType::get({}, Float64Type::get(value.getType().getContext())));
    one.setFloat(0, 1);
    Memory memory{{"parameter", value}, {"z", value}, {"mu_product", one}};
    Counts counts(settings);
    for (int64_t t = 0; t < reference->getAttrOfType<IntegerAttr>("test.steps").getInt(); ++t) {
      counts.advance();
      memory.insert_or_assign("gradient", gradientOf(reference, number, t));
      step(function, memory, counts, gradientScale);
    }
    return evaluated(memory);
  }

private:
  static void step(func::FuncOp function, Memory &memory, const Counts &counts, double gradientScale) {
    SmallVector<HostTensor> arguments;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      StringRef name = function.getArgAttrOfType<StringAttr>(i, kInput);
      auto type = cast<RankedTensorType>(function.getArgument(i).getType());
      HostTensor argument(type); // states are zeros at first
      if (auto found = memory.find(name.str()); found != memory.end())
        argument = found->second;
      else if (type.getRank() == 0 && type.getElementType().isF64())
        argument.setFloat(0, name == "gradient_scale" ? gradientScale : counts.get(name));
      arguments.push_back(argument);
    }
    auto values = Evaluator(evaluator::Precision::declared).evaluate(function.front(), arguments);
    ASSERT_TRUE(succeeded(values));
    for (auto [i, value] : llvm::enumerate(*values)) {
      StringRef name = function.getResultAttrOfType<StringAttr>(i, kOutput);
      ASSERT_TRUE(name.consume_back(".new"));
      memory.insert_or_assign(name.str(), value);
    }
  }

  /// Where the optimizer trains at y, this is x of y = x + (1 - beta)(z - x).
  HostTensor evaluated(Memory &memory) {
    HostTensor parameter = memory.at("parameter");
    if (!definitionOf(optimizer).ahead)
      return parameter;
    const double beta = settings.getNumber(settings.has("momentum") ? "momentum" : "beta1");
    for (int64_t j = 0; j < parameter.size(); ++j)
      parameter.setFloat(j, (parameter.getFloat(j) - (1 - beta) * memory.at("z").getFloat(j)) / beta);
    return parameter;
  }

  func::FuncOp reference;
  unsigned number;
  const OptimizerSpec &optimizer;
  Settings settings;
  OwningOpRef<ModuleOp> module;
};

/// Whether a group of the reference has the parameter.
bool isInGroup(func::FuncOp reference, StringRef name) {
  SmallVector<StringRef> groups;
  reference->getAttrOfType<StringAttr>("test.groups").getValue().split(groups, ';', -1, false);
  return llvm::any_of(groups, [&](StringRef text) {
    Expected<GroupSpec> group = parseGroup(text);
    EXPECT_TRUE(group);
    return group && group->pattern.matches(name.str());
  });
}

/// Groups and clipping are no part of an update, and optimizers with states in bytes compute in float32: they are
/// compared with bitsandbytes by test/bindings/python/frameworks/optim_bytes_test.py.
TEST_F(UpdateProgramTest, OptimizersAgreeWithTheirDefinitions) {
  std::set<std::string> tested{"adamw8bit", "lion8bit"};
  for (func::FuncOp reference : loadCases("optimizers")) {
    SCOPED_TRACE(reference.getName().str());
    const OptimizerSpec optimizer = parse(reference->getAttrOfType<StringAttr>("test.optimizer").getValue());
    if (StringRef(optimizer.name).ends_with("8bit") || reference->hasAttr("test.clip_norm") ||
        reference->hasAttr("test.clip_value"))
      continue;
    for (unsigned i = 0; i < reference.getNumArguments(); ++i) {
      StringRef name = reference.getArgAttrOfType<StringAttr>(i, "test.name");
      if (!reference.getArgAttr(i, "test.expected") || isInGroup(reference, name))
        continue;
      const HostTensor expected = attributeOf(reference, i, "test.expected");
      EXPECT_LE(distance(Updated(reference, i, optimizer).run(1), expected), kOptimizerTolerance);
      EXPECT_GT(distance(Updated(reference, i, optimizer).run(-1), expected), 1e6 * kOptimizerTolerance)
          << "the factor of the gradient is an input";
      tested.insert(optimizer.name);
    }
  }
  for (const OptimizerDefinition *each : listOptimizers())
    EXPECT_TRUE(tested.count(each->name)) << each->name << " needs a reference without clipping";
}

/// Codes are u8 in the shape of the parameter, magnitudes f32 for each block; arithmetic is f32.
TEST_F(UpdateProgramTest, StatesInBytes) {
  for (bool hasBytes : {true, false}) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    const OptimizerSpec optimizer = parse("lion8bit");
    const UpdateForm form{{}, /*isDouble=*/true, hasBytes};
    ASSERT_TRUE(succeeded(buildUpdateProgram(*module, optimizer, form, {512}, 3)));
    auto function = module->lookupSymbol<func::FuncOp>("forward_eval_3");
    ASSERT_TRUE(function);
    std::string text;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto type = cast<RankedTensorType>(function.getArgument(i).getType()); type.getRank() > 0) {
        llvm::raw_string_ostream stream(text);
        stream << function.getArgAttrOfType<StringAttr>(i, kInput).getValue() << " " << type;
        if (auto dtype = function.getArgAttrOfType<TypeAttr>(i, "train.dtype"))
          stream << " " << dtype.getValue();
        stream << "; ";
      }
    EXPECT_EQ(text, hasBytes
                        ? "parameter tensor<512xf64>; gradient tensor<512xf64>; exp_avg tensor<512xi8> "
                          "ui8; exp_avg_absmax tensor<2xf32>; "
                        : "parameter tensor<512xf64>; gradient tensor<512xf64>; exp_avg tensor<512xf32>; ");
    EXPECT_EQ(listPieces(optimizer, form).front(), hasBytes ? 16384 : 262144);
    EXPECT_EQ(listPieces(optimizer, form).back(), hasBytes ? 256 : 16);
  }
}

TEST_F(UpdateProgramTest, RefusesWithReason) {
  auto refusal = [](StringRef optimizer, std::vector<int64_t> shape) {
    return checkUpdateForm(parse(optimizer), {std::move(shape)}).getMessage();
  };
  EXPECT_EQ(refusal("lamb", {}), "optimizer 'lamb' needs the norm of the parameter; give its --shape");
  EXPECT_EQ(refusal("muon", {4}), "optimizer 'muon' updates tensors of 2 dimensions, and --shape has 1");
  for (const char *each : {"adamw8bit", "schedule_free_sgd"}) // spans of another kind
    EXPECT_EQ(refusal(each, {}), "");
}

} // namespace
} // namespace ortc::train
