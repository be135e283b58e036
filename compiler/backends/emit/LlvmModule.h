// From the LLVM dialect to optimised LLVM IR.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/OptimizationLevel.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>
#include <string>

namespace ortc::emit {

/// LLVM's target of a triple, null with a `message` where there is none. All of LLVM's targets are known then.
const llvm::Target *findLlvmTarget(const llvm::Triple &triple, std::string &message);

/// Options of every target: fused multiply-adds are in the IR where they are wanted, the code generator adds none.
llvm::TargetOptions makeTargetOptions();

/// The module in LLVM IR, for `machine`; null when it cannot be translated.
std::unique_ptr<llvm::Module> translateToLLVMIR(mlir::ModuleOp module, llvm::LLVMContext &context,
                                                const llvm::TargetMachine &machine);

/// LLVM's own passes. Kernels are vectors already, or the code of one lane: nothing is put together into vectors.
void optimize(llvm::Module &module, llvm::TargetMachine &machine, llvm::OptimizationLevel level,
              llvm::PipelineTuningOptions tuning = {});

} // namespace ortc::emit
