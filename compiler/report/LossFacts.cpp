// What is said of a loss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/report/LossFacts.h"

#include "compiler/passes/train/Losses.h"
#include "compiler/passes/train/ProgramParts.h"
#include "compiler/passes/train/losses/FactorFiles.h"
#include "dialects/onnx/OnnxDialect.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace ortc::report {

void describeLosses(ModuleOp program, ArrayRef<LossSpec> losses, CompileFacts &facts) {
  auto function = program.lookupSymbol<func::FuncOp>("loss_0");
  for (const LossSpec &loss : losses) {
    LossFacts &fact = facts.losses.emplace_back();
    if (!loss.outputs.empty())
      fact.output = loss.outputs.front();
    RankedTensorType prediction;
    for (unsigned i = 0; function && i < function.getNumArguments(); ++i) {
      auto type = cast<RankedTensorType>(function.getArgument(i).getType());
      auto output = function.getArgAttrOfType<StringAttr>(i, train::kOutput);
      auto input = function.getArgAttrOfType<StringAttr>(i, train::kInput);
      if (output && (fact.output.empty() || fact.output == output)) {
        fact.output = output.str();
        fact.shape.assign(type.getShape().begin(), type.getShape().end());
        prediction = type;
      } else if (input && input.getValue() == loss.label) {
        fact.labelIsIndices = isa<IntegerType>(type.getElementType());
      }
    }
    const bool isNamed = !loss.outputs.empty() && loss.source != LossSource::Output;
    fact.text = loss.text + (isNamed || fact.output.empty() ? "" : " of '" + fact.output + "'");
    if (!prediction)
      continue;
    if (auto weights = function->getAttrOfType<DenseFPElementsAttr>(train::classWeightAttribute(loss.label)))
      for (const APFloat &each : weights.getValues<APFloat>())
        fact.classWeight.push_back(each.convertToDouble());
    auto inputs = train::inferLossInputs(loss, prediction, function.getLoc(),
                                         [&](StringRef name) { return train::findInput(function, name); });
    for (unsigned i = 0; succeeded(inputs) && i < inputs->size(); ++i)
      fact.inputs.push_back((*inputs)[i].name);
  }
}

void describeBatch(ModuleOp source, ArrayRef<LossSpec> losses, CompileFacts &facts) {
  std::vector<LabelSource> labels;
  for (auto [loss, fact] : llvm::zip(losses, facts.losses)) {
    // A label of class indices is the output without its classes; those of sequences follow its frames.
    const train::LossDefinition *definition = train::findLoss(loss);
    std::optional<int64_t> dropped;
    if (definition && definition->label == train::LabelKind::Sequences)
      dropped = 0;
    else if (fact.labelIsIndices)
      dropped = findClassAxis(loss, fact);
    labels.push_back({loss.label, fact.output, dropped});
    for (const std::string &input : fact.inputs)
      labels.push_back({input, fact.output, dropped});
  }
  facts.batch = findBatch(source, labels);
}

std::string tellClassAxis(const LossSpec &loss, const LossFacts &facts) {
  if (!train::hasClasses(loss) || facts.shape.size() != 3 || loss.given.count(train::kAxis))
    return "";
  std::string shape;
  for (int64_t size : facts.shape)
    shape += (shape.empty() ? "[" : ", ") + std::to_string(size);
  return "'" + facts.output + "' is " + shape + "]: the loss takes axis 1 as the " +
         std::to_string(facts.shape[1]) +
         " classes, as PyTorch does; where the last axis has the classes, give --loss " + loss.name +
         ":axis=2";
}

std::string warnOfProbabilities(ModuleOp source, const proto::ModelProto &model, const LossSpec &loss,
                                const std::string &output) {
  const train::LossDefinition *definition = train::findLoss(loss);
  if (!definition || definition->misfits.empty())
    return "";
  auto graphs = source.getOps<onnx::GraphOp>();
  Value value;
  for (auto [i, each] : llvm::enumerate((*graphs.begin()).getBlock().getTerminator()->getOperands()))
    if ((*graphs.begin()).getOutputName(i) == output)
      value = each;
  auto node = value ? value.getDefiningOp<onnx::NodeOp>() : onnx::NodeOp();
  static constexpr StringLiteral kViews[] = {"Identity",  "Reshape", "Flatten", "Squeeze",
                                             "Unsqueeze", "Cast",    "ZipMap"};
  while (node && llvm::is_contained(kViews, node.getOpType()))
    node = node.getInput(0) ? node.getInput(0).getDefiningOp<onnx::NodeOp>() : onnx::NodeOp();
  if (!node)
    return "";
  const train::Misfit *misfit = nullptr;
  auto find = [&](onnx::NodeOp candidate, bool isBehindConcat) {
    for (const train::Misfit &each : definition->misfits)
      if (candidate.getOpType() == each.opType && each.isBehindConcat == isBehindConcat) {
        misfit = &each;
        node = candidate;
      }
  };
  find(node, false);
  if (node.getOpType() == "Concat") // 1 - p and p
    for (Value part : onnx::NodeOp(node).getInputs())
      if (auto each = part.getDefiningOp<onnx::NodeOp>())
        find(each, true);
  if (!misfit)
    return "";
  std::string flag = misfit->flag ? "--loss " + std::string(misfit->flag) + " " : "", input;
  if (auto before = node.getInput(0).getDefiningOp<onnx::NodeOp>())
    input = before.getOutputName(cast<OpResult>(node.getInput(0)).getResultNumber()).str();
  bool isKnown = llvm::any_of(model.graph().node(),
                              [&](const auto &each) { return llvm::is_contained(each.output(), input); });
  return std::string(misfit->reason) + ", and '" + output + "' comes from a " + node.getOpType().str() +
         (isKnown ? "; " + flag + "--loss-input " + input + " gives the loss what goes into it" : "");
}

} // namespace ortc::report
