// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A recurrent layer: carried, sliced, invariant and stacked values.
func.func @scan_recurrence(%h: tensor<2x3xf64>, %x: tensor<4x2x3xf64>, %w: tensor<3x3xf64>) -> (tensor<2x3xf64>, tensor<4x2x3xf64>) {
  %last, %all = nn.scan 4 carry(%h) over(%x) with(%w)
      : (tensor<2x3xf64>, tensor<4x2x3xf64>, tensor<3x3xf64>) -> (tensor<2x3xf64>, tensor<4x2x3xf64>) {
  ^bb0(%a: tensor<2x3xf64>, %xi: tensor<2x3xf64>, %v: tensor<3x3xf64>):
    %p = nn.dot %a, %v batch = [] x [] contract = [1] x [0] : tensor<2x3xf64>, tensor<3x3xf64> -> tensor<2x3xf64>
    %s = arith.addf %p, %xi : tensor<2x3xf64>
    %t = math.tanh %s : tensor<2x3xf64>
    %u = arith.mulf %t, %xi : tensor<2x3xf64>
    nn.yield %t, %u : tensor<2x3xf64>, tensor<2x3xf64>
  }
  return %last, %all : tensor<2x3xf64>, tensor<4x2x3xf64>
}

// Two carried values that move each other, downwards; only one of them is returned.
func.func @scan_reverse_pair(%p: tensor<3xf64>, %q: tensor<3xf64>, %x: tensor<5x3xf64>) -> tensor<3xf64> {
  %r:2 = nn.scan 5 reverse carry(%p, %q) over(%x) with()
      : (tensor<3xf64>, tensor<3xf64>, tensor<5x3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  ^bb0(%a: tensor<3xf64>, %b: tensor<3xf64>, %xi: tensor<3xf64>):
    %0 = arith.mulf %b, %xi : tensor<3xf64>
    %1 = math.sin %a : tensor<3xf64>
    %2 = arith.addf %1, %0 : tensor<3xf64>
    nn.yield %2, %1 : tensor<3xf64>, tensor<3xf64>
  }
  return %r#0 : tensor<3xf64>
}

// The first carried value matters in the first iteration only: what follows is a constant.
func.func @scan_overwritten(%p: tensor<3xf64>, %x: tensor<4x3xf64>) -> tensor<4x3xf64> {
  %last, %all = nn.scan 4 carry(%p) over(%x) with() : (tensor<3xf64>, tensor<4x3xf64>) -> (tensor<3xf64>, tensor<4x3xf64>) {
  ^bb0(%a: tensor<3xf64>, %xi: tensor<3xf64>):
    %c = arith.constant dense<2.0> : tensor<3xf64>
    %0 = arith.mulf %a, %xi : tensor<3xf64>
    nn.yield %c, %0 : tensor<3xf64>, tensor<3xf64>
  }
  return %all : tensor<4x3xf64>
}

// A counter and indices go through without gradients.
func.func @scan_integers(%x: tensor<4x3xf64>, %table: tensor<5x3xf64>, %i: tensor<4xi64> {test.below = 5 : i64}) -> tensor<3xf64> {
  %zero = arith.constant dense<0.0> : tensor<3xf64>
  %first = arith.constant dense<1> : tensor<i64>
  %sum, %count = nn.scan 4 carry(%zero, %first) over(%x, %i) with(%table)
      : (tensor<3xf64>, tensor<i64>, tensor<4x3xf64>, tensor<4xi64>, tensor<5x3xf64>) -> (tensor<3xf64>, tensor<i64>) {
  ^bb0(%a: tensor<3xf64>, %n: tensor<i64>, %xi: tensor<3xf64>, %at: tensor<i64>, %t: tensor<5x3xf64>):
    %row = nn.gather %t, %at axis = 0 : tensor<5x3xf64>, tensor<i64> -> tensor<3xf64>
    %weight = arith.sitofp %n : tensor<i64> to tensor<f64>
    %w = nn.broadcast %weight dims = [] : tensor<f64> -> tensor<3xf64>
    %0 = arith.mulf %row, %xi : tensor<3xf64>
    %1 = arith.mulf %0, %w : tensor<3xf64>
    %2 = arith.addf %a, %1 : tensor<3xf64>
    %next = arith.addi %n, %n : tensor<i64>
    nn.yield %2, %next : tensor<3xf64>, tensor<i64>
  }
  return %sum : tensor<3xf64>
}

// A loop in a loop: the inner one saves for the outer one's way back.
func.func @scan_nested(%h: tensor<3xf64>, %x: tensor<3x2x3xf64>, %w: tensor<3xf64>) -> tensor<3xf64> {
  %last = nn.scan 3 carry(%h) over(%x) with(%w) : (tensor<3xf64>, tensor<3x2x3xf64>, tensor<3xf64>) -> (tensor<3xf64>) {
  ^bb0(%a: tensor<3xf64>, %xs: tensor<2x3xf64>, %v: tensor<3xf64>):
    %inner = nn.scan 2 reverse carry(%a) over(%xs) with(%v) : (tensor<3xf64>, tensor<2x3xf64>, tensor<3xf64>) -> (tensor<3xf64>) {
    ^bb0(%b: tensor<3xf64>, %xi: tensor<3xf64>, %u: tensor<3xf64>):
      %0 = arith.mulf %b, %u : tensor<3xf64>
      %1 = arith.addf %0, %xi : tensor<3xf64>
      %2 = math.tanh %1 : tensor<3xf64>
      nn.yield %2 : tensor<3xf64>
    }
    %3 = arith.mulf %inner, %a : tensor<3xf64>
    nn.yield %3 : tensor<3xf64>
  }
  return %last : tensor<3xf64>
}
