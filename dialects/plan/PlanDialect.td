// Kernels, schedule and placement.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_DIALECTS_PLAN_DIALECT_TD
#define ORTC_DIALECTS_PLAN_DIALECT_TD

include "mlir/IR/OpBase.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::ortc::plan";
  let useDefaultAttributePrinterParser = 1;
  let summary = "kernels, their order and where their buffers lie";
  let description = [{
    First `plan.kernel`s group the operations of an entry function. Then a `plan.program` lists steps, each a call of a
    kernel, on placed buffers. In-place writes and write-after-read order exist only there; a kernel's body stays a pure
    tensor program until its generator runs.
  }];
}

#endif
