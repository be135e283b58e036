// Loops side by side in one launch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/loop/JoinedKernel.h"

#include "compiler/backends/gpu/loop/ColumnSums.h"
#include "compiler/backends/gpu/loop/LoopKernel.h"
#include "compiler/backends/gpu/loop/PointRuns.h"
#include "compiler/kernels/loop/JoinedLoops.h"
#include "dialects/plan/PlanDialect.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ortc::gpu {

namespace {

/// A loop of a launch.
struct Part {
  const kernels::JoinedLoop &loop;
  std::optional<ColumnCut> cut; ///< where its blocks have columns
  int64_t run = 1;              ///< points of a thread elsewhere
  int64_t first = 0;            ///< of its blocks

  int64_t threads() const { return cut ? cut->warps * kWarp : kBlockThreads; }
  int64_t blocks() const {
    if (cut)
      return columnBlocks(loop.program, *cut);
    return llvm::divideCeilSigned(loop.program.elements(/*reduced=*/false) / run, kBlockThreads);
  }
};

/// Writes the code of a block: a search for its loop, and what the loop's threads do.
class JoinedEmitter {
public:
  JoinedEmitter(KernelBuilder &kernel, ThreadBuilder &b, ValueRange buffers, size_t inputs,
                const MathOptions &options)
      : kernel(kernel), b(b), buffers(buffers), inputs(inputs), options(options) {}

  void emit(ArrayRef<Part> parts) {
    if (parts.size() == 1) {
      emitPart(parts.front());
      return b.endBranch(parts.front().first);
    }
    ArrayRef<Part> left = parts.take_front(parts.size() / 2), right = parts.drop_front(left.size());
    int64_t first = right.front().first;
    auto choice = scf::IfOp::create(b, b.less(b.block(), first), /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(choice.thenBlock());
    emit(left);
    b.setInsertionPointToStart(choice.elseBlock());
    emit(right);
  }

private:
  void emitPart(const Part &part) {
    const LoopProgram &program = part.loop.program;
    SmallVector<Value> own(buffers.take_front(inputs));
    for (unsigned output : part.loop.outputs)
      own.push_back(buffers[inputs + output]);
    Value block = part.first == 0 ? b.block() : b.sub(b.block(), b.index(part.first));
    if (part.cut) {
      kernel.releaseShared();
      return emitColumnBlock(kernel, b, program, own, *part.cut, options, block);
    }
    Value number = b.add(b.mul(block, kBlockThreads), b.thread());
    int64_t count = program.elements(/*reduced=*/false) / part.run;
    b.guarded(b.less(number, count), [&] {
      if (part.run > 1)
        emitRun(b, program, own, options, number, part.run, nullptr);
      else
        emitPoint(b, program, own, options, number, nullptr);
    });
  }

  KernelBuilder &kernel;
  ThreadBuilder &b;
  ValueRange buffers;
  size_t inputs;
  const MathOptions &options;
};

/// How each loop is computed. `numerics`: portable ones sum column by column.
std::vector<Part> describeParts(const KernelBuilder &kernel, ArrayRef<kernels::JoinedLoop> loops,
                                size_t inputs, Numerics numerics) {
  int64_t points = 0;
  for (const kernels::JoinedLoop &loop : loops)
    points += loop.program.elements(/*reduced=*/false);
  bool hasRuns = fillsDevice(points / kMostRun); // threads are so many that they can have several points
  std::vector<Part> parts;
  for (const kernels::JoinedLoop &loop : loops) {
    auto alignmentOf = [&](unsigned buffer) {
      return kernel.alignmentOf(buffer < inputs ? buffer : inputs + loop.outputs[buffer - inputs]);
    };
    Part &part = parts.emplace_back(Part{loop, {}});
    if (numerics == Numerics::Fast)
      part.cut = kernels::joinedCut(loop.program);
    if (!part.cut && hasRuns)
      part.run = widestRun(loop.program, alignmentOf);
  }
  return parts;
}

/// Adds a launch. All parts have as many threads a block.
void emitLaunch(KernelBuilder &kernel, MutableArrayRef<Part> parts, size_t inputs,
                const MathOptions &options) {
  int64_t blocks = 0;
  for (Part &part : parts) {
    part.first = blocks;
    blocks += part.blocks();
  }
  kernel.launch(blocks, parts.front().threads(),
                [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments) {
                  JoinedEmitter(kernel, b, arguments.buffers, inputs, options).emit(parts);
                },
                {.resident = KernelBuilder::kOneBlock});
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
  std::vector<Part> parts = describeParts(kernel, *loops, inputs, generator.numerics);
  for (MutableArrayRef<Part> rest = parts; !rest.empty();) {
    size_t count = 1;
    while (count < rest.size() && rest[count].threads() == rest.front().threads())
      ++count;
    emitLaunch(kernel, rest.take_front(count), inputs, generator.math());
    rest = rest.drop_front(count);
  }
  return success();
}

} // namespace ortc::gpu
