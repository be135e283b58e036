// Lowers kernels to the LLVM dialect and adds their ABI entries.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/object/Lowering.h"

#include "compiler/backends/cpu/KernelFunction.h"
#include "compiler/backends/emit/Lowering.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;

/// Adds `void name.entry(ptr args, i64 chunk, i64 worker)`, which loads the pointers and calls the kernel. An
/// existing declaration of the entry gets the body.
static void createEntry(LLVM::LLVMFuncOp kernel, int64_t workspaceBytesPerWorker, SymbolTable &symbols) {
  OpBuilder builder(kernel->getContext());
  builder.setInsertionPointAfter(kernel);
  Location loc = kernel.getLoc();
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Type i64 = builder.getI64Type();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()), {pointer, i64, i64});
  std::string name = kernelEntryName(kernel.getName());
  auto entry = symbols.lookup<LLVM::LLVMFuncOp>(name);
  if (!entry) {
    entry = LLVM::LLVMFuncOp::create(builder, loc, name, type);
    symbols.insert(entry);
  }
  Block *body = entry.addEntryBlock(builder);
  builder.setInsertionPointToStart(body);
  auto loadPointer = [&](int32_t index) -> Value {
    Value slot =
        LLVM::GEPOp::create(builder, loc, pointer, pointer, body->getArgument(0), LLVM::GEPArg(index));
    return LLVM::LoadOp::create(builder, loc, pointer, slot);
  };
  // The last argument of the kernel is the chunk, the one before it the workspace if there is one.
  int32_t buffers = kernel.getNumArguments() - 1 - (workspaceBytesPerWorker ? 1 : 0);
  SmallVector<Value> operands;
  for (int32_t i = 0; i < buffers; ++i)
    operands.push_back(loadPointer(i));
  if (workspaceBytesPerWorker) {
    Value bytes =
        LLVM::ConstantOp::create(builder, loc, i64, builder.getI64IntegerAttr(workspaceBytesPerWorker));
    Value offset = LLVM::MulOp::create(builder, loc, body->getArgument(2), bytes);
    operands.push_back(LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(), loadPointer(buffers),
                                           ArrayRef<LLVM::GEPArg>{offset}));
  }
  operands.push_back(body->getArgument(1));
  LLVM::CallOp::create(builder, loc, kernel, operands);
  LLVM::ReturnOp::create(builder, loc, ValueRange{});
}

LogicalResult lowerToLLVM(ModuleOp module, const Target &target) {
  if (failed(convertToLLVM(module, {64, target.has(Instruction::HalfConversion)})))
    return failure();

  SymbolTable symbols(module);
  for (auto kernel : llvm::make_early_inc_range(module.getOps<LLVM::LLVMFuncOp>())) {
    auto workspace = kernel->getAttrOfType<IntegerAttr>(kKernelAttribute);
    if (!workspace)
      continue;
    kernel->removeAttr(kKernelAttribute);
    kernel.setLinkage(LLVM::Linkage::Internal);
    kernel.setNoInline(true);
    createEntry(kernel, workspace.getInt(), symbols);
  }
  return success();
}

} // namespace ortc::cpu
