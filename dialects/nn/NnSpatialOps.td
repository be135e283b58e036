// Convolution and pooling.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Channels-last: activations [batch, spatial..., channels], filters [spatial..., channels / groups, features].
#ifndef ORTC_DIALECTS_NN_SPATIAL_OPS_TD
#define ORTC_DIALECTS_NN_SPATIAL_OPS_TD

class Nn_ConvBase<string mnemonic> : Nn_Op<mnemonic> {
  code window = [{
    C1 strides, padding_low, padding_high and dilations have one entry per spatial dimension (1 to 3);
       strides and dilations are at least 1, paddings not negative.
    C2 output = floor((input + padding_low + padding_high - dilation * (filter - 1) - 1) / stride) + 1, at least 1.
    C3 input channels = groups * the filter's channels; features are a multiple of groups.
    C4 batch sizes and element types agree.
  }];
  dag windowArguments = (ins DenseI64ArrayAttr:$strides /*C1*/, DenseI64ArrayAttr:$paddingLow /*C1*/,
                             DenseI64ArrayAttr:$paddingHigh /*C1*/, DenseI64ArrayAttr:$dilations /*C1*/,
                             I64Attr:$groups /*C3*/);
}

def Nn_ConvOp : Nn_ConvBase<"conv"> {
  let summary = "a convolution (cross-correlation) with groups, padding and dilation";
  let description = [{
    `y[n, o, k] = sum over f, c of x[n, o * stride + f * dilation - padding_low, group(k) * C + c] * w[f, c, k]`.
  }] # window # [{
    ```mlir
    %y = nn.conv %x, %w strides = [1, 1] padding = [1, 1] to [1, 1]
        dilations = [1, 1] groups = 1 : tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32> -> tensor<2x8x8x4xf32>
    ```
  }];
  let arguments = !con((ins Nn_FloatTensor:$input, Nn_FloatTensor:$filter), windowArguments);
  let results = (outs Nn_FloatTensor:$result /*C2, C4*/);
  let assemblyFormat = [{
    $input `,` $filter `strides` `=` $strides `padding` `=` $paddingLow `to` $paddingHigh `dilations` `=` $dilations
    `groups` `=` $groups attr-dict `:` type($input) `,` type($filter) `->` type($result)
  }];
}

def Nn_ConvInputGradOp : Nn_ConvBase<"conv_input_grad"> {
  let summary = "the gradient of conv for its input; also the transposed convolution";
  let description = [{
    The result is the input of the conv that `gradient` is the output of.
  }] # window # [{
    ```mlir
    %dx = nn.conv_input_grad %dy, %w strides = [1, 1] padding = [1, 1] to [1, 1]
        dilations = [1, 1] groups = 1 : tensor<2x8x8x4xf32>, tensor<3x3x3x4xf32> -> tensor<2x8x8x3xf32>
    ```
  }];
  let arguments = !con((ins Nn_FloatTensor:$gradient, Nn_FloatTensor:$filter), windowArguments);
  let results = (outs Nn_FloatTensor:$result /*C2, C4*/);
  let assemblyFormat = [{
    $gradient `,` $filter `strides` `=` $strides `padding` `=` $paddingLow `to` $paddingHigh `dilations` `=` $dilations
    `groups` `=` $groups attr-dict `:` type($gradient) `,` type($filter) `->` type($result)
  }];
}

def Nn_ConvFilterGradOp : Nn_ConvBase<"conv_filter_grad"> {
  let summary = "the gradient of conv for its filter";
  let description = [{
    The result is the gradient of the filter of the conv that takes `input` and has `gradient` as its output's gradient.
    With one dimension more in front, of size P, it holds P such gradients: those of P equal parts of the batch, whose
    sum is the gradient (parts are made side by side).

    C5 P divides the batch.
  }] # window # [{
    ```mlir
    %dw = nn.conv_filter_grad %x, %dy strides = [1, 1] padding = [1, 1] to [1, 1]
        dilations = [1, 1] groups = 1 : tensor<2x8x8x3xf32>, tensor<2x8x8x4xf32> -> tensor<3x3x3x4xf32>
    ```
  }];
  let arguments = !con((ins Nn_FloatTensor:$input, Nn_FloatTensor:$gradient), windowArguments);
  let results = (outs Nn_FloatTensor:$result /*C2, C4, C5*/);
  let extraClassDeclaration = [{
    /// P, 1 without that dimension, and the type of one filter.
    int64_t getParts();
    ::mlir::RankedTensorType getFilterType();
  }];
  let assemblyFormat = [{
    $input `,` $gradient `strides` `=` $strides `padding` `=` $paddingLow `to` $paddingHigh `dilations` `=` $dilations
    `groups` `=` $groups attr-dict `:` type($input) `,` type($gradient) `->` type($result)
  }];
}

class Nn_PoolBase<string mnemonic> : Nn_Op<mnemonic> {
  code poolWindow = [{
    C1 window, strides, padding_low, padding_high, overhang and dilations have one entry per spatial dimension (1 to 3);
       window, strides and dilations are at least 1, the others not negative.
    C2 output = floor((input + padding_low + padding_high + overhang - dilation * (window - 1) - 1) / stride)
    + 1, at least 1;
       `overhang` is what rounding up adds beyond the padding: it holds no element and is never counted.
    C3 batch, channels and element types agree.
    C4 every window holds at least one element of the input.
  }];
  dag poolArguments = (ins DenseI64ArrayAttr:$window /*C1*/, DenseI64ArrayAttr:$strides /*C1*/,
                           DenseI64ArrayAttr:$paddingLow /*C1*/, DenseI64ArrayAttr:$paddingHigh /*C1*/,
                           DenseI64ArrayAttr:$overhang /*C1*/, DenseI64ArrayAttr:$dilations /*C1*/);
}

def Nn_MaxPoolOp : Nn_PoolBase<"max_pool"> {
  let summary = "the largest element of each window and where it is";
  let description = [{
    `taps` says where in its window: the place's number, row-major from 0; the first of equals. NaN wins.
  }] # poolWindow # [{
    C5 the type of `taps` is tapType(window): i8 for windows of at most 128 places, i32 for larger ones.
    ```mlir
    %y, %t = nn.max_pool %x window = [2, 2] strides = [2, 2] padding = [0, 0] to [0, 0]
        overhang = [0, 0] dilations = [1, 1] : tensor<1x4x4x3xf32> -> tensor<1x2x2x3xf32>, tensor<1x2x2x3xi8>
    ```
  }];
  let arguments = !con((ins Nn_FloatTensor:$input), poolArguments);
  let results = (outs Nn_FloatTensor:$result /*C2, C3*/, StaticShapeTensorOf<[I8, I32]>:$taps /*C3, C5*/);
  let assemblyFormat = [{
    $input `window` `=` $window `strides` `=` $strides `padding` `=` $paddingLow `to` $paddingHigh `overhang`
    `=` $overhang
    `dilations` `=` $dilations attr-dict `:` type($input) `->` type($result) `,` type($taps)
  }];
}

def Nn_MaxPoolGradOp : Nn_PoolBase<"max_pool_grad"> {
  let summary = "the gradient of max_pool for its input";
  let description = [{
    Each gradient goes to the element of its window that `taps` names, as max_pool gives them.
  }] # poolWindow # [{
    C5 as for max_pool.
    ```mlir
    %dx = nn.max_pool_grad %dy, %t window = [2, 2] strides = [2, 2] padding = [0, 0] to [0, 0]
        overhang = [0, 0] dilations = [1, 1] : tensor<1x2x2x3xf32>, tensor<1x2x2x3xi8> -> tensor<1x4x4x3xf32>
    ```
  }];
  let arguments = !con((ins Nn_FloatTensor:$gradient, StaticShapeTensorOf<[I8, I32]>:$taps), poolArguments);
  let results = (outs Nn_FloatTensor:$result /*C2, C3*/);
  let assemblyFormat = [{
    $gradient `,` $taps `window` `=` $window `strides` `=` $strides `padding` `=` $paddingLow `to` $paddingHigh
    `overhang` `=` $overhang `dilations` `=` $dilations attr-dict `:` type($gradient) `,` type($taps) `->` type($result)
  }];
}

def Nn_AvgPoolOp : Nn_PoolBase<"avg_pool"> {
  let summary = "the mean of each window";
  let description = [{
    Divides by the number of elements, with `count_include_pad` padding (never the overhang) included.
  }] # poolWindow # [{
    ```mlir
    %y = nn.avg_pool %x window = [2, 2] strides = [2, 2] padding = [0, 0] to [0, 0]
        overhang = [0, 0] dilations = [1, 1] : tensor<1x4x4x3xf32> -> tensor<1x2x2x3xf32>
    ```
  }];
  let arguments = !con((ins Nn_FloatTensor:$input), poolArguments, (ins UnitAttr:$countIncludePad));
  let results = (outs Nn_FloatTensor:$result /*C2, C3*/);
  let assemblyFormat = [{
    $input `window` `=` $window `strides` `=` $strides `padding` `=` $paddingLow `to` $paddingHigh `overhang`
    `=` $overhang
    `dilations` `=` $dilations (`count_include_pad` $countIncludePad^)? attr-dict `:` type($input) `->` type($result)
  }];
}

def Nn_AvgPoolGradOp : Nn_PoolBase<"avg_pool_grad"> {
  let summary = "the gradient of avg_pool for its input";
  let description = [{
    Each gradient is spread evenly over its window.
  }] # poolWindow # [{
    ```mlir
    %dx = nn.avg_pool_grad %dy window = [2, 2] strides = [2, 2] padding = [0, 0] to [0, 0]
        overhang = [0, 0] dilations = [1, 1] : tensor<1x2x2x3xf32> -> tensor<1x4x4x3xf32>
    ```
  }];
  let arguments = !con((ins Nn_FloatTensor:$gradient), poolArguments, (ins UnitAttr:$countIncludePad));
  let results = (outs Nn_FloatTensor:$result /*C2, C3*/);
  let assemblyFormat = [{
    $gradient `window` `=` $window `strides` `=` $strides `padding` `=` $paddingLow `to` $paddingHigh
    `overhang` `=` $overhang
    `dilations` `=` $dilations (`count_include_pad` $countIncludePad^)? attr-dict `:` type($gradient) `->` type($result)
  }];
}

#endif
