// Kernels in the words of the model.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which nodes a kernel belongs to is read from locations: every operation has that of the node it was made for, with a
// mark around it where it is part of a gradient, and a step has those of all operations of its kernel.
#include "compiler/report/KernelFacts.h"

#include "dialects/nn/NnDialect.h"
#include "dialects/nn/ValueNames.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

#include <nlohmann/json.hpp>

using namespace mlir;

namespace ortc::report {

static void addOnce(std::vector<std::string> &list, StringRef text) {
  if (!text.empty() && !llvm::is_contained(list, text))
    list.push_back(text.str());
}

/// Leaves the first one of equal texts, in linear time: thousands of nodes may share one kernel.
static void dropRepeated(std::vector<std::string> &list) {
  llvm::StringSet<> known;
  llvm::erase_if(list, [&](const std::string &text) { return !known.insert(text).second; });
}

/// With repetitions.
static void addNodes(Location location, bool isGradient, KernelFacts &facts) {
  if (auto name = dyn_cast<NameLoc>(location)) {
    StringRef text = name.getName();
    if (text.contains(':') || text == "loss")
      (isGradient ? facts.gradients : facts.nodes).push_back(text.str());
  } else if (auto call = dyn_cast<CallSiteLoc>(location)) {
    addNodes(call.getCallee(), isGradient, facts);
  } else if (auto fused = dyn_cast<FusedLoc>(location)) {
    auto mark = dyn_cast_or_null<StringAttr>(fused.getMetadata());
    for (Location part : fused.getLocations())
      addNodes(part, isGradient || (mark && mark == nn::kGradientLocation), facts);
  }
}

/// "conv_filter_grad" -> "conv filter gradient".
static std::string inWords(StringRef mnemonic) {
  std::string words = mnemonic.str();
  std::replace(words.begin(), words.end(), '_', ' ');
  return StringRef(words).ends_with(" grad") ? words + "ient" : words;
}

std::string describeShape(Type type) {
  auto shaped = cast<ShapedType>(type);
  std::string text;
  for (int64_t dim : shaped.getShape())
    text += (text.empty() ? "" : "x") + std::to_string(dim);
  if (!shaped.getElementType().isF32()) {
    llvm::raw_string_ostream stream(text);
    stream << (text.empty() ? "" : "x") << shaped.getElementType();
  }
  return text.empty() ? "scalar" : text;
}

static Type findLargest(TypeRange types) {
  Type largest;
  for (Type type : types)
    if (!largest || cast<ShapedType>(type).getNumElements() > cast<ShapedType>(largest).getNumElements())
      largest = type;
  return largest;
}

static void describeBody(func::FuncOp function, KernelFacts &facts) {
  std::vector<std::string> work, moves;
  bool isElementwise = false;
  function.walk([&](Operation *op) {
    if (isa<arith::ConstantOp>(op) || op->getNumResults() == 0)
      return;
    StringRef mnemonic = op->getName().stripDialect();
    if (!isa<nn::NnDialect>(op->getDialect()))
      isElementwise = true;
    else if (isa<nn::TransposeOp, nn::SliceOp, nn::PadOp, nn::ConcatOp, nn::ReverseOp, nn::BroadcastOp,
                 nn::IotaOp>(op))
      addOnce(moves, inWords(mnemonic));
    else if (!isa<nn::ReshapeOp, nn::DetachOp>(op))
      addOnce(work, inWords(mnemonic));
    if (facts.shape.empty() && isa<nn::DotOp, nn::ConvOp, nn::ConvInputGradOp, nn::ConvFilterGradOp>(op))
      facts.shape = describeShape(op->getOperand(0).getType()) + " * " +
                    describeShape(op->getOperand(1).getType()) + " -> " +
                    describeShape(op->getResult(0).getType());
  });
  if (isElementwise)
    work.push_back("elementwise");
  for (const std::string &part : work.empty() ? moves : work)
    facts.work += (facts.work.empty() ? "" : " + ") + part;
  if (!facts.shape.empty())
    return;
  Type from = findLargest(function.getArgumentTypes()), to = findLargest(function.getResultTypes());
  if (from && to && cast<ShapedType>(from).getShape() == cast<ShapedType>(to).getShape())
    from = Type();
  facts.shape =
      (from ? describeShape(from) : "") + (from && to ? " -> " : "") + (to ? describeShape(to) : "");
}

/// Parameters that a step gives new values; other tensors when it does so to no parameter. With repetitions.
static void addUpdates(const SymbolTable &symbols, plan::StepOp step, KernelFacts &facts) {
  std::vector<StringRef> parameters, others;
  for (Value output : step.getOutputs()) {
    auto buffer = output.getDefiningOp<plan::BufferOp>();
    if (!buffer || buffer.getRegion() != plan::Region::persistent)
      continue;
    auto tensor = symbols.lookup<train::TensorOp>(buffer.getName());
    bool isParameter = tensor && tensor.getRole() == train::Role::parameter;
    (isParameter ? parameters : others).push_back(tensor ? tensor.getName() : buffer.getName());
  }
  for (StringRef name : parameters.empty() ? others : parameters)
    if (!name.empty())
      facts.updates.push_back(name.str());
}

static void collectOrigins(const SymbolTable &symbols, plan::StepOp step, KernelFacts &facts) {
  addNodes(step.getLoc(), false, facts);
  addUpdates(symbols, step, facts);
}

static void dropRepeatedOrigins(KernelFacts &facts) {
  for (std::vector<std::string> *list : {&facts.nodes, &facts.gradients, &facts.updates})
    dropRepeated(*list);
}

void addStepOrigins(const SymbolTable &symbols, plan::StepOp step, KernelFacts &facts) {
  collectOrigins(symbols, step, facts);
  dropRepeatedOrigins(facts);
}

std::vector<KernelFacts> describeKernels(ModuleOp module, const kernels::ProgramKernels &kernels) {
  std::vector<KernelFacts> all(kernels.names.size());
  SymbolTable symbols(module);
  llvm::StringMap<KernelFacts *> byName;
  for (auto [name, work, facts] : llvm::zip_equal(kernels.names, kernels.works, all)) {
    auto function = symbols.lookup<func::FuncOp>(name);
    facts.name = name;
    facts.counts = work;
    facts.kind =
        plan::stringifyKernelKind(function->getAttrOfType<plan::KernelKindAttr>(plan::kKind).getValue());
    describeBody(function, facts);
    byName[name] = &facts;
  }
  module.walk([&](plan::StepOp step) { collectOrigins(symbols, step, *byName.lookup(step.getKernel())); });
  for (KernelFacts &facts : all)
    dropRepeatedOrigins(facts);
  return all;
}

void addOrigins(nlohmann::ordered_json &item, const KernelFacts &facts) {
  auto list = [&](const char *key, const std::vector<std::string> &names) {
    if (!names.empty())
      item[key] = names;
  };
  list("nodes", facts.nodes);
  list("gradients", facts.gradients);
  list("updates", facts.updates);
}

} // namespace ortc::report
