// Differentiable tensor algebra.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_DIALECTS_NN_DIALECT_TD
#define ORTC_DIALECTS_NN_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"

def Nn_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::ortc::nn";
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let hasConstantMaterializer = 1;
  let summary = "differentiable tensor algebra on static shapes";
  let description = [{
    Pure operations on ranked tensors of static shape. Elementwise arithmetic is upstream `arith` and `math`
    on equal shapes; `nn` adds what moves, reduces and contracts. Spatial operations are channels-last.
  }];
}

class Nn_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::ortc::nn";
  let genSpecializedAttr = 0;
}
def Nn_ReduceKind : Nn_Enum<"ReduceKind", "what a reduction computes", [
  I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"prod", 1>, I32EnumAttrCase<"max", 2>, I32EnumAttrCase<"min", 3>]>;
def Nn_ReduceKindAttr : EnumAttr<Nn_Dialect, Nn_ReduceKind, "reduce_kind">;
def Nn_ScatterMode : Nn_Enum<"ScatterMode", "how an update meets what stands in its place", [
  I32EnumAttrCase<"set", 0>, I32EnumAttrCase<"add", 1>, I32EnumAttrCase<"mul", 2>,
  I32EnumAttrCase<"max", 3>, I32EnumAttrCase<"min", 4>]>;
def Nn_ScatterModeAttr : EnumAttr<Nn_Dialect, Nn_ScatterMode, "scatter_mode">;

#endif
