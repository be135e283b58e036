// RUN: ortc-opt %s -verify-diagnostics --ortc-build-loss="loss=info_nce"
// RUN: not ortc-opt %s --ortc-build-loss="loss=ctc" 2>&1 | FileCheck %s --check-prefix=CTC
// RUN: not ortc-opt %s --ortc-build-loss="loss=dice" 2>&1 | FileCheck %s --check-prefix=DICE
// RUN: not ortc-opt %s --ortc-build-loss="loss=bce_with_logits:pos_weight=%s.npy" 2>&1 | FileCheck %s --check-prefix=FILE
// Breaks when a loss takes a prediction of a shape that its formula is not for.

// CTC: error: loss ctc cannot take an output of type f32[4]: it needs [frames, samples, classes]
// DICE: error: loss dice cannot take an output of type f32[4]: it needs [samples, values] or [samples, channels, places...]
// FILE: error: --loss bce_with_logits:pos_weight={{.*}}.npy: {{.*}}invalid.mlir.npy
// expected-error @below {{loss info_nce cannot take an output of type f32[4]: it needs [samples, features]}}
func.func private @forward_train_0(%x: tensor<4xf32> {train.input = "x"}) -> (tensor<4xf32> {train.output = "x"}) {
  return %x : tensor<4xf32>
}
