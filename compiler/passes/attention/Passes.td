// Attention.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
include "mlir/Pass/PassBase.td"

def TileAttentionPass : Pass<"ortc-tile-attention", "::mlir::func::FuncOp"> {
  let summary = "compute attention a head and some rows at a time";
  let description = [{
    Run before differentiation.
    Before: a contraction of queries and keys, elementwise work, a softmax, elementwise work, a contraction with the
    values, where nothing else reads what is between. The scores of all heads exist at once, and their backward part
    reads them.
    After: a loop over the heads whose body does the same on a number of rows after another, and which is computed
    again for its gradient. Keys that a known mask hides from all rows of a tile are not looked at. Attention of fewer
    than `least` scores a head stays. With `iteration-bytes`, an iteration computes as many heads as have so many bytes
    of scores: a loop has one iteration where these are all. So has one whose heads are of `kernel-depth` elements at
    most, whatever `least` is.

    ```mlir
    %s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2]
        : tensor<12x2048x64xf32>, tensor<12x2048x64xf32> -> tensor<12x2048x2048xf32>
    %w = nn.softmax %s axis = 2 : tensor<12x2048x2048xf32>
    %y = nn.dot %w, %v batch = [0] x [0] contract = [2] x [1]
        : tensor<12x2048x2048xf32>, tensor<12x2048x64xf32> -> tensor<12x2048x64xf32>
    // becomes
    %r = nn.scan 12 recompute carry() over(%q, %k, %v) with() ... { /* 8 times 256 rows */ }
    ```
  }];
  let dependentDialects = ["::ortc::nn::NnDialect"];
  let options = [
    Option<"least", "least", "int64_t", "262144", "fewest scores of a head, rows times keys, that are tiled">,
    Option<"rows", "rows", "int64_t", "0", "rows of a tile; 0: by their size">,
    Option<"iterationBytes", "iteration-bytes", "int64_t", "0", "scores that an iteration computes at most, where it "
        "computes several heads; 0: one head">,
    Option<"tileBytes", "tile-bytes", "int64_t", "2097152", "scores of a tile">,
    Option<"tileRows", "tile-rows", "int64_t", "64", "fewest rows of a tile">,
    Option<"kernelDepth", "kernel-depth", "int64_t", "0", "elements of a head up to which a kernel computes attention "
        "without scores in memory: the loop has one iteration and one tile">
  ];
}
