// The common shape of a generated GPU kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/KernelBuilder.h"

#include "compiler/backends/gpu/StatusBlock.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace ortc::gpu {

KernelBuilder::KernelBuilder(ModuleOp module, func::FuncOp function, const Processor &processor,
                             const GeneratorOptions &options)
    : module(module), buffers(kernelBuffers(function)), name(function.getSymName().str()),
      processor(processor), options(options) {}

void KernelBuilder::reserveScratch(int64_t bytes) {
  assert(kernel.launches.empty() && "all launches of a kernel take the same arguments");
  kernel.scratchBytes = std::max(kernel.scratchBytes, (bytes + 63) / 64 * 64);
}

void KernelBuilder::launch(int64_t blocks, int64_t threads, Body body, const LaunchOptions &how) {
  MLIRContext *context = module.getContext();
  OpBuilder outer(context);
  outer.setInsertionPointToEnd(module.getBody());
  ThreadBuilder b(UnknownLoc::get(context), outer, processor);
  SmallVector<Type> types;
  for (const KernelBuffer &buffer : buffers)
    types.push_back(MemRefType::get({buffer.elements}, buffer.elementType));
  if (kernel.scratchBytes)
    types.push_back(MemRefType::get({kernel.scratchBytes}, b.getI8Type()));
  types.push_back(StatusBlock::typeOf(b));

  std::string symbol = name + (kernel.launches.empty() ? "" : "_" + std::to_string(kernel.launches.size()));
  auto function = func::FuncOp::create(b, symbol, b.getFunctionType(types, {}));
  function->setAttr(kThreadsAttribute, b.getI64IntegerAttr(threads));
  function->setAttr(kBlocksAttribute, b.getI64IntegerAttr(blocks));
  if (how.resident)
    function->setAttr(kResidentAttribute, b.getI64IntegerAttr(how.resident));
  sharedBytes = spaceBytes = 0;
  arrays.clear();
  for (auto [i, buffer] : llvm::enumerate(buffers)) {
    if (buffer.distinct && !how.keepsLoads) // else loads are taken for those of constants
      function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
    if (!buffer.written)
      function.setArgAttr(i, LLVM::LLVMDialect::getReadonlyAttrName(), b.getUnitAttr());
    function.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                        b.getI64IntegerAttr(std::min(alignmentOf(i), kAccessBytes)));
  }
  Block *entry = function.addEntryBlock();
  Arguments arguments;
  arguments.buffers.append(entry->args_begin(), entry->args_begin() + buffers.size());
  if (kernel.scratchBytes)
    arguments.scratch = entry->getArgument(buffers.size());
  arguments.status = entry->getArguments().back();
  b.setInsertionPointToStart(entry);
  Operation *end = func::ReturnOp::create(b);
  b.setInsertionPoint(end);
  if (options.isGated)
    b.guarded(StatusBlock(b, arguments.status).isGood(), [&] { body(b, arguments); });
  else
    body(b, arguments);
  kernel.launches.push_back({std::move(symbol), blocks, threads, spaceBytes, /*steps=*/0});
}

void KernelBuilder::launchThreads(int64_t count,
                                  llvm::function_ref<void(ThreadBuilder &, const Arguments &, Value)> body,
                                  const LaunchOptions &how) {
  if (count == 0)
    return;
  int64_t threads = std::min(kBlockThreads, (count + kWarp - 1) / kWarp * kWarp);
  int64_t blocks = (count + threads - 1) / threads;
  launch(
      blocks, threads,
      [&](ThreadBuilder &b, const Arguments &arguments) {
        Value i = blocks == 1 ? b.thread() : b.add(b.mul(b.block(), threads), b.thread());
        if (count == blocks * threads)
          return body(b, arguments, i);
        b.guarded(b.less(i, count), [&] { body(b, arguments, i); });
      },
      how);
}

Value KernelBuilder::shared(ThreadBuilder &b, Type element, int64_t elements) {
  auto type =
      MemRefType::get({elements}, element, MemRefLayoutAttrInterface{}, b.getI64IntegerAttr(kSharedSpace));
  for (SharedArray &array : arrays)
    if (!array.isTaken && array.type == type) {
      array.isTaken = true;
      return memref::GetGlobalOp::create(b, type, array.symbol);
    }
  sharedBytes += elements * ((element.getIntOrFloatBitWidth() + 7) / 8);
  assert(sharedBytes <= kSharedBytes && "more than a block can share");
  std::string symbol = name + "_shared_" + std::to_string(symbols++);
  arrays.push_back({symbol, type});
  OpBuilder outer = OpBuilder::atBlockBegin(module.getBody());
  memref::GlobalOp::create(outer, b.getLoc(), symbol, outer.getStringAttr("private"), type,
                           /*initial_value=*/outer.getUnitAttr(), /*constant=*/false,
                           /*alignment=*/outer.getI64IntegerAttr(16));
  return memref::GetGlobalOp::create(b, type, symbol);
}

void KernelBuilder::releaseShared() {
  for (SharedArray &array : arrays)
    array.isTaken = false;
}

Value KernelBuilder::sharedSpace(ThreadBuilder &b, int64_t bytes, int64_t alignment) {
  assert(sharedBytes == 0 && spaceBytes == 0 && "a launch has one kind of shared memory");
  spaceBytes = bytes;
  std::string symbol = name + "_space_" + std::to_string(symbols++);
  OpBuilder outer = OpBuilder::atBlockBegin(module.getBody());
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), 0);
  LLVM::GlobalOp::create(outer, b.getLoc(), type, /*isConstant=*/false, LLVM::Linkage::External, symbol,
                         Attribute(), alignment, kSharedSpace);
  auto pointer = LLVM::LLVMPointerType::get(b.getContext(), kSharedSpace);
  return LLVM::AddressOfOp::create(b, pointer, symbol);
}

SmallVector<Value> delinearize(LoopBuilder &b, Value position, ArrayRef<int64_t> sizes) {
  SmallVector<Value> digits(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    digits[i] = i == 0 ? position : b.rem(position, sizes[i]);
    if (i > 0)
      position = b.div(position, sizes[i]);
  }
  return digits;
}

} // namespace ortc::gpu
