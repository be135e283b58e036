// Scheduled and placed programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_DIALECTS_PLAN_PROGRAM_OPS_TD
#define ORTC_DIALECTS_PLAN_PROGRAM_OPS_TD

include "dialects/plan/PlanDialect.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Plan_Region : I32EnumAttr<"Region", "where a buffer lives", [
  I32EnumAttrCase<"constants", 0>, I32EnumAttrCase<"persistent", 1>, I32EnumAttrCase<"transient", 2>,
  I32EnumAttrCase<"external", 3>]> {
  let cppNamespace = "::ortc::plan";
  let genSpecializedAttr = 0;
}
def Plan_RegionAttr : EnumAttr<Plan_Dialect, Plan_Region, "region">;

def Plan_ProgramOp : Op<Plan_Dialect, "program", [Symbol, IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "the steps of one entry, in order, with every buffer placed";
  let description = [{
    `role` is the entry's ("train", "eval", "predict", "gradients", "update", "accumulate"), `binding` its binding.
    The transient region takes `bytes`, scratch of all workers included. `peakBytes` is the largest sum of live buffers
    and scratch, the bound that no placement of this order can beat; `sourcePeakBytes` that of the order the
    program was written in, with every update right after its gradient; `orderBoundBytes` what every order
    needs at least.
    C1 `bytes` is not negative and a multiple of 64.

    ```mlir
    plan.program @predict_0_program "predict" binding 0 bytes 128 peak 128 source_peak 192 order_bound 128 {
      %0 = plan.buffer external 0 "x" "input" : memref<4x8xf32>
      %1 = plan.buffer external 1 "y" "output" : memref<4x8xf32>
      plan.step @relu(%0) -> (%1) : memref<4x8xf32> -> memref<4x8xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$role, I64Attr:$binding, I64Attr:$bytes /*C1*/,
                       I64Attr:$peakBytes, I64Attr:$sourcePeakBytes, I64Attr:$orderBoundBytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name $role `binding` $binding `bytes` $bytes `peak` $peakBytes
    `source_peak` $sourcePeakBytes `order_bound` $orderBoundBytes $body attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_BufferOp : Op<Plan_Dialect, "buffer", [HasParent<"ProgramOp">]> {
  let summary = "a placed buffer";
  let description = [{
    `offset` is in bytes from the start of the region; for `external` buffers it is the index of the value among those
    that the host passes. `name` is the symbol of a train.tensor (constants, persistent), the name of an input or
    output (external), or of the value it holds (transient): that of the model, "gradient of" it, or "part of"
    a node. Buffers of one program with one name are one value, seen with several shapes. `usage` says what a
    host may look for in it: "loss", "gradient", "input", "output", or nothing. `strides` are the bytes that
    the buffer moves on with every iteration of the loops around the steps that use it, outermost first: a
    slice of something larger, or an item of a stack.
    C1 the offset is not negative and, but for external buffers, a multiple of 64.
    C2 strides are not negative.

    ```mlir
    %0 = plan.buffer transient 128 "h1" : memref<4x8xf32>
    ```
  }];
  let arguments = (ins Plan_RegionAttr:$region, I64Attr:$offset /*C1*/, StrAttr:$name, OptionalAttr<StrAttr>:$usage,
                       OptionalAttr<DenseI64ArrayAttr>:$strides /*C2*/);
  let results = (outs AnyStaticShapeMemRef:$result);
  let assemblyFormat = "$region $offset $name ($usage^)? (`strides` `=` $strides^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Plan_LoopOp : Op<Plan_Dialect, "loop", [NoTerminator, SingleBlock, ParentOneOf<["ProgramOp", "LoopOp"]>]> {
  let summary = "steps that run several times";
  let description = [{
    Runs its steps for i = 0, 1, ... tripCount - 1, or downwards with `reverse`. Buffers with strides move along.
    Iterations from `limit` on, and the first one never, may be left out.
    C1 `tripCount` is at least 1.
    C2 `limit` has one element of type i32, and no strides; a loop with it is not `reverse`.

    ```mlir
    plan.loop 5 {
      plan.step @cell(%x, %h) -> (%h) : memref<4x8xf32>, memref<4x8xf32> -> memref<4x8xf32>
    }
    ```
  }];
  let arguments = (ins I64Attr:$tripCount /*C1*/, UnitAttr:$reverse,
                       Optional<AnyStaticShapeMemRef>:$limit /*C2*/);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$tripCount (`reverse` $reverse^)? (`limit` $limit^ `:` type($limit))? $body attr-dict";
  let hasVerifier = 1;
}

def Plan_StepOp : Op<Plan_Dialect, "step", [AttrSizedOperandSegments, ParentOneOf<["ProgramOp", "LoopOp"]>,
                                           DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one call of a kernel";
  let description = [{
    Calls `kernel` (a function on tensors marked `plan.kind`) with its inputs read from and its results written to
    buffers. An output may be the same buffer as an input where the kernel allows that. `scratch` is where in
    the transient region the kernel's scratch begins, worker by worker; absent where it has none
    (`plan.scratch` of `kernel`).
    C1 `kernel` is a function with one argument per input and one result per output, of the buffers' shapes and element
    types.
    C2 `scratch` is there where `plan.scratch` of `kernel` is above 0, is not negative and a multiple of 64,
    and the scratch
       ends within `bytes` of the program.

    ```mlir
    plan.step @softmax(%1) -> (%2) scratch 256 : memref<4x8xf32> -> memref<4x8xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel /*C1*/, Variadic<AnyStaticShapeMemRef>:$inputs,
                       Variadic<AnyStaticShapeMemRef>:$outputs, OptionalAttr<I64Attr>:$scratch /*C2*/);
  let assemblyFormat = [{
    $kernel `(` $inputs `)` `->` `(` $outputs `)` (`scratch` $scratch^)? attr-dict `:` type($inputs) `->` type($outputs)
  }];
}

def Plan_GuardOp : Op<Plan_Dialect, "guard", [HasParent<"ProgramOp">]> {
  let summary = "where a step may still end without having changed anything";
  let description = [{
    When the host asks for it and the loss is not finite, the step returns here. Steps before it write no persistent
    buffer; steps after it read no unchecked index.
    C1 the loss has one element.

    ```mlir
    plan.guard %loss : memref<f32>
    ```
  }];
  let arguments = (ins AnyStaticShapeMemRef:$loss /*C1*/);
  let assemblyFormat = "$loss attr-dict `:` type($loss)";
  let hasVerifier = 1;
}

#endif
