// RUN: ortc-opt %s -split-input-file -verify-diagnostics -pass-pipeline='builtin.module(ortc-inline-functions{max-nodes=3 max-name-bytes=64})'
// What cannot be inlined is refused with its reason.

onnx.function @d.F "d" "F" ["a"] -> ["b"] attributes [] defaults {} opsets {} {
^bb0(%a: !onnx.any):
  %b = onnx.node "G" of "d" since 0 (%a) {} -> ["b"] : (!onnx.any) -> !onnx.any
  onnx.return %b : !onnx.any
}
// expected-error @+1 {{function 'G' calls itself, directly or through others}}
onnx.function @d.G "d" "G" ["a"] -> ["b"] attributes [] defaults {} opsets {} {
^bb0(%a: !onnx.any):
  %c = onnx.node "G" of "d" since 0 (%a) {} -> ["c"] : (!onnx.any) -> !onnx.any
  %b = onnx.node "F" of "d" since 0 (%c) {} -> ["b"] : (!onnx.any) -> !onnx.any
  onnx.return %b : !onnx.any
}

// -----

onnx.function @one "d" "F" [] -> [] attributes [] defaults {} opsets {} {
  onnx.return
}
// expected-error @+1 {{there are two functions 'F' of domain 'd'}}
onnx.function @two "d" "F" [] -> [] attributes [] defaults {} opsets {} {
  onnx.return
}

// -----

onnx.function @d.F "d" "F" ["a"] -> ["a"] attributes [] defaults {} opsets {} {
^bb0(%a: !onnx.any):
  onnx.return %a : !onnx.any
}
onnx.graph "too_many_inputs" ["x"] [[]] -> [] [] [] {
^bb0(%x: tensor<2xf32>):
  // expected-error @+1 {{function 'F' has 1 input and 1 output, not 2 and 1}}
  %y = onnx.node "F" of "d" since 0 (%x, %x) {} -> ["y"] : (tensor<2xf32>, tensor<2xf32>) -> !onnx.any
  onnx.return
}

// -----

onnx.function @d.F "d" "F" ["a"] -> ["a"] attributes [] defaults {} opsets {} {
^bb0(%a: !onnx.any):
  onnx.return %a : !onnx.any
}
onnx.graph "unknown_attribute" ["x"] [[]] -> [] [] [] {
^bb0(%x: tensor<2xf32>):
  // expected-error @+1 {{function 'F' has no attribute 'k'}}
  %y = onnx.node "F" of "d" since 0 (%x) {k = 1 : i64} -> ["y"] : (tensor<2xf32>) -> !onnx.any
  onnx.return
}

// -----

// expected-error @+1 {{inlining functions makes more than 3 nodes}}
module {
  onnx.function @d.F "d" "F" ["a"] -> ["c"] attributes [] defaults {} opsets {} {
  ^bb0(%a: !onnx.any):
    %b = onnx.node "Exp" since 13 (%a) {} -> ["b"] : (!onnx.any) -> !onnx.any
    %c = onnx.node "Exp" since 13 (%b) {} -> ["c"] : (!onnx.any) -> !onnx.any
    onnx.return %c : !onnx.any
  }
  onnx.graph "too_large" ["x"] [[]] -> [] [] [] {
  ^bb0(%x: tensor<2xf32>):
    %y = onnx.node "F" of "d" since 0 (%x) {} -> ["y"] : (tensor<2xf32>) -> !onnx.any
    %z = onnx.node "F" of "d" since 0 (%y) {} -> ["z"] : (!onnx.any) -> !onnx.any
    onnx.return
  }
}

// -----

// The graph that a call gives is copied for each reference to it.
// expected-error @+1 {{inlining functions makes more than 3 nodes}}
module {
  onnx.function @d.F "d" "F" ["c"] -> ["r"] attributes ["g"] defaults {} opsets {} {
  ^bb0(%c: !onnx.any):
    %r = onnx.node "If" since 16 (%c) {then_branch = #onnx.ref<"g" : "graph">, else_branch = #onnx.ref<"g" : "graph">} -> ["r"] : (!onnx.any) -> !onnx.any
    onnx.return %r : !onnx.any
  }
  onnx.graph "too_large" ["c"] [[]] -> [] [] [] {
  ^bb0(%c: tensor<i1>):
    %y = onnx.node "F" of "d" since 0 (%c) {} -> ["y"] graphs ["g"] {
      onnx.graph "t" [] [] -> ["u"] [!onnx.any] [[]] {
        %t = onnx.node "Not" since 1 (%c) {} -> ["t"] : (tensor<i1>) -> !onnx.any
        %u = onnx.node "Not" since 1 (%t) {} -> ["u"] : (!onnx.any) -> !onnx.any
        onnx.return %u : !onnx.any
      }
    } : (tensor<i1>) -> !onnx.any
    onnx.return
  }
}

// -----

// Names are those of all calls around a node.
// expected-error @+1 {{inlining functions makes names of more than 64 bytes in all; give calls and nodes shorter names}}
module {
  onnx.function @d.F "d" "F" ["a"] -> ["c"] attributes [] defaults {} opsets {} {
  ^bb0(%a: !onnx.any):
    %b = onnx.node "Exp" since 13 (%a) "exponential" {} -> ["b"] : (!onnx.any) -> !onnx.any
    onnx.return %b : !onnx.any
  }
  onnx.graph "long_names" ["x"] [[]] -> [] [] [] {
  ^bb0(%x: tensor<2xf32>):
    %y = onnx.node "F" of "d" since 0 (%x) "a call with a name that is long" {} -> ["y"] : (tensor<2xf32>) -> !onnx.any
    onnx.return
  }
}

// -----

// Copies are named after their call and their operator where they have no name: "CALL/Exp" and "CALL/b" are 68 bytes.
// expected-error @+1 {{inlining functions makes names of more than 64 bytes in all; give calls and nodes shorter names}}
module {
  onnx.function @d.F "d" "F" ["a"] -> ["b"] attributes [] defaults {} opsets {} {
  ^bb0(%a: !onnx.any):
    %b = onnx.node "Exp" since 13 (%a) {} -> ["b"] : (!onnx.any) -> !onnx.any
    onnx.return %b : !onnx.any
  }
  onnx.graph "nodes_without_names" ["x"] [[]] -> [] [] [] {
  ^bb0(%x: tensor<2xf32>):
    %y = onnx.node "F" of "d" since 0 (%x) "a call with a name that is long" {} -> ["y"] : (tensor<2xf32>) -> !onnx.any
    onnx.return
  }
}
