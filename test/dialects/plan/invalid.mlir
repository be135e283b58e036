// RUN: ortc-opt %s -split-input-file -verify-diagnostics
// Breaks when a placed program can say what no artifact can hold.

// expected-error @below {{C1: bytes 100 is negative or no multiple of 64}}
plan.program @p "predict" binding 0 bytes 100 peak 64 source_peak 64 order_bound 64 {
}

// -----

plan.program @p "predict" binding 0 bytes 128 peak 64 source_peak 64 order_bound 64 {
  // expected-error @below {{C1: offset 32 is negative or no multiple of 64}}
  %0 = plan.buffer transient 32 "a" : memref<4xf32>
}

// -----

plan.program @p "predict" binding 0 bytes 128 peak 64 source_peak 64 order_bound 64 {
  // expected-error @below {{C2: stride -8 is negative}}
  %0 = plan.buffer transient 0 "a" strides = [-8] : memref<4xf32>
}

// -----

plan.program @p "predict" binding 0 bytes 128 peak 64 source_peak 64 order_bound 64 {
  // expected-error @below {{C1: trip count 0 is below 1}}
  plan.loop 0 {
  }
}

// -----

plan.program @p "predict" binding 0 bytes 128 peak 64 source_peak 64 order_bound 64 {
  %0 = plan.buffer transient 0 "a" : memref<4xi32>
  // expected-error @below {{C2: the limit is 'memref<4xi32>' of a loop that runs upwards}}
  plan.loop 3 limit %0 : memref<4xi32> {
  }
}

// -----

plan.program @p "predict" binding 0 bytes 128 peak 64 source_peak 64 order_bound 64 {
  %0 = plan.buffer transient 0 "a" : memref<4xf32>
  // expected-error @below {{C1: there is no kernel @k}}
  plan.step @k(%0) -> (%0) : memref<4xf32> -> memref<4xf32>
}

// -----

func.func private @k(%x: tensor<8xf32>) -> tensor<4xf32>
plan.program @p "predict" binding 0 bytes 128 peak 64 source_peak 64 order_bound 64 {
  %0 = plan.buffer transient 0 "a" : memref<4xf32>
  // expected-error @below {{C1: buffers do not fit the arguments and results of @k}}
  plan.step @k(%0) -> (%0) : memref<4xf32> -> memref<4xf32>
}

// -----

func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {plan.scratch = 100 : i64}
plan.program @p "predict" binding 0 bytes 256 peak 64 source_peak 64 order_bound 64 {
  %0 = plan.buffer transient 0 "a" : memref<4xf32>
  // expected-error @below {{C2: scratch of 100 bytes at 96 is no place in a program of 256}}
  plan.step @k(%0) -> (%0) scratch 96 : memref<4xf32> -> memref<4xf32>
}

// -----

func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {plan.scratch = 100 : i64}
plan.program @p "predict" binding 0 bytes 256 peak 64 source_peak 64 order_bound 64 {
  %0 = plan.buffer transient 0 "a" : memref<4xf32>
  // expected-error @below {{C2: scratch of 100 bytes at 192 is no place in a program of 256}}
  plan.step @k(%0) -> (%0) scratch 192 : memref<4xf32> -> memref<4xf32>
}

// -----

func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32> attributes {plan.scratch = 100 : i64}
plan.program @p "predict" binding 0 bytes 256 peak 64 source_peak 64 order_bound 64 {
  %0 = plan.buffer transient 0 "a" : memref<4xf32>
  // expected-error @below {{C2: @k needs 100 bytes of scratch}}
  plan.step @k(%0) -> (%0) : memref<4xf32> -> memref<4xf32>
}

// -----

plan.program @p "predict" binding 0 bytes 128 peak 64 source_peak 64 order_bound 64 {
  %0 = plan.buffer transient 0 "a" : memref<4xf32>
  // expected-error @below {{C1: the loss must have one element}}
  plan.guard %0 : memref<4xf32>
}

// -----

func.func @kernel_c1(%x: tensor<4xf32>) {
  // expected-error @below {{C1: arguments or yielded values do not have the types of operands and results}}
  %0 = plan.kernel loop (%x) : (tensor<4xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<4xf32>):
    plan.yield %a : tensor<4xf32>
  }
  return
}

// -----

func.func @kernel_c2_pairs(%x: tensor<4xf32>) {
  // expected-error @below {{C2: in_place needs pairs}}
  %0 = plan.kernel loop (%x) in_place = [0] : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    plan.yield %a : tensor<4xf32>
  }
  return
}

// -----

func.func @kernel_c2_sizes(%x: tensor<4xf32>) {
  // expected-error @below {{C2: operand 0 and result 0 cannot share memory}}
  %0 = plan.kernel loop (%x) in_place = [0, 0] : (tensor<4xf32>) -> tensor<4xf64> {
  ^bb0(%a: tensor<4xf32>):
    %b = arith.extf %a : tensor<4xf32> to tensor<4xf64>
    plan.yield %b : tensor<4xf64>
  }
  return
}
