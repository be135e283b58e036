// RUN: ortc-opt %s --ortc-update-rows -verify-diagnostics
// Breaks when a table that a product reads is updated as if only its gathered rows had a gradient.

// expected-error@below {{--sparse: 'w' is read otherwise than by Gather along its first axis, outside of loops: nn.dot takes part in its gradient; a dense update needs no --sparse}}
train.tensor @w parameter "w" {train.sparse} : tensor<3x4xf32>

func.func @train_0(%x: tensor<2x3xf32> {train.input = "x"}, %y: tensor<2x4xf32> {train.input = "y"},
                   %w: tensor<3x4xf32> {train.tensor = @w}) -> (tensor<3x4xf32> {train.update = @w})
    attributes {train.entry = "train", train.binding = 0 : i64} {
  %g = nn.dot %x, %y batch = [] x [] contract = [0] x [0] : tensor<2x3xf32>, tensor<2x4xf32> -> tensor<3x4xf32>
  %w1 = arith.subf %w, %g : tensor<3x4xf32>
  return %w1 : tensor<3x4xf32>
}
