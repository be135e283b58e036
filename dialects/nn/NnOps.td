// Tensor operations.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shape, data movement, reduction, contraction and indexing. Spatial operations are in NnSpatialOps.td.
#ifndef ORTC_DIALECTS_NN_OPS_TD
#define ORTC_DIALECTS_NN_OPS_TD

include "dialects/nn/NnDialect.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Nn_Tensor : StaticShapeTensorOf<[AnyFloat, AnySignlessInteger]>;
def Nn_FloatTensor : StaticShapeTensorOf<[AnyFloat]>;
def Nn_IndexTensor : StaticShapeTensorOf<[I32, I64]>;

class Nn_Op<string mnemonic, list<Trait> traits = []> : Op<Nn_Dialect, mnemonic, traits # [Pure]> {
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Shape and data movement
//===----------------------------------------------------------------------===//

def Nn_BroadcastOp : Nn_Op<"broadcast"> {
  let summary = "a tensor repeated along new or unit dimensions";
  let description = [{
    Dimension `i` of the input becomes dimension `dimensions[i]` of the result; the others repeat it.
    C1 `dimensions` has one entry per input dimension, strictly increasing, each below the result's rank.
    C2 an input dimension is 1 or equals its result dimension.
    C3 element types are equal.

    ```mlir
    %y = nn.broadcast %x dims = [1] : tensor<4xf32> -> tensor<2x4xf32>
    ```
  }];
  let arguments = (ins Nn_Tensor:$input, DenseI64ArrayAttr:$dimensions /*C1*/);
  let results = (outs Nn_Tensor:$result /*C2, C3*/);
  let assemblyFormat = "$input `dims` `=` $dimensions attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Nn_ReshapeOp : Nn_Op<"reshape"> {
  let summary = "the same elements in row-major order under another shape";
  let description = [{
    C1 input and result have the same number of elements and element type.

    ```mlir
    %y = nn.reshape %x : tensor<2x6xf32> -> tensor<3x4xf32>
    ```
  }];
  let arguments = (ins Nn_Tensor:$input);
  let results = (outs Nn_Tensor:$result /*C1*/);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def Nn_TransposeOp : Nn_Op<"transpose"> {
  let summary = "permuted dimensions";
  let description = [{
    Dimension `i` of the result is dimension `permutation[i]` of the input.
    C1 `permutation` is a permutation of the input's dimensions.
    C2 the result has the permuted shape and the same element type.

    ```mlir
    %y = nn.transpose %x perm = [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
    ```
  }];
  let arguments = (ins Nn_Tensor:$input, DenseI64ArrayAttr:$permutation /*C1*/);
  let results = (outs Nn_Tensor:$result /*C2*/);
  let assemblyFormat = "$input `perm` `=` $permutation attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def Nn_SliceOp : Nn_Op<"slice"> {
  let summary = "every stride-th element from start on";
  let description = [{
    `y[i] = x[starts + i * strides]` in each dimension.
    C1 `starts` and `strides` have one entry per dimension, starts >= 0, strides >= 1.
    C2 the last element read lies inside the input.
    C3 ranks and element types are equal, no result dimension is larger than its input dimension.

    ```mlir
    %y = nn.slice %x starts = [1, 0] strides = [1, 2] : tensor<4x6xf32> -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Nn_Tensor:$input, DenseI64ArrayAttr:$starts /*C1*/, DenseI64ArrayAttr:$strides /*C1*/);
  let results = (outs Nn_Tensor:$result /*C2, C3*/);
  let assemblyFormat = "$input `starts` `=` $starts `strides` `=` $strides attr-dict `:` type($input) `->` "
      "type($result)";
  let hasFolder = 1;
}

def Nn_PadOp : Nn_Op<"pad"> {
  let summary = "a tensor with a constant around and between its elements";
  let description = [{
    `low` and `high` elements of `value` before and after, `interior` between neighbours.
    C1 `low`, `high` and `interior` have one entry per dimension, none negative.
    C2 result dimension = low + high + size + max(size - 1, 0) * interior.
    C3 `value` has rank 0 and the input's element type.

    ```mlir
    %y = nn.pad %x, %zero low = [1] high = [0] interior = [1] : tensor<3xf32>, tensor<f32> -> tensor<6xf32>
    ```
  }];
  let arguments = (ins Nn_Tensor:$input, Nn_Tensor:$value /*C3*/, DenseI64ArrayAttr:$low /*C1*/,
                       DenseI64ArrayAttr:$high /*C1*/, DenseI64ArrayAttr:$interior /*C1*/);
  let results = (outs Nn_Tensor:$result /*C2*/);
  let assemblyFormat = [{
    $input `,` $value `low` `=` $low `high` `=` $high `interior` `=` $interior attr-dict
    `:` type($input) `,` type($value) `->` type($result)
  }];
}

def Nn_ConcatOp : Nn_Op<"concat"> {
  let summary = "tensors one after another along an axis";
  let description = [{
    C1 at least one input; `axis` is below the rank.
    C2 all inputs and the result agree in rank, element type and every dimension but `axis`.
    C3 the result's `axis` dimension is the sum of the inputs'.

    ```mlir
    %y = nn.concat %a, %b axis = 0 : tensor<2xf32>, tensor<3xf32> -> tensor<5xf32>
    ```
  }];
  let arguments = (ins Variadic<Nn_Tensor>:$inputs /*C2*/, I64Attr:$axis /*C1*/);
  let results = (outs Nn_Tensor:$result /*C3*/);
  let assemblyFormat = "$inputs `axis` `=` $axis attr-dict `:` type($inputs) `->` type($result)";
  let hasFolder = 1;
}

def Nn_ReverseOp : Nn_Op<"reverse", [AllTypesMatch<["input", "result"]>]> {
  let summary = "the order of elements reversed along axes";
  let description = [{
    C1 `axes` are strictly increasing and below the rank.
    C2 input and result types are equal (a trait).

    ```mlir
    %y = nn.reverse %x axes = [1] : tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Nn_Tensor:$input, DenseI64ArrayAttr:$axes /*C1*/);
  let results = (outs Nn_Tensor:$result /*C2*/);
  let assemblyFormat = "$input `axes` `=` $axes attr-dict `:` type($result)";

}

def Nn_IotaOp : Nn_Op<"iota"> {
  let summary = "the position along an axis";
  let description = [{
    C1 `axis` is below the rank.

    ```mlir
    %y = nn.iota axis = 1 : tensor<2x3xi64>
    ```
  }];
  let arguments = (ins I64Attr:$axis /*C1*/);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "`axis` `=` $axis attr-dict `:` type($result)";
}

def Nn_RandomOp : Nn_Op<"random", [AllTypesMatch<["first", "second"]>]> {
  let summary = "random bits";
  let description = [{
    Element `i` in row-major order is Philox2x32-10 with the counter `(i, step)` and the key `key`: two words,
    one for each result. Of `step` the low 32 bits count. The same operands give the same bits wherever and
    however often they are computed, so fusion computes them again rather than store them.
    C1 `step` has rank 0.
    C2 both results have the same type (a trait), i32, with at most 2^32 elements.
    C3 `key` is in [0, 2^32).

    ```mlir
    %first, %second = nn.random %step key = 7 : tensor<i64> -> tensor<2x3xi32>
    ```
  }];
  let arguments = (ins StaticShapeTensorOf<[I64]>:$step /*C1*/, I64Attr:$key /*C3*/);
  let results = (outs StaticShapeTensorOf<[I32]>:$first /*C2*/, StaticShapeTensorOf<[I32]>:$second /*C2*/);
  let assemblyFormat = "$step `key` `=` $key attr-dict `:` type($step) `->` type($first)";
  let builders = [OpBuilder<(ins "::mlir::RankedTensorType":$type, "::mlir::Value":$step, "uint32_t":$key), [{
    build($_builder, $_state, type, type, step, $_builder.getI64IntegerAttr(key));
  }]>];
}

def Nn_DetachOp : Nn_Op<"detach", [AllTypesMatch<["input", "result"]>]> {
  let summary = "its input, a constant for gradients";
  let description = [{
    Fusion replaces it by its input: it exists for differentiation only.
    C1 input and result types are equal (a trait).

    ```mlir
    %y = nn.detach %x : tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Nn_Tensor:$input);
  let results = (outs Nn_Tensor:$result /*C1*/);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

def Nn_ReduceOp : Nn_Op<"reduce"> {
  let summary = "a reduction that drops its axes";
  let description = [{
    `sum`, `prod`, `max` or `min` over `axes`. An empty `axes` copies. Max and min pass NaN on.
    Integer sums wrap. Booleans (i1): max is or, min is and. Narrow floating-point types accumulate in f32.
    C1 `axes` are strictly increasing and below the rank.
    C2 the result has the remaining dimensions and the same element type.

    ```mlir
    %y = nn.reduce sum %x axes = [1] : tensor<2x3xf32> -> tensor<2xf32>
    ```
  }];
  let arguments = (ins Nn_ReduceKindAttr:$kind, Nn_Tensor:$input, DenseI64ArrayAttr:$axes /*C1*/);
  let results = (outs Nn_Tensor:$result /*C2*/);
  let assemblyFormat = "$kind $input `axes` `=` $axes attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}

def Nn_ArgReduceOp : Nn_Op<"arg_reduce"> {
  let summary = "where the largest or smallest element is along an axis";
  let description = [{
    The first such position, the last one with `last`. NaN counts as the extreme, as in PyTorch.
    C1 `kind` is max or min; `axis` is below the rank.
    C2 the result drops `axis` and holds i32 or i64.

    ```mlir
    %y = nn.arg_reduce max %x axis = 1 : tensor<2x3xf32> -> tensor<2xi64>
    ```
  }];
  let arguments = (ins Nn_ReduceKindAttr:$kind /*C1*/, Nn_Tensor:$input, I64Attr:$axis /*C1*/, UnitAttr:$last);
  let results = (outs Nn_IndexTensor:$result /*C2*/);
  let assemblyFormat = "$kind $input `axis` `=` $axis (`last` $last^)? attr-dict `:` type($input) `->` type($result)";
}

def Nn_ArgSortOp : Nn_Op<"arg_sort"> {
  let summary = "where the smallest or largest elements are along an axis, in order";
  let description = [{
    Positions in ascending order of their elements, with `descending` the other way round; the lower position
    first among equals. NaN counts as the largest, as in PyTorch. The result may be shorter than the input:
    the first positions.
    C1 `axis` is below the rank and has fewer than 2^31 elements.
    C2 the result holds i32 or i64; its shape is the input's, with at most as many elements along `axis`.

    ```mlir
    %y = nn.arg_sort %x axis = 1 descending : tensor<2x9xf32> -> tensor<2x3xi64>
    ```
  }];
  let arguments = (ins Nn_Tensor:$input, I64Attr:$axis /*C1*/, UnitAttr:$descending);
  let results = (outs Nn_IndexTensor:$result /*C2*/);
  let assemblyFormat = "$input `axis` `=` $axis (`descending` $descending^)? attr-dict `:` type($input) `->` "
      "type($result)";
}

def Nn_MomentsOp : Nn_Op<"moments", [AllTypesMatch<["mean", "variance"]>]> {
  let summary = "mean and population variance over axes, which are dropped";
  let description = [{
    `mean = sum(x) / n`, `variance = sum((x - mean)^2) / n`, in two passes: no cancellation.
    The core of all normalisations. Kept whole because its gradient knows that the variance does not move with the mean:
    `dx = dmean / n + 2 (x - mean) dvariance / n`.
    C1 `axes` are strictly increasing, below the rank, not empty.
    C2 both results have the remaining dimensions and the input's element type.

    ```mlir
    %mean, %variance = nn.moments %x axes = [1] : tensor<2x3xf32> -> tensor<2xf32>
    ```
  }];
  let arguments = (ins Nn_FloatTensor:$input, DenseI64ArrayAttr:$axes /*C1*/);
  let results = (outs Nn_FloatTensor:$mean /*C2*/, Nn_FloatTensor:$variance /*C2*/);
  let assemblyFormat = "$input `axes` `=` $axes attr-dict `:` type($input) `->` type($mean)";
}

def Nn_CumSumOp : Nn_Op<"cumsum", [AllTypesMatch<["input", "result"]>]> {
  let summary = "running sums along an axis";
  let description = [{
    C1 `axis` is below the rank.
    C2 input and result types are equal (a trait).

    ```mlir
    %y = nn.cumsum %x axis = 1 exclusive reverse : tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Nn_Tensor:$input, I64Attr:$axis /*C1*/, UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs Nn_Tensor:$result /*C2*/);
  let assemblyFormat = "$input `axis` `=` $axis (`exclusive` $exclusive^)? (`reverse` $reverse^)? attr-dict `:` "
      "type($result)";
}

def Nn_SoftmaxOp : Nn_Op<"softmax", [AllTypesMatch<["input", "result"]>]> {
  let summary = "exp(x - max) over its sum along an axis";
  let description = [{
    C1 `axis` is below the rank.
    C2 input and result types are equal (a trait).

    ```mlir
    %y = nn.softmax %x axis = 1 : tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Nn_FloatTensor:$input, I64Attr:$axis /*C1*/);
  let results = (outs Nn_FloatTensor:$result /*C2*/);
  let assemblyFormat = "$input `axis` `=` $axis attr-dict `:` type($result)";
}

def Nn_LogSoftmaxOp : Nn_Op<"log_softmax", [AllTypesMatch<["input", "result"]>]> {
  let summary = "x - max - log(sum(exp(x - max))) along an axis";
  let description = [{
    C1 `axis` is below the rank.
    C2 input and result types are equal (a trait).

    ```mlir
    %y = nn.log_softmax %x axis = 1 : tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Nn_FloatTensor:$input, I64Attr:$axis /*C1*/);
  let results = (outs Nn_FloatTensor:$result /*C2*/);
  let assemblyFormat = "$input `axis` `=` $axis attr-dict `:` type($result)";
}

//===----------------------------------------------------------------------===//
// Contraction
//===----------------------------------------------------------------------===//

def Nn_DotOp : Nn_Op<"dot"> {
  let summary = "a general tensor contraction";
  let description = [{
    Sums products over the contracted dimensions for every combination of batch and free dimensions.
    The result's dimensions are the batch ones (in the order listed), the free ones of lhs, the free ones of rhs.
    Accumulates in f32 (f64 for f64). With `exact`, and so in its gradients, no pass rounds its operands to a narrow
    type: coordinates, weights of an interpolation, matrices of a transform.
    C1 batch and contracted dimensions of a side are distinct and below its rank; both sides list equally many of each.
    C2 matched dimensions have equal sizes; element types are equal.
    C3 the result has the shape described above.

    ```mlir
    %y = nn.dot %a, %b batch = [0] x [0] contract = [2] x [1]
        : tensor<8x2x3xf32>, tensor<8x3x4xf32> -> tensor<8x2x4xf32>
    ```
  }];
  let arguments = (ins Nn_FloatTensor:$lhs, Nn_FloatTensor:$rhs, DenseI64ArrayAttr:$lhsBatch /*C1*/,
      DenseI64ArrayAttr:$rhsBatch /*C1*/,
                       DenseI64ArrayAttr:$lhsContract /*C1*/, DenseI64ArrayAttr:$rhsContract /*C1*/,
                       UnitAttr:$exact);
  let results = (outs Nn_FloatTensor:$result /*C2, C3*/);
  let assemblyFormat = [{
    $lhs `,` $rhs `batch` `=` $lhsBatch `x` $rhsBatch `contract` `=` $lhsContract `x` $rhsContract (`exact` $exact^)?
    attr-dict
    `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

def Nn_StraightThroughOp : Op<Nn_Dialect, "straight_through", [Pure, AllTypesMatch<["value", "through", "result"]>]> {
  let summary = "one value forward, the gradient of another";
  let description = [{
    Returns `value`; the whole gradient goes to `through`, none to `value`. Rounding that is trained through is
    `straight_through(round(x), x)`. Fusion replaces it by `value`.
    C1 all types are equal (a trait).

    ```mlir
    %y = nn.straight_through %rounded, %x : tensor<4xf32>
    ```
  }];
  let arguments = (ins Nn_FloatTensor:$value, Nn_FloatTensor:$through);
  let results = (outs Nn_FloatTensor:$result /*C1*/);
  let assemblyFormat = "$value `,` $through attr-dict `:` type($result)";
}

//===----------------------------------------------------------------------===//
// Indexing
//===----------------------------------------------------------------------===//

def Nn_CheckIndexOp : Op<Nn_Dialect, "check_index", [AllTypesMatch<["input", "result"]>]> {
  let summary = "indices that are known to lie in a range";
  let description = [{
    Returns its input. When an element is not in `[lower, upper)` and is not `ignore`, the step stops with a range
    error that names `tensor`, the value and the limits, before anything has been updated.
    Not pure: it stays although nobody uses the result.
    C1 `lower` < `upper`.
    C2 input and result types are equal (a trait).

    ```mlir
    %y = nn.check_index %x "label" in [0, 10] ignore = -100 : tensor<2xi64>
    ```
  }];
  let arguments = (ins Nn_IndexTensor:$input, StrAttr:$tensor, I64Attr:$lower /*C1*/, I64Attr:$upper /*C1*/,
                       OptionalAttr<I64Attr>:$ignore);
  let results = (outs Nn_IndexTensor:$result /*C2*/);
  let assemblyFormat = [{
    $input $tensor `in` `[` $lower `,` $upper `]` (`ignore` `=` $ignore^)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
}

def Nn_GatherOp : Nn_Op<"gather"> {
  let summary = "slices taken along an axis";
  let description = [{
    `y[a..., i..., b...] = x[a..., indices[i...], b...]`. Indices are in range (see check_index).
    C1 `axis` is below the input's rank.
    C2 the result's shape is the input's with dimension `axis` replaced by the indices' shape; element types are equal.

    ```mlir
    %y = nn.gather %x, %i axis = 0 : tensor<10x4xf32>, tensor<2x3xi64> -> tensor<2x3x4xf32>
    ```
  }];
  let arguments = (ins Nn_Tensor:$input, Nn_IndexTensor:$indices, I64Attr:$axis /*C1*/);
  let results = (outs Nn_Tensor:$result /*C2*/);
  let assemblyFormat = "$input `,` $indices `axis` `=` $axis attr-dict `:` type($input) `,` type($indices) `->` "
      "type($result)";
}

def Nn_ScatterAddOp : Nn_Op<"scatter_add"> {
  let summary = "slices added up where their indices say, the gradient of gather";
  let description = [{
    `x = 0; x[a..., indices[i...], b...] += updates[a..., i..., b...]`, in the order of the indices.
    C1 `axis` is below the result's rank.
    C2 `updates` has the shape gather would give for the result and indices; element types are equal.

    ```mlir
    %x = nn.scatter_add %i, %u axis = 0 : tensor<2x3xi64>, tensor<2x3x4xf32> -> tensor<10x4xf32>
    ```
  }];
  let arguments = (ins Nn_IndexTensor:$indices, Nn_Tensor:$updates /*C2*/, I64Attr:$axis /*C1*/);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$indices `,` $updates `axis` `=` $axis attr-dict `:` type($indices) `,` type($updates) "
      "`->` type($result)";
}

def Nn_ScatterOp : Nn_Op<"scatter", [AllTypesMatch<["input", "result"]>]> {
  let summary = "slices written where distinct indices say";
  let description = [{
    `y = x; y[indices[i], b...] = updates[i, b...]` for every index below the first dimension of `x`; others, none of
    which is negative, write nothing. Those that write are distinct. Where the result lies in its input's place,
    nothing but what is written is touched.
    C1 `indices` has rank 1, the input at least that, and a row.
    C2 `updates` has the shape of the input with the number of indices for its first dimension, and its element type.
    C3 input and result types are equal (a trait).

    ```mlir
    %y = nn.scatter %x, %i, %u : tensor<10x4xf32>, tensor<3xi32>, tensor<3x4xf32>
    ```
  }];
  let arguments = (ins Nn_Tensor:$input, Nn_IndexTensor:$indices /*C1*/, Nn_Tensor:$updates /*C2*/);
  let results = (outs Nn_Tensor:$result /*C3*/);
  let assemblyFormat = "$input `,` $indices `,` $updates attr-dict `:` type($input) `,` type($indices) `,` "
      "type($updates)";
}

def Nn_GatherElementsOp : Nn_Op<"gather_elements"> {
  let summary = "single elements taken along an axis";
  let description = [{
    `y[a, i, b] = x[a, indices[a, i, b], b]`. Indices are in range (see check_index).
    C1 `axis` is below the rank; all ranks are equal.
    C2 the result has the indices' shape, which exceeds the input in no dimension but `axis`; element types are equal.

    ```mlir
    %y = nn.gather_elements %x, %i axis = 1 : tensor<2x5xf32>, tensor<2x3xi64> -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Nn_Tensor:$input, Nn_IndexTensor:$indices, I64Attr:$axis /*C1*/);
  let results = (outs Nn_Tensor:$result /*C2*/);
  let assemblyFormat = "$input `,` $indices `axis` `=` $axis attr-dict `:` type($input) `,` type($indices) `->` "
      "type($result)";
}

def Nn_ScatterElementsOp : Nn_Op<"scatter_elements", [AllTypesMatch<["input", "result"]>]> {
  let summary = "single elements written along an axis";
  let description = [{
    `y = x; y[a, indices[a, i, b], b] = mode(y[a, indices[a, i, b], b], updates[a, i, b])`, in row-major order
    of the indices.
    C1 `axis` is below the rank; all ranks are equal.
    C2 `updates` has the indices' shape, which exceeds the input in no dimension but `axis`; element types are equal.
    C3 input and result types are equal (a trait).

    ```mlir
    %y = nn.scatter_elements add %x, %i, %u axis = 1 : tensor<2x5xf32>, tensor<2x3xi64>
    ```
  }];
  let arguments = (ins Nn_ScatterModeAttr:$mode, Nn_Tensor:$input, Nn_IndexTensor:$indices,
      Nn_Tensor:$updates /*C2*/, I64Attr:$axis /*C1*/);
  let results = (outs Nn_Tensor:$result /*C3*/);
  let assemblyFormat = "$mode $input `,` $indices `,` $updates `axis` `=` $axis attr-dict `:` type($input) `,` "
      "type($indices) `,` type($updates) `->` type($result)";
}

include "dialects/nn/NnSpatialOps.td"
include "dialects/nn/NnLoopOps.td"

#endif
