// Expand the calls of model-local functions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls are expanded from the outside in, so that the attributes of a call inside a function are known values
// before that call is expanded itself: an attribute that no caller gives then falls back to the inner
// function's default. Recursion is excluded beforehand by a walk over the graph of calls.
#include "compiler/passes/import/Passes.h"

#include "dialects/onnx/OnnxDialect.h"
#include "mlir/IR/IRMapping.h"
#include "support/Plural.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

namespace ortc::import {
#define GEN_PASS_DEF_INLINEFUNCTIONSPASS
#include "compiler/passes/import/Passes.h.inc"
} // namespace ortc::import

using namespace mlir;
using ortc::onnx::FunctionOp;
using ortc::onnx::GraphOp;
using ortc::onnx::NodeOp;

namespace {

/// The functions of a module, by domain, name and overload.
class Functions {
public:
  explicit Functions(ModuleOp module) {
    for (auto function : module.getOps<FunctionOp>()) {
      bool added =
          byKey.try_emplace(key(function.getDomain(), function.getName(), function.getOverload()), function)
              .second;
      if (!added)
        duplicate = function;
    }
  }
  FunctionOp find(NodeOp node) const {
    return byKey.lookup(key(node.getDomainName(), node.getOpType(), node.getOverload()));
  }
  FunctionOp getDuplicate() const { return duplicate; }
  bool empty() const { return byKey.empty(); }

private:
  static std::string key(StringRef domain, StringRef name, std::optional<StringRef> overload) {
    return (domain + "\n" + name + "\n" + overload.value_or("")).str();
  }
  llvm::StringMap<FunctionOp> byKey;
  FunctionOp duplicate;
};

/// The attributes and graphs that a call gives to a function.
struct Arguments {
  FunctionOp function;
  NodeOp call;

  /// The value of a reference, or null when neither the call nor the defaults have one.
  Attribute find(StringRef name) {
    if (Attribute given = call.getOnnxAttr(name))
      return given;
    return function.getDefaults().get(name);
  }
};

struct InlineFunctions : ortc::import::impl::InlineFunctionsPassBase<InlineFunctions> {
  using Base::Base;
  void runOnOperation() override;
};

} // namespace

/// Fails when a function reaches itself. Depth-first over the graph of calls with an explicit stack.
static LogicalResult checkRecursion(ModuleOp module, const Functions &functions) {
  enum { kNew, kOpen, kDone };
  DenseMap<Operation *, int> state;
  for (auto root : module.getOps<FunctionOp>()) {
    SmallVector<FunctionOp> stack{root};
    while (!stack.empty()) {
      FunctionOp function = stack.back();
      if (state[function] != kNew) { // all callees are done, or it was reached twice
        state[function] = kDone;
        stack.pop_back();
        continue;
      }
      state[function] = kOpen;
      FunctionOp recursive;
      function.walk([&](NodeOp node) {
        FunctionOp callee = functions.find(node);
        if (!callee)
          return;
        if (state[callee] == kOpen)
          recursive = recursive ? recursive : callee;
        else if (state[callee] == kNew)
          stack.push_back(callee);
      });
      if (recursive)
        return recursive.emitError() << "function '" << recursive.getName()
                                     << "' calls itself, directly or through others";
    }
  }
  return success();
}

/// `call/inner`, or the one that is not empty.
static std::string join(StringRef call, StringRef inner) {
  return call.empty() || inner.empty() ? (call + inner).str() : (call + "/" + inner).str();
}

/// Replaces references by values; drops those without one. Graphs that a reference stands for are copied into
/// the node, which then is another operation. Returns the node.
static NodeOp resolveReferences(NodeOp node, Arguments &arguments) {
  NamedAttrList attributes;
  SmallVector<std::pair<StringAttr, Region *>> graphs;
  for (NamedAttribute attribute : node.getOnnxAttributes()) {
    auto reference = dyn_cast<ortc::onnx::ReferenceAttr>(attribute.getValue());
    if (!reference) {
      attributes.push_back(attribute);
    } else if (Attribute value = arguments.find(reference.getName())) {
      attributes.set(attribute.getName(), value);
    } else if (ArrayAttr names = arguments.call.getGraphNamesAttr()) {
      for (auto [i, name] : llvm::enumerate(names.getAsRange<StringAttr>()))
        if (name.getValue() == reference.getName())
          graphs.push_back({attribute.getName(), &arguments.call.getGraphs()[i]});
    }
  }
  node.setOnnxAttributesAttr(attributes.getDictionary(node.getContext()));
  if (graphs.empty())
    return node;
  OpBuilder builder(node);
  SmallVector<Attribute> names;
  if (ArrayAttr own = node.getGraphNamesAttr())
    names.append(own.begin(), own.end());
  size_t own = names.size();
  for (auto &graph : graphs)
    names.push_back(graph.first);
  auto wider =
      NodeOp::create(builder, node.getLoc(), node.getResultTypes(), node.getOpTypeAttr(),
                     node.getDomainAttr(), node.getOverloadAttr(), node.getSinceVersionAttr(),
                     node.getNameAttr(), node.getInputs(), node.getOnnxAttributes(), node.getOutputNames(),
                     builder.getArrayAttr(names), static_cast<unsigned>(names.size()));
  for (size_t i = 0; i < names.size(); ++i) {
    if (i < own) {
      wider.getGraphs()[i].takeBody(node.getGraphs()[i]);
    } else {
      IRMapping mapping;
      graphs[i - own].second->cloneInto(&wider.getGraphs()[i], mapping);
    }
  }
  node.replaceAllUsesWith(wider.getResults());
  node.erase();
  return wider;
}

/// The name of a node of a function, which a copy has behind the name of its call.
static StringRef innerName(NodeOp node) {
  return node.getNodeName().empty() ? node.getOpType() : node.getNodeName();
}

/// Gives a cloned node its names: those of the call where it produces one of the call's outputs.
static void rename(NodeOp node, StringRef prefix) {
  Builder b(node.getContext());
  SmallVector<Attribute> outputs;
  for (StringAttr name : node.getOutputNames().getAsRange<StringAttr>())
    outputs.push_back(b.getStringAttr(name.empty() ? "" : join(prefix, name.getValue())));
  node.setOutputNamesAttr(b.getArrayAttr(outputs));
  node.setNameAttr(b.getStringAttr(join(prefix, innerName(node))));
}

/// Bytes of the names that `rename` gives.
static int64_t countNameBytes(NodeOp node, StringRef prefix) {
  auto joined = [&](StringRef inner) { return prefix.size() + !prefix.empty() + inner.size(); };
  size_t bytes = joined(innerName(node));
  for (StringAttr name : node.getOutputNames().getAsRange<StringAttr>())
    bytes += name.empty() ? 0 : joined(name.getValue());
  return static_cast<int64_t>(bytes);
}

/// Lets the call's result `i` stand for `value`: the node that produces it takes the result's name and stated
/// type.
static void adoptResult(NodeOp call, unsigned i, Value value, const SmallPtrSetImpl<Operation *> &copies) {
  auto node = value.getDefiningOp<NodeOp>();
  if (!node || !copies.contains(node) || call.getOutputName(i).empty())
    return; // an input of the function that is also its output keeps its own name
  unsigned result = cast<OpResult>(value).getResultNumber();
  SmallVector<Attribute> names(node.getOutputNames().begin(), node.getOutputNames().end());
  names[result] = call.getOutputNames()[i];
  node.setOutputNamesAttr(ArrayAttr::get(node.getContext(), names));
  if (isa<ortc::onnx::AnyType>(value.getType()))
    value.setType(call.getResult(i).getType());
}

/// What expansion makes. Each copy has the names of all calls around it in its own.
struct Expansion {
  int64_t nodes = 0;
  int64_t nameBytes = 0;
};

/// Adds what the expansion of `call` makes, the graphs that take the place of references included.
static void addExpansion(NodeOp call, FunctionOp function, StringRef prefix, Expansion &made) {
  llvm::StringMap<int64_t> graphs; // nodes by name
  if (ArrayAttr names = call.getGraphNamesAttr())
    for (auto [name, region] : llvm::zip(names.getAsRange<StringAttr>(), call.getGraphs()))
      region.walk([&, &count = graphs[name.getValue()]](NodeOp) { ++count; });
  function.getBody().walk([&](NodeOp node) {
    ++made.nodes;
    made.nameBytes += countNameBytes(node, prefix);
    for (NamedAttribute attribute : node.getOnnxAttributes())
      if (auto reference = dyn_cast<ortc::onnx::ReferenceAttr>(attribute.getValue()))
        made.nodes += graphs.lookup(reference.getName());
  });
}

/// Replaces the call by the function's body. The calls among the copied nodes are added to `calls`.
static LogicalResult inlineCall(NodeOp call, FunctionOp function, const Functions &functions,
                                llvm::SetVector<Operation *> &calls, StringRef prefix) {
  Block &body = function.getBody().front();
  if (call.getInputs().size() > body.getNumArguments() ||
      call.getNumResults() > body.getTerminator()->getNumOperands())
    return call.emitError() << "function '" << function.getName() << "' has "
                            << ortc::formatCount(body.getNumArguments(), "input") << " and "
                            << ortc::formatCount(body.getTerminator()->getNumOperands(), "output") << ", not "
                            << call.getInputs().size() << " and " << call.getNumResults();
  auto declared = [&](StringAttr name) {
    return llvm::is_contained(function.getParameters(), name) || function.getDefaults().contains(name);
  };
  for (NamedAttribute attribute : call.getOnnxAttributes())
    if (!declared(attribute.getName()))
      return call.emitError() << "function '" << function.getName() << "' has no attribute '"
                              << attribute.getName().getValue() << "'";
  OpBuilder builder(call);
  IRMapping mapping;
  Value none;
  for (BlockArgument argument : body.getArguments()) {
    if (argument.getArgNumber() < call.getInputs().size()) {
      mapping.map(argument, call.getInputs()[argument.getArgNumber()]);
      continue;
    }
    if (!none)
      none = ortc::onnx::NoneOp::create(builder, call.getLoc(), builder.getNoneType());
    mapping.map(argument, none);
  }
  SmallPtrSet<Operation *, 16> copies;
  SmallVector<NodeOp> inner;
  Location caller =
      FusedLoc::get({call.getLoc()}, builder.getStringAttr(call.getOpType()), call.getContext());
  for (Operation &op : body.without_terminator()) {
    Operation *copy = builder.clone(op, mapping);
    copies.insert(copy);
    copy->walk([&](NodeOp node) { inner.push_back(node); });
    copy->walk([&](Operation *nested) { nested->setLoc(CallSiteLoc::get(nested->getLoc(), caller)); });
  }
  SmallVector<Value> results;
  for (Value output : body.getTerminator()->getOperands().take_front(call.getNumResults()))
    results.push_back(mapping.lookupOrDefault(output));
  for (NodeOp node : inner)
    rename(node, prefix);
  for (auto [i, result] : llvm::enumerate(results))
    adoptResult(call, static_cast<unsigned>(i), result, copies);
  call.replaceAllUsesWith(results);
  // The copies have their names; the graphs that a reference brings in are the caller's and keep theirs.
  Arguments arguments{function, call};
  for (NodeOp node : inner) {
    NodeOp resolved = resolveReferences(node, arguments);
    resolved->walk([&](NodeOp candidate) {
      if (functions.find(candidate))
        calls.insert(candidate);
    });
  }
  calls.remove(call);
  call->walk([&](NodeOp nested) { calls.remove(nested); });
  call.erase();
  return success();
}

void InlineFunctions::runOnOperation() {
  ModuleOp module = getOperation();
  Functions functions(module);
  if (functions.empty())
    return;
  if (FunctionOp duplicate = functions.getDuplicate()) {
    duplicate.emitError() << "there are two functions '" << duplicate.getName() << "' of domain '"
                          << duplicate.getDomain() << "'";
    return signalPassFailure();
  }
  if (failed(checkRecursion(module, functions)))
    return signalPassFailure();
  llvm::SetVector<Operation *> calls;
  for (auto graph : module.getOps<GraphOp>())
    graph.walk([&](NodeOp node) {
      if (functions.find(node))
        calls.insert(node);
    });
  Expansion made;
  while (!calls.empty()) {
    auto call = cast<NodeOp>(calls.pop_back_val());
    FunctionOp function = functions.find(call);
    std::string prefix = call.getNodeName().empty() && call.getNumResults() ? call.getOutputName(0).str()
                                                                            : call.getNodeName().str();
    addExpansion(call, function, prefix, made);
    if (made.nodes > maxNodes) {
      module.emitError() << "inlining functions makes more than " << maxNodes.getValue() << " nodes";
      return signalPassFailure();
    }
    if (made.nameBytes > maxNameBytes) {
      module.emitError() << "inlining functions makes names of more than " << maxNameBytes.getValue()
                         << " bytes in all; give calls and nodes shorter names";
      return signalPassFailure();
    }
    if (failed(inlineCall(call, function, functions, calls, prefix)))
      return signalPassFailure();
  }
  for (FunctionOp function : llvm::make_early_inc_range(module.getOps<FunctionOp>()))
    function.erase();
}
