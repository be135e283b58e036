// RUN: ortc-opt %s -split-input-file -verify-diagnostics --ortc-build-update
// RUN: not ortc-opt %s -split-input-file --ortc-build-update=optimizer=lyon 2>&1 | FileCheck %s
// RUN: not ortc-opt %s -split-input-file --ortc-build-update="groups=.*:beta1=0.9" 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: not ortc-opt %s -split-input-file --ortc-build-update="no-decay=weights" 2>&1 | FileCheck %s --check-prefix=DECAY
// Breaks when a name would stand for two tensors, or a type would be trained badly.

// CHECK: error: there is no optimizer 'lyon'; {{.*}}; did you mean 'lion'?
// GROUP: error: group '.*' of optimizer 'sgd' has no option 'beta1'; it takes lr_scale, lr, momentum
// DECAY: error: 'weights' must be biases, norms, or both with a comma between
module {
  // expected-error @below {{parameter 'w' is of type 'f16', but parameters are trained in f32, f64 or bf16; freeze it}}
  train.tensor @w parameter "w" : tensor<2xf16>
}

// -----

// expected-error @below {{the model has a tensor named 'lr', which is the name of a hyper-parameter or of optimizer state; rename it}}
module {
  train.tensor @w parameter "lr" : tensor<2xf32>
}

// -----

module {
  // expected-error @below {{the model has a tensor named '__metadata__', which is the name of the metadata in a checkpoint; rename it, or freeze it}}
  train.tensor @w parameter "__metadata__" : tensor<2xf32>
}
