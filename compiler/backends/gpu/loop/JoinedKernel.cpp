// Loops side by side in one launch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/loop/JoinedKernel.h"

#include "compiler/backends/gpu/loop/PointRuns.h"
#include "compiler/kernels/loop/JoinedLoops.h"
#include "dialects/plan/PlanDialect.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ortc::gpu {

namespace {

/// Writes the code of a block: a search for its loop, and what the loop's threads do.
class JoinedEmitter {
public:
  JoinedEmitter(ThreadBuilder &b, ArrayRef<kernels::JoinedLoop> loops, ArrayRef<int64_t> firsts,
                ArrayRef<int64_t> runs, ValueRange buffers, size_t inputs, const MathOptions &options)
      : b(b), loops(loops), firsts(firsts), runs(runs), buffers(buffers), inputs(inputs), options(options) {}

  /// For blocks of the loops from `begin` to `end`.
  void emit(size_t begin, size_t end) {
    if (end - begin == 1)
      return emitLoop(begin);
    size_t middle = begin + (end - begin) / 2;
    b.guarded(b.less(b.block(), firsts[middle]), [&] { emit(begin, middle); });
    b.guarded(b.less(b.index(firsts[middle] - 1), b.block()), [&] { emit(middle, end); });
  }

private:
  void emitLoop(size_t index) {
    const kernels::JoinedLoop &loop = loops[index];
    const LoopProgram &program = loop.program;
    SmallVector<Value> own(buffers.take_front(inputs));
    for (unsigned output : loop.outputs)
      own.push_back(buffers[inputs + output]);
    Value block = firsts[index] == 0 ? b.block() : b.sub(b.block(), b.index(firsts[index]));
    Value number = b.add(b.mul(block, kBlockThreads), b.thread());
    int64_t run = runs[index], count = program.elements(/*reduced=*/false) / run;
    b.guarded(b.less(number, count), [&] {
      if (run > 1)
        emitRun(b, program, own, options, number, run, nullptr);
      else
        emitPoint(b, program, own, options, number, nullptr);
    });
  }

  ThreadBuilder &b;
  ArrayRef<kernels::JoinedLoop> loops;
  ArrayRef<int64_t> firsts; ///< the first block of each
  ArrayRef<int64_t> runs;   ///< points of a thread
  ValueRange buffers;
  size_t inputs;
  const MathOptions &options;
};

/// Buffers of a launch at most, on AMD's processors: addresses of all that a kernel uses are loaded before its first
/// branch, into scalar registers, of which there are about a hundred.
constexpr size_t kMostBuffers = 32;
/// Blocks that a multiprocessor has at least: for more, ptxas spills the addresses of many loops.
constexpr int64_t kResidentBlocks = 1;

/// Adds the buffers of a loop, by their places in the call.
void addBuffers(const kernels::JoinedLoop &loop, size_t inputs, llvm::SmallDenseSet<unsigned> &buffers) {
  for (const LoopNode &node : loop.program.nodes)
    if (node.kind == LoopNode::load)
      buffers.insert(node.buffer);
  for (unsigned output : loop.outputs)
    buffers.insert(inputs + output);
}

/// Adds a launch. `hasRuns`: threads are so many that they can have several points.
void emitLaunch(KernelBuilder &kernel, ArrayRef<kernels::JoinedLoop> loops, size_t inputs, bool hasRuns,
                const MathOptions &options) {
  SmallVector<int64_t> firsts, runs;
  int64_t blocks = 0;
  for (const kernels::JoinedLoop &loop : loops) {
    auto alignmentOf = [&](unsigned buffer) {
      return kernel.alignmentOf(buffer < inputs ? buffer : inputs + loop.outputs[buffer - inputs]);
    };
    runs.push_back(hasRuns ? widestRun(loop.program, alignmentOf) : 1);
    firsts.push_back(blocks);
    blocks += llvm::divideCeilSigned(loop.program.elements(/*reduced=*/false) / runs.back(), kBlockThreads);
  }
  kernel.launch(
      blocks, kBlockThreads,
      [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments) {
        JoinedEmitter(b, loops, firsts, runs, arguments.buffers, inputs, options).emit(0, loops.size());
      },
      {.resident = kResidentBlocks});
}

} // namespace

LogicalResult generateJoined(KernelBuilder &kernel, func::FuncOp function,
                             const GeneratorOptions &generator) {
  std::string reason;
  auto inPlace = function->getAttrOfType<DenseI64ArrayAttr>(plan::kInPlace);
  auto loops = kernels::analyzeJoined(function.getArguments(),
                                      function.getBody().front().getTerminator()->getOperands(),
                                      inPlace ? inPlace.asArrayRef() : ArrayRef<int64_t>(), reason);
  if (!loops)
    return function.emitError(reason);
  size_t inputs = function.getNumArguments();
  int64_t points = 0;
  for (const kernels::JoinedLoop &loop : *loops)
    points += loop.program.elements(/*reduced=*/false);
  bool isNvidia = kernel.getProcessor().isNvidia();
  for (ArrayRef<kernels::JoinedLoop> rest = *loops; !rest.empty();) {
    llvm::SmallDenseSet<unsigned> buffers;
    addBuffers(rest.front(), inputs, buffers);
    size_t count = 1;
    for (; count < rest.size(); ++count) {
      addBuffers(rest[count], inputs, buffers);
      if (!isNvidia && buffers.size() > kMostBuffers)
        break;
    }
    emitLaunch(kernel, rest.take_front(count), inputs, fillsDevice(points / kMostRun), generator.math());
    rest = rest.drop_front(count);
  }
  return success();
}

} // namespace ortc::gpu
