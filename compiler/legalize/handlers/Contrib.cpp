// Fused operators of optimised files.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators of com.microsoft (and SwiGLU) that stand for a few others; attention is in ContribAttention.cpp.
#include "compiler/legalize/Formulas.h"
#include "compiler/legalize/handlers/Attention.h"
#include "compiler/legalize/handlers/Products.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace ortc::legalize::handlers {

LogicalResult swiGlu(Node &n) {
  if (n.shape(0) != n.shape(1))
    return n.refuse("operands of shape " + shapeText(n.shape(0)) + " and " + shapeText(n.shape(1)));
  return n.yield(n.b.mul(swish(n.b, n[0], n.getFloat("alpha", 1)), n[1]));
}

/// x plus operand i, if it is there, under the shape of x.
static LogicalResult addOperand(Node &n, Value &x, unsigned i) {
  if (!n.has(i))
    return success();
  Value pair[2] = {x, n[i]};
  if (failed(n.broadcast(pair)))
    return failure();
  if (pair[0] != x)
    return n.refuse("operand " + Twine(i) + " of shape " + shapeText(n.shape(i)) + " does not broadcast to " +
                    shapeText(TensorBuilder::shapeOf(x)));
  x = n.b.add(pair[0], pair[1]);
  return success();
}

/// Gelu, BiasGelu and FastGelu of x and, if it is there, a bias.
LogicalResult biasGelu(Node &n) {
  if (failed(n.require({0})))
    return failure();
  Value x = n[0];
  return failed(addOperand(n, x, 1)) ? failure() : n.yield(gelu(n.b, x, n.op.getOpType() == "FastGelu"));
}

LogicalResult quickGelu(Node &n) {
  if (failed(n.require({0})))
    return failure();
  return n.yield(swish(n.b, n[0], n.getFloat("alpha", 1.702f)));
}

LogicalResult biasSplitGelu(Node &n) {
  if (failed(n.require({0, 1})))
    return failure();
  TensorBuilder &b = n.b;
  Value x = n[0];
  if (failed(addOperand(n, x, 1)))
    return failure();
  int64_t axis = n.rank(0) - 1, half = axis < 0 ? 0 : n.shape(0)[axis] / 2;
  if (half < 1 || n.shape(0)[axis] % 2)
    return n.refuse("an input of shape " + shapeText(n.shape(0)) + " has no two halves");
  return n.yield(b.mul(b.sliceAxis(x, axis, 0, half), gelu(b, b.sliceAxis(x, axis, half, half), false)));
}

LogicalResult biasAdd(Node &n) {
  if (failed(n.require({0, 1, 2})))
    return failure();
  Value x = n[0];
  return failed(addOperand(n, x, 1)) || failed(addOperand(n, x, 2)) ? failure() : n.yield(x);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// transBatch moves the first dimension to the place before the last, trans then swaps the last two.
LogicalResult fusedMatMul(Node &n) {
  if (failed(n.require({0, 1})))
    return failure();
  Value sides[2] = {n[0], n[1]};
  for (auto [i, side] : llvm::enumerate(sides)) {
    bool batch = n.getInt(i ? "transBatchB" : "transBatchA", 0), swap = n.getInt(i ? "transB" : "transA", 0);
    int64_t rank = n.rank(i);
    SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    if (batch && rank > 2)
      std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
    if (swap && rank > 1)
      std::swap(order[rank - 1], order[rank - 2]);
    side = n.b.transpose(side, order);
  }
  Value y = multiply(n, sides[0], sides[1]);
  if (!y)
    return failure();
  double alpha = n.getFloat("alpha", 1);
  return n.yield(alpha == 1 ? y : n.b.mulScalar(y, alpha));
}

/// x under the activation that the node names; null when it is not known, which is refused. Parameters, where
/// one is needed, are given in order.
static Value activate(Node &n, Value x, StringRef name, ArrayRef<float> parameters) {
  TensorBuilder &b = n.b;
  auto parameter = [&](size_t i, double orElse) { return i < parameters.size() ? parameters[i] : orElse; };
  if (name.empty())
    return x;
  if (name == "Relu")
    return relu(b, x);
  if (name == "Tanh")
    return b.tanh(x);
  if (name == "Sigmoid")
    return sigmoid(b, x);
  if (name == "LeakyRelu")
    return leakyRelu(b, x, parameter(0, 0.01f));
  if (name == "Clip" && parameters.size() == 2)
    return clip(b, x, b.constantLike(x, parameters[0]), b.constantLike(x, parameters[1]));
  if (name == "HardSigmoid")
    return hardSigmoid(b, x, parameter(0, 0.2f), parameter(1, 0.5f));
  (void)n.refuse("activation '" + name + "' is not supported");
  return {};
}

LogicalResult fusedGemm(Node &n) {
  if (failed(n.require({0, 1})))
    return failure();
  Value y = multiplyAndAdd(n);
  if (!y)
    return failure();
  SmallVector<float> parameters;
  for (StringRef name : {"activation_alpha", "activation_beta"})
    if (n.hasAttribute(name))
      parameters.push_back(static_cast<float>(n.getFloat(name, 0)));
  y = activate(n, y, n.getString("activation", ""), parameters);
  return y ? n.yield(y) : failure();
}

LogicalResult fusedConv(Node &n) {
  if (failed(n.require({0, 1})))
    return failure();
  Value y = convolve(n, n[0], n[1], n[2]);
  if (!y || failed(addOperand(n, y, 3)))
    return failure();
  y = activate(n, y, n.getString("activation", ""), n.op.getFloats("activation_params"));
  return y ? n.yield(y) : failure();
}

/// A @ B', with B in blocks of integers of `bits` bits, lowest first. Only A is trained.
LogicalResult matMulNBits(Node &n) {
  if (failed(n.require({0, 1, 2})))
    return failure();
  for (unsigned i : {2u, 3u})
    if (n.has(i) && n.walk.keepConstant(n[i], "part of the packed weights of MatMulNBits"))
      return failure();
  TensorBuilder &b = n.b;
  int64_t inner = n.getInt("K", 0), outer = n.getInt("N", 0), bits = n.getInt("bits", 4),
          block = n.getInt("block_size", 0);
  if ((bits != 2 && bits != 4 && bits != 8) || inner < 1 || outer < 1 || block < 1 || block % (8 / bits) ||
      inner > kMostElements || outer > kMostElements || block > kMostElements)
    return n.refuse("K " + Twine(inner) + ", N " + Twine(outer) + ", bits " + Twine(bits) +
                    " and block_size " + Twine(block));
  if (n.has(4))
    return n.refuse("a group index is not supported");
  int64_t blocks = (inner + block - 1) / block, perByte = 8 / bits;
  if (!n.isFloat(0) || !n.element(1).isInteger(8) ||
      elementCount(n.shape(1)) != elementCount({outer, blocks, block / perByte}))
    return n.refuse("weights of shape " + shapeText(n.shape(1)) + " do not hold " + Twine(outer) + " times " +
                    Twine(blocks) + " blocks of " + Twine(block));
  if (!n.isFloat(2) || elementCount(n.shape(2)) != elementCount({outer, blocks}))
    return n.refuse("scales of shape " + shapeText(n.shape(2)) + " for " + Twine(outer) + " times " +
                    Twine(blocks) + " blocks");
  Type type = n.element(0), wide = b.getI32Type();
  // [rows, bytes] -> [rows, bytes * perByte], as numbers.
  auto unpack = [&](Value packed, int64_t rows) {
    int64_t bytes = elementCount(TensorBuilder::shapeOf(packed)) / rows;
    Shape shape = {rows, bytes, perByte};
    Value words = b.broadcast(b.cast(b.reshape(packed, {rows, bytes}), wide, true), shape, {0, 1});
    Value shift = b.mulScalar(b.iota(RankedTensorType::get(shape, wide), 2), static_cast<double>(bits));
    Value codes = b.createOrFold<arith::ShRUIOp>(words, shift);
    codes = b.logicalAnd(codes, b.constantLike(codes, static_cast<double>((1 << bits) - 1)));
    return b.cast(b.reshape(codes, {rows, bytes * perByte}), type);
  };
  Shape blocked = {outer, blocks, block};
  Value weights = b.reshape(unpack(n[1], outer), blocked), zero;
  if (!n.has(3)) {
    zero = b.constantLike(weights, std::ldexp(1.0, static_cast<int>(bits) - 1));
  } else {
    int64_t rowBytes = (blocks + perByte - 1) / perByte;
    if (elementCount(n.shape(3)) != elementCount({outer, n.isFloat(3) ? blocks : rowBytes}) ||
        (!n.isFloat(3) && !n.element(3).isInteger(8)))
      return n.refuse("zero points of shape " + shapeText(n.shape(3)) + " for " + Twine(outer) + " times " +
                      Twine(blocks) + " blocks");
    Value points = n.isFloat(3) ? b.cast(n[3], type) : b.sliceAxis(unpack(n[3], outer), 1, 0, blocks);
    zero = b.broadcast(b.reshape(points, {outer, blocks}), blocked, {0, 1});
  }
  Value scales = b.broadcast(b.reshape(b.cast(n[2], type), {outer, blocks}), blocked, {0, 1});
  weights = b.reshape(b.mul(b.sub(weights, zero), scales), {outer, blocks * block});
  weights = b.transpose(b.sliceAxis(weights, 1, 0, inner), {1, 0});
  Value y = multiply(n, n[0], weights);
  if (!y || failed(addOperand(n, y, 5)))
    return failure();
  return n.yield(y);
}

//===----------------------------------------------------------------------===//
// Normalisation
//===----------------------------------------------------------------------===//

namespace {

/// Rows under a normalisation, and what it went by, kept as size 1.
struct Rows {
  Value y, mean, inverse;
};

} // namespace

/// Over the last axis, times operand `scale`: a layer normalisation, or (`byRoot`) by the mean square alone.
static LogicalResult normalizeRows(Node &n, Value x, bool byRoot, unsigned scale, double epsilon,
                                   Rows &rows) {
  int64_t axis = TensorBuilder::rankOf(x) - 1;
  Shape shape(TensorBuilder::shapeOf(x));
  if (n.shape(scale) != Ints({shape[axis]}))
    return n.refuse("operand " + Twine(scale) + " of shape " + shapeText(n.shape(scale)) + " for rows of " +
                    Twine(shape[axis]));
  if (byRoot) {
    rows.y = normalizeByRoot(n.b, x, {axis}, epsilon, &rows.inverse);
    rows.mean = n.b.mean(x, {axis}, true);
  } else {
    rows.y = normalize(n.b, x, {axis}, epsilon, &rows.mean, &rows.inverse);
  }
  rows.y = n.b.mul(rows.y, n.b.broadcast(n[scale], shape, {axis}));
  return success();
}

/// SkipLayerNormalization (input, skip, gamma, beta, bias) and SkipSimplifiedLayerNormalization (without beta).
LogicalResult skipNormalization(Node &n) {
  if (failed(n.require({0, 1, 2})))
    return failure();
  bool isSimple = n.op.getOpType() == "SkipSimplifiedLayerNormalization";
  Value total = n[0];
  if (n.rank(0) < 1 || failed(addOperand(n, total, 1)) || failed(addOperand(n, total, isSimple ? 3 : 4)))
    return n.reason().empty() ? n.refuse("its input is a scalar") : failure();
  Rows rows;
  if (failed(normalizeRows(n, total, isSimple, 2, n.getFloat("epsilon", 1e-12f), rows)) ||
      (!isSimple && failed(addOperand(n, rows.y, 3))))
    return failure();
  Value results[4] = {rows.y, rows.mean, rows.inverse, total};
  return n.yield(results);
}

/// (input_ids, segment_ids, word, position and segment tables, gamma, beta, mask, position_ids).
LogicalResult embedLayerNormalization(Node &n) {
  if (failed(n.require({0, 2, 3, 5, 6})))
    return failure();
  TensorBuilder &b = n.b;
  if (n.rank(0) != 2 || n.rank(2) != 2 || n.rank(3) != 2 || n.has(1) != n.has(4) ||
      (n.has(4) && n.rank(4) != 2))
    return n.refuse("its operands have unexpected numbers of dimensions");
  Shape ids(n.shape(0)), shape = {ids[0], ids[1], n.shape(2)[1]};
  auto look = [&](Value places, unsigned place, unsigned table, Value &total) -> LogicalResult {
    Value rows = n.index(places, n.shape(table)[0], n.name(place));
    if (!rows)
      return failure();
    Value found = takeRows(b, n[table], rows);
    Value pair[2] = {found, total ? total : found};
    if (n.shape(table)[1] != shape[2])
      return n.refuse("tables of different widths");
    if (failed(n.broadcast(pair)))
      return failure();
    if (TensorBuilder::shapeOf(pair[0]) != Ints(shape))
      return n.refuse("positions or segments do not fit input_ids of shape " + shapeText(ids));
    total = total ? b.add(pair[1], pair[0]) : pair[0];
    return success();
  };
  Value total;
  Value places = n.has(8) ? n[8] : b.iota(RankedTensorType::get({ids[1]}, b.getI64Type()), 0);
  if (!n.has(8) && ids[1] > n.shape(3)[0])
    return n.refuse(Twine(ids[1]) + " positions, but a table of " + Twine(n.shape(3)[0]));
  if (failed(look(n[0], 0, 2, total)) || failed(look(places, n.has(8) ? 8 : 0, 3, total)) ||
      (n.has(4) && failed(look(n[1], 1, 4, total))))
    return failure();
  Rows rows;
  if (failed(normalizeRows(n, total, false, 5, n.getFloat("epsilon", 1e-12f), rows)) ||
      failed(addOperand(n, rows.y, 6)))
    return failure();
  Value counts = b.constant(RankedTensorType::get({ids[0]}, b.getI32Type()), 0);
  if (n.has(7) && n.wants(1)) {
    if (n.shape(7) != Ints(ids) || !n.element(7).isInteger(32))
      return n.refuse("a mask of shape " + shapeText(n.shape(7)));
    Value kept = b.compare(arith::CmpIPredicate::ne, n[7], b.zerosLike(n[7]));
    counts = b.sum(b.cast(kept, b.getI32Type()), {1});
  }
  Value results[3] = {rows.y, counts, total};
  return n.yield(results);
}

} // namespace ortc::legalize::handlers
