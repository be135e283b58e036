// The common shape of a generated GPU kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/emit/KernelBuffer.h"
#include "compiler/backends/emit/MathExpansion.h"
#include "compiler/backends/gpu/ThreadBuilder.h"
#include "compiler/options/Numerics.h"

#include <string>
#include <vector>

namespace ortc::gpu {

/// One function of the device's code, and how it is launched. Each takes the same arguments: the kernel's buffers, its
/// scratch where it has some, the session's status block.
struct Launch {
  std::string symbol;
  int64_t blocks = 1, threads = 1;
  int64_t sharedBytes = 0; ///< that a block shares beside arrays of a fixed size
  int64_t steps = 0;       ///< of products: how often a block passes through the loop along the depth
};

/// A kernel of the plan: one launch after another.
struct GpuKernel {
  std::vector<Launch> launches;
  int64_t scratchBytes = 0; ///< multiple of 64
  double cycles = 0;        ///< of all launches on the machine of `kernels::ReferenceGpu`; 0: not estimated
};

/// Facts that generators need besides the kernel.
struct GeneratorOptions {
  Numerics numerics = Numerics::Fast;
  bool usesTf32 = false; ///< f32 numbers are multiplied as TF32
  /// The kernel writes persistent memory: it does nothing after a step that failed.
  bool isGated = false;
  uint32_t checkName = 0; ///< of an index check: position of the tensor's name in the artifact's check names
  /// Bytes that the start of each buffer is a multiple of in every call; empty: kBufferAlignment.
  llvm::SmallVector<int64_t> alignments = {};

  bool usesFma() const { return numerics == Numerics::Fast; }
  emit::MathOptions math() const {
    return {usesFma(), /*rounding=*/true, /*scaling=*/nullptr, /*flushesExp=*/!denormalsAreZero(numerics)};
  }
};

/// Attributes on a function that is launched: threads of a block, blocks, and blocks that a multiprocessor should have
/// at once.
inline constexpr llvm::StringLiteral kThreadsAttribute = "ortc.threads", kBlocksAttribute = "ortc.blocks",
                                     kResidentAttribute = "ortc.resident";
/// The address space of what a block shares, of both vendors.
inline constexpr unsigned kSharedSpace = 3;
/// Alignment of buffers of the plan, and of memory of the host that is used in place. Slices in loops may have less.
inline constexpr int64_t kBufferAlignment = 64;
/// Bytes of the widest access.
inline constexpr int64_t kAccessBytes = 16;
/// Bytes that a block may share without asking the driver for more.
inline constexpr int64_t kSharedBytes = 48 << 10;
/// Threads of most blocks.
inline constexpr int64_t kBlockThreads = 256;

/// A kernel while its functions are made: `func.func @symbol(%buffer: memref<Nxf32>, ..., %scratch: memref<Bxi8>,
/// %status: memref<14xi32>)`.
class KernelBuilder {
public:
  /// `function`: on tensors, marked `plan.kind`.
  KernelBuilder(mlir::ModuleOp module, mlir::func::FuncOp function, const Processor &processor,
                const GeneratorOptions &options);

  /// Before any launch: at least so many bytes, rounded up to a multiple of 64.
  void reserveScratch(int64_t bytes);

  struct Arguments {
    llvm::SmallVector<mlir::Value> buffers;
    mlir::Value scratch; ///< null without
    mlir::Value status;
  };
  using Body = llvm::function_ref<void(ThreadBuilder &, const Arguments &)>;

  /// Value of LaunchOptions::resident: ptxas need not leave registers to other blocks. Where it chooses, it spills the
  /// addresses of many loops, what a row has beside its loop, blocks of 800 threads, and windows of pools.
  static constexpr int64_t kOneBlock = 1;

  /// How a launch is compiled.
  struct LaunchOptions {
    /// Blocks for which registers must suffice on a multiprocessor; 0: as it comes.
    int64_t resident = 0;
    /// No load moves across a barrier, although nobody writes what it reads.
    bool keepsLoads = false;
  };
  /// Adds a launch of `blocks` blocks of `threads` threads.
  void launch(int64_t blocks, int64_t threads, Body body) { launch(blocks, threads, body, LaunchOptions()); }
  void launch(int64_t blocks, int64_t threads, Body body, const LaunchOptions &how);
  /// Adds a launch with a thread for each i in [0, count): body(b, arguments, i).
  void launchThreads(int64_t count,
                     llvm::function_ref<void(ThreadBuilder &, const Arguments &, mlir::Value)> body,
                     const LaunchOptions &how);
  void launchThreads(int64_t count,
                     llvm::function_ref<void(ThreadBuilder &, const Arguments &, mlir::Value)> body) {
    launchThreads(count, body, LaunchOptions());
  }

  /// An array that the threads of a block share, one for each call. Those of a launch fit into kSharedBytes.
  mlir::Value shared(ThreadBuilder &b, mlir::Type element, int64_t elements);
  /// Arrays may be given out again: to code of other blocks.
  void releaseShared();

  /// A pointer to so many bytes that the threads of a block share: once a launch, in place of `shared`.
  mlir::Value sharedSpace(ThreadBuilder &b, int64_t bytes, int64_t alignment);

  const Processor &getProcessor() const { return processor; }
  Numerics getNumerics() const { return options.numerics; }
  bool usesTf32() const { return options.usesTf32; }

  /// Bytes that the start of a buffer is a multiple of, a power of two.
  int64_t alignmentOf(unsigned buffer) const {
    return options.alignments.empty() ? kBufferAlignment : options.alignments[buffer];
  }

  /// Whether a buffer may share memory with another one of the call.
  bool isInPlace(unsigned buffer) const { return !buffers[buffer].distinct; }

  /// Notes the steps of the launch that was added last, and the cycles of the whole kernel.
  void noteProduct(int64_t steps, double cycles) {
    kernel.launches.back().steps = steps;
    kernel.cycles = cycles;
  }

  /// All launches that were added, in order. Comes last: the builder has none of them any more.
  GpuKernel take() { return std::move(kernel); }

private:
  mlir::ModuleOp module;
  llvm::SmallVector<emit::KernelBuffer> buffers;
  std::string name;
  const Processor &processor;
  const GeneratorOptions &options;
  GpuKernel kernel;
  struct SharedArray {
    std::string symbol;
    mlir::MemRefType type;
    bool isTaken = true;
  };
  llvm::SmallVector<SharedArray> arrays; ///< of the launch that is made
  unsigned symbols = 0;                  ///< of shared memory
  int64_t sharedBytes = 0;               ///< of the launch that is made
  int64_t spaceBytes = 0;                ///< the same of `sharedSpace`
};

/// Digits of a position in a row-major tensor of these sizes.
llvm::SmallVector<mlir::Value> delinearize(LoopBuilder &b, mlir::Value position,
                                           llvm::ArrayRef<int64_t> sizes);

} // namespace ortc::gpu
