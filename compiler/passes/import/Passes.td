// Passes on the onnx dialect, before legalisation.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_PASSES_IMPORT_PASSES_TD
#define ORTC_PASSES_IMPORT_PASSES_TD

include "mlir/Pass/PassBase.td"

def InlineFunctionsPass : Pass<"ortc-inline-functions", "::mlir::ModuleOp"> {
  let summary = "expand the calls of model-local functions";
  let description = [{
    Before: a module as the importer makes it. After: no `onnx.function` is left, and no node calls one. Nodes keep the
    since-version that the function's own opset gave them. Names of nodes and values become `call/inner`; the
    function's outputs take the names and stated types of the call's. Attributes that refer to one of the function's
    get the caller's value, else the function's default; else they go. Calls of custom operators that are no
    functions of the module are left alone. Fails on recursion.

    ```mlir
    onnx.function @f "custom" "Twice" ["a"] -> ["b"] attributes [] defaults {} opsets {"ai.onnx" = 18 : i64} {
    ^bb0(%a: !onnx.any):
      %b = onnx.node "Add" since 14(%a, %a) {} -> ["b"] : (!onnx.any, !onnx.any) -> !onnx.any
      onnx.return %b : !onnx.any
    }
    // A call becomes the body.
    %y = onnx.node "Twice" of "custom" since 0(%x) "call" {} -> ["y"] : (tensor<2xf32>) -> !onnx.any
    // After:
    %y = onnx.node "Add" since 14(%x, %x) "call/Add" {} -> ["y"] : (tensor<2xf32>, tensor<2xf32>) -> !onnx.any
    ```
  }];
  let options = [
    Option<"maxNodes", "max-nodes", "int64_t", "200000", "most nodes that expansion may make, at least 1">,
    Option<"maxNameBytes", "max-name-bytes", "int64_t", "134217728",
           "most bytes of all names of what expansion makes, at least 1">,
  ];
  let dependentDialects = ["::ortc::onnx::OnnxDialect"];
}

#endif
