// Dialect, types and attributes of onnx.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_DIALECTS_ONNX_DIALECT_TD
#define ORTC_DIALECTS_ONNX_DIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"

def Onnx_Dialect : Dialect {
  let name = "onnx";
  let cppNamespace = "::ortc::onnx";
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let summary = "a literal mirror of an ONNX file";
  let description = [{
    What the file says, checked, and nothing more: no shapes are inferred, nothing is folded. README.md has the mapping.
  }];
}

class Onnx_Type<string name, string typeMnemonic> : TypeDef<Onnx_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Onnx_AnyType : Onnx_Type<"Any", "any"> {
  let summary = "type of a value the file states no type for";
}
def Onnx_StringType : Onnx_Type<"String", "string"> {
  let summary = "element type of a tensor of strings";
}
def Onnx_SequenceType : Onnx_Type<"Sequence", "seq"> {
  let summary = "sequence of values of one type";
  let parameters = (ins "::mlir::Type":$element);
  let assemblyFormat = "`<` $element `>`";
}
def Onnx_OptionalType : Onnx_Type<"Optional", "opt"> {
  let summary = "value that may be absent at run time";
  let parameters = (ins "::mlir::Type":$element);
  let assemblyFormat = "`<` $element `>`";
}
def Onnx_MapType : Onnx_Type<"Map", "map"> {
  let summary = "map from integers or strings to values";
  let parameters = (ins "::mlir::Type":$key, "::mlir::Type":$value);
  let assemblyFormat = "`<` $key `,` $value `>`";
}
def Onnx_SparseType : Onnx_Type<"Sparse", "sparse"> {
  let summary = "sparse tensor";
  let parameters = (ins "::mlir::Type":$tensor);
  let assemblyFormat = "`<` $tensor `>`";
}
def Onnx_OpaqueType : Onnx_Type<"Opaque", "opaque"> {
  let summary = "type known by its domain and name only";
  let parameters = (ins StringRefParameter<"domain">:$domain, StringRefParameter<"name">:$name);
  let assemblyFormat = "`<` $domain `,` $name `>`";
}

def Onnx_ReferenceAttr : AttrDef<Onnx_Dialect, "Reference"> {
  let mnemonic = "ref";
  let summary = "attribute of the enclosing function";
  let description = [{
    Stands for the value that the caller gives to attribute `name` of the function. `kind` is ONNX's attribute type
    in lower case: float, int, string, tensor, graph, floats, ints, strings, ...

    ```mlir
    #onnx.ref<"alpha" : "float">
    ```
  }];
  let parameters = (ins StringRefParameter<"name">:$name, StringRefParameter<"kind">:$kind);
  let assemblyFormat = "`<` $name `:` $kind `>`";
}

#endif
