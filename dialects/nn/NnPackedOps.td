// Weights of few bits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_DIALECTS_NN_PACKED_OPS_TD
#define ORTC_DIALECTS_NN_PACKED_OPS_TD

include "dialects/nn/NnDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Nn_UnpackOp : Op<Nn_Dialect, "unpack", [Pure]> {
  let summary = "the numbers that integers with a scale for each block stand for";
  let description = [{
    Rows of groups of 32 numbers, each an integer of 8 or 4 bits times the scale of its block, a run of whole
    groups of a row. Of 8 bits: `y[r, 32 g + j] = data[r, g, j] * scales[r, g / (groups / blocks)]`. Of 4 bits, two
    in a byte: numbers 0 to 15 of a group are the low halves of its 16 bytes, numbers 16 to 31 the high halves, in
    two's complement.
    No gradient passes: neither operand is trained.
    C1 the last dimension of `data` is 32 (8 bits) or 16 (4 bits).
    C2 `scales` has the rows of `data`, and a number of blocks that divides the number of groups.
    C3 the result has these rows, of 32 numbers a group.

    ```mlir
    %w = nn.unpack %q, %s : tensor<6x4x16xi8>, tensor<6x2xf32> -> tensor<6x128xf32>
    ```
  }];
  let arguments = (ins 3DTensorOf<[I8]>:$data /*C1*/, 2DTensorOf<[F32]>:$scales /*C2*/);
  let results = (outs 2DTensorOf<[F32]>:$result /*C3*/);
  let assemblyFormat = "$data `,` $scales attr-dict `:` type($data) `,` type($scales) `->` type($result)";
  let hasVerifier = 1;
}

#endif
