// What a sum does not run over is multiplied once.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients of normalisations are sums of products with the scale and the deviation of a channel: sums over everything
// else. Without these factors several of them are the same sum, and no product has to be stored for them.
#include "compiler/passes/simplify/Passes.h"
#include "dialects/nn/NnDialect.h"
#include "dialects/nn/TensorBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace ortc::simplify {

#define GEN_PASS_DEF_FACTORSUMSPASS
#include "compiler/passes/simplify/Passes.h.inc"

/// Factors of a product beyond which it stays as it is.
static constexpr size_t kMostFactors = 8;
/// Larger constants, or smaller ones than its reciprocal, may be there to keep sums within the range of numbers.
static constexpr double kLargestConstant = 0x1p32;

namespace {

/// A product, sorted by what its factors change with.
struct Product {
  SmallVector<Value> summed;                 ///< along an axis of the sum
  SmallVector<nn::BroadcastOp> constant;     ///< along none
  SmallVector<arith::ConstantOp> everywhere; ///< one number
  bool isNegative = false;
};

struct FactorSumsPass : impl::FactorSumsPassBase<FactorSumsPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<nn::ReduceOp> sums;
    getOperation()->walk([&](nn::ReduceOp op) {
      Type element = getElementTypeOrSelf(op.getType());
      // Narrow numbers may need the factors to stay within their range.
      if (op.getKind() == nn::ReduceKind::sum && (element.isF32() || element.isF64()) &&
          !op.getAxes().empty())
        sums.push_back(op);
    });
    for (nn::ReduceOp op : sums)
      factor(op);
  }

  static Product factorsOf(nn::ReduceOp op) {
    Product product;
    SmallVector<Value> stack{op.getInput()};
    while (!stack.empty()) {
      Value value = stack.pop_back_val();
      size_t known =
          product.summed.size() + product.constant.size() + product.everywhere.size() + stack.size();
      auto multiplication = value.getDefiningOp<arith::MulFOp>();
      if (multiplication && known + 2 <= kMostFactors) {
        stack.push_back(multiplication.getRhs());
        stack.push_back(multiplication.getLhs());
      } else if (auto negation = value.getDefiningOp<arith::NegFOp>()) {
        product.isNegative = !product.isNegative;
        stack.push_back(negation.getOperand());
      } else if (auto constant = value.getDefiningOp<arith::ConstantOp>();
                 constant && isa<SplatElementsAttr>(constant.getValue())) {
        product.everywhere.push_back(constant);
      } else if (auto broadcast = value.getDefiningOp<nn::BroadcastOp>();
                 broadcast && llvm::none_of(broadcast.getDimensions(),
                                            [&](int64_t d) { return llvm::is_contained(op.getAxes(), d); })) {
        product.constant.push_back(broadcast);
      } else {
        product.summed.push_back(value);
      }
    }
    return product;
  }

  static double numberOf(arith::ConstantOp constant) {
    return cast<SplatElementsAttr>(constant.getValue()).getSplatValue<APFloat>().convertToDouble();
  }

  /// Whether the product may need its factors to stay within the range of numbers: they are extreme, or there twice, as
  /// where numbers are scaled before they are squared.
  static bool keepsRange(const Product &product) {
    double scale = 1;
    for (arith::ConstantOp constant : product.everywhere)
      scale *= numberOf(constant);
    llvm::SmallDenseSet<Value> inputs;
    for (nn::BroadcastOp broadcast : product.constant)
      inputs.insert(broadcast.getInput());
    return !(std::abs(scale) <= kLargestConstant && std::abs(scale) >= 1 / kLargestConstant) ||
           inputs.size() < product.constant.size();
  }

  static void factor(nn::ReduceOp op) {
    Product product = factorsOf(op);
    bool isOnlySummed = product.constant.empty() && product.everywhere.empty() && !product.isNegative;
    if (isOnlySummed || product.summed.empty() || keepsRange(product))
      return;
    nn::TensorBuilder b(op.getLoc(), op);
    Value summed = product.summed.front();
    for (Value other : llvm::drop_begin(product.summed))
      summed = b.mul(summed, other);
    Value result = b.sum(summed, op.getAxes());
    auto shape = nn::TensorBuilder::shapeOf(result);
    for (nn::BroadcastOp broadcast : product.constant) {
      SmallVector<int64_t> dimensions;
      for (int64_t d : broadcast.getDimensions())
        dimensions.push_back(d - llvm::count_if(op.getAxes(), [&](int64_t axis) { return axis < d; }));
      result = b.mul(result, b.broadcast(broadcast.getInput(), shape, dimensions));
    }
    for (arith::ConstantOp constant : product.everywhere)
      result = b.mul(result, b.constantLike(result, numberOf(constant)));
    if (product.isNegative)
      result = b.neg(result);
    op.replaceAllUsesWith(result);
    op.erase();
  }
};

} // namespace
} // namespace ortc::simplify
