// The steps of entries and of loop bodies, and their order.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/memory/EntryGraph.h"

#include "dialects/plan/PlanDialect.h"
#include "dialects/train/ElementTypes.h"

#include <queue>

using namespace mlir;

namespace ortc::memory {

static bool isStep(Operation *op) { return isa_and_nonnull<func::CallOp, nn::ScanOp>(op); }

bool EntryGraph::isCheck(Operation *step) const {
  bool found = false;
  step->walk([&](func::CallOp call) {
    auto kind = calleeOf(call)->getAttrOfType<plan::KernelKindAttr>(plan::kKind);
    found |= kind && kind.getValue() == plan::KernelKind::check;
  });
  return found;
}

FailureOr<EntryGraph> EntryGraph::build(ArrayRef<func::FuncOp> entries) {
  SmallVector<Block *, 2> blocks;
  for (func::FuncOp entry : entries)
    blocks.push_back(&entry.getBody().front());
  func::FuncOp first = entries.front();
  return build(std::move(blocks), std::make_shared<Kernels>(first->getParentOfType<ModuleOp>()));
}

FailureOr<EntryGraph> EntryGraph::build(SmallVector<Block *, 2> blocks, std::shared_ptr<Kernels> kernels) {
  EntryGraph graph;
  graph.blocks = std::move(blocks);
  graph.kernels = std::move(kernels);
  for (Block *block : graph.blocks)
    for (BlockArgument argument : block->getArguments())
      if (StringAttr tensor = tensorOf(argument))
        graph.argumentsOf[tensor].push_back(argument);
  if (failed(graph.checkContents()))
    return failure();
  graph.prepareLoops();
  graph.assignDestinations();
  if (!graph.sort()) {
    // Two updates wait for each other: let all of them go through copies, which nothing reads.
    graph.copyAllUpdates = true;
    graph.assignDestinations();
    if (!graph.sort())
      return graph.blocks.front()->getParentOp()->emitError("the updates of this entry have no order"),
             failure();
  }
  for (Operation *step : graph.order) {
    auto loop = dyn_cast<nn::ScanOp>(step);
    if (!loop)
      continue;
    auto body = build(SmallVector<Block *, 2>{&loop.getBlock()}, graph.kernels);
    if (failed(body))
      return failure();
    graph.bodies[loop] = std::make_unique<EntryGraph>(std::move(*body));
  }
  return graph;
}

LogicalResult EntryGraph::checkContents() const {
  for (Block *block : blocks)
    for (Operation &op : block->without_terminator())
      if (!isStep(&op) && !isa<nn::ReshapeOp>(op))
        return op.emitError("is in no kernel");
  return success();
}

/// The carried value of a loop that `value` is the last state of, where it starts; null for other values.
static Value initOf(Value value) {
  auto loop = value.getDefiningOp<nn::ScanOp>();
  unsigned number = loop ? cast<OpResult>(value).getResultNumber() : 0;
  return loop && number < loop.getNumCarried() ? loop.getInits()[number] : Value();
}

Value EntryGraph::sourceOf(Value value) const {
  if (auto reshape = value.getDefiningOp<nn::ReshapeOp>())
    return reshape.getInput();
  if (Value init = initOf(value))
    return init;
  return carried.lookup(value);
}

Value EntryGraph::rootOf(Value value) const {
  while (Value source = sourceOf(value))
    value = source;
  return value;
}

SmallVector<Operation *> EntryGraph::producersOf(Value value) const {
  SmallVector<Operation *> producers;
  for (; value; value = sourceOf(value))
    if (Operation *definition = value.getDefiningOp(); isStep(definition))
      producers.push_back(definition);
  return producers;
}

StringAttr EntryGraph::tensorOf(BlockArgument argument) {
  Operation *parent = argument.getOwner()->getParentOp();
  unsigned number = argument.getArgNumber();
  if (auto loop = dyn_cast<nn::ScanOp>(parent))
    return number < loop.getNumCarried() ? StringAttr::get(parent->getContext(), "carried." + Twine(number))
                                         : StringAttr();
  auto symbol = cast<func::FuncOp>(parent).getArgAttrOfType<FlatSymbolRefAttr>(number, train::kTensor);
  return symbol ? symbol.getAttr() : StringAttr();
}

StringAttr EntryGraph::gradientOf(BlockArgument argument) {
  auto entry = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto symbol =
      entry ? entry.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), train::kGradient) : nullptr;
  return symbol ? symbol.getAttr() : StringAttr();
}

const EntryGraph::Destination *EntryGraph::getDestination(Value root) const {
  auto found = destinations.find(root);
  return found == destinations.end() ? nullptr : &found->second;
}

uint32_t EntryGraph::getSegment(Operation *step) const {
  return llvm::find(blocks, step->getBlock()) - blocks.begin();
}

bool EntryGraph::isUpdate(Operation *step) const {
  return llvm::any_of(step->getResults(), [&](Value result) {
    const Destination *destination = getDestination(result);
    return destination && destination->kind == Destination::update;
  });
}

ArrayRef<Operation *> EntryGraph::getAfter(Operation *step) const {
  auto found = after.find(step);
  return found == after.end() ? ArrayRef<Operation *>() : ArrayRef<Operation *>(found->second);
}

/// Whether a kernel gives back what it reads.
static bool isCopy(func::FuncOp function) {
  if (!function->hasAttr(plan::kKind) || function.isExternal())
    return false;
  Operation &only = function.getBody().front().front();
  return isa<func::ReturnOp>(only) && llvm::equal(only.getOperands(), function.getArguments());
}

Kernels::Kernels(ModuleOp module) : module(module), symbols(module) {
  for (auto function : module.getOps<func::FuncOp>())
    if (isCopy(function)) {
      ++numberOfCopies;
      copies[function.getFunctionType()] = function;
    }
}

func::FuncOp Kernels::getCopy(Type type, Location loc) {
  func::FuncOp &copy = copies[FunctionType::get(module.getContext(), type, type)];
  if (copy)
    return copy;
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  copy = func::FuncOp::create(builder, loc, "copy_" + std::to_string(numberOfCopies++),
                              builder.getFunctionType(type, type));
  copy.setPrivate();
  copy->setAttr(plan::kKind, plan::KernelKindAttr::get(module.getContext(), plan::KernelKind::loop));
  Block *body = copy.addEntryBlock();
  builder.setInsertionPointToStart(body);
  func::ReturnOp::create(builder, loc, body->getArguments());
  symbols.insert(copy);
  return copy;
}

/// A copy of `value`, made in front of `user`.
Value EntryGraph::makeCopy(Value value, Operation *user) {
  OpBuilder builder(user);
  return func::CallOp::create(builder, user->getLoc(), kernels->getCopy(value.getType(), user->getLoc()),
                              value)
      .getResult(0);
}

/// Whether `value` is, but for reshapes, the result of a call that nobody else reads.
static bool isOwned(Value value) {
  while (value.hasOneUse()) {
    if (value.getDefiningOp<func::CallOp>())
      return true;
    auto reshape = value.getDefiningOp<nn::ReshapeOp>();
    if (!reshape)
      return false;
    value = reshape.getInput();
  }
  return false;
}

void EntryGraph::prepareLoops() {
  for (Block *block : blocks)
    for (auto loop : llvm::to_vector(block->getOps<nn::ScanOp>()))
      for (OpOperand &init : loop.getInitsMutable())
        if (!isOwned(init.get()))
          init.set(makeCopy(init.get(), loop));
}

/// What a result of one entry and an argument of a later one have in common when they are one value.
static Attribute handedOver(DictionaryAttr attributes) {
  Attribute gradient = attributes ? attributes.get(train::kGradient) : Attribute();
  return gradient || !attributes ? gradient : attributes.get(train::kSaved);
}

bool EntryGraph::isExternal(BlockArgument argument) {
  auto entry = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto has = [&](StringRef name) { return bool(entry.getArgAttr(argument.getArgNumber(), name)); };
  return entry && (has(train::kInput) || has(train::kOutput) || has(train::kBound));
}

void EntryGraph::assignDestinations() {
  destinations.clear();
  carried.clear();
  llvm::DenseMap<Attribute, Value> given;
  for (Block *block : blocks) {
    int64_t externals = 0;
    auto entry = dyn_cast<func::FuncOp>(block->getParentOp());
    for (BlockArgument argument : block->getArguments()) {
      externals += isExternal(argument);
      if (Attribute key = entry ? handedOver(entry.getArgAttrDict(argument.getArgNumber())) : nullptr)
        if (Value earlier = given.lookup(key))
          carried[argument] = earlier;
    }
    Operation *exit = block->getTerminator();
    for (unsigned i = 0; i < exit->getNumOperands(); ++i) {
      assignDestination(block, i, externals);
      if (Attribute key = entry ? handedOver(entry.getResultAttrDict(i)) : nullptr)
        given[key] = rootOf(exit->getOperand(i));
    }
  }
}

std::optional<EntryGraph::Destination> EntryGraph::describeResult(Block *block, unsigned result,
                                                                  int64_t &externals) const {
  MLIRContext *context = block->getParentOp()->getContext();
  if (auto loop = dyn_cast<nn::ScanOp>(block->getParentOp())) {
    if (result < loop.getNumCarried())
      return Destination{Destination::update, tensorOf(block->getArgument(result)), result, {}};
    return Destination{
        Destination::output, StringAttr::get(context, "stacked"), result - loop.getNumCarried(), {}};
  }
  auto entry = cast<func::FuncOp>(block->getParentOp());
  if (auto symbol = entry.getResultAttrOfType<FlatSymbolRefAttr>(result, train::kUpdate))
    return Destination{Destination::update, symbol.getAttr(), 0, {}};
  if (auto symbol = entry.getResultAttrOfType<FlatSymbolRefAttr>(result, train::kGradient))
    return Destination{Destination::gradient, symbol.getAttr(), 0, {}};
  if (auto name = entry.getResultAttrOfType<StringAttr>(result, train::kOutput))
    return Destination{Destination::output, name, externals++, {}};
  if (entry.getResultAttr(result, train::kSaved))
    return Destination{Destination::saved, StringAttr::get(context, "saved"), 0, {}};
  if (entry.getResultAttr(result, train::kLoss))
    return Destination{Destination::loss, StringAttr::get(context, "loss"), 0, {}};
  return std::nullopt;
}

void EntryGraph::assignDestination(Block *block, unsigned result, int64_t &externals) {
  std::optional<Destination> destination = describeResult(block, result, externals);
  if (!destination)
    return;
  if (auto entry = dyn_cast<func::FuncOp>(block->getParentOp())) {
    destination->dtype = entry.getResultAttr(result, train::kDtype);
    destination->layout = entry.getResultAttr(result, train::kLayout);
  }
  Operation *exit = block->getTerminator();
  Value root = rootOf(exit->getOperand(result));
  auto call = root.getDefiningOp<func::CallOp>();
  // What a loop has gone over is no longer the call's result.
  bool direct = call && call->getBlock() == block && !destinations.contains(root) &&
                producersOf(exit->getOperand(result)).size() == 1;
  if (direct && destination->kind == Destination::update)
    direct = canOverwrite(root, destination->name);
  if (!direct) {
    root = makeCopy(exit->getOperand(result), exit);
    exit->setOperand(result, root);
  }
  destination->type = exit->getOperand(result).getType();
  destinations[root] = *destination;
}

SmallVector<Operation *> EntryGraph::readersOf(StringAttr tensor) const {
  SmallVector<Operation *> readers;
  auto arguments = argumentsOf.find(tensor);
  if (arguments == argumentsOf.end())
    return readers;
  for (BlockArgument argument : arguments->second) {
    SmallVector<Value> values{argument};
    while (!values.empty()) {
      for (Operation *user : values.pop_back_val().getUsers()) {
        if (isStep(user))
          readers.push_back(user);
        else if (auto reshape = dyn_cast<nn::ReshapeOp>(user))
          values.push_back(reshape.getResult());
      }
    }
  }
  return readers;
}

bool EntryGraph::isBefore(Operation *a, Operation *b) const {
  return a->getBlock() == b->getBlock() ? a->isBeforeInBlock(b) : getSegment(a) < getSegment(b);
}

/// Whether `to` runs after `from` because of the values it reads, all of which are written before it in the program.
bool EntryGraph::reaches(Operation *from, Operation *to) const {
  SmallVector<Operation *> stack{to};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!stack.empty()) {
    Operation *op = stack.pop_back_val();
    if (op == from)
      return true;
    if (isBefore(op, from) || !seen.insert(op).second)
      continue;
    for (Value operand : op->getOperands())
      llvm::append_range(stack, producersOf(operand));
  }
  return false;
}

bool EntryGraph::canOverwrite(Value root, StringAttr symbol) const {
  auto writer = root.getDefiningOp<func::CallOp>();
  // A copy of what another step has made has no other reader and reads nothing that is overwritten.
  if (copyAllUpdates && !(isCopy(calleeOf(writer)) && rootOf(writer.getOperand(0)).getDefiningOp()))
    return false;
  int64_t result = cast<OpResult>(root).getResultNumber();
  auto pairs = calleeOf(writer)->getAttrOfType<DenseI64ArrayAttr>(plan::kInPlace);
  for (Operation *reader : readersOf(symbol)) {
    if (reader != writer) {
      if (reaches(writer, reader))
        return false;
      continue;
    }
    for (auto [i, operand] : llvm::enumerate(reader->getOperands())) {
      auto argument = dyn_cast<BlockArgument>(rootOf(operand));
      if (!argument || tensorOf(argument) != symbol)
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

// Kahn's algorithm; of the calls that could come next, the one that was written first, so that segments stay apart.
bool EntryGraph::sort() {
  SmallVector<Operation *> steps;
  llvm::DenseMap<Operation *, size_t> position;
  for (Block *block : blocks)
    for (Operation &op : *block)
      if (isStep(&op)) {
        position[&op] = steps.size();
        steps.push_back(&op);
      }

  // Updates wait for the readers of what they overwrite, for all checks and for the loss; readers of an overwritten
  // tensor's new value wait for the update.
  after.clear();
  SmallVector<Operation *> gates;
  for (Operation *step : steps)
    if (isCheck(step))
      gates.push_back(step);
  for (auto &[root, destination] : destinations)
    if (destination.kind == Destination::loss)
      gates.push_back(root.getDefiningOp());
  for (auto &[root, destination] : destinations) {
    Operation *writer = root.getDefiningOp();
    if (destination.kind == Destination::update) {
      for (Operation *reader : readersOf(destination.name))
        if (reader != writer)
          after[writer].push_back(reader);
      for (Operation *gate : gates)
        if (gate != writer)
          after[writer].push_back(gate);
    }
  }
  for (Operation *step : steps)
    for (Value operand : step->getOperands()) {
      if (const Destination *destination = getDestination(rootOf(operand)))
        if (destination->kind == Destination::update || destination->kind == Destination::output)
          after[step].push_back(rootOf(operand).getDefiningOp());
      for (Operation *producer : producersOf(operand))
        if (isa<nn::ScanOp>(producer)) // where the buffer says only who wrote it first
          after[step].push_back(producer);
    }
  for (auto &[op, list] : after) {
    llvm::sort(list, [&](Operation *a, Operation *b) { return position[a] < position[b]; });
    list.erase(llvm::unique(list), list.end());
  }

  SmallVector<unsigned> waiting(steps.size(), 0);
  SmallVector<SmallVector<size_t>> followers(steps.size());
  auto addEdge = [&](Operation *from, size_t to) {
    followers[position[from]].push_back(to);
    ++waiting[to];
  };
  for (auto [i, step] : llvm::enumerate(steps)) {
    for (Value operand : step->getOperands())
      for (Operation *producer : producersOf(operand))
        addEdge(producer, i);
    for (Operation *earlier : getAfter(step))
      addEdge(earlier, i);
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < steps.size(); ++i)
    if (waiting[i] == 0)
      ready.push(i);
  order.clear();
  while (!ready.empty()) {
    size_t next = ready.top();
    ready.pop();
    order.push_back(steps[next]);
    for (size_t follower : followers[next])
      if (--waiting[follower] == 0)
        ready.push(follower);
  }
  // Steps are numbered segment by segment: one of a later segment comes too early only where an earlier one
  // waits for it.
  return order.size() == steps.size() &&
         llvm::is_sorted(order, [&](Operation *a, Operation *b) { return getSegment(a) < getSegment(b); });
}

} // namespace ortc::memory
