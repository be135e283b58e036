// Loops of known trip count.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_DIALECTS_NN_LOOP_OPS_TD
#define ORTC_DIALECTS_NN_LOOP_OPS_TD

def Nn_ScanOp : Op<Nn_Dialect, "scan", [AttrSizedOperandSegments, IsolatedFromAbove, SingleBlock,
    RecursiveMemoryEffects]> {
  let summary = "a loop that carries values, takes slices and stacks results";
  let description = [{
    Runs the body for i = 0, 1, ... tripCount - 1, or downwards from the end with `reverse`. Its arguments are
    the carried values (first `inits`, then what the last iteration yielded), slice i of the leading dimension
    of every one of `sequences`, and the `invariants` as they are. `nn.yield` gives the next carried values,
    then items that become slice i of the stacked results. Results are the last carried values, then the
    stacked ones. With `recompute`, its gradient computes the body again where it would read what is inside, and
    nothing but carried values is stacked for it. With `limit`, iterations from that one on (and the first one never)
    may be left out: what they would carry on is what they were given, and nobody reads what they would stack. Such a
    loop has no gradient.
    C1 `tripCount` is at least 1.
    C2 arguments have the types described above; sequences have `tripCount` slices.
    C3 the body yields the carried values in their types, then one item per stacked result.
    C4 a loop with `limit` is not `reverse`.

    ```mlir
    %last, %all = nn.scan 5 carry(%h0) over(%xs) with(%w)
        : (tensor<2x3xf32>, tensor<5x2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<5x2x3xf32>) {
    ^bb0(%h: tensor<2x3xf32>, %x: tensor<2x3xf32>, %v: tensor<2x3xf32>):
      %0 = arith.mulf %h, %v : tensor<2x3xf32>
      %1 = arith.addf %0, %x : tensor<2x3xf32>
      nn.yield %1, %1 : tensor<2x3xf32>, tensor<2x3xf32>
    }
    ```
  }];
  let arguments = (ins I64Attr:$tripCount /*C1*/, UnitAttr:$reverse, UnitAttr:$recompute,
                       Variadic<Nn_Tensor>:$inits, Variadic<Nn_Tensor>:$sequences, Variadic<Nn_Tensor>:$invariants,
                       Optional<0DTensorOf<[I32]>>:$limit /*C4*/);
  let results = (outs Variadic<Nn_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body /*C2, C3*/);
  let assemblyFormat = [{
    $tripCount (`reverse` $reverse^)? (`recompute` $recompute^)? `carry` `(` $inits `)` `over` `(` $sequences `)`
    `with` `(` $invariants `)` (`limit` `(` $limit^ `)`)? attr-dict
    `:` functional-type(operands, results) $body
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    unsigned getNumCarried() { return getInits().size(); }
    ::mlir::ResultRange getFinals() { return getResults().take_front(getNumCarried()); }
    ::mlir::ResultRange getStacked() { return getResults().drop_front(getNumCarried()); }
    ::mlir::Block &getBlock() { return getBody().front(); }
    ::mlir::ValueRange getCarriedArgs() { return getBlock().getArguments().take_front(getNumCarried()); }
    ::mlir::ValueRange getSliceArgs() {
      return getBlock().getArguments().slice(getNumCarried(), getSequences().size());
    }
    ::mlir::ValueRange getInvariantArgs() { return getBlock().getArguments().take_back(getInvariants().size()); }
    /// What the body yields: next carried values, then items.
    ::mlir::OperandRange getYielded() { return getBlock().getTerminator()->getOperands(); }
    /// A value from outside as another invariant: the argument to use in the body.
    ::mlir::Value addInvariant(::mlir::Value value);
    /// The same loop with further stacked results, `items` of the body. Takes the body; this operation stays
    /// behind with an empty one, to be replaced and erased.
    ::ortc::nn::ScanOp takeWithStacked(::mlir::OpBuilder &builder, ::mlir::ValueRange items);
    /// Values that the body uses although they are defined outside become invariants, constants of one repeated element
    /// copies inside. For bodies that were built in place.
    void captureOuterValues();
  }];
}

def Nn_YieldOp : Op<Nn_Dialect, "yield", [Pure, Terminator, HasParent<"ScanOp">]> {
  let summary = "what an iteration of a loop gives";
  let description = "Ends the body of nn.scan.";
  let arguments = (ins Variadic<Nn_Tensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif
