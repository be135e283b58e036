// Gemm, MatMul, Einsum.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/Formulas.h"
#include "compiler/legalize/handlers/Products.h"
#include "support/Plural.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace ortc::legalize {

/// Dimensions have letters here, from 'a' and from character 1 on: they must not meet others.
static constexpr int64_t kMostDimensions = 8;

Value multiply(Node &n, Value lhs, Value rhs) {
  Ints a = TensorBuilder::shapeOf(lhs), c = TensorBuilder::shapeOf(rhs);
  auto refuse = [&](const Twine &reason) -> Value { return (void)n.refuse(reason), Value(); };
  if (a.empty() || c.empty())
    return refuse("an operand is a scalar");
  if (a.size() > kMostDimensions || c.size() > kMostDimensions)
    return refuse("an operand has more than " + Twine(kMostDimensions) + " dimensions");
  bool fits = a.back() == c[c.size() == 1 ? 0 : c.size() - 2];
  for (size_t i = 3; i <= std::min(a.size(), c.size()); ++i)
    fits &= a[a.size() - i] == c[c.size() - i] || a[a.size() - i] == 1 || c[c.size() - i] == 1;
  if (!fits)
    return refuse("matrices of " + shapeText(a) + " and " + shapeText(c) + " do not fit");
  return matmul(n.b, lhs, rhs);
}

Value multiplyAndAdd(Node &n) {
  TensorBuilder &b = n.b;
  auto refuse = [&](const Twine &reason) -> Value { return (void)n.refuse(reason), Value(); };
  bool transposeA = n.getInt("transA", 0), transposeB = n.getInt("transB", 0);
  if (n.rank(0) != 2 || n.rank(1) != 2)
    return refuse("its operands are no matrices");
  if (n.shape(0)[transposeA ? 0 : 1] != n.shape(1)[transposeB ? 1 : 0])
    return refuse("matrices of " + shapeText(n.shape(0)) + " and " + shapeText(n.shape(1)) + " do not fit");
  Value y = b.matmul(n[0], n[1], transposeA, transposeB);
  double alpha = n.getFloat("alpha", 1), beta = n.getFloat("beta", 1);
  if (alpha != 1)
    y = b.mulScalar(y, alpha);
  if (!n.has(2) || beta == 0)
    return y;
  Value pair[2] = {y, beta == 1 ? n[2] : b.mulScalar(n[2], beta)};
  if (failed(n.broadcast(pair)))
    return {};
  if (pair[0] != y)
    return refuse("its third operand of shape " + shapeText(n.shape(2)) +
                  " does not broadcast to the result");
  return b.add(pair[0], pair[1]);
}

namespace handlers {

LogicalResult gemm(Node &n) {
  Value y = multiplyAndAdd(n);
  return y ? n.yield(y) : failure();
}

LogicalResult matMul(Node &n) {
  Value y = multiply(n, n[0], n[1]);
  return y ? n.yield(y) : failure();
}

namespace {
/// An equation with its ellipsis spelled out in characters that it does not use.
struct Equation {
  SmallVector<std::string> operands;
  std::string result;
};
} // namespace

/// Labels for the `count` last dimensions of the ellipsis.
static std::string ellipsis(int64_t count) {
  std::string letters;
  for (int64_t i = count; i-- > 0;)
    letters += static_cast<char>(1 + i); // control characters: never part of an equation
  return letters;
}

static LogicalResult parseEquation(Node &n, Equation &equation) {
  std::string text;
  for (char c : n.getString("equation", ""))
    if (c != ' ')
      text += c;
  auto [left, right] = StringRef(text).split("->");
  SmallVector<StringRef> terms;
  left.split(terms, ',');
  if (terms.size() != n.size())
    return n.refuse("its equation has " + formatCount(terms.size(), "term") + " for " + Twine(n.size()) +
                    " operands");
  int64_t widest = 0;
  llvm::StringMap<int> seen;
  for (auto [i, term] : llvm::enumerate(terms)) {
    auto [before, after] = term.split("...");
    int64_t letters = before.size() + after.size(), extra = n.rank(i) - letters;
    if (n.rank(i) > kMostDimensions)
      return n.refuse("an operand has more than " + Twine(kMostDimensions) + " dimensions");
    if (!llvm::all_of((before + after).str(), [](char c) { return llvm::isAlpha(c); }))
      return n.refuse("term '" + term + "' of its equation holds more than letters and one ellipsis");
    bool hasDots = term.contains("...");
    if (hasDots ? extra < 0 : extra != 0)
      return n.refuse("term '" + term + "' of its equation does not fit " +
                      formatCount(n.rank(i), "dimension"));
    widest = std::max(widest, hasDots ? extra : 0);
    std::string labels = before.str() + (hasDots ? ellipsis(extra) : "") + after.str();
    for (char label : labels)
      ++seen[StringRef(&label, 1)];
    equation.operands.push_back(labels);
  }
  if (StringRef(text).contains("->")) {
    auto [before, after] = right.split("...");
    equation.result = before.str() + (right.contains("...") ? ellipsis(widest) : "") + after.str();
    for (size_t k = 0; k < equation.result.size(); ++k)
      if (equation.result.find(equation.result[k], k + 1) != std::string::npos)
        return n.refuse("its equation's result has a label twice");
    for (char label : equation.result)
      if (!seen.contains(StringRef(&label, 1)))
        return n.refuse("its equation's result has the label '" + Twine(label) + "' that no term has");
    return success();
  }
  // Without an arrow: the ellipsis, then all letters that occur once, in order.
  equation.result = ellipsis(widest);
  for (char label = 'A'; label <= 'z'; ++label)
    if (seen.lookup(StringRef(&label, 1)) == 1)
      equation.result += label;
  return success();
}

/// A label twice in a term stands for a diagonal: the term then has it once.
static LogicalResult takeDiagonals(Node &n, Value &x, std::string &labels) {
  TensorBuilder &b = n.b;
  for (size_t i = 0; i < labels.size();) {
    size_t j = labels.find(labels[i], i + 1);
    if (j == std::string::npos) {
      ++i;
      continue;
    }
    Ints shape = TensorBuilder::shapeOf(x);
    int64_t size = shape[i];
    if (shape[j] != size)
      return n.refuse("sizes " + Twine(size) + " and " + Twine(shape[j]) +
                      " of one label of its equation differ");
    // Both dimensions go to the end; there the diagonal is every (size + 1)th element.
    SmallVector<int64_t> order;
    std::string rest;
    Shape flat;
    for (size_t d = 0; d < labels.size(); ++d)
      if (d != i && d != j) {
        order.push_back(static_cast<int64_t>(d));
        rest += labels[d];
        flat.push_back(shape[d]);
      }
    order.append({static_cast<int64_t>(i), static_cast<int64_t>(j)});
    flat.push_back(size * size);
    SmallVector<int64_t> starts(flat.size(), 0), strides(flat.size(), 1), sizes = flat;
    strides.back() = size + 1;
    sizes.back() = size;
    x = b.slice(b.reshape(b.transpose(x, order), flat), starts, sizes, strides);
    labels = rest + labels[i];
    i = 0;
  }
  return success();
}

LogicalResult einsum(Node &n) {
  Equation equation;
  if (failed(parseEquation(n, equation)))
    return failure();
  llvm::StringMap<int64_t> sizes;
  SmallVector<Value> terms;
  for (unsigned i = 0; i < n.size(); ++i) {
    terms.push_back(n[i]);
    if (failed(takeDiagonals(n, terms[i], equation.operands[i])))
      return failure();
    for (auto [label, size] : llvm::zip_equal(equation.operands[i], TensorBuilder::shapeOf(terms[i]))) {
      int64_t &known = sizes.try_emplace(StringRef(&label, 1), size).first->second;
      if (known != size && known != 1 && size != 1)
        return n.refuse("sizes " + Twine(known) + " and " + Twine(size) +
                        " of one label of its equation differ");
      known = std::max(known, size);
    }
  }
  Value value = terms[0];
  std::string labels = equation.operands[0];
  if (n.size() == 1)
    return n.yield(contract(n.b, value, labels, equation.result));
  for (unsigned i = 1; i < n.size(); ++i) {
    std::string wanted = equation.result;
    if (i + 1 < n.size()) { // what the result or a later operand still needs
      wanted.clear();
      for (char label : labels + equation.operands[i]) {
        bool needed = StringRef(equation.result).contains(label);
        for (unsigned k = i + 1; k < n.size(); ++k)
          needed |= StringRef(equation.operands[k]).contains(label);
        if (needed && !StringRef(wanted).contains(label))
          wanted += label;
      }
    }
    value = contract(n.b, value, labels, terms[i], equation.operands[i], wanted);
    labels = wanted;
  }
  return n.yield(value);
}

} // namespace handlers
} // namespace ortc::legalize
