// Passes on IR from a file, for tests and debugging.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Like mlir-opt, with one addition: an input that ends in ".onnx" is imported first.
#include "tools/ortc-opt/Registrations.h"

#include "compiler/frontend/Importer.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "support/Expected.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

/// Imports a model and hands its IR on as bytecode, as if it had been read from a file.
static ortc::Expected<std::unique_ptr<llvm::MemoryBuffer>> importOnnx(const std::string &path) {
  MLIRContext context;
  ortc::Status status;
  FailureOr<OwningOpRef<ModuleOp>> module = ortc::frontend::importModel(path, context, status);
  if (failed(module))
    return status;
  std::string bytecode;
  llvm::raw_string_ostream stream(bytecode);
  if (failed(writeBytecodeToFile(**module, stream)))
    return ortc::Status::failure("cannot write bytecode");
  return llvm::MemoryBuffer::getMemBufferCopy(bytecode, path);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, LLVM::LLVMDialect,
                  math::MathDialect, memref::MemRefDialect, scf::SCFDialect, vector::VectorDialect>();
  func::registerInlinerExtension(registry);
  registerCanonicalizerPass();
  registerCSEPass();
  registerInlinerPass();
  registerSymbolDCEPass();
  ortc::opt::registerProject(registry);

  auto [input, output] = registerAndParseCLIOptions(argc, argv, "ortc-opt: passes on ortc's IR\n", registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (!llvm::StringRef(input).ends_with(".onnx"))
    return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));

  ortc::Expected<std::unique_ptr<llvm::MemoryBuffer>> buffer = importOnnx(input);
  std::string error = buffer.getStatus().getMessage();
  std::unique_ptr<llvm::ToolOutputFile> file = buffer ? openOutputFile(output, &error) : nullptr;
  if (!file) {
    llvm::errs() << "ortc-opt: error: " << error << "\n";
    return 1;
  }
  if (failed(MlirOptMain(file->os(), std::move(*buffer), registry, config)))
    return 1;
  file->keep();
  return 0;
}
