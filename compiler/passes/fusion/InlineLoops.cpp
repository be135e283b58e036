// Loops of one iteration become the operations of their bodies.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/fusion/Passes.h"

#include "dialects/nn/TensorBuilder.h"

using namespace mlir;

namespace ortc::fusion {

#define GEN_PASS_DEF_INLINELOOPSPASS
#include "compiler/passes/fusion/Passes.h.inc"

static void inlineBody(nn::ScanOp scan) {
  nn::TensorBuilder b(scan.getLoc(), scan);
  Block &block = scan.getBlock();
  for (auto [argument, init] : llvm::zip_equal(scan.getCarriedArgs(), scan.getInits()))
    argument.replaceAllUsesWith(init);
  for (auto [argument, sequence] : llvm::zip_equal(scan.getSliceArgs(), scan.getSequences()))
    argument.replaceAllUsesWith(b.reshape(sequence, nn::TensorBuilder::shapeOf(argument)));
  for (auto [argument, invariant] : llvm::zip_equal(scan.getInvariantArgs(), scan.getInvariants()))
    argument.replaceAllUsesWith(invariant);
  SmallVector<Value> yielded(scan.getYielded());
  block.getTerminator()->erase();
  scan->getBlock()->getOperations().splice(scan->getIterator(), block.getOperations());
  for (auto [result, value] : llvm::zip_equal(scan.getResults(), yielded))
    result.replaceAllUsesWith(b.reshape(value, nn::TensorBuilder::shapeOf(result)));
  scan.erase();
}

namespace {

struct InlineLoopsPass : impl::InlineLoopsPassBase<InlineLoopsPass> {
  void runOnOperation() override {
    getOperation()->walk([](nn::ScanOp scan) { // inner ones first
      if (scan.getTripCount() == 1 && !scan.getLimit())
        inlineBody(scan);
    });
  }
};

} // namespace
} // namespace ortc::fusion
