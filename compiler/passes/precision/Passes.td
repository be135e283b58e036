// Computing in f16 or bf16 what bears it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_PASSES_PRECISION_PASSES_TD
#define ORTC_PASSES_PRECISION_PASSES_TD

include "mlir/Pass/PassBase.td"

def NarrowProductsPass : Pass<"ortc-narrow-products", "::mlir::func::FuncOp"> {
  let summary = "round what products and convolutions read and give to a narrow type";
  let description = [{
    Before: simplified forward functions, or (`differentiated`) functions that hold forward and backward part.

    After: both operands of every `nn.dot` and convolution of f32 are f32 numbers that the narrow type has, and so
    is the result. They are written as `arith.extf(arith.truncf(x))`: the numbers say what is computed, and kernels
    store and multiply them as what they are. Products that say `exact` and those of
    integers are left alone. Sums stay f32. What else there is (norms, softmax, reductions, losses,
    parameters and their gradients) is left alone.
    - A forward function whose products are all of f64 has none to round, and is refused.
    - In a forward function the gradient passes a rounding as it is (`nn.straight_through`).
    - With `differentiated` that is resolved, and products of the backward part are rounded, too, but for gradients
      of parameters, which nothing multiplies.
    - Movement in front of an operand moves what was rounded, so that readers of one tensor share its rounding.
    - What a loop multiplies with in every iteration is rounded outside; with `differentiated`, loops take and stack
      narrow numbers as what they are.

    ```mlir
    %y = nn.dot %x, %w ... : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
    // becomes (with --differentiated)
    %x16 = arith.truncf %x : tensor<8x4xf32> to tensor<8x4xbf16>
    %x32 = arith.extf %x16 : tensor<8x4xbf16> to tensor<8x4xf32>
    ...
    %y = nn.dot %x32, %w32 ... : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
    %y16 = arith.truncf %y : tensor<8x2xf32> to tensor<8x2xbf16>
    %y32 = arith.extf %y16 : tensor<8x2xbf16> to tensor<8x2xf32>
    ```
  }];
  let options = [
    Option<"type", "type", "std::string", "\"bf16\"", "the narrow type: bf16 or f16">,
    Option<"differentiated", "differentiated", "bool", "false", "the functions hold their backward part">,
  ];
  let dependentDialects = ["::ortc::nn::NnDialect", "::mlir::arith::ArithDialect"];
}

def SinkWideningPass : Pass<"ortc-sink-widening", "::mlir::func::FuncOp"> {
  let summary = "move narrow tensors, not what they are extended to";
  let description = [{
    Before: any program. After: no transpose, reshape, broadcast or slice reads an `arith.extf` of f16 or bf16, or
    floating-point numbers made of integers of 8 or 16 bits; the conversion stands behind it. Products then read views
    of narrow tensors, and copies move fewer bytes.

    ```mlir
    %a = arith.extf %x : tensor<8x4xbf16> to tensor<8x4xf32>
    %b = nn.transpose %a permutation = [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
    // becomes
    %a = nn.transpose %x permutation = [1, 0] : tensor<8x4xbf16> -> tensor<4x8xbf16>
    %b = arith.extf %a : tensor<4x8xbf16> to tensor<4x8xf32>
    ```
  }];
  let dependentDialects = ["::ortc::nn::NnDialect", "::mlir::arith::ArithDialect"];
}

def CentreIntegersPass : Pass<"ortc-centre-integers", "::mlir::func::FuncOp"> {
  let summary = "subtract zero points before integers become floating point";
  let description = [{
    Before: any program. After: no constant that is one number of the integers' range is subtracted from f32 numbers
    made of 8-bit integers; it is subtracted from the integers, whose type then holds every difference: 8 bits where
    that is enough, or 16. All of it is exact. A kernel can store these integers, and the next one, a product or
    convolution, extends them where it loads them.

    ```mlir
    %x = arith.sitofp %q : tensor<8xi8> to tensor<8xf32>
    %y = arith.subf %x, dense<-128.0> : tensor<8xf32>
    // becomes
    %c = arith.subi %q, dense<-128> : tensor<8xi8>
    %y = arith.uitofp %c : tensor<8xi8> to tensor<8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def UnpackWeightsPass : Pass<"ortc-unpack-weights", "::mlir::func::FuncOp"> {
  let summary = "unpack packed weights part by part, where they are read";
  let description = [{
    Before: any program. After: there is no `nn.unpack`.
    - A product with an unpacked weight is an `nn.scan` over panels of its columns. Each iteration unpacks what its
      panel needs: rows of the weight, or groups of its columns, of 1 MiB and a fourth of the weight at most, or one.
    - A gather of unpacked rows gathers integers and scales, and unpacks those.
    - A loop takes integers and scales, where it took what was unpacked.
    - Other readers have all numbers unpacked in front of them.

    ```mlir
    %w = nn.unpack %q, %s : tensor<128x2x32xi8>, tensor<128x1xf32> -> tensor<128x64xf32>
    %y = nn.dot %x, %w batch = [] x [] contract = [1] x [1] : ... -> tensor<8x128xf32>
    // becomes
    %parts = nn.scan 4 carry() over(%q4, %s4) with(%x) : ... -> tensor<4x8x32xf32> {
      %part = ... : tensor<32x64xf32>
      %panel = nn.dot %x, %part batch = [] x [] contract = [1] x [1] : ...
      nn.yield %panel : tensor<8x32xf32>
    }
    %y = reshape(transpose(%parts)) : tensor<8x128xf32>
    ```
  }];
  let dependentDialects = ["::ortc::nn::NnDialect", "::mlir::arith::ArithDialect"];
}

#endif
