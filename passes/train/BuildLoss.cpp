// Write the loss of a graph output and a label.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One function per binding, because shapes differ. The forward functions say which outputs there are;
// whichever of both modes exists is asked, as they have the same outputs.
#include "passes/train/Losses.h"
#include "passes/train/Passes.h"
#include "passes/train/ProgramParts.h"
#include "passes/train/TrainingProgram.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace ortc::train {

#define GEN_PASS_DEF_BUILDLOSSPASS
#include "passes/train/Passes.h.inc"

namespace {
struct Output {
  StringAttr name;
  RankedTensorType type;
};
} // namespace

static bool isNarrow(Type type) {
  Type element = cast<RankedTensorType>(type).getElementType();
  return element.isF16() || element.isBF16();
}

static SmallVector<Output> listOutputs(func::FuncOp forward) {
  SmallVector<Output> outputs;
  for (unsigned i = 0; i < forward.getNumResults(); ++i)
    if (auto name = forward.getResultAttrOfType<StringAttr>(i, kOutput))
      outputs.push_back({name, cast<RankedTensorType>(forward.getResultTypes()[i])});
  return outputs;
}

/// The output of that name; without a name the only one, or the first of floating point.
static FailureOr<Output> chooseOutput(func::FuncOp forward, StringRef name) {
  SmallVector<Output> outputs = listOutputs(forward);
  for (const Output &output : outputs)
    if (name.empty() ? outputs.size() == 1 || isa<FloatType>(output.type.getElementType())
                     : output.name == name)
      return output;
  InFlightDiagnostic error = forward.emitError();
  if (name.empty())
    error << "the graph has no floating-point output for the loss";
  else
    error << "the graph has no output '" << name << "' for the loss";
  error << "; its outputs are";
  for (auto [i, output] : llvm::enumerate(outputs))
    error << (i ? ", " : " ") << output.name;
  return error;
}

/// The type of the graph's input named "label", or null.
static Type findLabelInput(func::FuncOp forward) {
  for (unsigned i = 0; i < forward.getNumArguments(); ++i)
    if (auto name = forward.getArgAttrOfType<StringAttr>(i, kInput); name && name.getValue() == kLabel)
      return forward.getArgument(i).getType();
  return nullptr;
}

/// Whether the type of the label says that it holds probabilities, as in PyTorch: of floating point and the
/// logits' shape.
static bool holdsProbabilities(Type label, RankedTensorType prediction) {
  auto type = dyn_cast_or_null<RankedTensorType>(label);
  return type && isa<FloatType>(type.getElementType()) && type.getShape() == prediction.getShape();
}

static LogicalResult buildLossOf(ModuleOp module, func::FuncOp forward, int64_t binding, LossSpec loss,
                                 StringRef lossInput) {
  FailureOr<Output> output =
      chooseOutput(forward, loss.source == LossSource::Output ? loss.output : lossInput);
  if (failed(output))
    return failure();
  if (hasClasses(loss) && output->type.getRank() <= 1 && output->type.getNumElements() == 1)
    return forward.emitError() << "output '" << output->name.getValue() << "' is one number, and loss "
                               << loss.name
                               << " needs classes; if the graph computes its loss, give --loss output:"
                               << output->name.getValue();
  MLIRContext *context = module.getContext();
  FunctionComposer composer(module, partName("loss", binding),
                            NameLoc::get(StringAttr::get(context, "loss"), forward.getLoc()));
  FailureOr<Value> prediction = composer.getArgument({kOutput, output->name}, output->type);
  if (failed(prediction))
    return failure();
  // A loss is computed in f32 at least.
  RankedTensorType type = output->type;
  if (isNarrow(type)) {
    type = type.clone(composer.getBuilder().getF32Type());
    prediction = composer.getBuilder().cast(*prediction, type.getElementType());
  }
  FailureOr<Value> label(Value{});
  if (needsLabel(loss)) {
    Type labelType = findLabelInput(forward);
    if (mayHoldProbabilities(loss) && holdsProbabilities(labelType, type))
      loss.given[kProbabilities] = true;
    if (!labelType) {
      FailureOr<RankedTensorType> inferred = inferLabelType(loss, type, composer.getBuilder().getLoc());
      if (failed(inferred))
        return failure();
      labelType = *inferred;
    }
    label = composer.getArgument(nameAttribute(context, kInput, kLabel), labelType);
    if (failed(label))
      return failure();
    if (isNarrow(labelType))
      label = composer.getBuilder().cast(*label, composer.getBuilder().getF32Type());
  }
  SmallVector<Value> inputs;
  FailureOr<SmallVector<LossInput>> listed = inferLossInputs(loss, type, composer.getBuilder().getLoc());
  if (failed(listed))
    return failure();
  for (const LossInput &each : *listed) {
    FailureOr<Value> input = composer.getArgument(nameAttribute(context, kInput, each.name), each.type);
    if (failed(input))
      return failure();
    inputs.push_back(*input);
  }
  FailureOr<Value> value = buildLossValue(composer.getBuilder(), loss, *prediction, *label, inputs);
  if (failed(value))
    return failure();
  composer.finish({{unitAttribute(context, kLoss), *value}}, /*dropArguments=*/false);
  return success();
}

LogicalResult buildLoss(ModuleOp module, const LossSpec &loss, StringRef lossInput) {
  if (loss.source == LossSource::None)
    return success();
  for (int64_t binding : findBindings(module)) {
    func::FuncOp forward = findPart(module, "forward_train", binding);
    if (!forward)
      forward = findPart(module, "forward_eval", binding);
    if (failed(buildLossOf(module, forward, binding, loss, lossInput)))
      return failure();
  }
  return success();
}

namespace {

struct BuildLossPass : impl::BuildLossPassBase<BuildLossPass> {
  using Base::Base;

  void runOnOperation() override {
    Expected<LossSpec> spec = parseLoss(loss);
    if (!spec) {
      getOperation().emitError(spec.getStatus().getMessage());
      return signalPassFailure();
    }
    if (failed(buildLoss(getOperation(), *spec, lossInput)))
      signalPassFailure();
  }
};

} // namespace
} // namespace ortc::train
