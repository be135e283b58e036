// From a tensor program to kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
include "mlir/Pass/PassBase.td"

def ExpandCompositesPass : Pass<"ortc-expand-composites"> {
  let summary = "write normalisations as reductions and arithmetic, and cut long sums";
  let description = [{
    Run when nothing needs the composites any more: after differentiation, just before fusion.
    After: no softmax, log_softmax or moments is left, so one generator makes all normalisations; and long reductions
    with too little beside them to share out are in two stages, of partial results and of their combination. Whether and
    how a reduction is cut depends on its shape alone. Filter gradients of f32 and f64 with few results are
    likewise made of parts of the batch, which a reduction adds up. Concatenations of more than 32 parts are
    made of smaller ones. Sums of f16 and bf16 are taken in f32.

    ```mlir
    %y = nn.log_softmax %x axis = 1 : tensor<2x3xf32>
    // becomes
    %max = nn.reduce max %x axes = [1] : tensor<2x3xf32> -> tensor<2xf32>
    %shifted = arith.subf %x, broadcast(%max)
    %sum = nn.reduce sum exp(%shifted) axes = [1] : tensor<2x3xf32> -> tensor<2xf32>
    %y = arith.subf %shifted, broadcast(log(%sum))
    ```
  }];
  let dependentDialects = ["::ortc::nn::NnDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def FuseKernelsPass : Pass<"ortc-fuse-kernels"> {
  let summary = "group the operations of functions into kernels";
  let description = [{
    Before: functions on tensors without composites.
    After: every operation is in a plan.kernel, but for reshapes between kernels, which move no data. What one loop nest
    computes without repeating expensive work or reading memory out of order is one kernel: elementwise clusters,
    reductions with their producers and what hangs on them, all of an optimizer's update. Contractions and
    convolutions take the elementwise work on their results along. Everything else is a kernel of its own;
    random draws are copied into the kernels that read them. What is cheap beside storing it is computed again
    by kernels that read its inputs anyway; a product that takes such a tensor long after others do takes it
    from a kernel just before, which has it at hand. Operations that only updates need are in no kernel with
    others, which run before updates, but for the update of a weight of more than 2 MiB: it joins the product
    or convolution that makes its gradient where one kernel can compute both and nothing else reads the
    gradient, which is then not stored. A convolution that reads a tensor larger than that gradient stays
    apart. Functions without body, and those that hold a kernel already, are left alone.

    ```mlir
    %a = arith.mulf %x, %x : tensor<8x4xf32>
    %s = nn.reduce sum %a axes = [1] : tensor<8x4xf32> -> tensor<8xf32>
    // becomes
    %s = plan.kernel loop (%x) : (tensor<8x4xf32>) -> tensor<8xf32> { ... }
    ```
  }];
  let dependentDialects = ["::ortc::plan::PlanDialect", "::ortc::nn::NnDialect", "::mlir::arith::ArithDialect"];
}
