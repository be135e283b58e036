// Updates: optimizers, their states in bytes, averages, penalties, masks and norms.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs what the passes write through the evaluator. Expected numbers come from make_references.py and, for a file in
// Inputs/optimizers, from PyTorch by make_torch_references.py.
#include "compiler/passes/train/ByteStates.h"
#include "compiler/passes/train/Optimizers.h"
#include "compiler/passes/train/TrainingProgram.h"
#include "test/compiler/passes/train/TrainingPrograms.h"

namespace ortc::train {

using namespace mlir;

namespace {

class UpdatesTest : public TrainingProgramTest {};

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
        gradients[nameOf(i).str()] = store(i, gradientOf(reference, i, t));
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

  func::FuncOp reference;
  OwningOpRef<ModuleOp> program;
};

TEST_F(UpdatesTest, OptimizersAgreeWithTheirDefinitions) {
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
    EXPECT_TRUE(tested.count(each->name)) << each->name << " needs test/compiler/passes/train/optimizers/"
                                          << each->name << ".py, and make_torch_references.py";
}

/// Codes of bytes are equal to bitsandbytes' after every step, as the numbers behind them are f64.
TEST_F(UpdatesTest, ByteStatesAreThoseOfBitsandbytes) {
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
TEST_F(UpdatesTest, BytesAreTheNearestOfTheMap) {
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

TEST_F(UpdatesTest, UpdatesAgreeWithTheirDefinitions) {
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
      // The place of the file's element `j` in a 3x2 tensor, or in one of steps of these.
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

} // namespace
} // namespace ortc::train
