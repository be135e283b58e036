// Creates kernel functions on flat buffers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/KernelFunction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;

Value KernelFunction::workspaceView(OpBuilder &builder, Location loc, int64_t byteOffset, Type elementType,
                                    int64_t elements) const {
  assert(workspace && "kernel was created without workspace");
  assert(byteOffset % 64 == 0 && "workspace views are 64-byte aligned");
  Value offset = arith::ConstantIndexOp::create(builder, loc, byteOffset);
  return memref::ViewOp::create(builder, loc, MemRefType::get({elements}, elementType), workspace, offset,
                                ValueRange{});
}

std::string kernelEntryName(llvm::StringRef name) { return (name + ".entry").str(); }

KernelFunction createKernelFunction(OpBuilder &builder, ModuleOp module, KernelInfo &info,
                                    llvm::ArrayRef<KernelBuffer> buffers) {
  info.workspaceBytesPerWorker = (info.workspaceBytesPerWorker + 63) / 64 * 64;
  Location loc = builder.getUnknownLoc();
  MLIRContext *context = builder.getContext();

  SmallVector<Type> types;
  for (const KernelBuffer &buffer : buffers)
    types.push_back(MemRefType::get({buffer.elements}, buffer.elementType));
  if (info.workspaceBytesPerWorker)
    types.push_back(MemRefType::get({info.workspaceBytesPerWorker}, builder.getI8Type()));
  types.push_back(builder.getIndexType());

  builder.setInsertionPointToEnd(module.getBody());
  auto function = func::FuncOp::create(builder, loc, info.name, builder.getFunctionType(types, {}));
  function.setPrivate();
  function->setAttr(kKernelAttribute, builder.getI64IntegerAttr(info.workspaceBytesPerWorker));

  auto describe = [&](unsigned argument, bool distinct, bool readOnly) {
    function.setArgAttr(argument, LLVM::LLVMDialect::getNoUndefAttrName(), UnitAttr::get(context));
    if (distinct)
      function.setArgAttr(argument, LLVM::LLVMDialect::getNoAliasAttrName(), UnitAttr::get(context));
    if (readOnly)
      function.setArgAttr(argument, LLVM::LLVMDialect::getReadonlyAttrName(), UnitAttr::get(context));
  };
  for (auto [index, buffer] : llvm::enumerate(buffers))
    describe(index, buffer.distinct, !buffer.written);
  if (info.workspaceBytesPerWorker)
    describe(buffers.size(), /*distinct=*/true, /*readOnly=*/false);

  Block *body = function.addEntryBlock();
  KernelFunction kernel;
  for (size_t i = 0; i < buffers.size(); ++i)
    kernel.buffers.push_back(body->getArgument(i));
  if (info.workspaceBytesPerWorker)
    kernel.workspace = body->getArgument(buffers.size());
  kernel.chunk = body->getArguments().back();
  builder.setInsertionPointToStart(body);
  Operation *end = func::ReturnOp::create(builder, loc);
  builder.setInsertionPoint(end);
  return kernel;
}

} // namespace ortc::cpu
