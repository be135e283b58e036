// RUN: ortc-opt %s -split-input-file -verify-diagnostics
// Breaks when a placed program can say what no artifact can hold.

// expected-error @below {{C1: 100 is negative or no multiple of 64}}
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

func.func private @k(%x: tensor<4xf32>) -> tensor<4xf32>
plan.program @p "predict" binding 0 bytes 128 peak 64 source_peak 64 order_bound 64 {
  %0 = plan.buffer transient 0 "a" : memref<4xf32>
  // expected-error @below {{C2: scratch at 96, which is negative or no multiple of 64}}
  plan.step @k(%0) -> (%0) scratch 96 : memref<4xf32> -> memref<4xf32>
}

// -----

plan.program @p "predict" binding 0 bytes 128 peak 64 source_peak 64 order_bound 64 {
  %0 = plan.buffer transient 0 "a" : memref<4xf32>
  // expected-error @below {{C1: the loss must have one element}}
  plan.guard %0 : memref<4xf32>
}
