// Attention with a matrix for a memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/Node.h"
#include "dialects/nn/ScanBuilder.h"

#include <cmath>

using namespace mlir;

namespace ortc::legalize::handlers {

/// [batch, steps, heads * size] as [steps, batch, heads, size].
static Value unpack(TensorBuilder &b, Value x, int64_t heads) {
  Ints shape = TensorBuilder::shapeOf(x);
  Value split = b.reshape(x, {shape[0], shape[1], heads, shape[2] / heads});
  return b.transpose(split, {1, 0, 2, 3});
}

// The memory S of every head, one column of values per key: S' = decay * S + rate * key x (value - S . key),
// without the subtraction unless the rule has "delta" in its name; the output is scale * S' . query.
LogicalResult linearAttention(Node &n) {
  TensorBuilder &b = n.b;
  StringRef rule = n.getString("update_rule", "gated_delta");
  bool isGated = rule.starts_with("gated"), isDelta = rule.ends_with("delta");
  if (!isGated && !isDelta && rule != "linear")
    return n.refuse("update_rule '" + rule + "'");
  int64_t queryHeads = n.getInt("q_num_heads", 0), heads = n.getInt("kv_num_heads", 0);
  if (heads < 1 || queryHeads < 1 || queryHeads % heads != 0)
    return n.refuse(Twine(queryHeads) + " query heads for " + Twine(heads) + " key heads");
  for (unsigned i : {0u, 1u, 2u})
    if (n.rank(i) != 3 || n.shape(i)[0] != n.shape(0)[0] || n.shape(i)[1] != n.shape(0)[1] ||
        n.shape(i)[2] % (i == 0 ? queryHeads : heads) != 0)
      return n.refuse("query, key and value of shapes " + shapeText(n.shape(0)) + ", " +
                      shapeText(n.shape(1)) + " and " + shapeText(n.shape(2)));
  int64_t batch = n.shape(0)[0], steps = n.shape(0)[1], group = queryHeads / heads;
  int64_t keySize = n.shape(1)[2] / heads, valueSize = n.shape(2)[2] / heads;
  if (n.shape(0)[2] / queryHeads != keySize)
    return n.refuse("queries of " + Twine(n.shape(0)[2] / queryHeads) + " elements for keys of " +
                    Twine(keySize));
  if (batch < 1 || steps < 1 || keySize < 1 || valueSize < 1)
    return n.refuse("an empty query, key or value");
  if ((isGated && !n.has(4)) || (isDelta && !n.has(5)))
    return n.refuse("update_rule '" + rule + "' without its decay or beta");
  Shape memory{batch, heads, keySize, valueSize};
  if (n.has(3) && n.shape(3) != Ints(memory))
    return n.refuse("past_state has shape " + shapeText(n.shape(3)) + ", not " + shapeText(memory));
  double scale = n.getFloat("scale", 0);
  if (scale == 0)
    scale = 1 / std::sqrt(static_cast<double>(keySize));

  Value query =
      b.reshape(unpack(b, b.mulScalar(n[0], scale), queryHeads), {steps, batch, heads, group, keySize});
  SmallVector<Value> over{query, unpack(b, n[1], heads), unpack(b, n[2], heads)};
  auto addGate = [&](unsigned i, bool perKey) {
    Ints shape = n.shape(i);
    bool fits = n.rank(i) == 3 && shape[0] == batch && shape[1] == steps &&
                (shape[2] == heads || (perKey ? shape[2] == heads * keySize : shape[2] == 1));
    if (!fits)
      return n.refuse((i == 4 ? "decay" : "beta") + (" of shape " + shapeText(shape)));
    over.push_back(unpack(b, n[i], shape[2] == 1 ? 1 : heads));
    return success();
  };
  if ((isGated && failed(addGate(4, true))) || (isDelta && failed(addGate(5, false))))
    return failure();
  Value start = n.has(3) ? n[3] : b.constant(RankedTensorType::get(memory, n.element(0)), 0);
  auto results = nn::buildScan(b, steps, false, start, over, {}, [&](const nn::ScanArguments &now) {
    Value state = now.carried[0], key = now.slices[1], value = now.slices[2];
    if (isGated) { // one per key element, or per head
      Value decay = b.exp(now.slices[3]);
      decay = b.reshape(decay, {batch, heads, TensorBuilder::shapeOf(decay)[2], 1});
      state = b.mul(state, b.broadcastTo(decay, memory));
    }
    if (isDelta) {
      Value known = b.dot(state, key, {0, 1}, {0, 1}, {2}, {2});
      value = b.mul(b.sub(value, known), b.broadcastTo(now.slices.back(), TensorBuilder::shapeOf(value)));
    }
    Value written = b.mul(b.broadcast(key, memory, {0, 1, 2}), b.broadcast(value, memory, {0, 1, 3}));
    state = b.add(state, written);
    return SmallVector<Value>{state, b.dot(now.slices[0], state, {0, 1}, {0, 1}, {3}, {2})};
  });
  Value output = b.reshape(b.transpose(results[1], {1, 0, 2, 3, 4}), {batch, steps, queryHeads * valueSize});
  return n.yield({output, results[0]});
}

} // namespace ortc::legalize::handlers
