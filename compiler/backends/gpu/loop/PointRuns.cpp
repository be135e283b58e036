// Elementwise loops whose threads have several neighbours each.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The code is that of single points, side by side: all values of all points, then all stores, those of a buffer one
// after the other. LLVM's vectorizer of loads and stores, which runs for GPUs, makes one access of neighbours, as it
// knows how buffers are aligned.
#include "compiler/backends/gpu/loop/PointRuns.h"

#include "compiler/backends/emit/LoopWalk.h"
#include "compiler/backends/gpu/loop/LoopKernel.h"
#include "compiler/kernels/SumOrder.h"
#include "llvm/Support/MathExtras.h"

#include <deque>

using namespace mlir;

namespace ortc::gpu {

namespace {

/// Loads and stores of a point at most: their values lie in registers, for each point of a run.
constexpr size_t kMostAccesses = 16;

class RunEmitter : LoopWalk {
public:
  RunEmitter(ThreadBuilder &builder, const LoopProgram &program, ValueRange buffers,
             const MathOptions &options)
      : LoopWalk(builder, program, buffers), threads(builder), options(options) {}

  void emit(Value number, int64_t run, RunSupplier supply) {
    for (int64_t i = 0; i < run; ++i) {
      ElementEmitter &point = points.emplace_back(b, program, buffers, options);
      point.setSupplier([this, &point, i, supply](unsigned node) {
        Value value = supply ? supply(point, i, node) : Value();
        return !value && program.nodes[node].kind == LoopNode::range ? emitRange(node)[i] : value;
      });
      placePoint(threads, program, point, number, run);
      point.setShift(i);
    }
    for (ElementEmitter &point : points)
      hoistRoots(point, reducedMask);
    Values values;
    for (const LoopOutput &output : program.outputs)
      for (ElementEmitter &point : points)
        values.push_back(point.emit(output.node));
    auto value = values.begin();
    for (const LoopOutput &output : program.outputs)
      for (ElementEmitter &point : points)
        point.store(*value++, output.element, buffers[output.buffer], output.at);
  }

private:
  /// The values of all points where the test holds for all of them or for none.
  Values emitRange(unsigned number) {
    const LoopNode &node = program.nodes[number];
    Value at = points.front().emitIndex(node.at);
    auto compare = [&](arith::CmpIPredicate predicate, int64_t limit) -> Value {
      return arith::CmpIOp::create(b, predicate, at, b.index(limit));
    };
    Value isWithin = threads.both(compare(arith::CmpIPredicate::sge, node.low),
                                  compare(arith::CmpIPredicate::slt, node.high));
    if (node.step > 1) {
      // Below `low` the remainder means nothing, and the condition is false anyway.
      Value rest = b.rem(b.sub(at, b.index(node.low)), node.step);
      isWithin = threads.both(isWithin, arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rest, b.index(0)));
    }
    Type type = node.element.isInteger(1) ? node.element : bufferType(node.element);
    SmallVector<Type> types(points.size(), type);
    auto choice = scf::IfOp::create(b, types, isWithin, /*addThenBlock=*/true, /*addElseBlock=*/true);
    for (bool first : {true, false}) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(first ? choice.thenBlock() : choice.elseBlock());
      // A range of one point may ask for one of all of them.
      for (ElementEmitter &point : points)
        point.openScope();
      Values values;
      for (ElementEmitter &point : points)
        values.push_back(point.emit(node.operands[first ? 0 : 1]));
      for (ElementEmitter &point : points)
        point.closeScope();
      scf::YieldOp::create(b, values);
    }
    for (auto [point, value] : llvm::zip_equal(points, choice.getResults()))
      point.bind(number, value);
    return Values(choice.getResults());
  }

private:
  ThreadBuilder &threads;
  const MathOptions &options;
  std::deque<ElementEmitter> points;
};

/// What the places of a first lane are multiples of.
int64_t multipleOf(const LoopProgram &program, const IndexExpr &at, int64_t run) {
  int64_t multiple = std::gcd(run, at.constant);
  for (auto [d, scale] : llvm::enumerate(at.scales))
    if (static_cast<int>(d) != program.laneDim)
      multiple = std::gcd(multiple, scale);
  for (const IndexExpr::Dynamic &term : at.dynamic)
    multiple = std::gcd(multiple, term.scale);
  return multiple;
}

} // namespace

bool fillsDevice(int64_t threads) { return threads >= ReferenceGpu::kProcessors * kBlockThreads; }

int64_t widestRun(const LoopProgram &program, llvm::function_ref<int64_t(unsigned)> alignmentOf) {
  if (program.laneDim < 0 || program.reducedMask() != 0 || !program.reductions.empty())
    return 1;
  struct Access {
    unsigned buffer;
    const IndexExpr *at;
    int64_t bytes;
  };
  SmallVector<Access> accesses;
  SmallVector<const LoopNode *> ranges; // that change along the lanes: a run is within or without
  auto add = [&](unsigned buffer, const IndexExpr &at, Type element) {
    accesses.push_back({buffer, &at, std::max<int64_t>(element.getIntOrFloatBitWidth() / 8, 1)});
  };
  auto changes = [&](unsigned node) { return program.nodes[node].dims >> program.laneDim & 1; };
  for (const LoopNode &node : program.nodes) {
    bool isIndexed =
        llvm::any_of(node.at.dynamic, [&](const IndexExpr::Dynamic &term) { return changes(term.node); });
    if (node.kind == LoopNode::range && (node.at.scales[program.laneDim] != 0 || isIndexed)) {
      if (node.at.scales[program.laneDim] != 1 || isIndexed || node.step != 1)
        return 1;
      ranges.push_back(&node);
    }
    if (node.kind != LoopNode::load || !(node.dims >> program.laneDim & 1))
      continue;
    if (node.at.scales[program.laneDim] != 1 || isIndexed)
      return 1;
    if (alignmentOf(node.buffer) != 0)
      add(node.buffer, node.at, node.element);
  }
  for (const LoopOutput &output : program.outputs) {
    if (output.at.scales[program.laneDim] != 1 || !output.at.dynamic.empty())
      return 1;
    add(output.buffer, output.at, output.element);
  }
  if (accesses.size() > kMostAccesses)
    return 1;
  int64_t widest = kAccessBytes / kMostRun;
  for (const Access &access : accesses)
    widest = std::max(widest, access.bytes);
  int64_t run = std::gcd(kAccessBytes / widest, program.dims[program.laneDim].size);
  for (const Access &access : accesses)
    run = std::gcd(multipleOf(program, *access.at, run), alignmentOf(access.buffer) / access.bytes);
  for (const LoopNode *range : ranges)
    run = std::gcd(std::gcd(multipleOf(program, range->at, run), range->low), range->high);
  return run;
}

int64_t chooseRun(const KernelBuilder &kernel, const LoopProgram &program) {
  int64_t run = widestRun(program, [&](unsigned buffer) { return kernel.alignmentOf(buffer); });
  return fillsDevice(program.elements(/*reduced=*/false) / run) ? run : 1;
}

void emitRun(ThreadBuilder &b, const LoopProgram &program, ValueRange buffers, const MathOptions &options,
             Value number, int64_t run, RunSupplier supply) {
  RunEmitter(b, program, buffers, options).emit(number, run, supply);
}

void emitRuns(KernelBuilder &kernel, const LoopProgram &program, int64_t run, const MathOptions &options) {
  kernel.launchThreads(program.elements(/*reduced=*/false) / run,
                       [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments, Value number) {
                         emitRun(b, program, arguments.buffers, options, number, run, nullptr);
                       });
}

} // namespace ortc::gpu
