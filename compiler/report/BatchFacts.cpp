// Which leading dimensions are the batch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A number that is equal to the batch by chance is no batch: rows of such a tensor belong to all samples of a
// step. Shapes of a program are numbers, so what tells the two apart is what the file declares: numbers and
// symbols.
#include "compiler/report/BatchFacts.h"

#include "dialects/onnx/OnnxDialect.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace ortc::report {

namespace {

/// A dimension as the file declares it.
struct Dimension {
  bool isFixed;
  StringRef symbol; ///< "" without one
};

/// Of a value; nullopt where it has no shape.
using Dimensions = std::optional<SmallVector<Dimension>>;

struct Rule {
  StringRef batch;           ///< the symbol
  llvm::StringSet<> symbols; ///< of the inputs
  std::optional<bool> judge(const Dimensions &dims, bool isInput) const;
  std::optional<size_t> findAxis(const Dimensions &dims) const;
};

} // namespace

static Dimensions readDimensions(Type type, Attribute names) {
  auto ranked = dyn_cast<RankedTensorType>(type);
  if (!ranked)
    return std::nullopt;
  auto symbols = cast<ArrayAttr>(names);
  SmallVector<Dimension> dims;
  for (int64_t i = 0; i < ranked.getRank(); ++i)
    dims.push_back(
        {!ranked.isDynamicDim(i), symbols.empty() ? StringRef() : cast<StringAttr>(symbols[i]).getValue()});
  return dims;
}

std::optional<bool> Rule::judge(const Dimensions &dims, bool isInput) const {
  if (!dims)
    return std::nullopt;
  if (dims->empty() || dims->front().isFixed)
    return false;
  StringRef symbol = dims->front().symbol;
  if (symbol == batch)
    return true;
  bool hasBatch = llvm::any_of(*dims, [&](const Dimension &dim) { return dim.symbol == batch; });
  if (hasBatch || symbols.contains(symbol) || (isInput && !symbol.empty()))
    return false;
  return std::nullopt; // exporters make up symbols for dimensions of outputs that they cannot follow
}

/// The only dimension that is the batch.
std::optional<size_t> Rule::findAxis(const Dimensions &dims) const {
  std::optional<size_t> found;
  for (auto [axis, dim] : llvm::enumerate(dims.value_or(SmallVector<Dimension>())))
    if (!dim.isFixed && dim.symbol == batch) {
      if (found)
        return std::nullopt;
      found = axis;
    }
  return found;
}

BatchFacts findBatch(ModuleOp source, const std::vector<LabelSource> &labels) {
  BatchFacts facts;
  onnx::GraphOp graph = *source.getOps<onnx::GraphOp>().begin();
  Rule rule;
  SmallVector<Dimensions> inputs;
  for (auto [i, argument] : llvm::enumerate(graph.getBlock().getArguments())) {
    inputs.push_back(readDimensions(argument.getType(), graph.getInputDims()[i]));
    for (const Dimension &dim : inputs.back().value_or(SmallVector<Dimension>()))
      if (!dim.symbol.empty())
        rule.symbols.insert(dim.symbol);
    if (facts.input.empty() && inputs.back() && !inputs.back()->empty() &&
        !inputs.back()->front().symbol.empty()) {
      facts.input = graph.getInputName(i).str();
      rule.batch = inputs.back()->front().symbol;
    }
  }
  if (facts.input.empty())
    return facts;
  for (auto [i, dims] : llvm::enumerate(inputs))
    facts.inputs[graph.getInputName(i).str()] = rule.judge(dims, /*isInput=*/true);
  for (unsigned i = 0; i < graph.getOutputNames().size(); ++i) {
    Dimensions dims =
        readDimensions(cast<TypeAttr>(graph.getOutputTypes()[i]).getValue(), graph.getOutputDims()[i]);
    std::string name = graph.getOutputName(i).str();
    facts.outputs[name] = rule.judge(dims, /*isInput=*/false);
    if (std::optional<size_t> axis = rule.findAxis(dims); axis.value_or(0) > 0)
      facts.axes[name] = *axis;
    for (const LabelSource &label : labels) {
      if (name != label.output || !dims)
        continue;
      Dimensions own = dims;
      if (label.droppedAxis && *label.droppedAxis < int64_t(own->size()))
        own->erase(own->begin() + *label.droppedAxis);
      std::optional<bool> &known = facts.labels[label.name];
      known = rule.judge(own, /*isInput=*/false);
      // What is dynamic in an output follows from what is dynamic in the inputs.
      if (!known && !own->front().symbol.empty())
        known = true;
    }
  }
  return facts;
}

} // namespace ortc::report
