// Simplification of tensor programs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
include "mlir/Pass/PassBase.td"

def SinkTransposesPass : Pass<"ortc-sink-transposes"> {
  let summary = "move transposes down until they cancel";
  let description = [{
    Before: legalisation has put transposes around every channels-last operation.
    After: a transpose has moved below every operation that can work on the permuted operand at no cost (elementwise,
    broadcast, reductions, softmax, concat, pad, slice, dot), and has met its inverse, a reshape, or an operation that
    cares. An operand that is not transposed itself is permuted only where that is free: a constant splat or a
    broadcast.

    ```mlir
    %0 = nn.transpose %x perm = [0, 3, 1, 2]
    %1 = math.tanh %0
    %2 = nn.transpose %1 perm = [0, 2, 3, 1]
    // becomes
    %2 = math.tanh %x
    ```
  }];
  let dependentDialects = ["::ortc::nn::NnDialect"];
}

def RaiseSlicesPass : Pass<"ortc-raise-slices", "::mlir::func::FuncOp"> {
  let summary = "compute the part of a gradient that is kept";
  let description = [{
    Before: gradients (`train.gradient`) of which a part is trained are slices.
    After: what such a slice is taken of is computed for that part alone, as far up as operations go with it
    (elementwise, broadcast, transpose, reshape, reduce, dot, gradients of convolutions and pools, with whole groups)
    and nothing but equal slices reads their results. Slices of operands are left in front. Other slices are left alone.

    ```mlir
    %0 = nn.dot %dy, %x batch = [] x [] contract = [0] x [0]
        : tensor<64x10xf32>, tensor<64x32xf32> -> tensor<10x32xf32>
    %1 = nn.slice %0 starts = [0, 0] strides = [1, 1] : tensor<10x32xf32> -> tensor<3x32xf32>
    // becomes
    %0 = nn.slice %dy starts = [0, 0] strides = [1, 1] : tensor<64x10xf32> -> tensor<64x3xf32>
    %1 = nn.dot %0, %x batch = [] x [] contract = [0] x [0]
        : tensor<64x3xf32>, tensor<64x32xf32> -> tensor<3x32xf32>
    ```
  }];
  let dependentDialects = ["::ortc::nn::NnDialect"];
}

def SinkGathersPass : Pass<"ortc-sink-gathers"> {
  let summary = "work on the rows of a table before they are gathered";
  let description = [{
    Run before differentiation, so that gradients are gathered up before they are multiplied.
    After: where a table of vectors has at most half as many rows as are gathered from it, products of the
    gathered rows with a matrix, and elementwise operations that treat all rows alike, are done on the table;
    not those whose derivative may be infinite, as rows that nobody gathers have the gradient 0.
    Transposes and reshapes between are those of the indices. Others are left alone.

    ```mlir
    %x = nn.gather %table, %i axis = 0 : tensor<96x8xf32>, tensor<2048xi64> -> tensor<2048x8xf32>
    %y = nn.dot %x, %w batch = [] x [] contract = [1] x [0]
        : tensor<2048x8xf32>, tensor<8x16xf32> -> tensor<2048x16xf32>
    // becomes
    %p = nn.dot %table, %w batch = [] x [] contract = [1] x [0]
        : tensor<96x8xf32>, tensor<8x16xf32> -> tensor<96x16xf32>
    %y = nn.gather %p, %i axis = 0 : tensor<96x16xf32>, tensor<2048xi64> -> tensor<2048x16xf32>
    ```
  }];
  let dependentDialects = ["::ortc::nn::NnDialect"];
}

def ContractConvolutionsPass : Pass<"ortc-contract-convolutions"> {
  let summary = "write convolutions over the whole image as products";
  let description = [{
    Run behind differentiation, which gives the gradients of a convolution as convolutions.
    After: a convolution or gradient of one whose window is the whole image, without padding and groups, is an nn.dot,
    with all that contractions can do: packing, fused epilogues, operands in other layouts. Others are left alone.

    ```mlir
    %y = nn.conv %x, %w strides = [1, 1] padding = [0, 0] to [0, 0] dilations = [1, 1] groups = 1
        : tensor<2x8x8x3xf32>, tensor<8x8x3x4xf32> -> tensor<2x1x1x4xf32>
    // becomes
    %p = nn.dot %x, %w batch = [] x [] contract = [1, 2, 3] x [0, 1, 2]
        : tensor<2x8x8x3xf32>, tensor<8x8x3x4xf32> -> tensor<2x4xf32>
    %y = nn.reshape %p : tensor<2x4xf32> -> tensor<2x1x1x4xf32>
    ```
  }];
  let dependentDialects = ["::ortc::nn::NnDialect"];
}

def FoldParameterLayoutsPass : Pass<"ortc-fold-parameter-layouts", "::mlir::ModuleOp"> {
  let summary = "store parameters in the layout their kernels want";
  let description = [{
    Before: functions take parameters and constants as the ONNX file has them. Run before differentiation, so that
    gradients and optimizer state follow.
    After: a tensor whose every use in every function is a transpose by one and the same permutation is stored permuted
    (`permutation` of its train.tensor), and those transposes are gone. Others are left alone.

    ```mlir
    train.tensor @w parameter "w" : tensor<2x3xf32>
    func.func @f(%w: tensor<2x3xf32> {train.tensor = @w}) { %0 = nn.transpose %w perm = [1, 0] ... }
    // becomes
    train.tensor @w parameter "w" permutation = [1, 0] : tensor<2x3xf32>
    func.func @f(%w: tensor<3x2xf32> {train.tensor = @w}) { ... }
    ```
  }];
  let dependentDialects = ["::ortc::nn::NnDialect", "::ortc::train::TrainDialect"];
}

def GatherInLoopsPass : Pass<"ortc-gather-in-loops", "::mlir::ModuleOp"> {
  let summary = "let loops gather the rows that they go over";
  let description = [{
    Run behind differentiation, which would sum up the table's gradient in every iteration.
    After: a loop whose sequence is an nn.gather along the first axis that nothing else reads, and whose
    slices elementwise operations read, takes the indices as sequence and the table as invariant, and gathers
    inside. Others stay.

    ```mlir
    %x = nn.gather %table, %i axis = 0 : tensor<96x8xf32>, tensor<64x32xi64> -> tensor<64x32x8xf32>
    nn.scan 64 carry(%h) over(%x) with() { ^bb0(%hi: ..., %xi: tensor<32x8xf32>): ... }
    // becomes
    nn.scan 64 carry(%h) over(%i) with(%table) { ^bb0(%hi: ..., %ii: tensor<32xi64>,
        %t: tensor<96x8xf32>): %xi = nn.gather %t, %ii axis = 0 ... }
    ```
  }];
  let dependentDialects = ["::ortc::nn::NnDialect"];
}

def HoistAccumulationsPass : Pass<"ortc-hoist-accumulations", "::mlir::ModuleOp"> {
  let summary = "sum products over the iterations of a loop at once, behind it";
  let description = [{
    Before: loops carry sums, as gradients of their weights are.
    After: where every iteration adds a contraction (or a reduction of what is stacked anyway), the loop
    stacks the operands, and one contraction behind it sums over iterations too: the weight's gradient is
    written once, not read and written in every iteration. Other sums stay.

    ```mlir
    nn.scan 5 carry(%zero) over(%x, %dy) with() { ^bb0(%sum, %xi, %dyi): %p = nn.dot %xi,
        %dyi ...  %s = arith.addf %sum, %p ... }
    // becomes
    nn.dot %x, %dy contract = [0, ...] x [0, ...]
    ```
  }];
  let dependentDialects = ["::ortc::nn::NnDialect"];
}

def FactorSumsPass : Pass<"ortc-factor-sums"> {
  let summary = "multiply a sum instead of what is summed";
  let description = [{
    Run when all arithmetic is there: after differentiation.
    After: sums of f32 and f64 run over products (of up to eight factors) without those that do not change
    along their axes (broadcasts, constants) and without negations; these are applied to the sum. Products of
    nothing else stay, and those with a broadcast twice or constants of a product below 2^-32 or above 2^32:
    such factors keep squares within the range of numbers.

    ```mlir
    %b = nn.broadcast %g dims = [1] : tensor<3xf32> -> tensor<4x3xf32>
    %p = arith.mulf %x, %b : tensor<4x3xf32>
    %s = nn.reduce sum %p axes = [0] : tensor<4x3xf32> -> tensor<3xf32>
    // becomes
    %t = nn.reduce sum %x axes = [0] : tensor<4x3xf32> -> tensor<3xf32>
    %s = arith.mulf %t, %g : tensor<3xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def MultiplyByReciprocalsPass : Pass<"ortc-multiply-by-reciprocals"> {
  let summary = "multiply by the reciprocal instead of dividing by a constant";
  let description = [{
    Run when all arithmetic is there: after differentiation.
    After: tensors are divided by a constant only where the quotient leads to a rounding, a comparison or a
    cast to integers (there the last bit decides, as in quantisation) and the constant is no power of two, or
    where the reciprocal is zero, infinite or denormal.

    ```mlir
    %y = arith.divf %x, %c : tensor<4xf32> // %c = dense<1.25>
    // becomes
    %y = arith.mulf %x, %r : tensor<4xf32> // %r = dense<0.8>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def HoistLayoutsPass : Pass<"ortc-hoist-layouts", "::mlir::ModuleOp"> {
  let summary = "lay out what a loop multiplies with in front of the loop";
  let description = [{
    Run behind differentiation, on loops whose bodies are what will be compiled.
    After: where the right operand of a contraction in a loop is an invariant, or slices, transposes and
    reshapes of one, the loop gets it as panels [n / width, k, width] (of 64, 48 or 32 columns, or all of them
    where none of these divides their number), which are made once and which the contraction reads in place.
    Contractions of few rows, with batch dimensions, or with other operands stay.

    ```mlir
    nn.scan 64 carry(%h) ... with(%w) { ^bb0(...): nn.dot %hi, %wi ...
        : tensor<32x256xf32>, tensor<1024x256xf32> -> tensor<32x1024xf32> ... }
    // becomes, with %p a transpose of %w
    nn.scan 64 carry(%h) ... with(%p) { ^bb0(...): nn.dot %hi, %pi ...
        : tensor<32x256xf32>, tensor<16x256x64xf32> -> tensor<32x16x64xf32> ... }
    ```
  }];
  let dependentDialects = ["::ortc::nn::NnDialect"];
}

def HoistConstantsPass : Pass<"ortc-hoist-constants", "::mlir::ModuleOp"> {
  let summary = "turn large constants into constant tensors";
  let description = [{
    Before: functions hold `arith.constant` of any size.
    After: constants above `limit` bytes that are no splat are `train.tensor`s of role constant, shared by all functions
    and equal values, and come in as arguments. Smaller ones stay literals of their kernels.

    ```mlir
    func.func @f() { %c = arith.constant dense<[...]> : tensor<100xf32> ... }
    // becomes
    train.tensor @constant_0 constant "constant_0" initial = dense<[...]> : tensor<100xf32>
    func.func @f(%c: tensor<100xf32> {train.tensor = @constant_0}) { ... }
    ```
  }];
  let dependentDialects = ["::ortc::train::TrainDialect"];
  let options = [
    Option<"limit", "limit", "int64_t", "256", "largest literal in bytes, 0 or more">
  ];
}
