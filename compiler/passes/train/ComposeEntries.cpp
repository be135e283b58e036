// Inline the parts into the entries.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every entry is one flat function, because memory and order are planned over a whole step. Values that one
// part gives and another takes are matched by their attributes; everything else becomes an argument of the
// entry.
#include "compiler/passes/train/Passes.h"
#include "compiler/passes/train/ProgramParts.h"
#include "compiler/passes/train/TrainingProgram.h"

using namespace mlir;

namespace ortc::train {

#define GEN_PASS_DEF_COMPOSEENTRIESPASS
#include "compiler/passes/train/Passes.h.inc"

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
        forward(findPart(module, "forward_eval", binding)), loss(findPart(module, "loss", binding)) {
    for (auto tensor : module.getOps<TensorOp>())
      if (tensor->hasAttr(kBound))
        bound.insert(tensor.getSymNameAttr());
  }

  LogicalResult run(const EntryOptions &options) {
    bindsGradients = options.bindsGradients;
    hidden = options.hidden;
    if (options.cotangents)
      return success((!backward || succeeded(buildForwardBackward())) &&
                     (!forward || succeeded(buildPredict())) &&
                     (!update || succeeded(buildUpdate(/*carriesState=*/false))));
    if (backward && !update)
      return module.emitError("gradients without @update: run ortc-build-update first");
    bool cut = options.gradients && backward;
    return success((!backward || succeeded(buildTrain())) &&
                   (!backward || !accumulate || succeeded(buildAccumulate())) &&
                   (!forward || !loss || succeeded(buildEval())) && (!forward || succeeded(buildPredict())) &&
                   (!cut || succeeded(buildGradients())) &&
                   (!cut || succeeded(buildUpdate(/*carriesState=*/true))));
  }

private:
  LogicalResult buildTrain();
  LogicalResult buildAccumulate();
  LogicalResult buildEval();
  LogicalResult buildPredict();
  SmallVector<Port> show(ArrayRef<Port> outputs) const;
  SmallVector<Port> giveGradients(ArrayRef<Port> ports, bool isBackward);
  FailureOr<SmallVector<Port>> takeGradients(FunctionComposer &composer);
  LogicalResult buildForwardBackward();
  LogicalResult buildGradients();
  LogicalResult buildUpdate(bool carriesState);
  FunctionComposer start(StringRef entry);
  void markBound(func::FuncOp function);
  void finish(FunctionComposer &composer, StringRef entry, ArrayRef<Port> results);

  ModuleOp module;
  int64_t binding;
  func::FuncOp backward, update, accumulate, forward, loss;
  bool bindsGradients = false;
  std::string hidden;
  llvm::DenseSet<StringAttr> bound; ///< tensors whose places are the host's
};

FunctionComposer EntryBuilder::start(StringRef entry) {
  return FunctionComposer(module, partName(entry, binding),
                          NameLoc::get(StringAttr::get(module.getContext(), entry)));
}

/// Says of arguments that they lie at the host, and adds those that a function writes only.
void EntryBuilder::markBound(func::FuncOp function) {
  auto isBound = [&](FlatSymbolRefAttr symbol) { return symbol && bound.contains(symbol.getAttr()); };
  MLIRContext *context = module.getContext();
  UnitAttr unit = UnitAttr::get(context);
  llvm::DenseSet<Attribute> known;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto symbol = function.getArgAttrOfType<FlatSymbolRefAttr>(i, kTensor); isBound(symbol)) {
      function.setArgAttr(i, kBound, unit);
      known.insert(symbol);
    }
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    auto symbol = function.getResultAttrOfType<FlatSymbolRefAttr>(i, kUpdate);
    if (!isBound(symbol) || !known.insert(symbol).second)
      continue;
    NamedAttrList attributes;
    attributes.set(kBound, unit);
    attributes.set(kTensor, symbol);
    (void)function.insertArgument(function.getNumArguments(), function.getResultTypes()[i],
                                  attributes.getDictionary(context), function.getLoc());
  }
}

void EntryBuilder::finish(FunctionComposer &composer, StringRef entry, ArrayRef<Port> results) {
  composer.finish(results, /*dropArguments=*/true);
  markBound(composer.getFunction());
  nn::TensorBuilder &b = composer.getBuilder();
  composer.getFunction().setPublic();
  composer.getFunction()->setAttr(kEntry, b.getStringAttr(entry));
  composer.getFunction()->setAttr(kBinding, b.getI64IntegerAttr(binding));
}

/// Where sums are of labels, they say what the loss of a step without any is.
static void replaceLoss(ArrayRef<Port> sums, bool isLast, SmallVectorImpl<Port> &results) {
  if (SmallVector<Port> losses = select(sums, kLoss); !losses.empty())
    results.front().value = (isLast ? losses.back() : losses.front()).value;
}

LogicalResult EntryBuilder::buildTrain() {
  FunctionComposer composer = start("train");
  FailureOr<SmallVector<Port>> values = composer.inlinePart(backward);
  if (failed(values))
    return failure();
  SmallVector<Port> results = select(*values, kLoss), gradients = select(*values, kGradient);
  results.append(select(*values, kOutput)); // of several losses, each; what --train-outputs names
  results.append(select(*values, kUpdate));
  if (accumulate) {
    FailureOr<SmallVector<Port>> sums = composer.inlinePart(accumulate, *values);
    if (failed(sums))
      return failure();
    gradients = select(*sums, kGradient);
    replaceLoss(*sums, /*isLast=*/true, results);
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
  FailureOr<SmallVector<Port>> sums = composer.inlinePart(accumulate, *values);
  if (failed(sums))
    return failure();
  SmallVector<Port> results = select(*values, kLoss);
  replaceLoss(*sums, /*isLast=*/false, results);
  results.append(select(*values, kOutput));
  results.append(select(*values, kUpdate));
  results.append(select(*sums, kUpdate));
  finish(composer, "accumulate", results);
  return success();
}

/// The outputs but the hidden one.
SmallVector<Port> EntryBuilder::show(ArrayRef<Port> outputs) const {
  return llvm::filter_to_vector(outputs, [&](const Port &port) {
    return hidden.empty() || cast<StringAttr>(port.attribute.getValue()).getValue() != hidden;
  });
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
  results->append(show(outputs));
  finish(composer, "eval", *results);
  return success();
}

LogicalResult EntryBuilder::buildPredict() {
  FunctionComposer composer = start("predict");
  FailureOr<SmallVector<Port>> values = composer.inlinePart(forward);
  if (failed(values))
    return failure();
  finish(composer, "predict", show(select(*values, kOutput)));
  return success();
}

/// The output that a gradient of the host's is.
static DictionaryAttr boundGradient(FlatSymbolRefAttr symbol, const SymbolTable &symbols, bool isBackward) {
  MLIRContext *context = symbol.getContext();
  auto tensor = symbols.lookup<TensorOp>(symbol.getAttr());
  NamedAttrList attributes;
  attributes.append(nameAttribute(context, kOutput, (tensor.getName() + ".gradient").str()));
  attributes.set(kLayout, symbol);
  if (isBackward)
    attributes.append(unitAttribute(context, kBackward));
  return attributes.getDictionary(context);
}

/// Gradients as the host gets them: as they are, or as outputs.
SmallVector<Port> EntryBuilder::giveGradients(ArrayRef<Port> ports, bool isBackward) {
  SmallVector<Port> results;
  SymbolTable symbols(module);
  for (const Port &port : ports) {
    results.push_back(port);
    if (!bindsGradients || port.attribute.getName() != kGradient)
      continue;
    results.back().all =
        boundGradient(cast<FlatSymbolRefAttr>(port.attribute.getValue()), symbols, isBackward);
    results.back().attribute = *results.back().all.getNamed(kOutput);
  }
  return results;
}

/// The same as an update entry takes them.
FailureOr<SmallVector<Port>> EntryBuilder::takeGradients(FunctionComposer &composer) {
  SmallVector<Port> given;
  SymbolTable symbols(module);
  for (unsigned i = 0; bindsGradients && i < update.getNumArguments(); ++i) {
    auto symbol = update.getArgAttrOfType<FlatSymbolRefAttr>(i, kGradient);
    if (!symbol)
      continue;
    DictionaryAttr attributes = boundGradient(symbol, symbols, false);
    FailureOr<Value> value =
        composer.getArgument(*attributes.getNamed(kOutput), update.getArgument(i).getType(), attributes);
    if (failed(value))
      return failure();
    given.push_back({NamedAttribute(StringAttr::get(module.getContext(), kGradient), symbol), *value});
  }
  return given;
}

/// What compiler/passes/memory/CutBackward.cpp cuts in two when kernels are known: outputs and new state belong to the
/// forward part, all that depends on cotangents to the backward part.
LogicalResult EntryBuilder::buildForwardBackward() {
  FunctionComposer composer = start(kForwardBackward);
  FailureOr<SmallVector<Port>> values = composer.inlinePart(backward);
  if (failed(values))
    return failure();
  finish(composer, kForwardBackward, giveGradients(*values, /*isBackward=*/true));
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
  results.append(select(*values, kOutput));
  for (const Port &port : select(*values, kUpdate))
    results.push_back(renamed(port, kGradient));
  results.append(giveGradients(select(*values, kGradient), /*isBackward=*/false));
  finish(composer, "gradients", results);
  return success();
}

/// `carriesState`: the gradients entry gives new state of the forward part as a gradient, and this one stores it.
LogicalResult EntryBuilder::buildUpdate(bool carriesState) {
  FunctionComposer composer = start("update");
  SmallVector<Port> results;
  for (unsigned i = 0; carriesState && i < backward.getNumResults(); ++i) {
    Attribute state = backward.getResultAttr(i, kUpdate);
    if (!state)
      continue;
    FailureOr<Value> carried = composer.getArgument({kGradient, state}, backward.getResultTypes()[i]);
    if (failed(carried))
      return failure();
    results.push_back({{kUpdate, state}, *carried});
  }
  FailureOr<SmallVector<Port>> gradients = takeGradients(composer);
  if (failed(gradients))
    return failure();
  FailureOr<SmallVector<Port>> updates = composer.inlinePart(update, *gradients);
  if (failed(updates))
    return failure();
  results.append(*updates);
  finish(composer, "update", results);
  return success();
}

} // namespace

/// The weights that change: parameters and running statistics.
static SmallVector<TensorOp> findWeights(ModuleOp module, const std::set<std::string> &initializers) {
  return llvm::filter_to_vector(module.getOps<TensorOp>(), [&](TensorOp tensor) {
    return tensor.getRole() == Role::parameter ||
           (tensor.getRole() == Role::state && initializers.count(tensor.getName().str()));
  });
}

void bindParameters(ModuleOp module, const std::set<std::string> &initializers) {
  for (TensorOp tensor : findWeights(module, initializers))
    tensor->setAttr(kBound, UnitAttr::get(module.getContext()));
}

void dropWeights(ModuleOp module, const std::set<std::string> &initializers) {
  for (TensorOp tensor : findWeights(module, initializers))
    tensor.removeInitialAttr();
}

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
