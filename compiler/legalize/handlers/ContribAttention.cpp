// Attention of optimised files.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// com.microsoft's Attention, MultiHeadAttention, GroupQueryAttention and RotaryEmbedding in the forms that a
// training step can have: packed caches and lengths from data belong to generation and are refused.
#include "compiler/legalize/handlers/Attention.h"
#include "compiler/legalize/handlers/Products.h"

#include <cmath>

using namespace mlir;

namespace ortc::legalize::handlers {

/// The places of a sequence, from `first` on: [time].
static Value places(TensorBuilder &b, int64_t time, int64_t first) {
  Value i = b.iota(RankedTensorType::get({time}, b.getI64Type()), 0);
  return first ? b.addScalar(i, static_cast<double>(first)) : i;
}

/// Key places that a query sees: none after its own and, with a window of `left` >= 0 keys, none further back.
static Value causal(TensorBuilder &b, Ints scores, int64_t past, int64_t left) {
  auto type = RankedTensorType::get(scores, b.getI64Type());
  Value key = b.iota(type, 3), place = b.addScalar(b.iota(type, 2), static_cast<double>(past));
  Value seen = b.compare(arith::CmpIPredicate::sle, key, place);
  if (left < 0)
    return seen;
  Value first = b.addScalar(place, static_cast<double>(-left));
  return b.logicalAnd(seen, b.compare(arith::CmpIPredicate::sge, key, first));
}

/// 0 means the usual scale.
static double scaleOf(Node &n, int64_t size) {
  double given = n.getFloat("scale", 0);
  return given != 0 ? given : 1 / std::sqrt(static_cast<double>(size));
}

/// The rows of cosines and sines for `positions` ([time] or [batch, time]), and x turned by them.
static Value turn(TensorBuilder &b, Value x, Value cosine, Value sine, Value positions, bool interleaved) {
  Ints shape = TensorBuilder::shapeOf(x);
  int64_t half = TensorBuilder::shapeOf(cosine)[1];
  auto rows = [&](Value table) {
    Value taken = takeRows(b, table, positions);
    return b.broadcastTo(taken, {shape[0], shape[2], half});
  };
  return rotate(b, x, rows(cosine), rows(sine), 2 * half, interleaved);
}

/// Operands `cosine` and `cosine` + 1 are tables of half the rotated features.
static LogicalResult checkTables(Node &n, unsigned cosine, int64_t features) {
  if (n.rank(cosine) != 2 || n.shape(cosine) != n.shape(cosine + 1) || n.shape(cosine)[1] < 1 ||
      2 * n.shape(cosine)[1] > features || n.element(cosine) != n.element(0) ||
      n.element(cosine + 1) != n.element(0))
    return n.refuse("tables of shape " + shapeText(n.shape(cosine)) + " and " +
                    shapeText(n.shape(cosine + 1)) + " for " + Twine(features) + " features");
  return success();
}

/// (input, position_ids, cos_cache, sin_cache); position_ids is one offset, or a place for every element.
LogicalResult fusedRotaryEmbedding(Node &n) {
  if (failed(n.require({0, 1, 2, 3})))
    return failure();
  TensorBuilder &b = n.b;
  bool packed = n.rank(0) == 3;
  if ((!packed && n.rank(0) != 4) || !n.isFloat(0) || n.rank(2) != 2)
    return n.refuse("its input has not 3 or 4 dimensions, or its tables not 2");
  if (n.getInt("is_packed_batching", 0))
    return n.refuse("packed batches are not supported");
  int64_t heads = n.getInt("num_heads", 0), size = n.getInt("rotary_embedding_dim", 0);
  if (packed && heads == 0)
    heads = std::max<int64_t>(n.shape(0)[2] / std::max<int64_t>(2 * n.shape(2)[1], 1), 1);
  if (packed && (heads < 1 || n.shape(0)[2] % heads))
    return n.refuse("num_heads " + Twine(heads) + " does not fit " + Twine(n.shape(0)[2]) + " features");
  Value x = packed ? splitHeads(b, n[0], heads) : n[0];
  Shape shape(TensorBuilder::shapeOf(x));
  if (failed(checkTables(n, 2, shape[3])))
    return failure();
  if (size != 0 && size != 2 * n.shape(2)[1])
    return n.refuse("rotary_embedding_dim " + Twine(size) + " for tables of shape " + shapeText(n.shape(2)));
  Value positions = n[1];
  if (elementCount(n.shape(1)) == 1) {
    Value offset = b.cast(b.reshape(n[1], {}), b.getI64Type());
    positions = b.add(places(b, shape[2], 0), b.broadcastTo(offset, {shape[2]}));
  } else if (n.shape(1) != Ints({shape[0], shape[2]})) {
    return n.refuse("position_ids of shape " + shapeText(n.shape(1)) + " for a batch of " + Twine(shape[0]) +
                    " sequences of " + Twine(shape[2]));
  }
  positions = n.index(positions, n.shape(2)[0], n.name(1));
  if (!positions)
    return failure();
  Value y = turn(b, x, n[2], n[3], positions, n.getInt("interleaved", 0));
  double scale = n.getFloat("scale", 1);
  if (scale != 1)
    y = b.mulScalar(y, scale);
  return n.yield(packed ? joinHeads(b, y) : y);
}

/// What operands `mask` and `bias` show of keys, for scores of that shape: the bias is added; where the mask
/// is 0, or a key stands from the length in it on, mask_filter_value is added.
static LogicalResult seeOperands(Node &n, Ints scores, unsigned mask, unsigned bias, Visibility &see) {
  TensorBuilder &b = n.b;
  auto type = RankedTensorType::get(scores, n.element(0));
  if (n.has(bias)) {
    Value pair[2] = {n[bias], b.constant(type, 0)};
    if (failed(n.broadcast(pair)))
      return failure();
    if (TensorBuilder::shapeOf(pair[0]) != scores)
      return n.refuse("an attention_bias of shape " + shapeText(n.shape(bias)) + " for scores of shape " +
                      shapeText(scores));
    see.bias = pair[0];
  }
  if (!n.has(mask))
    return success();
  static constexpr int64_t kLengths[] = {0}, kKeys[] = {0, 3}, kPairs[] = {0, 2, 3};
  int64_t rank = n.rank(mask);
  Ints dimensions = rank == 1 ? Ints(kLengths) : rank == 2 ? Ints(kKeys) : Ints(kPairs);
  Shape wanted;
  for (int64_t dimension : dimensions)
    wanted.push_back(scores[dimension]);
  if (n.isFloat(mask) || n.shape(mask) != Ints(wanted))
    return n.refuse("a mask of shape " + shapeText(n.shape(mask)) + " for scores of shape " +
                    shapeText(scores));
  Value wide = b.broadcast(n[mask], scores, dimensions);
  wide = rank == 1 ? b.compare(arith::CmpIPredicate::sge, b.iota(TensorBuilder::typeOf(wide), 3), wide)
                   : b.compare(arith::CmpIPredicate::eq, wide, b.zerosLike(wide));
  Value zero = b.constant(type, 0);
  Value hidden = b.select(wide, b.constantLike(zero, n.getFloat("mask_filter_value", -10000)), zero);
  see.bias = see.bias ? b.add(see.bias, hidden) : hidden;
  return success();
}

/// (input, weights, bias, mask_index, past, attention_bias, past_sequence_length): queries, keys and values
/// from one product.
LogicalResult packedAttention(Node &n) {
  if (failed(n.require({0, 1})) || failed(n.sameElements({0, 1, 2, 5})))
    return failure();
  TensorBuilder &b = n.b;
  for (unsigned i : {4u, 6u})
    if (n.has(i))
      return n.refuse("operand " + Twine(i) + ", which serves generation, is not supported");
  if (n.getInt("do_rotary", 0))
    return n.refuse("do_rotary is not supported");
  int64_t heads = n.getInt("num_heads", 0);
  if (!n.isFloat(0) || n.rank(0) != 3 || n.rank(1) != 2)
    return n.refuse("an input of shape " + shapeText(n.shape(0)) + " and weights of shape " +
                    shapeText(n.shape(1)));
  SmallVector<int64_t> widths = n.getInts("qkv_hidden_sizes");
  if (widths.empty())
    widths.assign(3, n.shape(1)[1] / 3);
  int64_t total = 0;
  for (int64_t width : widths) {
    if (heads < 1 || width < 1 || width > n.shape(1)[1] || width % heads)
      return n.refuse("num_heads " + Twine(heads) + " does not fit weights of shape " +
                      shapeText(n.shape(1)));
    total += width;
  }
  if (widths.size() != 3 || widths[0] != widths[1] || total != n.shape(1)[1])
    return n.refuse("qkv_hidden_sizes do not fit weights of shape " + shapeText(n.shape(1)));
  Value packed = multiply(n, n[0], n[1]);
  if (!packed)
    return failure();
  if (n.has(2)) {
    if (n.shape(2) != Ints({total}))
      return n.refuse("a bias of shape " + shapeText(n.shape(2)));
    packed = b.add(packed, b.broadcast(n[2], TensorBuilder::shapeOf(packed), {2}));
  }
  Value parts[3];
  int64_t start = 0;
  for (auto [part, width] : llvm::zip_equal(parts, widths)) {
    part = splitHeads(b, b.sliceAxis(packed, 2, start, width), heads);
    start += width;
  }
  auto [q, k, v] = parts;
  int64_t batch = n.shape(0)[0], time = n.shape(0)[1];
  Shape scores = {batch, heads, time, time};
  Visibility see;
  if (failed(seeOperands(n, scores, 3, 5, see)))
    return failure();
  if (n.getInt("unidirectional", 0))
    see.restrict(b, causal(b, scores, 0, -1));
  ScoreSteps steps;
  Value results[2] = {joinHeads(b, attend(b, q, k, v, scaleOf(n, widths[0] / heads), 0, see, steps)), {}};
  if (widths[0] == widths[2]) {
    Shape one = {1, batch, heads, time, widths[0] / heads};
    results[1] = b.concat({b.reshape(k, one), b.reshape(v, one)}, 0);
  }
  return n.yield(results);
}

/// (query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value).
LogicalResult multiHeadAttention(Node &n) {
  if (failed(n.require({0})))
    return failure();
  TensorBuilder &b = n.b;
  int64_t heads = n.getInt("num_heads", 0);
  if (n.rank(0) != 3 || !n.has(1) || !n.has(2))
    return n.refuse("packed queries, keys and values are not supported");
  if (failed(n.sameElements({0, 1, 2, 3, 5, 6, 7})))
    return failure();
  for (unsigned i = 8; i < n.size(); ++i)
    if (n.has(i))
      return n.refuse("operand " + Twine(i) + ", which serves generation, is not supported");
  if (!n.isFloat(0) || heads < 1 || n.shape(0)[2] < 1 || n.shape(0)[2] % heads)
    return n.refuse("num_heads " + Twine(heads) + " does not fit a query of shape " + shapeText(n.shape(0)));
  int64_t features = n.shape(0)[2], size = features / heads;
  Value parts[3] = {n[0], n[1], n[2]};
  int64_t start = 0;
  for (auto [i, part] : llvm::enumerate(parts)) {
    bool isSplit = n.rank(i) == 4; // [batch, heads, time, size] already
    if (!isSplit && (n.rank(i) != 3 || n.shape(i)[2] % heads))
      return n.refuse("operand " + Twine(i) + " of shape " + shapeText(n.shape(i)) + " is not supported");
    int64_t width = isSplit ? heads * n.shape(i)[3] : n.shape(i)[2];
    if (n.has(3) && !isSplit) {
      if (n.rank(3) != 1 || start + width > n.shape(3)[0])
        return n.refuse("a bias of shape " + shapeText(n.shape(3)));
      part = b.add(part, b.broadcast(b.sliceAxis(n[3], 0, start, width), n.shape(i), {2}));
    }
    start += width;
    part = isSplit ? part : splitHeads(b, part, heads);
  }
  if (n.has(6) != n.has(7))
    return n.refuse("only one of past_key and past_value is there");
  for (unsigned i : {6u, 7u})
    if (n.has(i)) {
      Shape fresh(TensorBuilder::shapeOf(parts[i - 5])), past(n.shape(i));
      if (past.size() != 4 || past[0] != fresh[0] || past[1] != fresh[1] || past[3] != fresh[3] ||
          past[2] != n.shape(6)[2])
        return n.refuse("a past of shape " + shapeText(past) + " does not fit");
      parts[i - 5] = b.concat({n[i], parts[i - 5]}, 2);
    }
  auto [q, k, v] = parts;
  Shape qs(TensorBuilder::shapeOf(q)), ks(TensorBuilder::shapeOf(k)), vs(TensorBuilder::shapeOf(v));
  if (ks[0] != qs[0] || ks[1] != heads || vs[1] != heads || ks[3] != size || vs[0] != qs[0] || vs[2] != ks[2])
    return n.refuse("query " + shapeText(qs) + ", key " + shapeText(ks) + " and value " + shapeText(vs) +
                    " do not fit");
  Shape scores = {qs[0], heads, qs[2], ks[2]};
  Visibility see;
  if (failed(seeOperands(n, scores, 4, 5, see)))
    return failure();
  if (n.getInt("unidirectional", 0))
    see.restrict(b, causal(b, scores, ks[2] - qs[2], -1));
  ScoreSteps steps;
  Value y = joinHeads(b, attend(b, q, k, v, scaleOf(n, size), 0, see, steps));
  Value results[4] = {y, k, v, steps[0]};
  return n.yield(results);
}

/// (query, key, value, past_key, past_value, seqlens_k, total_sequence_length, cos_cache, sin_cache). Causal;
/// without a past, what follows a short sequence is hidden by that alone.
LogicalResult groupQueryAttention(Node &n) {
  if (failed(n.require({0})))
    return failure();
  TensorBuilder &b = n.b;
  int64_t heads = n.getInt("num_heads", 0), groups = n.getInt("kv_num_heads", 0);
  for (unsigned i = 9; i < n.size(); ++i)
    if (n.has(i))
      return n.refuse("operand " + Twine(i) + " is not supported");
  for (StringRef name : {"smooth_softmax", "qk_output", "sliding_window_cache"})
    if (n.getInt(name, 0) > 0)
      return n.refuse("attribute '" + name + "' is not supported");
  if (n.getInt("causal", 1) == 0)
    return n.refuse("causal = 0 is not supported");
  for (StringRef name : {"k_quant_type", "v_quant_type"})
    if (n.getString(name, "NONE") != "NONE")
      return n.refuse("attribute '" + name + "' is not supported");
  if (n.rank(0) != 3 || heads < 1 || groups < 1 || heads % groups || heads > kMostElements || !n.isFloat(0) ||
      n.has(1) != n.has(2))
    return n.refuse("a query of shape " + shapeText(n.shape(0)) + " with " + Twine(heads) + " heads and " +
                    Twine(groups) + " of keys");
  if (failed(n.sameElements({0, 1, 2, 3, 4})))
    return failure();
  int64_t all = n.has(1) ? heads : heads + 2 * groups;
  if (n.shape(0)[2] < 1 || n.shape(0)[2] % all)
    return n.refuse(Twine(n.shape(0)[2]) + " features for " + Twine(all) + " heads");
  int64_t size = n.shape(0)[2] / all;
  Value q, k, v;
  if (n.has(1)) {
    for (unsigned i : {1u, 2u})
      if (n.shape(i) != Ints({n.shape(0)[0], n.shape(0)[1], groups * size}))
        return n.refuse("operand " + Twine(i) + " of shape " + shapeText(n.shape(i)) + " does not fit");
    q = splitHeads(b, n[0], heads);
    k = splitHeads(b, n[1], groups);
    v = splitHeads(b, n[2], groups);
  } else {
    Value packed = splitHeads(b, n[0], all);
    q = b.sliceAxis(packed, 1, 0, heads);
    k = b.sliceAxis(packed, 1, heads, groups);
    v = b.sliceAxis(packed, 1, heads + groups, groups);
  }
  if (n.has(3) != n.has(4))
    return n.refuse("only one of past_key and past_value is there");
  int64_t batch = n.shape(0)[0], time = n.shape(0)[1], past = n.has(3) && n.rank(3) == 4 ? n.shape(3)[2] : 0;
  for (unsigned i : {3u, 4u})
    if (n.has(i) && n.shape(i) != Ints({batch, groups, past, size}))
      return n.refuse("a past of shape " + shapeText(n.shape(i)) + " does not fit");
  if (past > 0) { // a cache whose filling depends on data would make places depend on it
    const HostTensor *lengths = n.constant(5);
    for (int64_t i = 0; lengths && i < lengths->size(); ++i)
      if (lengths->isFloat() || lengths->getInt(i) != past + time - 1)
        lengths = nullptr;
    if (!lengths)
      return n.refuse("a past that is not known to be full (seqlens_k) is not supported");
  }
  if (n.getInt("do_rotary", 0)) {
    if (!n.has(7) || !n.has(8) || failed(checkTables(n, 7, size)))
      return n.reason().empty() ? n.refuse("do_rotary without cos_cache and sin_cache") : failure();
    if (past + time > n.shape(7)[0])
      return n.refuse("a cos_cache of " + Twine(n.shape(7)[0]) + " rows for " + Twine(past + time) +
                      " places");
    bool interleaved = n.getInt("rotary_interleaved", 0);
    q = turn(b, q, n[7], n[8], places(b, time, past), interleaved);
    k = turn(b, k, n[7], n[8], places(b, time, past), interleaved);
  }
  if (past > 0) {
    k = b.concat({n[3], k}, 2);
    v = b.concat({n[4], v}, 2);
  }
  int64_t window = n.getInt("local_window_size", -1);
  Visibility see;
  see.restrict(b, causal(b, {batch, heads, time, past + time}, past, window > 0 ? window - 1 : -1));
  ScoreSteps steps;
  Value y = attend(b, q, k, v, scaleOf(n, size), n.getFloat("softcap", 0), see, steps);
  Value results[3] = {joinHeads(b, y), k, v};
  return n.yield(results);
}

} // namespace ortc::legalize::handlers
