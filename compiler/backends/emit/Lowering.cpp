// From scf, vector, memref, arith and math to the LLVM dialect. The conversions are upstream's; memrefs become bare
// pointers, so that `noalias` on a buffer reaches LLVM (one pointer to an arena would stop its alias analysis).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/emit/Lowering.h"

#include "compiler/backends/emit/StorageConversion.h"

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

namespace ortc::emit {

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

/// A buffer that was taken as a pointer is the pointer of its descriptor.
static void resolvePointers(ModuleOp module) {
  module->walk([](UnrealizedConversionCastOp taken) {
    if (!isa<LLVM::LLVMPointerType>(taken.getType(0)))
      return;
    auto buffer = taken.getOperand(0).getDefiningOp<UnrealizedConversionCastOp>();
    OpBuilder builder(taken);
    Value pointer = LLVM::ExtractValueOp::create(builder, taken.getLoc(), buffer.getOperand(0), 1);
    taken.getResult(0).replaceAllUsesWith(pointer);
    taken.erase();
    if (buffer.use_empty())
      buffer.erase();
  });
}

LogicalResult convertToLLVM(ModuleOp module, const LoweringOptions &options) {
  if (!options.halfConversions)
    expandHalfConversions(module);
  PassManager passes(module->getName());
  passes.enableVerifier(false); // kernels come from generators, and verifying between passes doubles the time
  if (hasReshapes(module))
    passes.addPass(memref::createExpandStridedMetadataPass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createConvertMathToLLVMPass());
  FinalizeMemRefToLLVMConversionPassOptions memory;
  memory.indexBitwidth = options.indexBits;
  passes.addPass(createFinalizeMemRefToLLVMConversionPass(memory));
  ConvertFuncToLLVMPassOptions functions;
  functions.useBarePtrCallConv = true;
  functions.indexBitwidth = options.indexBits;
  passes.addPass(createConvertFuncToLLVMPass(functions));
  ArithToLLVMConversionPassOptions arithmetic;
  arithmetic.indexBitwidth = options.indexBits;
  passes.addPass(createArithToLLVMConversionPass(arithmetic));
  ConvertControlFlowToLLVMPassOptions branches;
  branches.indexBitwidth = options.indexBits;
  passes.addPass(createConvertControlFlowToLLVMPass(branches));
  passes.addPass(createUBToLLVMConversionPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  if (failed(passes.run(module)))
    return failure();
  resolvePointers(module);
  return success();
}

} // namespace ortc::emit
