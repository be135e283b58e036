// Lowers kernels to the LLVM dialect and adds their ABI entries. The conversions are upstream's; memrefs become bare
// pointers, so that `noalias` on a buffer reaches LLVM (one pointer to an arena would stop its alias analysis).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/object/Lowering.h"

#include "compiler/backends/cpu/KernelFunction.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace ortc::cpu {

/// Reshaping views need strides and offsets spelled out; plain kernels have none, and the pass is not free.
static bool hasReshapes(ModuleOp module) {
  return module
      ->walk([](Operation *op) {
        return isa<memref::CollapseShapeOp, memref::ExpandShapeOp, memref::SubViewOp>(op)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

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

LogicalResult lowerToLLVM(ModuleOp module) {
  PassManager passes(module->getName());
  passes.enableVerifier(false); // kernels come from generators, and verifying between passes doubles the time
  if (hasReshapes(module))
    passes.addPass(memref::createExpandStridedMetadataPass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createFinalizeMemRefToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions functions;
  functions.useBarePtrCallConv = true;
  passes.addPass(createConvertFuncToLLVMPass(functions));
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createUBToLLVMConversionPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  if (failed(passes.run(module)))
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
