// The memory of an entry, as its plan has it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/report/MemoryPlan.h"

#include "compiler/passes/memory/Passes.h"
#include "compiler/report/KernelFacts.h"

#include <algorithm>
#include <tuple>

using namespace mlir;

namespace ortc::report {

/// What the planner gives every buffer at least.
static constexpr uint64_t kUnit = 64;

std::string entryName(plan::ProgramOp program, const CompileOptions &options) {
  return program.getRole().str() + "/" + options.bindings[program.getBinding()].name;
}

namespace {

/// Steps of an operation: a step itself, or those of a loop.
struct Span {
  int64_t first = 0, last = -1;
};

/// Reads the buffers of one program. A value may be seen with several shapes, and item by item in loops:
/// operations of one name are one value.
class BufferReader {
public:
  explicit BufferReader(plan::ProgramOp program)
      : program(program), symbols(program->getParentOfType<ModuleOp>()) {
    program.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<plan::StepOp>(op)) {
        spans[op] = {count, count};
        for (Operation *loop = op->getParentOp(); isa<plan::LoopOp>(loop); loop = loop->getParentOp()) {
          Span &span = spans.try_emplace(loop, Span{count, count}).first->second;
          span.last = count;
        }
        ++count;
      }
    });
  }

  std::vector<PlannedBuffer> read() {
    llvm::StringMap<size_t> number;
    for (auto op : program.getBody().getOps<plan::BufferOp>())
      add(op, number);
    program.walk([&](plan::StepOp step) { addScratch(step, number); });
    std::vector<PlannedBuffer> buffers;
    for (Value &value : values)
      buffers.push_back(finish(value));
    std::sort(buffers.begin(), buffers.end(), [](const PlannedBuffer &a, const PlannedBuffer &b) {
      return std::tie(a.offset, a.first, a.name) < std::tie(b.offset, b.first, b.name);
    });
    return buffers;
  }

private:
  struct Value {
    PlannedBuffer buffer;
    SmallVector<Operation *> users;
    llvm::SmallPtrSet<Operation *, 4> around; ///< loops that it moves on with: it is no value of their bodies
    bool isWritten = false, isSeenByHost = false;
  };

  void add(plan::BufferOp op, llvm::StringMap<size_t> &number) {
    if (op.getRegion() != plan::Region::transient)
      return;
    auto [known, isNew] = number.try_emplace(op.getName(), values.size());
    if (isNew)
      values.emplace_back();
    Value &value = values[known->second];
    auto type = cast<MemRefType>(op.getType());
    value.buffer.name = op.getName();
    value.buffer.offset = isNew ? op.getOffset() : std::min<uint64_t>(value.buffer.offset, op.getOffset());
    value.isSeenByHost |= op.getUsage().has_value();
    grow(value.buffer, describeShape(type), plan::storedBytes(type));
    for (Operation *user : op->getUsers())
      if (auto step = dyn_cast<plan::StepOp>(user)) {
        value.users.push_back(step);
        value.isWritten |= llvm::is_contained(step.getOutputs(), op.getResult());
        followStrides(value, op, step);
      } else if (isa<plan::LoopOp>(user)) { // its limit
        value.users.push_back(user);
      }
  }

  void addScratch(plan::StepOp step, const llvm::StringMap<size_t> &taken) {
    if (!step.getScratch())
      return;
    Value value;
    value.buffer.name = "scratch of step " + std::to_string(spans.lookup(step).first);
    while (taken.contains(value.buffer.name))
      value.buffer.name += "'";
    value.buffer.type = "scratch";
    value.buffer.isScratch = true;
    value.buffer.offset = *step.getScratch();
    value.buffer.bytes = plan::scratchOf(symbols.lookup(step.getKernel()));
    value.users.push_back(step);
    value.isWritten = true;
    values.push_back(std::move(value));
  }

  static void grow(PlannedBuffer &buffer, const std::string &type, uint64_t bytes) {
    if (bytes > buffer.bytes || buffer.type.empty()) {
      buffer.type = type;
      buffer.bytes = bytes;
    }
  }

  /// What a step in loops sees an item of has room for the items of all iterations, and is there before and
  /// after the loop.
  static void followStrides(Value &value, plan::BufferOp op, plan::StepOp step) {
    auto type = cast<MemRefType>(op.getType());
    std::string shape = describeShape(type);
    uint64_t bytes = plan::storedBytes(type);
    ArrayRef<int64_t> strides = op.getStrides().value_or(ArrayRef<int64_t>());
    auto loop = dyn_cast<plan::LoopOp>(step->getParentOp());
    for (size_t i = strides.size(); i-- > 0 && loop; loop = dyn_cast<plan::LoopOp>(loop->getParentOp()))
      if (strides[i] != 0) {
        value.around.insert(loop);
        shape = std::to_string(loop.getTripCount()) + "x" + shape;
        bytes += strides[i] * (loop.getTripCount() - 1);
      }
    grow(value.buffer, shape, bytes);
  }

  /// From the first to the last step that uses a value. A loop around some of them keeps it from its first to
  /// its last step.
  PlannedBuffer finish(Value &value) const {
    PlannedBuffer &buffer = value.buffer;
    int64_t end = std::max<int64_t>(count - 1, 0);
    buffer.first = value.isWritten ? end : 0; // what nobody writes is there from the start
    buffer.last = (value.isWritten && value.isSeenByHost) || value.users.empty() ? end : 0;
    for (Operation *user : value.users) {
      Operation *top = user;
      for (Operation *loop = user->getParentOp(); isa<plan::LoopOp>(loop); loop = loop->getParentOp())
        if (value.around.contains(loop) ||
            llvm::any_of(value.users, [&](Operation *other) { return !loop->isAncestor(other); }))
          top = loop;
      const Span &span = spans.find(top)->second;
      buffer.first = std::min(buffer.first, span.first);
      buffer.last = std::max(buffer.last, span.last);
    }
    return buffer;
  }

  plan::ProgramOp program;
  SymbolTable symbols;
  llvm::DenseMap<Operation *, Span> spans;
  std::vector<Value> values;
  int64_t count = 0;
};

} // namespace

namespace {

/// How many bytes of the arena some pieces cover together, while pieces come and go: a tree over the bytes
/// between all ends of pieces, which counts those that cover a node whole.
class CoveredBytes {
public:
  /// `ends` has both ends of every piece.
  explicit CoveredBytes(std::vector<uint64_t> ends) : ends(std::move(ends)) {
    std::sort(this->ends.begin(), this->ends.end());
    this->ends.erase(std::unique(this->ends.begin(), this->ends.end()), this->ends.end());
    nodes.resize(4 * this->ends.size() + 4);
  }

  void add(uint64_t begin, uint64_t end, int64_t pieces) {
    if (begin < end)
      add(0, 0, ends.size() - 1, {placeOf(begin), placeOf(end)}, pieces);
  }
  uint64_t count() const { return nodes.front().bytes; }

private:
  struct Node {
    int64_t pieces = 0; ///< that cover it whole, and not its parent
    uint64_t bytes = 0; ///< that are covered by pieces here and below
  };

  size_t placeOf(uint64_t end) const {
    return std::lower_bound(ends.begin(), ends.end(), end) - ends.begin();
  }

  /// Node `number` covers the bytes between the places `low` and `high`.
  void add(size_t number, size_t low, size_t high, std::pair<size_t, size_t> piece, int64_t pieces) {
    Node &node = nodes[number];
    if (piece.first <= low && high <= piece.second) {
      node.pieces += pieces;
    } else {
      size_t middle = (low + high) / 2;
      if (piece.first < middle)
        add(2 * number + 1, low, middle, piece, pieces);
      if (middle < piece.second)
        add(2 * number + 2, middle, high, piece, pieces);
    }
    bool isLeaf = high - low == 1;
    node.bytes = node.pieces > 0 ? ends[high] - ends[low]
                 : isLeaf        ? 0
                                 : nodes[2 * number + 1].bytes + nodes[2 * number + 2].bytes;
  }

  std::vector<uint64_t> ends;
  std::vector<Node> nodes;
};

} // namespace

/// Bytes of the arena that the buffers of a step cover together: those written in place share theirs.
static void measureSteps(MemoryPlan &plan) {
  auto endOf = [](const PlannedBuffer &buffer) {
    return buffer.offset + (buffer.bytes + kUnit - 1) / kUnit * kUnit;
  };
  std::vector<uint64_t> ends;
  std::vector<std::vector<const PlannedBuffer *>> begin(plan.steps.size() + 1), gone(plan.steps.size() + 1);
  for (const PlannedBuffer &buffer : plan.buffers) {
    ends.push_back(buffer.offset);
    ends.push_back(endOf(buffer));
    int64_t first = std::max<int64_t>(buffer.first, 0), steps = static_cast<int64_t>(plan.steps.size());
    if (first > buffer.last || first >= steps)
      continue;
    begin[first].push_back(&buffer);
    gone[std::min(buffer.last + 1, steps)].push_back(&buffer);
  }
  CoveredBytes covered(std::move(ends));
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    for (const PlannedBuffer *buffer : begin[i])
      covered.add(buffer->offset, endOf(*buffer), 1);
    for (const PlannedBuffer *buffer : gone[i])
      covered.add(buffer->offset, endOf(*buffer), -1);
    plan.steps[i].live = covered.count();
  }
}

static std::vector<std::string> listOrigins(const SymbolTable &symbols, plan::StepOp step) {
  KernelFacts facts;
  addStepOrigins(symbols, step, facts);
  std::vector<std::string> origins = facts.nodes;
  for (const std::string &name : facts.gradients)
    origins.push_back("gradient of " + name);
  for (const std::string &name : facts.updates)
    origins.push_back("update of " + name);
  return origins;
}

static std::optional<Recomputation> readRecomputation(plan::ProgramOp program) {
  auto figures = program->getAttrOfType<DictionaryAttr>(plan::kRecompute);
  if (!figures)
    return std::nullopt;
  auto number = [&](StringRef key) {
    auto value = figures.getAs<IntegerAttr>(key);
    return value ? value.getInt() : 0;
  };
  return Recomputation{number("time"), number("plain_time"), number("least_time"), number("least_bytes"),
                       number("repeated")};
}

static std::vector<BudgetPoint> readCurve(plan::ProgramOp program) {
  std::vector<BudgetPoint> points;
  auto curve = program->getAttrOfType<ArrayAttr>(plan::kCurve);
  for (Attribute each : curve ? curve.getValue() : ArrayRef<Attribute>()) {
    ArrayRef<int64_t> figures = cast<DenseI64ArrayAttr>(each).asArrayRef();
    auto plain = static_cast<double>(std::max<int64_t>(1, figures[4]));
    points.push_back({uint64_t(figures[0]), uint64_t(figures[1]),
                      static_cast<double>(figures[2] - figures[4]) / plain,
                      static_cast<double>(figures[3] - figures[4]) / plain, figures[5] != 0});
  }
  return points;
}

MemoryPlan describeMemory(plan::ProgramOp program, const std::string &entry) {
  auto module = program->getParentOfType<ModuleOp>();
  MemoryPlan plan;
  plan.entry = entry;
  plan.bytes = program.getBytes();
  plan.maxLive = program.getPeakBytes();
  plan.orderBound = program.getOrderBoundBytes();
  plan.sourceOrder = program.getSourcePeakBytes();
  plan.buffers = BufferReader(program).read();
  SymbolTable symbols(module);
  program.walk([&](plan::StepOp step) {
    plan.steps.push_back({step.getKernel().str(), listOrigins(symbols, step), 0});
  });
  measureSteps(plan);
  plan.recomputation = readRecomputation(program);
  plan.curve = readCurve(program);
  return plan;
}

SharedMemory describeShared(ModuleOp module, uint32_t workers) {
  auto number = [&](StringRef name) {
    auto attribute = module->getAttrOfType<IntegerAttr>(name);
    return attribute ? static_cast<uint64_t>(attribute.getInt()) : 0;
  };
  return {number(memory::kPersistentBytes), number(memory::kConstantBytes), workers};
}

size_t MemoryPlan::findPeak() const {
  size_t peak = 0;
  for (size_t i = 1; i < steps.size(); ++i)
    if (steps[i].live > steps[peak].live)
      peak = i;
  return peak;
}

std::vector<const PlannedBuffer *> MemoryPlan::findAlive(size_t step) const {
  std::vector<const PlannedBuffer *> alive;
  for (const PlannedBuffer &buffer : buffers)
    if (buffer.first <= int64_t(step) && int64_t(step) <= buffer.last)
      alive.push_back(&buffer);
  std::sort(alive.begin(), alive.end(), [](const PlannedBuffer *a, const PlannedBuffer *b) {
    return a->bytes != b->bytes ? a->bytes > b->bytes : a < b; // in the order of `buffers`
  });
  return alive;
}

} // namespace ortc::report
