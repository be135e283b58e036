//===- EntryGraph.cpp - the kernel calls of entries and their order -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/memory/EntryGraph.h"

#include "dialects/nn/NnDialect.h"
#include "dialects/plan/PlanDialect.h"
#include "dialects/train/ElementTypes.h"

#include <queue>

using namespace mlir;

namespace ortc::memory {

static func::FuncOp calleeOf(func::CallOp call) {
  return SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
}

bool EntryGraph::isCheck(func::CallOp call) {
  auto kind = calleeOf(call)->getAttrOfType<plan::KernelKindAttr>(plan::kKind);
  return kind && kind.getValue() == plan::KernelKind::check;
}

FailureOr<EntryGraph> EntryGraph::build(ArrayRef<func::FuncOp> entries) {
  EntryGraph graph;
  graph.entries.assign(entries.begin(), entries.end());
  if (failed(graph.checkContents()))
    return failure();
  graph.assignDestinations();
  if (!graph.sort()) {
    // Two updates wait for each other: let all of them go through copies, which nothing reads.
    graph.copyAllUpdates = true;
    graph.assignDestinations();
    if (!graph.sort())
      return graph.entries.front().emitError("the updates of this entry have no order"), failure();
  }
  return graph;
}

LogicalResult EntryGraph::checkContents() const {
  for (func::FuncOp entry : entries)
    for (Operation &op : entry.getBody().front().without_terminator())
      if (!isa<func::CallOp, nn::ReshapeOp>(op))
        return op.emitError("is in no kernel");
  return success();
}

Value EntryGraph::rootOf(Value value) const {
  while (true) {
    if (auto reshape = value.getDefiningOp<nn::ReshapeOp>())
      value = reshape.getInput();
    else if (Value source = carried.lookup(value))
      value = source;
    else
      return value;
  }
}

const EntryGraph::Destination *EntryGraph::getDestination(Value root) const {
  auto found = destinations.find(root);
  return found == destinations.end() ? nullptr : &found->second;
}

uint32_t EntryGraph::getSegment(func::CallOp call) const {
  return llvm::find(entries, call->getParentOfType<func::FuncOp>()) - entries.begin();
}

bool EntryGraph::isUpdate(func::CallOp call) const {
  return llvm::any_of(call.getResults(), [&](Value result) {
    const Destination *destination = getDestination(result);
    return destination && destination->kind == Destination::update;
  });
}

ArrayRef<Operation *> EntryGraph::getAfter(func::CallOp call) const {
  auto found = after.find(call);
  return found == after.end() ? ArrayRef<Operation *>() : ArrayRef<Operation *>(found->second);
}

void EntryGraph::assignDestinations() {
  destinations.clear();
  carried.clear();
  llvm::DenseMap<Attribute, Value> gradients;
  for (func::FuncOp entry : entries) {
    int64_t externals = 0;
    for (unsigned i = 0; i < entry.getNumArguments(); ++i) {
      externals += entry.getArgAttr(i, train::kInput) != nullptr;
      if (auto symbol = entry.getArgAttrOfType<FlatSymbolRefAttr>(i, train::kGradient))
        if (Value gradient = gradients.lookup(symbol))
          carried[entry.getArgument(i)] = gradient;
    }
    for (unsigned i = 0; i < entry.getNumResults(); ++i) {
      assignDestination(entry, i, externals);
      if (auto symbol = entry.getResultAttrOfType<FlatSymbolRefAttr>(i, train::kGradient))
        gradients[symbol] = rootOf(entry.getBody().front().getTerminator()->getOperand(i));
    }
  }
}

void EntryGraph::assignDestination(func::FuncOp entry, unsigned result, int64_t &externals) {
  Destination destination;
  if (auto symbol = entry.getResultAttrOfType<FlatSymbolRefAttr>(result, train::kUpdate))
    destination = {Destination::update, symbol.getAttr(), 0, {}};
  else if (auto symbol = entry.getResultAttrOfType<FlatSymbolRefAttr>(result, train::kGradient))
    destination = {Destination::gradient, symbol.getAttr(), 0, {}};
  else if (auto name = entry.getResultAttrOfType<StringAttr>(result, train::kOutput))
    destination = {Destination::output, name, externals++, {}};
  else if (entry.getResultAttr(result, train::kLoss))
    destination = {Destination::loss, StringAttr::get(entry.getContext(), "loss"), 0, {}};
  else
    return;
  destination.dtype = entry.getResultAttr(result, train::kDtype);
  Operation *exit = entry.getBody().front().getTerminator();
  Value root = rootOf(exit->getOperand(result));
  auto call = root.getDefiningOp<func::CallOp>();
  bool direct = call && call->getParentOp() == entry && !destinations.contains(root);
  if (direct && destination.kind == Destination::update)
    direct = canOverwrite(root, destination.name);
  if (!direct) {
    insertCopy(entry, result);
    root = exit->getOperand(result);
  }
  destination.type = exit->getOperand(result).getType();
  destinations[root] = destination;
}

SmallVector<func::CallOp> EntryGraph::readersOf(StringAttr symbol) const {
  SmallVector<func::CallOp> readers;
  for (func::FuncOp entry : entries) {
    for (unsigned i = 0; i < entry.getNumArguments(); ++i) {
      auto tensor = entry.getArgAttrOfType<FlatSymbolRefAttr>(i, train::kTensor);
      if (!tensor || tensor.getAttr() != symbol)
        continue;
      SmallVector<Value> values{entry.getArgument(i)};
      while (!values.empty()) {
        for (Operation *user : values.pop_back_val().getUsers()) {
          if (auto call = dyn_cast<func::CallOp>(user))
            readers.push_back(call);
          else if (auto reshape = dyn_cast<nn::ReshapeOp>(user))
            values.push_back(reshape.getResult());
        }
      }
    }
  }
  return readers;
}

/// Whether `to` runs after `from` because of the values it reads.
static bool reaches(const EntryGraph &graph, func::CallOp from, func::CallOp to) {
  SmallVector<Operation *> stack{to};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!stack.empty()) {
    Operation *op = stack.pop_back_val();
    if (op == from)
      return true;
    if (!seen.insert(op).second)
      continue;
    for (Value operand : op->getOperands())
      if (Operation *producer = graph.rootOf(operand).getDefiningOp())
        stack.push_back(producer);
  }
  return false;
}

/// Whether a kernel gives back what it reads.
static bool isCopy(func::FuncOp function) {
  if (!function->hasAttr(plan::kKind) || function.isExternal())
    return false;
  Operation &only = function.getBody().front().front();
  return isa<func::ReturnOp>(only) && llvm::equal(only.getOperands(), function.getArguments());
}

bool EntryGraph::canOverwrite(Value root, StringAttr symbol) const {
  auto writer = root.getDefiningOp<func::CallOp>();
  // A copy made for this purpose has no other reader and reads nothing that is overwritten.
  if (copyAllUpdates && !isCopy(calleeOf(writer)))
    return false;
  int64_t result = cast<OpResult>(root).getResultNumber();
  auto pairs = calleeOf(writer)->getAttrOfType<DenseI64ArrayAttr>(plan::kInPlace);
  for (func::CallOp reader : readersOf(symbol)) {
    if (reader != writer) {
      if (reaches(*this, writer, reader))
        return false;
      continue;
    }
    for (auto [i, operand] : llvm::enumerate(reader.getOperands())) {
      auto argument = dyn_cast<BlockArgument>(rootOf(operand));
      if (!argument)
        continue;
      auto entry = cast<func::FuncOp>(argument.getOwner()->getParentOp());
      auto tensor = entry.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), train::kTensor);
      if (!tensor || tensor.getAttr() != symbol)
        continue;
      bool allowed = false;
      for (size_t p = 0; pairs && p + 1 < static_cast<size_t>(pairs.size()); p += 2)
        allowed |= pairs[p] == static_cast<int64_t>(i) && pairs[p + 1] == result;
      if (!allowed)
        return false;
    }
  }
  return true;
}

void EntryGraph::insertCopy(func::FuncOp entry, unsigned result) {
  Operation *exit = entry.getBody().front().getTerminator();
  Value value = exit->getOperand(result);
  auto module = entry->getParentOfType<ModuleOp>();
  auto type = FunctionType::get(entry.getContext(), value.getType(), value.getType());
  func::FuncOp copy;
  unsigned number = 0;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!isCopy(function))
      continue;
    ++number;
    if (function.getFunctionType() == type)
      copy = function;
  }
  if (!copy) {
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    copy = func::FuncOp::create(builder, entry.getLoc(), "copy_" + std::to_string(number), type);
    copy.setPrivate();
    copy->setAttr(plan::kKind, plan::KernelKindAttr::get(entry.getContext(), plan::KernelKind::loop));
    Block *body = copy.addEntryBlock();
    builder.setInsertionPointToStart(body);
    func::ReturnOp::create(builder, entry.getLoc(), body->getArguments());
  }
  OpBuilder builder(exit);
  auto call = func::CallOp::create(builder, exit->getLoc(), copy, value);
  exit->setOperand(result, call.getResult(0));
}

// Kahn's algorithm; of the calls that could come next, the one that was written first.
bool EntryGraph::sort() {
  SmallVector<func::CallOp> calls;
  llvm::DenseMap<Operation *, size_t> position;
  for (func::FuncOp entry : entries)
    for (auto call : entry.getBody().front().getOps<func::CallOp>()) {
      position[call] = calls.size();
      calls.push_back(call);
    }

  // Updates wait for the readers of what they overwrite, for all checks and for the loss; readers of an overwritten
  // tensor's new value wait for the update.
  after.clear();
  SmallVector<Operation *> gates;
  for (func::CallOp call : calls)
    if (isCheck(call))
      gates.push_back(call);
  for (auto &[root, destination] : destinations)
    if (destination.kind == Destination::loss)
      gates.push_back(root.getDefiningOp());
  for (auto &[root, destination] : destinations) {
    Operation *writer = root.getDefiningOp();
    if (destination.kind == Destination::update) {
      for (func::CallOp reader : readersOf(destination.name))
        if (reader != writer)
          after[writer].push_back(reader);
      for (Operation *gate : gates)
        if (gate != writer)
          after[writer].push_back(gate);
    }
  }
  for (func::CallOp call : calls)
    for (Value operand : call.getOperands())
      if (const Destination *destination = getDestination(rootOf(operand)))
        if (destination->kind == Destination::update || destination->kind == Destination::output)
          after[call].push_back(rootOf(operand).getDefiningOp());
  for (auto &[op, list] : after) {
    llvm::sort(list, [&](Operation *a, Operation *b) { return position[a] < position[b]; });
    list.erase(llvm::unique(list), list.end());
  }

  SmallVector<unsigned> waiting(calls.size(), 0);
  SmallVector<SmallVector<size_t>> followers(calls.size());
  auto addEdge = [&](Operation *from, size_t to) {
    followers[position[from]].push_back(to);
    ++waiting[to];
  };
  for (auto [i, call] : llvm::enumerate(calls)) {
    for (Value operand : call.getOperands())
      if (Operation *producer = rootOf(operand).getDefiningOp())
        addEdge(producer, i);
    for (Operation *earlier : getAfter(call))
      addEdge(earlier, i);
    if (getSegment(call) > 0)
      for (func::CallOp earlier : calls)
        if (getSegment(earlier) < getSegment(call))
          addEdge(earlier, i);
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < calls.size(); ++i)
    if (waiting[i] == 0)
      ready.push(i);
  order.clear();
  while (!ready.empty()) {
    size_t next = ready.top();
    ready.pop();
    order.push_back(calls[next]);
    for (size_t follower : followers[next])
      if (--waiting[follower] == 0)
        ready.push(follower);
  }
  return order.size() == calls.size();
}

} // namespace ortc::memory
