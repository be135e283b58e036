// RUN: ortc-opt %s --ortc-build-loss="loss=mse:sample_weight=1" | FileCheck %s --check-prefix=WEIGHT
// RUN: ortc-opt %s --ortc-build-loss="loss=ctc:labels=6,sample_weight=1" | FileCheck %s --check-prefix=CTC
// RUN: ortc-opt %s --ortc-build-loss="loss=ctc:input_lengths=0,target_lengths=0" | FileCheck %s --check-prefix=FULL
// RUN: not ortc-opt %s --ortc-build-loss="loss=ctc:blank=5" 2>&1 | FileCheck %s --check-prefix=BLANK
// Breaks when a loss lacks an input that it asks for, or has one that it does not ask for.

func.func private @forward_train_0(%x: tensor<7x2x5xf32> {train.input = "x"}) -> (tensor<7x2x5xf32> {train.output = "x"}) {
  return %x : tensor<7x2x5xf32>
}

// WEIGHT-LABEL: func.func private @loss_0(
// WEIGHT-SAME: tensor<7x2x5xf32> {train.output = "x"}
// WEIGHT-SAME: tensor<7x2x5xf32> {train.input = "label"}
// WEIGHT-SAME: tensor<7xf32> {train.input = "sample_weight"}

// CTC-LABEL: func.func private @loss_0(
// CTC-SAME: tensor<7x2x5xf32> {train.output = "x"}
// CTC-SAME: tensor<2x6xi64> {train.input = "label"}
// CTC-SAME: tensor<2xi64> {train.input = "input_lengths"}
// CTC-SAME: tensor<2xi64> {train.input = "target_lengths"}
// CTC-SAME: tensor<2xf32> {train.input = "sample_weight"}
// CTC: nn.check_index {{.*}} "input_lengths" in[0, 8]
// CTC: nn.check_index {{.*}} "target_lengths" in[0, 7]
// CTC: nn.check_index {{.*}} "label" in[1, 5]

// FULL-LABEL: func.func private @loss_0(
// FULL-SAME: tensor<2x7xi64> {train.input = "label"})
// FULL-NOT: _lengths

// BLANK: error: loss ctc cannot take an output of type f32[7,2,5]: the blank is not one of the classes
