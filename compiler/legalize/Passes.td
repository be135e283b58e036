// Legalisation as a pass.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
include "mlir/Pass/PassBase.td"

def LegalizePass : Pass<"ortc-legalize", "::mlir::ModuleOp"> {
  let summary = "rewrite an onnx graph as nn, arith and math on static shapes";
  let description = [{
    Before: the module holds one `onnx.graph`, local functions inlined.
    After: it holds `train.tensor`s and one function for each mode, and no onnx operations. Warnings are remarks.

    ```mlir
    onnx.graph "g" ["x"] [["n"]] -> ["y"] [tensor<?xf32>] [["n"]] {
    ^bb0(%x: tensor<?xf32>):
      %y = onnx.node "Tanh" since 13 (%x) {} -> ["y"] : (tensor<?xf32>) -> tensor<?xf32>
      onnx.return %y : tensor<?xf32>
    }
    // with shape=n=4 becomes
    func.func @forward_train_0(%x: tensor<4xf32> {train.input = "x"}) -> (tensor<4xf32> {train.output = "y"}) {
      %y = math.tanh %x : tensor<4xf32>
      return %y : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["::ortc::nn::NnDialect", "::ortc::train::TrainDialect", "::mlir::func::FuncDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let options = [
    Option<"mode", "mode", "std::string", "\"train\"", "train, eval, or both">,
    ListOption<"shapes", "shape", "std::string", "NAME=N or INPUT=AxBxC, as --shape of the driver takes them">,
    ListOption<"train", "train", "std::string", "patterns of initializers that are trained">,
    ListOption<"freeze", "freeze", "std::string", "patterns of initializers that are not trained">,
    ListOption<"materialized", "materialize-gradients", "std::string",
               "patterns of initializers that stay trained where no gradient reaches them">,
    ListOption<"outputs", "loss-outputs", "std::string", "outputs that the loss is computed from; all by default">,
    Option<"batchNorm", "batch-norm", "std::string", "\"as-exported\"", "as-exported, train or frozen">,
    Option<"dropout", "dropout", "std::string", "\"as-exported\"", "as-exported, train or off">,
    Option<"float64", "float64", "bool", "false", "make every floating-point type f64">
  ];
}
