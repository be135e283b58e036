// Attention, rotary embedding.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/handlers/Attention.h"

#include "compiler/legalize/Formulas.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace ortc::legalize {

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

Value splitHeads(TensorBuilder &b, Value x, int64_t heads) {
  Ints s = TensorBuilder::shapeOf(x);
  return b.transpose(b.reshape(x, {s[0], s[1], heads, s[2] / heads}), {0, 2, 1, 3});
}
Value joinHeads(TensorBuilder &b, Value x) {
  Ints s = TensorBuilder::shapeOf(x);
  return b.reshape(b.transpose(x, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
}

/// scale * q k', [batch, heads, time, keys]. The query heads of one key head stand side by side; they are a
/// dimension of their own here, so that keys and values are never repeated.
static Value scoresOf(TensorBuilder &b, Value q, Value k, double scale) {
  Ints qs = TensorBuilder::shapeOf(q), ks = TensorBuilder::shapeOf(k);
  Value grouped = b.reshape(q, {qs[0], ks[1], qs[1] / ks[1], qs[2], qs[3]});
  Value scores = contract(b, grouped, "bhgqd", k, "bhkd", "bhgqk");
  return b.mulScalar(b.reshape(scores, {qs[0], qs[1], qs[2], ks[2]}), scale);
}

/// The values under these weights.
static Value mix(TensorBuilder &b, Value weights, Value v) {
  Ints ws = TensorBuilder::shapeOf(weights), vs = TensorBuilder::shapeOf(v);
  Value grouped = b.reshape(weights, {ws[0], vs[1], ws[1] / vs[1], ws[2], ws[3]});
  return b.reshape(contract(b, grouped, "bhgqk", v, "bhkd", "bhgqd"), {ws[0], ws[1], ws[2], vs[3]});
}

Value attend(TensorBuilder &b, Value q, Value k, Value v, double scale, double softcap, const Visibility &see,
             ScoreSteps &steps) {
  steps[0] = scoresOf(b, q, k, scale);
  steps[1] = softcap > 0 ? b.mulScalar(b.tanh(b.mulScalar(steps[0], 1 / softcap)), softcap) : steps[0];
  steps[2] = see.bias ? b.add(steps[1], see.bias) : steps[1];
  if (see.allowed)
    steps[2] = b.select(see.allowed, steps[2], b.constantLike(steps[2], -kInfinity));
  if (see.mayBeEmpty) {
    // A query that sees nothing gives zero, and passes no gradient.
    Value largest = b.reduce(nn::ReduceKind::max, steps[2], {3});
    Value empty = b.compare(arith::CmpFPredicate::OEQ, largest, b.constantLike(largest, -kInfinity));
    empty = b.broadcastAlong(empty, TensorBuilder::shapeOf(steps[2]), {3});
    Value zero = b.zerosLike(steps[2]);
    steps[3] = b.select(empty, zero, b.softmax(b.select(empty, zero, steps[2]), 3));
  } else {
    steps[3] = b.softmax(steps[2], 3);
  }
  return mix(b, steps[3], v);
}

Value takeRows(TensorBuilder &b, Value table, Value positions) {
  auto type = RankedTensorType::get(
      nn::replaceAxis(TensorBuilder::shapeOf(table), 0, TensorBuilder::shapeOf(positions)),
      TensorBuilder::elementOf(table));
  return nn::GatherOp::create(b, type, table, positions, 0);
}

Value rotate(TensorBuilder &b, Value x, Value cosine, Value sine, int64_t size, bool interleaved) {
  Shape shape(TensorBuilder::shapeOf(x));
  int64_t half = size / 2;
  Shape halfShape = {shape[0], shape[1], shape[2], half};
  cosine = b.broadcast(cosine, halfShape, {0, 2, 3});
  sine = b.broadcast(sine, halfShape, {0, 2, 3});
  auto part = [&](int64_t which) {
    SmallVector<int64_t> starts = {0, 0, 0, interleaved ? which : which * half},
                         strides = {1, 1, 1, interleaved && half > 1 ? 2 : 1};
    return b.slice(x, starts, halfShape, strides);
  };
  Value first = part(0), second = part(1);
  Value real = b.sub(b.mul(cosine, first), b.mul(sine, second)),
        imaginary = b.add(b.mul(sine, first), b.mul(cosine, second));
  Value rotated;
  if (interleaved) {
    Shape single = halfShape;
    single.push_back(1);
    rotated = b.reshape(b.concat({b.reshape(real, single), b.reshape(imaginary, single)}, 4),
                        {shape[0], shape[1], shape[2], size});
  } else {
    rotated = b.concat({real, imaginary}, 3);
  }
  if (size < shape[3])
    rotated = b.concat({rotated, b.sliceAxis(x, 3, size, shape[3] - size)}, 3);
  return rotated;
}

namespace handlers {

/// `mask` with keys that it does not mention hidden, under the scores' shape.
static LogicalResult readMask(Node &n, Ints scores, Visibility &see) {
  TensorBuilder &b = n.b;
  Value mask = n[3];
  bool isFloat = n.isFloat(3);
  bool fits = n.rank(3) >= 1 && n.rank(3) <= 4;
  int64_t missing = fits ? scores.back() - n.shape(3).back() : 0;
  if (!fits || missing < 0)
    return n.refuse("a mask of shape " + shapeText(n.shape(3)) + " for scores of shape " + shapeText(scores));
  if (missing > 0 && n.shape(3).back() != 1) {
    SmallVector<int64_t> low(n.rank(3), 0), high(n.rank(3), 0);
    high.back() = missing;
    mask = b.pad(mask, b.scalar(n.element(3), isFloat ? -kInfinity : 0), low, high);
  }
  Shape shape;
  Value like = b.constant(RankedTensorType::get(scores, n.element(3)), 0);
  if (failed(n.broadcastShape({mask, like}, shape)))
    return failure();
  if (Ints(shape) != scores)
    return n.refuse("a mask of shape " + shapeText(n.shape(3)) + " for scores of shape " + shapeText(scores));
  (isFloat ? see.bias : see.allowed) = b.broadcastTo(mask, scores);
  // Known masks are looked at: only a row without keys needs care.
  const HostTensor *known = n.constant(3);
  see.mayBeEmpty = !known;
  int64_t row = n.shape(3).back();
  for (int64_t i = 0; known && row > 0 && i < known->size() / row; ++i) {
    bool any = false;
    for (int64_t k = 0; k < row; ++k)
      any |= isFloat ? known->getFloat(i * row + k) != -kInfinity : known->getInt(i * row + k) != 0;
    see.mayBeEmpty |= !any;
  }
  return success();
}

/// Causality, windows and the padding of the keys.
static LogicalResult addPositions(Node &n, Ints scores, int64_t past, Visibility &see) {
  TensorBuilder &b = n.b;
  auto type = RankedTensorType::get(scores, b.getI64Type());
  Value valid;
  if (n.has(6))
    valid = b.broadcast(b.cast(n[6], b.getI64Type()), scores, {0});
  Value key = b.iota(type, 3), place;
  auto restrict = [&](Value condition) { see.restrict(b, condition); };
  int64_t left = std::min(n.getInt("left_window_size", -1), kMostElements),
          right = std::min(n.getInt("right_window_size", -1), kMostElements);
  if (n.getInt("is_causal", 0) || left >= 0 || right >= 0) {
    place = b.addScalar(b.iota(type, 2), static_cast<double>(past));
    if (valid && !n.has(4))
      place = b.add(place, b.addScalar(valid, static_cast<double>(-scores[2])));
    see.mayBeEmpty |= see.allowed || see.bias || valid || left >= 0 || right >= 0;
  }
  if (n.getInt("is_causal", 0))
    restrict(b.compare(arith::CmpIPredicate::sle, key, place));
  if (left >= 0)
    restrict(b.compare(arith::CmpIPredicate::sge, key, b.addScalar(place, static_cast<double>(-left))));
  if (right >= 0)
    restrict(b.compare(arith::CmpIPredicate::sle, key, b.addScalar(place, static_cast<double>(right))));
  if (valid) {
    restrict(b.compare(arith::CmpIPredicate::slt, key, valid));
    see.mayBeEmpty = true;
  }
  return success();
}

LogicalResult attention(Node &n) {
  TensorBuilder &b = n.b;
  if (failed(n.sameElements({0, 1, 2, 4, 5})))
    return failure();
  if (!n.isFloat(0) || (n.has(3) && n.element(3) != n.element(0) && !n.element(3).isInteger(1)))
    return n.refuse("its element types are not supported");
  bool packed = n.rank(0) == 3;
  if (n.rank(1) != n.rank(0) || n.rank(2) != n.rank(0) || n.rank(0) < 3 || n.rank(0) > 4)
    return n.refuse("query, key and value have different numbers of dimensions, or not 3 or 4");
  int64_t queryHeads = n.getInt("q_num_heads", packed ? 0 : n.shape(0)[1]),
          heads = n.getInt("kv_num_heads", packed ? 0 : n.shape(1)[1]);
  if (!packed && (queryHeads != n.shape(0)[1] || heads != n.shape(1)[1]))
    return n.refuse("q_num_heads = " + Twine(queryHeads) + " and kv_num_heads = " + Twine(heads) +
                    " contradict query " + shapeText(n.shape(0)) + " and key " + shapeText(n.shape(1)));
  if (heads < 1 || queryHeads < 1 || queryHeads % heads ||
      (packed && (n.shape(0)[2] % queryHeads || n.shape(1)[2] % heads || n.shape(2)[2] % heads)))
    return n.refuse(Twine(queryHeads) + " query heads and " + Twine(heads) + " key heads do not fit");
  for (unsigned i : {1u, 2u})
    if (n.shape(i)[0] != n.shape(0)[0] || (!packed && n.shape(i)[1] != heads))
      return n.refuse("query " + shapeText(n.shape(0)) + ", key " + shapeText(n.shape(1)) + " and value " +
                      shapeText(n.shape(2)) + " do not fit");
  if (n.has(4) != n.has(5))
    return n.refuse("only one of past_key and past_value is there");
  for (unsigned i : {4u, 5u})
    if (n.has(i) && (n.rank(i) != 4 || n.shape(i)[0] != n.shape(0)[0] || n.shape(i)[1] != heads ||
                     n.shape(i)[2] != n.shape(4)[2] ||
                     n.shape(i)[3] != (packed ? n.shape(i - 3)[2] / heads : n.shape(i - 3)[3])))
      return n.refuse("a past of shape " + shapeText(n.shape(i)) + " does not fit");
  if (n.has(6) && (n.isFloat(6) || n.shape(6) != Ints({n.shape(0)[0]})))
    return n.refuse("nonpad_kv_seqlen of shape " + shapeText(n.shape(6)) + " for a batch of " +
                    Twine(n.shape(0)[0]));
  Value q = packed ? splitHeads(b, n[0], queryHeads) : n[0], k = packed ? splitHeads(b, n[1], heads) : n[1];
  Value v = packed ? splitHeads(b, n[2], heads) : n[2];
  int64_t past = n.has(4) ? n.shape(4)[2] : 0;
  if (n.has(4) && n.has(5)) {
    k = b.concat({n[4], k}, 2);
    v = b.concat({n[5], v}, 2);
  }
  Shape qs(TensorBuilder::shapeOf(q)), ks(TensorBuilder::shapeOf(k));
  if (qs[3] < 1 || qs[3] != ks[3] || ks[2] != TensorBuilder::shapeOf(v)[2])
    return n.refuse("query " + shapeText(qs) + " and key " + shapeText(ks) + " do not fit");
  Shape scoreShape = {qs[0], queryHeads, qs[2], ks[2]};
  Visibility see;
  if ((n.has(3) && failed(readMask(n, scoreShape, see))) || failed(addPositions(n, scoreShape, past, see)))
    return failure();

  double scale = n.hasAttribute("scale") ? n.getFloat("scale", 1) : 1 / std::sqrt(static_cast<double>(qs[3]));
  ScoreSteps steps;
  Value y = attend(b, q, k, v, scale, n.getFloat("softcap", 0), see, steps);
  int64_t mode = n.getInt("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3)
    return n.refuse("qk_matmul_output_mode " + Twine(mode));
  Value results[4] = {packed ? joinHeads(b, y) : y, k, v, steps[mode]};
  return n.yield(results);
}

/// The scores or weights `x` as the subgraph `name` changes them, if it is there. Null when it cannot.
static Value modify(Node &n, StringRef name, Value x) {
  onnx::GraphOp graph = n.op.getGraph(name);
  if (!graph)
    return x;
  SmallVector<Bound> outputs;
  if (graph.getBlock().getNumArguments() != 1 || graph.getBlock().getTerminator()->getNumOperands() != 1) {
    (void)n.refuse("its " + name + " has not one input and one output");
    return {};
  }
  if (failed(n.walk.inlineGraph(n, graph, {{x}}, outputs)))
    return {};
  if (outputs[0].value.getType() != x.getType()) {
    (void)n.refuse("its " + name + " changes the shape or the type");
    return {};
  }
  return outputs[0].value;
}

/// Attention of 4 dimensions with functions of scores and weights.
LogicalResult flexAttention(Node &n) {
  TensorBuilder &b = n.b;
  if (n.rank(0) != 4 || n.rank(1) != 4 || n.rank(2) != 4)
    return n.refuse("query, key or value has not 4 dimensions");
  Shape q(n.shape(0)), k(n.shape(1)), v(n.shape(2));
  if (k[0] != q[0] || v[0] != q[0] || k[1] < 1 || q[1] % k[1] || v[1] != k[1] || v[2] != k[2] ||
      q[3] != k[3] || q[3] < 1)
    return n.refuse("query " + shapeText(q) + ", key " + shapeText(k) + " and value " + shapeText(v) +
                    " do not fit");
  int64_t wanted = n.getInt("softmax_precision", 0);
  Type own = n.element(0), precision = wanted ? n.elementType(wanted).type : own;
  if (!precision || !isa<FloatType>(precision))
    return n.refuse("softmax_precision " + Twine(wanted) + " is no floating-point type");
  double scale = n.hasAttribute("scale") ? n.getFloat("scale", 1) : 1 / std::sqrt(static_cast<double>(q[3]));
  Value scores = modify(n, "score_mod", b.cast(scoresOf(b, n[0], n[1], scale), precision));
  if (!scores)
    return failure();
  // f16 and bf16 are storage: the softmax itself is computed in f32.
  Type compute = precision.getIntOrFloatBitWidth() < 32 ? Type(b.getF32Type()) : precision;
  Value weights = b.cast(b.softmax(b.cast(scores, compute), 3), precision);
  weights = modify(n, "prob_mod", weights);
  return weights ? n.yield(mix(b, b.cast(weights, own), n[2])) : failure();
}

LogicalResult rotaryEmbedding(Node &n) {
  if (failed(n.sameElements({0, 1, 2})))
    return failure();
  TensorBuilder &b = n.b;
  bool packed = n.rank(0) == 3;
  int64_t heads = n.getInt("num_heads", 0);
  if (n.rank(0) != 3 && n.rank(0) != 4)
    return n.refuse("its input has not 3 or 4 dimensions");
  if (packed && (heads < 1 || n.shape(0)[2] % heads))
    return n.refuse("num_heads " + Twine(heads) + " does not fit " + Twine(n.shape(0)[2]) + " features");
  Value x = packed ? splitHeads(b, n[0], heads) : n[0];
  Shape shape(TensorBuilder::shapeOf(x));
  int64_t size = n.getInt("rotary_embedding_dim", 0);
  size = size ? size : shape[3];
  Value cosine = n[1], sine = n[2];
  if (size < 1 || size % 2 || n.shape(1) != n.shape(2) || n.rank(1) != (n.has(3) ? 2 : 3))
    return n.refuse("a rotary dimension of " + Twine(size) + " and tables of shape " + shapeText(n.shape(1)) +
                    " and " + shapeText(n.shape(2)));
  if (n.has(3)) {
    Value positions = n.index(n[3], n.shape(1)[0], n.name(3));
    if (!positions)
      return failure();
    cosine = takeRows(b, cosine, positions);
    sine = takeRows(b, sine, positions);
  }
  int64_t half = size / 2;
  Ints table = TensorBuilder::shapeOf(cosine);
  if (table.size() != 3 || table[0] != shape[0] || table[1] != shape[2] || table[2] != half ||
      size > shape[3])
    return n.refuse("tables of shape " + shapeText(table) + " do not fit an input of shape " +
                    shapeText(shape));
  Value rotated = rotate(b, x, cosine, sine, size, n.getInt("interleaved", 0));
  return n.yield(packed ? joinHeads(b, rotated) : rotated);
}

} // namespace handlers
} // namespace ortc::legalize
