// From a tensor program to kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
include "mlir/Pass/PassBase.td"

def ExpandCompositesPass : Pass<"ortc-expand-composites"> {
  let summary = "write normalisations as reductions and arithmetic, and cut long sums";
  let description = [{
    Before: a differentiated program. Nothing needs the composites any more; fusion comes next.

    After:
    - No softmax, log_softmax or moments is left. One generator makes all normalisations.
    - A long reduction with too little beside it to share out has two stages: partial results and their combination.
      Its shape alone decides whether and how it is cut. With `column-rows`, sums over leading dimensions, and moments,
      have parts of at most so many rows, or stay whole.
    - A filter gradient of f32 or f64 with few results is made of parts of the batch. A reduction adds them up.
    - A concatenation of more than 32 parts is made of smaller ones.
    - Sums of f16 and bf16 are taken in f32.

    Everything else is left alone.

    ```mlir
    %y = nn.log_softmax %x axis = 1 : tensor<2x3xf32>
    // becomes
    %max = nn.reduce max %x axes = [1] : tensor<2x3xf32> -> tensor<2xf32>
    %shifted = arith.subf %x, broadcast(%max)
    %sum = nn.reduce sum exp(%shifted) axes = [1] : tensor<2x3xf32> -> tensor<2xf32>
    %y = arith.subf %shifted, broadcast(log(%sum))
    ```
  }];
  let options = [
    Option<"columnRows", "column-rows", "int64_t", "0",
           "most rows of a part of a sum over leading dimensions; 0: as many as CPUs want">,
    Option<"wholeColumnBytes", "whole-column-bytes", "int64_t", "0", "bytes of such sums that are never cut">,
    Option<"columnGroups", "column-groups", "int64_t", "0", "groups of 32 columns from which on none is cut">,
  ];
  let dependentDialects = ["::ortc::nn::NnDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def InlineLoopsPass : Pass<"ortc-inline-loops"> {
  let summary = "replace loops of one iteration by their bodies";
  let description = [{
    Before: a differentiated program. What a loop's gradient computes again is not told apart from what the loop has
    computed once both stand in one block: no pass after this one merges equal operations, but for sums along the keys
    of attention, which ortc-fuse-kernels merges on purpose.

    After: no nn.scan of one iteration is left, but for those with a limit.

    ```mlir
    %all = nn.scan 1 carry() over(%xs) with(%w) : (tensor<1x3xf32>, tensor<3xf32>) -> tensor<1x3xf32> {
    ^bb0(%x: tensor<3xf32>, %v: tensor<3xf32>):
      %0 = arith.mulf %x, %v : tensor<3xf32>
      nn.yield %0 : tensor<3xf32>
    }
    // becomes
    %x = nn.reshape %xs : tensor<1x3xf32> -> tensor<3xf32>
    %0 = arith.mulf %x, %w : tensor<3xf32>
    %all = nn.reshape %0 : tensor<3xf32> -> tensor<1x3xf32>
    ```
  }];
  let dependentDialects = ["::ortc::nn::NnDialect"];
}

def FuseKernelsPass : Pass<"ortc-fuse-kernels"> {
  let summary = "group the operations of functions into kernels";
  let description = [{
    Before: functions on tensors without composites. Functions without body are left alone, and so are those that hold a
    kernel already.

    After: every operation is in a plan.kernel. Reshapes between kernels stay outside; they move no data.
    - A loop nest is one kernel: elementwise clusters, reductions with their producers and the elementwise work on
      their results, all of an optimizer's update. It repeats no expensive work and reads memory in order.
    - Contractions and convolutions take the elementwise work on their results along.
    - Any other operation is a kernel of its own.
    - Where the family has kernels of attention, products along the keys of scores are kernels with all that is between
      them and the products of the scores, which are computed anew in each and never stored; sums and maxima along the
      keys are results of the forward kernel, and the gradient takes them from there.
    - Random draws are copied into the kernels that read them.
    - A tensor that is cheap beside storing it is computed again by kernels that read its inputs anyway. A product that
      takes such a tensor long after its other readers takes it from a kernel just before, which has it at hand.

    Operations that only updates need share no kernel with others, since the others run before updates. The update of a
    weight of more than 2 MiB is the exception. It joins the product or convolution that makes its gradient where one
    kernel can compute both and nothing else reads the gradient. The gradient is then not stored. A convolution that
    reads a tensor larger than that gradient stays apart.

    ```mlir
    %a = arith.mulf %x, %x : tensor<8x4xf32>
    %s = nn.reduce sum %a axes = [1] : tensor<8x4xf32> -> tensor<8xf32>
    // becomes
    %s = plan.kernel loop (%x) : (tensor<8x4xf32>) -> tensor<8xf32> { ... }
    ```
  }];
  let options = [
    Option<"narrow", "narrow", "std::string", "\"\"",
           "bf16 or f16: the type in which what the loss's operations keep for others is stored; empty: as it is">,
    Option<"attentionParts", "attention-parts", "int64_t", "0",
           "elements of a head, times parts of 16 bits, up to which attention is a kernel; 0: it never is">,
    Option<"fewKernels", "few-kernels", "bool", "false",
           "let products read through transposes and slices, and take what follows them in the backward part">,
  ];
  let dependentDialects = ["::ortc::plan::PlanDialect", "::ortc::nn::NnDialect", "::mlir::arith::ArithDialect"];
}
