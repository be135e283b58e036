// Inline the parts into the entries.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every entry is one flat function, because memory and order are planned over a whole step. Values that one
// part gives and another takes are matched by their attributes; everything else becomes an argument of the
// entry.
#include "passes/train/Passes.h"
#include "passes/train/ProgramParts.h"
#include "passes/train/TrainingProgram.h"

using namespace mlir;

namespace ortc::train {

#define GEN_PASS_DEF_COMPOSEENTRIESPASS
#include "passes/train/Passes.h.inc"

static SmallVector<Port> select(ArrayRef<Port> ports, StringRef name) {
  SmallVector<Port> selected;
  for (const Port &port : ports)
    if (port.attribute.getName() == name)
      selected.push_back(port);
  return selected;
}

namespace {

class EntryBuilder {
public:
  EntryBuilder(ModuleOp module, int64_t binding)
      : module(module), binding(binding), backward(findPart(module, "backward", binding)),
        update(module.lookupSymbol<func::FuncOp>("update")),
        accumulate(module.lookupSymbol<func::FuncOp>("accumulation")),
        forward(findPart(module, "forward_eval", binding)), loss(findPart(module, "loss", binding)) {}

  LogicalResult run(const EntryOptions &options) {
    if (options.cotangents)
      return success((!backward || succeeded(buildForwardBackward())) &&
                     (!forward || succeeded(buildPredict())) && (!update || succeeded(buildUpdate())));
    if (backward && !update)
      return module.emitError("gradients without @update: run ortc-build-update first");
    bool cut = options.gradients && backward;
    return success((!backward || succeeded(buildTrain())) &&
                   (!backward || !accumulate || succeeded(buildAccumulate())) &&
                   (!forward || !loss || succeeded(buildEval())) && (!forward || succeeded(buildPredict())) &&
                   (!cut || succeeded(buildGradients())) && (!cut || succeeded(buildCutUpdate())));
  }

private:
  LogicalResult buildTrain();
  LogicalResult buildAccumulate();
  LogicalResult buildEval();
  LogicalResult buildPredict();
  LogicalResult buildForwardBackward();
  LogicalResult buildUpdate();
  LogicalResult buildGradients();
  LogicalResult buildCutUpdate();
  FunctionComposer start(StringRef entry);
  void finish(FunctionComposer &composer, StringRef entry, ArrayRef<Port> results);

  ModuleOp module;
  int64_t binding;
  func::FuncOp backward, update, accumulate, forward, loss;
};

FunctionComposer EntryBuilder::start(StringRef entry) {
  return FunctionComposer(module, partName(entry, binding),
                          NameLoc::get(StringAttr::get(module.getContext(), entry)));
}

void EntryBuilder::finish(FunctionComposer &composer, StringRef entry, ArrayRef<Port> results) {
  composer.finish(results, /*dropArguments=*/true);
  nn::TensorBuilder &b = composer.getBuilder();
  composer.getFunction().setPublic();
  composer.getFunction()->setAttr(kEntry, b.getStringAttr(entry));
  composer.getFunction()->setAttr(kBinding, b.getI64IntegerAttr(binding));
}

LogicalResult EntryBuilder::buildTrain() {
  FunctionComposer composer = start("train");
  FailureOr<SmallVector<Port>> values = composer.inlinePart(backward);
  if (failed(values))
    return failure();
  SmallVector<Port> results = select(*values, kLoss), gradients = select(*values, kGradient);
  results.append(select(*values, kUpdate));
  if (accumulate) {
    FailureOr<SmallVector<Port>> sums = composer.inlinePart(accumulate, gradients);
    if (failed(sums))
      return failure();
    gradients = select(*sums, kGradient);
    for (const Port &port : select(*sums, kUpdate)) // the next sum begins with nothing
      results.push_back({port.attribute, composer.getBuilder().zerosLike(port.value)});
  }
  FailureOr<SmallVector<Port>> updates = composer.inlinePart(update, gradients);
  if (failed(updates))
    return failure();
  results.append(*updates);
  finish(composer, "train", results);
  return success();
}

/// A step without an update: its gradients wait for the next training step; running statistics move as in every step.
LogicalResult EntryBuilder::buildAccumulate() {
  FunctionComposer composer = start("accumulate");
  FailureOr<SmallVector<Port>> values = composer.inlinePart(backward);
  if (failed(values))
    return failure();
  FailureOr<SmallVector<Port>> sums = composer.inlinePart(accumulate, select(*values, kGradient));
  if (failed(sums))
    return failure();
  SmallVector<Port> results = select(*values, kLoss);
  results.append(select(*values, kUpdate));
  results.append(select(*sums, kUpdate));
  finish(composer, "accumulate", results);
  return success();
}

LogicalResult EntryBuilder::buildEval() {
  FunctionComposer composer = start("eval");
  FailureOr<SmallVector<Port>> values = composer.inlinePart(forward);
  if (failed(values))
    return failure();
  SmallVector<Port> outputs = select(*values, kOutput);
  FailureOr<SmallVector<Port>> results = composer.inlinePart(loss, outputs);
  if (failed(results))
    return failure();
  results->append(outputs);
  finish(composer, "eval", *results);
  return success();
}

LogicalResult EntryBuilder::buildPredict() {
  FunctionComposer composer = start("predict");
  FailureOr<SmallVector<Port>> values = composer.inlinePart(forward);
  if (failed(values))
    return failure();
  finish(composer, "predict", select(*values, kOutput));
  return success();
}

/// What passes/memory/CutBackward.cpp cuts in two when kernels are known: outputs and new state belong to the forward
/// part, all that depends on cotangents to the backward part.
LogicalResult EntryBuilder::buildForwardBackward() {
  FunctionComposer composer = start(kForwardBackward);
  FailureOr<SmallVector<Port>> values = composer.inlinePart(backward);
  if (failed(values))
    return failure();
  finish(composer, kForwardBackward, *values);
  return success();
}

LogicalResult EntryBuilder::buildUpdate() {
  FunctionComposer composer = start("update");
  FailureOr<SmallVector<Port>> updates = composer.inlinePart(update);
  if (failed(updates))
    return failure();
  finish(composer, "update", *updates);
  return success();
}

/// The same state under another attribute, e.g. from train.update to train.gradient.
static Port renamed(const Port &port, StringRef name) {
  return {NamedAttribute(name, port.attribute.getValue()), port.value};
}

LogicalResult EntryBuilder::buildGradients() {
  FunctionComposer composer = start("gradients");
  FailureOr<SmallVector<Port>> values = composer.inlinePart(backward);
  if (failed(values))
    return failure();
  SmallVector<Port> results = select(*values, kLoss);
  for (const Port &port : select(*values, kUpdate))
    results.push_back(renamed(port, kGradient));
  results.append(select(*values, kGradient));
  finish(composer, "gradients", results);
  return success();
}

LogicalResult EntryBuilder::buildCutUpdate() {
  FunctionComposer composer = start("update");
  SmallVector<Port> results;
  for (unsigned i = 0; i < backward.getNumResults(); ++i) {
    Attribute state = backward.getResultAttr(i, kUpdate);
    if (!state)
      continue;
    FailureOr<Value> carried = composer.getArgument({kGradient, state}, backward.getResultTypes()[i]);
    if (failed(carried))
      return failure();
    results.push_back({{kUpdate, state}, *carried});
  }
  FailureOr<SmallVector<Port>> updates = composer.inlinePart(update);
  if (failed(updates))
    return failure();
  results.append(*updates);
  finish(composer, "update", results);
  return success();
}

} // namespace

LogicalResult composeEntries(ModuleOp module, const EntryOptions &options) {
  SmallVector<func::FuncOp> parts;
  for (auto function : module.getOps<func::FuncOp>())
    parts.push_back(function);
  for (int64_t binding : findBindings(module))
    if (failed(EntryBuilder(module, binding).run(options)))
      return failure();
  for (func::FuncOp part : parts)
    part.erase();
  return success();
}

namespace {

struct ComposeEntriesPass : impl::ComposeEntriesPassBase<ComposeEntriesPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(composeEntries(getOperation(), {gradients})))
      signalPassFailure();
  }
};

} // namespace
} // namespace ortc::train
