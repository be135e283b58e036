// RUN: ortc-opt %s --ortc-pipeline=simplify | FileCheck %s --check-prefix=SIMPLIFY
// RUN: ortc-opt %s --ortc-pipeline=entries | FileCheck %s --check-prefix=ENTRIES
// RUN: ortc-opt %s --ortc-pipeline=fuse | FileCheck %s --check-prefix=FUSE
// RUN: ortc-opt %s --ortc-pipeline=entries --ortc-pipeline=fuse --ortc-pipeline=outline | FileCheck %s --check-prefix=OUTLINE
// RUN: ortc-opt %s --ortc-pipeline=entries --ortc-pipeline=fuse --ortc-pipeline=outline --ortc-pipeline=place | FileCheck %s --check-prefix=PLACE
// RUN: not ortc-opt %s --ortc-pipeline=fusion 2>&1 | FileCheck %s --check-prefix=WRONG
// Breaks when the passes of a phase are not found by its name, or are those of another.

// SIMPLIFY-LABEL: @predict_0
// SIMPLIFY-NOT: nn.transpose
// SIMPLIFY: nn.dot
// ENTRIES: module attributes {plan.constant_bytes = 0 : i64, plan.persistent_bytes = 0 : i64
// FUSE-LABEL: @predict_0
// FUSE: plan.kernel  contraction
// OUTLINE: call @[[KERNEL:.*]](%arg0, %arg1)
// OUTLINE: func.func private @[[KERNEL]]({{.*}} attributes {plan.kind = #plan<kernel_kind contraction>}
// PLACE: plan.program @predict_0
// PLACE: plan.step @
// WRONG: there is no pipeline 'fusion'; pipelines are import, simplify, entries, fuse, outline, place
func.func @predict_0(%x: tensor<4x8xf32> {train.input = "x"}, %w: tensor<8x2xf32> {train.input = "w"}) -> (tensor<4x2xf32> {train.output = "y"})
    attributes {train.binding = 0 : i64, train.entry = "predict"} {
  %t = nn.transpose %w perm = [1, 0] : tensor<8x2xf32> -> tensor<2x8xf32>
  %u = nn.transpose %t perm = [1, 0] : tensor<2x8xf32> -> tensor<8x2xf32>
  %y = nn.dot %x, %u batch = [] x [] contract = [1] x [0] : tensor<4x8xf32>, tensor<8x2xf32> -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}
