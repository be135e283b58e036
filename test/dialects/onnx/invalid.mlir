// RUN: ortc-opt %s -split-input-file -verify-diagnostics
// Every constraint of the onnx dialect refuses what violates it, and says so.

// graph C1: as many names as arguments
// expected-error @+1 {{has 1 arguments but 2 input names and 1 lists of dimension names}}
onnx.graph "graph_c1" ["x", "y"] [[]] -> [] [] [] {
^bb0(%x: tensor<2xf32>):
  onnx.return
}

// -----

// graph C1: names are distinct
// expected-error @+1 {{has two inputs named 'x'}}
onnx.graph "graph_c1_names" ["x", "x"] [[], []] -> [] [] [] {
^bb0(%x: tensor<2xf32>, %y: tensor<2xf32>):
  onnx.return
}

// -----

// graph C2
// expected-error @+1 {{returns 1 value but has 0 output names, 0 output types and 0 lists of dimension names}}
onnx.graph "graph_c2" ["x"] [[]] -> [] [] [] {
^bb0(%x: tensor<2xf32>):
  onnx.return %x : tensor<2xf32>
}

// -----

// graph C3
// expected-error @+1 {{input 0 of type 'tensor<?x2xf32>' has dimension names ["n"]; one string for each dimension is needed}}
onnx.graph "graph_c3" ["x"] [["n"]] -> [] [] [] {
^bb0(%x: tensor<?x2xf32>):
  onnx.return
}

// -----

// graph C3
// expected-error @+1 {{output 0 of type '!onnx.any' has dimension names ["n"]; one string for each dimension is needed}}
onnx.graph "graph_c3_output" ["x"] [[]] -> ["x"] [!onnx.any] [["n"]] {
^bb0(%x: tensor<?xf32>):
  onnx.return %x : tensor<?xf32>
}

// -----

// expected-error @+1 {{has no onnx.return at its end}}
onnx.graph "graph_end" [] [] -> [] [] [] {
  %none = onnx.none
}

// -----

// initializer C1
onnx.graph "g" [] [] -> [] [] [] {
  // expected-error @+1 {{has an empty name}}
  %w = onnx.initializer "" dense<0.0> : tensor<2xf32>
  onnx.return
}

// -----

// initializer C1
onnx.graph "g" ["w"] [[]] -> [] [] [] {
^bb0(%x: tensor<2xf32>):
  // expected-error @+1 {{'w' is also an input or another initializer of the graph}}
  %w = onnx.initializer "w" dense<0.0> : tensor<2xf32>
  onnx.return
}

// -----

// node C1: inputs
onnx.graph "g" ["x"] [[]] -> [] [] [] {
^bb0(%x: tensor<2xf32>):
  // expected-error @+1 {{'dense' (MatMul): MatMul of version 13 takes 2 inputs, not 1}}
  %y = onnx.node "MatMul" since 13 (%x) "dense" {} -> ["y"] : (tensor<2xf32>) -> !onnx.any
  onnx.return
}

// -----

// node C1: a required input
onnx.graph "g" ["x"] [[]] -> [] [] [] {
^bb0(%x: tensor<2xf32>):
  %none = onnx.none
  // expected-error @+1 {{'y' (MatMul): MatMul of version 13 takes no empty name for input 0, which is required}}
  %y = onnx.node "MatMul" since 13 (%none, %x) {} -> ["y"] : (none, tensor<2xf32>) -> !onnx.any
  onnx.return
}

// -----

// node C1: outputs
onnx.graph "g" ["x"] [[]] -> [] [] [] {
^bb0(%x: tensor<2xf32>):
  // expected-error @+1 {{'y' (Relu): Relu of version 14 has 1 output, not 2}}
  %y, %z = onnx.node "Relu" since 14 (%x) {} -> ["y", "z"] : (tensor<2xf32>) -> (!onnx.any, !onnx.any)
  onnx.return
}

// -----

// node C2: unknown
onnx.graph "g" ["x"] [[]] -> [] [] [] {
^bb0(%x: tensor<2xf32>):
  // expected-error @+1 {{'y' (Relu): Relu of version 14 has no attribute 'slope'}}
  %y = onnx.node "Relu" since 14 (%x) {slope = 1.0 : f32} -> ["y"] : (tensor<2xf32>) -> !onnx.any
  onnx.return
}

// -----

// node C2: type
onnx.graph "g" ["x"] [[]] -> [] [] [] {
^bb0(%x: tensor<2xf32>):
  // expected-error @+1 {{'y' (Softmax): attribute 'axis' of Softmax of version 13 is of type int, not float}}
  %y = onnx.node "Softmax" since 13 (%x) {axis = 1.0 : f32} -> ["y"] : (tensor<2xf32>) -> !onnx.any
  onnx.return
}

// -----

// node C2: required
onnx.graph "g" ["x"] [[]] -> [] [] [] {
^bb0(%x: tensor<2xf32>):
  // expected-error @+1 {{'y' (Cast): Cast of version 13 needs the attribute 'to'}}
  %y = onnx.node "Cast" since 13 (%x) {} -> ["y"] : (tensor<2xf32>) -> !onnx.any
  onnx.return
}

// -----

// node C2: no ONNX attribute
onnx.graph "g" ["x"] [[]] -> [] [] [] {
^bb0(%x: tensor<2xf32>):
  // expected-error @+1 {{attribute 'axis' = 1 : i32 is not one that mirrors an ONNX attribute}}
  %y = onnx.node "Custom" since 0 (%x) {axis = 1 : i32} -> ["y"] : (tensor<2xf32>) -> !onnx.any
  onnx.return
}

// -----

// node C3
onnx.graph "g" ["x"] [[]] -> [] [] [] {
^bb0(%x: tensor<2xf32>):
  // expected-error @+1 {{has 1 results but 2 output names}}
  %y = onnx.node "Relu" since 14 (%x) {} -> ["y", "z"] : (tensor<2xf32>) -> !onnx.any
  onnx.return
}

// -----

// node C4: names
onnx.graph "g" ["x"] [[]] -> [] [] [] {
^bb0(%x: tensor<i1>):
  // expected-error @+1 {{has 1 regions but 2 graph names}}
  %y = onnx.node "If" since 16 (%x) {} -> ["y"] graphs ["then_branch", "else_branch"] {
    onnx.graph "t" [] [] -> [] [] [] {
      onnx.return
    }
  } : (tensor<i1>) -> !onnx.any
  onnx.return
}

// -----

// node C4: content
onnx.graph "g" ["x"] [[]] -> [] [] [] {
^bb0(%x: tensor<i1>):
  // expected-error @+1 {{has a region that is not exactly one onnx.graph}}
  %y = onnx.node "Custom" since 0 (%x) {} -> ["y"] graphs ["body"] {
    %none = onnx.none
  } : (tensor<i1>) -> !onnx.any
  onnx.return
}

// -----

// node C5
onnx.graph "g" ["x"] [[]] -> [] [] [] {
^bb0(%x: tensor<2xf32>):
  // expected-error @+1 {{there is no version 15 of 'Relu'}}
  %y = onnx.node "Relu" since 15 (%x) {} -> ["y"] : (tensor<2xf32>) -> !onnx.any
  onnx.return
}

// -----

// node C6
onnx.graph "g" ["x"] [[]] -> [] [] [] {
^bb0(%x: tensor<2xf32>):
  // expected-error @+1 {{attribute 'alpha' refers to an attribute of a function, but there is no onnx.function around}}
  %y = onnx.node "Elu" since 6 (%x) {alpha = #onnx.ref<"a" : "float">} -> ["y"] : (tensor<2xf32>) -> !onnx.any
  onnx.return
}

// -----

// node C7
onnx.graph "g" ["x"] [[]] -> [] [] [] {
^bb0(%x: tensor<2xf32>):
  // expected-error @+1 {{has no results}}
  onnx.node "Custom" since 0 (%x) {} -> [] : (tensor<2xf32>) -> ()
  onnx.return
}

// -----

// function C1: count
// expected-error @+1 {{has 1 arguments but 2 input names}}
onnx.function @f "d" "F" ["a", "b"] -> [] attributes [] defaults {} opsets {} {
^bb0(%a: !onnx.any):
  onnx.return
}

// -----

// function C1: distinct
// expected-error @+1 {{has two inputs named 'a'}}
onnx.function @f "d" "F" ["a", "a"] -> [] attributes [] defaults {} opsets {} {
^bb0(%a: !onnx.any, %b: !onnx.any):
  onnx.return
}

// -----

// function C1: types
// expected-error @+1 {{argument 0 is of type 'tensor<2xf32>', not !onnx.any}}
onnx.function @f "d" "F" ["a"] -> [] attributes [] defaults {} opsets {} {
^bb0(%a: tensor<2xf32>):
  onnx.return
}

// -----

// function C2
// expected-error @+1 {{returns 1 value but has 0 output names}}
onnx.function @f "d" "F" ["a"] -> [] attributes [] defaults {} opsets {} {
^bb0(%a: !onnx.any):
  onnx.return %a : !onnx.any
}

// -----

// function C3
// expected-error @+1 {{has two attributes named 'k'}}
onnx.function @f "d" "F" ["a"] -> [] attributes ["k"] defaults {k = 1 : i64} opsets {} {
^bb0(%a: !onnx.any):
  onnx.return
}

// -----

// function C3: one with a default and one without
// expected-error @+1 {{has two attributes named 'k'}}
onnx.function @f "d" "F" ["a"] -> [] attributes ["k", "k"] defaults {} opsets {} {
^bb0(%a: !onnx.any):
  onnx.return
}

// -----

// expected-error @+1 {{has no onnx.return at its end}}
onnx.function @f "d" "F" [] -> [] attributes [] defaults {} opsets {} {
  %none = onnx.none
}
