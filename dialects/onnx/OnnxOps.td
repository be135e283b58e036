// Graph, node, initializer, function.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_DIALECTS_ONNX_OPS_TD
#define ORTC_DIALECTS_ONNX_OPS_TD

include "dialects/onnx/OnnxDialect.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Onnx_Op<string mnemonic, list<Trait> traits = []> : Op<Onnx_Dialect, mnemonic, traits> {
  let hasVerifier = 1;
}

/// Names its SSA values in printed IR after the names in the file.
def Onnx_NamedResults : DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>;
def Onnx_NamedArguments : DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>;

def Onnx_GraphOp : Onnx_Op<"graph", [SingleBlock, Onnx_NamedArguments]> {
  let summary = "graph of the model, or of an attribute of a node";
  let description = [{
    The region's arguments are the graph inputs that have no initializer; the block holds initializers and nodes, each
    value before its uses, and ends with `onnx.return`. A graph that is an attribute of a node (a branch, a loop's
    body) sees the values of the graphs around it.
    `input_dims[i]` and `output_dims[i]` name the symbolic dimensions of input and output i ("" where a dimension has
    no name); the list is empty when no dimension of that value has one.
    C1 `input_names` and `input_dims` have one entry for each argument, and no two inputs share a name.
    C2 `output_names`, `output_types`, `output_dims` and the operands of the terminator are equally many.
    C3 a non-empty list of dimension names has one entry for each dimension of a ranked tensor type.

    ```mlir
    onnx.graph "g" ["x"] [["batch", ""]] -> ["y"] [tensor<?x4xf32>] [["batch", ""]] {
    ^bb0(%x: tensor<?x4xf32>):
      %y = onnx.node "Relu" since 14 (%x) "relu1" {} -> ["y"] : (tensor<?x4xf32>) -> tensor<?x4xf32>
      onnx.return %y : tensor<?x4xf32>
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, StrArrayAttr:$input_names /*C1*/, ArrayAttr:$input_dims /*C1 C3*/,
                       StrArrayAttr:$output_names /*C2*/, TypeArrayAttr:$output_types /*C2*/,
                       ArrayAttr:$output_dims /*C2 C3*/);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $name $input_names $input_dims `->` $output_names $output_types $output_dims attr-dict-with-keyword $body
  }];
  let extraClassDeclaration = [{
    ::mlir::Block &getBlock() { return getBody().front(); }
    /// The names in the file of input i, or of output i.
    ::llvm::StringRef getInputName(unsigned i);
    ::llvm::StringRef getOutputName(unsigned i);
    /// The terminator's operand i.
    ::mlir::Value getOutput(unsigned i);
  }];
}

def Onnx_InitializerOp : Onnx_Op<"initializer", [Pure, AllTypesMatch<["value", "output"]>, Onnx_NamedResults]> {
  let summary = "initial value of the graph, or the default value of an input";
  let description = [{
    `value` is dense up to 4 KiB and a resource above (its bytes may belong to the loaded file). `input` is the
    position among the file's graph inputs when the file lists the initializer there as well: a caller of an ONNX
    runtime could override it (always so before IR version 4).
    C1 `name` is not empty, and is not that of another initializer or of an input of the same graph.

    ```mlir
    %b = onnx.initializer "fc.bias" dense<[0.5, 1.0]> : tensor<2xf32>
    ```
  }];
  let arguments = (ins StrAttr:$name /*C1*/, ElementsAttr:$value, OptionalAttr<I64Attr>:$input);
  let results = (outs AnyType:$output);
  let assemblyFormat = "$name (`input` $input^)? $value attr-dict";
}

def Onnx_NoneOp : Op<Onnx_Dialect, "none", [Pure, Onnx_NamedResults]> {
  let summary = "absent optional input";
  let description = [{
    ```mlir
    %none = onnx.none
    ```
  }];
  let results = (outs NoneType:$output);
  let assemblyFormat = "attr-dict";
}

def Onnx_NodeOp : Onnx_Op<"node", [NoTerminator, SingleBlock, Onnx_NamedResults]> {
  let summary = "node of a graph: an operator, or a call of a model-local function";
  let description = [{
    `since_version` is the version of the operator's definition that the model's opset selects; 0 when the standard has
    no such operator (a custom operator, a local function, or a name the opset does not know).
    `onnx_attributes` holds what the file states, without defaults. Attributes that are graphs are regions:
    region i holds exactly one `onnx.graph` and belongs to the attribute `graph_names[i]`. Outputs the file
    leaves out in the middle of the list have the empty name.
    C1 numbers of inputs and outputs are those the definition allows, and an input that is not optional is present.
    C2 each attribute belongs to the definition, has its type, and the required ones are there.
    C3 `output_names` has one entry for each result.
    C4 `graph_names` has one entry for each region, and each region holds one `onnx.graph`.
    C5 `since_version` is 0 or a version in which the operator changed.
    C6 `onnx.ref` attributes stand only inside `onnx.function`.
    C7 it has a result: what nothing can read is not imported.

    ```mlir
    %y = onnx.node "Conv" since 11 (%x, %w) "conv1" {group = 1 : i64} -> ["y"]
        : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> !onnx.any
    ```
  }];
  let arguments = (ins StrAttr:$op_type, OptionalAttr<StrAttr>:$domain, OptionalAttr<StrAttr>:$overload,
                       I64Attr:$since_version /*C5*/, OptionalAttr<StrAttr>:$name, Variadic<AnyType>:$inputs /*C1*/,
                       DictionaryAttr:$onnx_attributes /*C2 C6*/, StrArrayAttr:$output_names /*C3*/,
                       OptionalAttr<StrArrayAttr>:$graph_names /*C4*/);
  let results = (outs Variadic<AnyType>:$outputs /*C1*/);
  let regions = (region VariadicRegion<SizedRegion<1>>:$graphs /*C4*/);
  let assemblyFormat = [{
    $op_type (`of` $domain^)? (`overload` $overload^)? `since` $since_version `(` $inputs `)` ($name^)? $onnx_attributes
    `->` $output_names (`graphs` $graph_names^ $graphs)? attr-dict-with-keyword `:` functional-type($inputs, $outputs)
  }];
  let extraClassDeclaration = [{
    /// Input i, or null when it is absent: beyond the list, or `onnx.none`.
    ::mlir::Value getInput(unsigned i);
    ::llvm::StringRef getOutputName(unsigned i);
    /// The name of the node, or an empty string.
    ::llvm::StringRef getNodeName() { return getName().value_or(""); }
    /// The domain; empty for the default one.
    ::llvm::StringRef getDomainName() { return getDomain().value_or(""); }
    /// "name" (Op): how messages call this node; by its first output where it has no name.
    ::std::string describe();

    /// The attribute of that name as the file states it, or null.
    ::mlir::Attribute getOnnxAttr(::llvm::StringRef name) { return getOnnxAttributes().get(name); }
    /// Typed access with the default of the standard. The verifier has checked the type.
    int64_t getInt(::llvm::StringRef name, int64_t orElse);
    float getFloat(::llvm::StringRef name, float orElse);
    ::llvm::StringRef getString(::llvm::StringRef name, ::llvm::StringRef orElse);
    /// The list, or an empty one when the attribute is absent (`getOnnxAttr` tells which).
    ::llvm::ArrayRef<int64_t> getInts(::llvm::StringRef name);
    ::llvm::ArrayRef<float> getFloats(::llvm::StringRef name);
    ::mlir::ElementsAttr getTensor(::llvm::StringRef name);
    /// The graph of that attribute, or null.
    ::ortc::onnx::GraphOp getGraph(::llvm::StringRef name);
  }];
}

def Onnx_FunctionOp : Onnx_Op<"function", [SingleBlock, IsolatedFromAbove, Symbol, Onnx_NamedArguments]> {
  let summary = "model-local function";
  let description = [{
    Called by nodes of the same operator name, domain and overload. Inside, attributes may be `#onnx.ref<...>`: the
    caller's value of one of `parameters` (without default) or of `defaults` (with one). A node leaves out an
    attribute that refers to one that neither the caller nor `defaults` gives.
    `sym_name` is unique in the module and has no other meaning. `opsets` are the versions the body was written for;
    the nodes' `since_version` already follow from them.
    C1 `input_names` has one distinct entry for each argument; all arguments are `!onnx.any`.
    C2 `output_names` and the operands of the terminator are equally many.
    C3 no attribute is named twice.

    ```mlir
    onnx.function @f "custom" "Twice" ["a"] -> ["b"] attributes [] defaults {} opsets {"ai.onnx" = 18 : i64} {
    ^bb0(%a: !onnx.any):
      %b = onnx.node "Add" since 14 (%a, %a) {} -> ["b"] : (!onnx.any, !onnx.any) -> !onnx.any
      onnx.return %b : !onnx.any
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$domain, StrAttr:$name, OptionalAttr<StrAttr>:$overload,
                       StrArrayAttr:$input_names /*C1*/, StrArrayAttr:$output_names /*C2*/,
                       StrArrayAttr:$parameters /*C3*/, DictionaryAttr:$defaults /*C3*/, DictionaryAttr:$opsets);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name $domain $name (`overload` $overload^)? $input_names `->` $output_names `attributes` $parameters
    `defaults` $defaults `opsets` $opsets attr-dict-with-keyword $body
  }];
}

def Onnx_ReturnOp : Op<Onnx_Dialect, "return", [Pure, Terminator, ReturnLike, ParentOneOf<["GraphOp", "FunctionOp"]>]> {
  let summary = "outputs of a graph or function";
  let description = [{
    ```mlir
    onnx.return %y : !onnx.any
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$outputs);
  let assemblyFormat = "($outputs^ `:` type($outputs))? attr-dict";
}

#endif
