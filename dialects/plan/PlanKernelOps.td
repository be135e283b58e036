// Groups of operations.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_DIALECTS_PLAN_KERNEL_OPS_TD
#define ORTC_DIALECTS_PLAN_KERNEL_OPS_TD

include "dialects/plan/PlanDialect.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Plan_KernelKind : I32EnumAttr<"KernelKind", "which generator makes a kernel", [
  I32EnumAttrCase<"loop", 0>, I32EnumAttrCase<"contraction", 1>, I32EnumAttrCase<"conv", 2>,
  I32EnumAttrCase<"pool", 3>, I32EnumAttrCase<"scatter", 4>, I32EnumAttrCase<"check", 5>,
  I32EnumAttrCase<"scan", 6>, I32EnumAttrCase<"joined", 7>,
  I32EnumAttrCase<"attention", 8>]> {
  let cppNamespace = "::ortc::plan";
  let genSpecializedAttr = 0;
}
def Plan_KernelKindAttr : EnumAttr<Plan_Dialect, Plan_KernelKind, "kernel_kind">;

def Plan_KernelOp : Op<Plan_Dialect, "kernel", [IsolatedFromAbove, SingleBlock,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "operations that become one kernel";
  let description = [{
    The region is a tensor program over its arguments, which are the operands; `plan.yield` names the results. A kernel
    reads each operand and writes each result once. `inPlace` lists pairs (operand, result): the result may be written
    to the operand's memory, because every element is read before it is overwritten.
    Pure, except for check kernels, which stay although nobody uses their results.
    C1 arguments have the operands' types, the yielded values the results' types.
    C2 `inPlace` holds pairs of an operand and a result of equal size in bytes.

    ```mlir
    %y = plan.kernel loop (%x) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>):
      %b = math.tanh %a : tensor<4xf32>
      plan.yield %b : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins Plan_KernelKindAttr:$kind, Variadic<AnyStaticShapeTensor>:$inputs,
                       OptionalAttr<DenseI64ArrayAttr>:$inPlace /*C2*/);
  let results = (outs Variadic<AnyStaticShapeTensor>:$results);
  let regions = (region SizedRegion<1>:$body /*C1*/);
  let assemblyFormat = [{
    $kind `(` $inputs `)` (`in_place` `=` $inPlace^)? attr-dict `:` functional-type($inputs, $results) $body
  }];
  let hasVerifier = 1;
}

def Plan_YieldOp : Op<Plan_Dialect, "yield", [Pure, Terminator, HasParent<"KernelOp">]> {
  let summary = "the results of a kernel";
  let description = "Ends a plan.kernel.";
  let arguments = (ins Variadic<AnyStaticShapeTensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif
