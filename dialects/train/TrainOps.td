// What a training program is about.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_DIALECTS_TRAIN_OPS_TD
#define ORTC_DIALECTS_TRAIN_OPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"

def Train_Dialect : Dialect {
  let name = "train";
  let cppNamespace = "::ortc::train";
  let useDefaultAttributePrinterParser = 1;
  let summary = "tensors and functions of a training program";
  let description = [{
    Tensors that live from step to step are symbols; functions over them have value semantics.
    Function arguments carry `train.tensor` (the value of a symbol) or `train.input` (a graph input, or "label");
    results carry `train.output` (a name), `train.loss`, `train.update` (the new value of a symbol) or
    `train.gradient` (the gradient of a symbol).
  }];
}

def Train_Role : I32EnumAttr<"Role", "what a tensor is for", [
  I32EnumAttrCase<"parameter", 0>, I32EnumAttrCase<"constant", 1>, I32EnumAttrCase<"state", 2>,
  I32EnumAttrCase<"scalar", 3>]> {
  let cppNamespace = "::ortc::train";
  let genSpecializedAttr = 0;
}
def Train_RoleAttr : EnumAttr<Train_Dialect, Train_Role, "role">;

def Train_TensorOp : Op<Train_Dialect, "tensor", [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a tensor that lives from step to step";
  let description = [{
    `type` is the tensor as the ONNX file has it. The program sees it with its dimensions permuted by `permutation`
    (dimension i of the stored tensor is dimension permutation[i] of `type`); without it, as it is.
    Roles: `parameter` is trained; `constant` never changes; `state` is carried by the step (moments, running
    statistics, the step counter); `scalar` is a value that the host may set between steps (learning rate).
    `name` is the ONNX name, or the name a host finds it by. `owner` names the parameter that a state belongs to.
    `initial` holds the first value in the order of `type`; absent, it is all zeros.
    `reason` says why a float initialiser is not trained.
    C1 `type` is a ranked tensor of static shape.
    C2 `permutation` is a permutation of its dimensions.
    C3 `initial` has the type `type`.
    C4 `owner` names a train.tensor of role parameter.

    ```mlir
    train.tensor @w parameter "fc.weight" : tensor<2x3xf32>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Train_RoleAttr:$role, StrAttr:$name,
      TypeAttrOf<AnyRankedTensor>:$type /*C1*/,
                       OptionalAttr<DenseI64ArrayAttr>:$permutation /*C2*/, OptionalAttr<ElementsAttr>:$initial /*C3*/,
                       OptionalAttr<FlatSymbolRefAttr>:$owner /*C4*/, OptionalAttr<StrAttr>:$reason);
  let assemblyFormat = [{
    $sym_name $role $name (`permutation` `=` $permutation^)? (`of` $owner^)? (`initial` `=` $initial^)?
    attr-dict `:` $type
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The type of the stored tensor: `type` with its dimensions permuted.
    ::mlir::RankedTensorType getStoredType();
  }];
}

#endif
