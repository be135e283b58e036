// RUN: ortc-opt %s -split-input-file -ortc-inline-functions | FileCheck %s
// Wrong here: a call left over, an attribute from the wrong place, names that clash.

// Attributes: the caller's value, the inner function's default behind an absent one of the outer, nothing at all.
// CHECK-LABEL: onnx.graph "attributes"
// CHECK-NOT: onnx.function
module {
  onnx.function @d.Outer "d" "Outer" ["a"] -> ["c"] attributes ["p", "q"] defaults {} opsets {"ai.onnx" = 17 : i64} {
  ^bb0(%a: !onnx.any):
    %b = onnx.node "Inner" of "d" since 0 (%a) "first" {alpha = #onnx.ref<"p" : "float">} -> ["b"] : (!onnx.any) -> !onnx.any
    %c = onnx.node "LeakyRelu" since 16 (%b) {alpha = #onnx.ref<"q" : "float">} -> ["c"] : (!onnx.any) -> !onnx.any
    onnx.return %c : !onnx.any
  }
  onnx.function @d.Inner "d" "Inner" ["v"] -> ["w"] attributes [] defaults {alpha = 0.25 : f32} opsets {"ai.onnx" = 17 : i64} {
  ^bb0(%v: !onnx.any):
    %w = onnx.node "Elu" since 6 (%v) {alpha = #onnx.ref<"alpha" : "float">} -> ["w"] : (!onnx.any) -> !onnx.any
    onnx.return %w : !onnx.any
  }
  onnx.graph "attributes" ["x"] [[]] -> ["y"] [!onnx.any] [[]] {
  ^bb0(%x: tensor<2xf32>):
    // CHECK: %[[B1:.*]] = onnx.node "Elu" since 6(%x) "one/first/Elu" {alpha = 5.000000e-01 : f32} -> ["one/b"] : (tensor<2xf32>) -> !onnx.any
    // CHECK: %[[Y1:.*]] = onnx.node "LeakyRelu" since 16(%[[B1]]) "one/LeakyRelu" {} -> ["y1"] : (!onnx.any) -> tensor<2xf32>
    %y1 = onnx.node "Outer" of "d" since 0 (%x) "one" {p = 0.5 : f32} -> ["y1"] : (tensor<2xf32>) -> tensor<2xf32>
    // CHECK: %[[B2:.*]] = onnx.node "Elu" since 6(%[[Y1]]) "y/first/Elu" {alpha = 2.500000e-01 : f32} -> ["y/b"]
    // CHECK: %[[Y2:.*]] = onnx.node "LeakyRelu" since 16(%[[B2]]) "y/LeakyRelu" {alpha = 2.000000e+00 : f32} -> ["y"]
    %y = onnx.node "Outer" of "d" since 0 (%y1) {q = 2.0 : f32} -> ["y"] : (tensor<2xf32>) -> !onnx.any
    // CHECK: onnx.return %[[Y2]]
    onnx.return %y : !onnx.any
  }
}

// -----

// Overloads are functions of their own; a custom operator without a function stays.
// CHECK-LABEL: onnx.graph "overloads"
module {
  onnx.function @d.F "d" "F" ["a"] -> ["b"] attributes [] defaults {} opsets {} {
  ^bb0(%a: !onnx.any):
    %b = onnx.node "Exp" since 13 (%a) {} -> ["b"] : (!onnx.any) -> !onnx.any
    onnx.return %b : !onnx.any
  }
  onnx.function @d.F.v2 "d" "F" overload "v2" ["a"] -> ["b"] attributes [] defaults {} opsets {} {
  ^bb0(%a: !onnx.any):
    %b = onnx.node "Log" since 13 (%a) {} -> ["b"] : (!onnx.any) -> !onnx.any
    onnx.return %b : !onnx.any
  }
  onnx.graph "overloads" ["x"] [[]] -> [] [] [] {
  ^bb0(%x: tensor<2xf32>):
    // CHECK: "Log" since 13(%x)
    %0 = onnx.node "F" of "d" overload "v2" since 0 (%x) {} -> ["p"] : (tensor<2xf32>) -> !onnx.any
    // CHECK: "Exp" since 13(%x)
    %1 = onnx.node "F" of "d" since 0 (%x) {} -> ["q"] : (tensor<2xf32>) -> !onnx.any
    // CHECK: "F" of "e" since 0(%x)
    %2 = onnx.node "F" of "e" since 0 (%x) {} -> ["r"] : (tensor<2xf32>) -> !onnx.any
    onnx.return
  }
}

// -----

// An input the call leaves out is absent inside; an output that is an input is the caller's value, with its name.
// CHECK-LABEL: onnx.graph "absent"
module {
  onnx.function @d.F "d" "F" ["a", "lo", "hi"] -> ["b", "a"] attributes [] defaults {} opsets {} {
  ^bb0(%a: !onnx.any, %lo: !onnx.any, %hi: !onnx.any):
    %b = onnx.node "Clip" since 13 (%a, %lo, %hi) {} -> ["b"] : (!onnx.any, !onnx.any, !onnx.any) -> !onnx.any
    onnx.return %b, %a : !onnx.any, !onnx.any
  }
  onnx.graph "absent" ["x"] [[]] -> ["p", "q"] [!onnx.any, !onnx.any] [[], []] {
  ^bb0(%x: tensor<2xf32>):
    // CHECK: %[[E:.*]] = onnx.node "Exp" since 13(%x) {} -> ["e"]
    %e = onnx.node "Exp" since 13 (%x) {} -> ["e"] : (tensor<2xf32>) -> !onnx.any
    // CHECK: %[[NONE:.*]] = onnx.none
    // CHECK: %[[P:.*]] = onnx.node "Clip" since 13(%[[E]], %[[NONE]], %[[NONE]]) "call/Clip" {} -> ["p"]
    %p, %q = onnx.node "F" of "d" since 0 (%e) "call" {} -> ["p", "q"] : (!onnx.any) -> (!onnx.any, !onnx.any)
    // CHECK: onnx.return %[[P]], %[[E]]
    onnx.return %p, %q : !onnx.any, !onnx.any
  }
}

// -----

// A call in a branch, and a branch that is the caller's graph.
// CHECK-LABEL: onnx.graph "graphs"
module {
  onnx.function @d.Choose "d" "Choose" ["c"] -> ["r"] attributes ["yes"] defaults {} opsets {} {
  ^bb0(%c: !onnx.any):
    %r = onnx.node "If" since 16 (%c) "if" {then_branch = #onnx.ref<"yes" : "graph">} -> ["r"] graphs ["else_branch"] {
      onnx.graph "no" [] [] -> ["n"] [!onnx.any] [[]] {
        %n = onnx.node "F" of "d" since 0 (%c) {} -> ["n"] : (!onnx.any) -> !onnx.any
        onnx.return %n : !onnx.any
      }
    } : (!onnx.any) -> !onnx.any
    onnx.return %r : !onnx.any
  }
  onnx.function @d.F "d" "F" ["a"] -> ["b"] attributes [] defaults {} opsets {} {
  ^bb0(%a: !onnx.any):
    %b = onnx.node "Not" since 1 (%a) {} -> ["b"] : (!onnx.any) -> !onnx.any
    onnx.return %b : !onnx.any
  }
  onnx.graph "graphs" ["x"] [[]] -> ["y"] [!onnx.any] [[]] {
  ^bb0(%x: tensor<i1>):
    // CHECK: %y = onnx.node "If" since 16(%x) "call/if" {} -> ["y"] graphs ["else_branch", "then_branch"] {
    // CHECK:   onnx.graph "no"
    // CHECK:     onnx.node "Not" since 1(%x) "call/F/Not" {} -> ["call/n"] : (tensor<i1>) -> !onnx.any
    // CHECK: }, {
    // CHECK:   onnx.graph "caller"
    // CHECK:     onnx.node "Not" since 1(%x) "mine/Not" {} -> ["k"] : (tensor<i1>) -> !onnx.any
    // CHECK: } : (tensor<i1>) -> !onnx.any
    %y = onnx.node "Choose" of "d" since 0 (%x) "call" {} -> ["y"] graphs ["yes"] {
      onnx.graph "caller" [] [] -> ["k"] [!onnx.any] [[]] {
        %k = onnx.node "F" of "d" since 0 (%x) "mine" {} -> ["k"] : (tensor<i1>) -> !onnx.any
        onnx.return %k : !onnx.any
      }
    } : (tensor<i1>) -> !onnx.any
    onnx.return %y : !onnx.any
  }
}

// -----

// No functions, no change.
// CHECK-LABEL: onnx.graph "unchanged"
onnx.graph "unchanged" ["x"] [[]] -> ["y"] [!onnx.any] [[]] {
^bb0(%x: tensor<2xf32>):
  // CHECK: %y = onnx.node "Relu" since 14(%x) {} -> ["y"] : (tensor<2xf32>) -> !onnx.any
  %y = onnx.node "Relu" since 14 (%x) {} -> ["y"] : (tensor<2xf32>) -> !onnx.any
  onnx.return %y : !onnx.any
}
