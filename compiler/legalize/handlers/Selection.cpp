// Elements chosen by their values.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// TopK has a static shape. The others say by their values how much they return: their inputs must be known at
// compile time, and what they return is known then, too.
#include "compiler/legalize/Formulas.h"
#include "compiler/legalize/Node.h"
#include "support/Plural.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;

namespace ortc::legalize::handlers {

LogicalResult topK(Node &n) {
  int64_t axis = n.getInt("axis", -1), count = n.getInt("k", 0);
  if (failed(n.axis(axis, n.rank(0))))
    return failure();
  if (n.version() >= 10) {
    SmallVector<int64_t> k;
    if (failed(n.ints(1, "K", k)))
      return failure();
    if (k.size() != 1)
      return n.refuse("its K is not one number");
    count = k[0];
  }
  int64_t size = n.shape(0)[axis];
  if (count < 0 || count > size)
    return n.refuse("K is " + Twine(count) + " for an axis of " + formatCount(size, "element"));
  if (size > std::numeric_limits<int32_t>::max())
    return n.refuse("an axis of " + Twine(size) + " elements is more than can be sorted");
  TensorBuilder &b = n.b;
  Value key = n.isUnsigned(0) ? turnSign(b, n[0]) : n[0];
  Shape shape(n.shape(0));
  shape[axis] = count;
  Value order = nn::ArgSortOp::create(b, RankedTensorType::get(shape, b.getI64Type()), key, axis,
                                      n.getInt("largest", 1) != 0);
  Value values =
      nn::GatherElementsOp::create(b, RankedTensorType::get(shape, n.element(0)), n[0], order, axis);
  return n.yieldBound({{values, n.isUnsigned(0)}, {order, false}});
}

LogicalResult compress(Node &n) {
  const HostTensor *condition = nullptr;
  if (failed(n.constant(1, "condition", condition)))
    return failure();
  if (!n.element(1).isInteger(1))
    return n.refuse("its condition is not boolean");
  TensorBuilder &b = n.b;
  bool flat = !n.hasAttribute("axis");
  Value x = flat ? b.reshape(n[0], {elementCount(n.shape(0))}) : n[0];
  int64_t axis = flat ? 0 : n.getInt("axis", 0);
  if (failed(n.axis(axis, TensorBuilder::rankOf(x))))
    return failure();
  if (failed(n.list(condition->size())))
    return failure();
  SmallVector<int64_t> places;
  for (int64_t i = 0; i < condition->size(); ++i) {
    if (!condition->getInt(i))
      continue;
    if (i >= TensorBuilder::shapeOf(x)[axis])
      return n.refuse("its condition chooses element " + Twine(i) + " of " +
                      Twine(TensorBuilder::shapeOf(x)[axis]));
    places.push_back(i);
  }
  int64_t count = places.size();
  auto type = RankedTensorType::get(nn::replaceAxis(TensorBuilder::shapeOf(x), axis, {count}), n.element(0));
  return n.yield(nn::GatherOp::create(b, type, x, n.intVector(places), axis).getResult());
}

LogicalResult nonZero(Node &n) {
  const HostTensor *x = nullptr;
  if (failed(n.constant(0, "input", x)))
    return failure();
  auto isFound = [&](int64_t i) { return x->isFloat() ? x->getFloat(i) != 0 : x->getInt(i) != 0; };
  int64_t rank = x->getRank(), count = llvm::count_if(llvm::seq<int64_t>(0, x->size()), isFound);
  if (failed(n.list(elementCount({rank, count}))))
    return failure();
  HostTensor places(RankedTensorType::get({rank, count}, n.b.getI64Type()));
  SmallVector<int64_t> index(rank, 0);
  for (int64_t i = 0, at = 0; i < x->size(); ++i, evaluator::nextIndex(index, x->getShape())) {
    if (!isFound(i))
      continue;
    for (int64_t d = 0; d < rank; ++d)
      places.setInt(d * count + at, index[d]);
    ++at;
  }
  return n.yieldAs(n.constantOf(places), false);
}

LogicalResult unique(Node &n) {
  const HostTensor *x = nullptr;
  if (failed(n.constant(0, "input", x)))
    return failure();
  bool flat = !n.hasAttribute("axis");
  int64_t axis = flat ? 0 : n.getInt("axis", 0);
  if (!flat && failed(n.axis(axis, x->getRank())))
    return failure();
  Shape shape = flat ? Shape{x->size()} : Shape(x->getShape());
  int64_t size = shape[axis], inner = elementCount(Ints(shape).drop_front(axis + 1)),
          outer = elementCount(Ints(shape).take_front(axis));
  // The order of slices, the first ones, counts, places; comparing equal slices looks at all of their elements.
  if (failed(n.list(elementCount({4, std::max(x->size(), size)}))))
    return failure();
  // Slices in row-major order of what is beside the axis.
  auto at = [&](int64_t slice, int64_t i) { return (i / inner * size + slice) * inner + i % inner; };
  bool isUnsigned = n.isUnsigned(0);
  auto compareSlices = [&](int64_t a, int64_t c) {
    for (int64_t i = 0; i < outer * inner; ++i) {
      int64_t p = at(a, i), q = at(c, i);
      if (x->isFloat()) {
        double u = x->getFloat(p), v = x->getFloat(q);
        if (u < v || (std::isnan(v) && !std::isnan(u)))
          return -1;
        if (u > v || (std::isnan(u) && !std::isnan(v)))
          return 1;
      } else if (int64_t u = x->getInt(p), v = x->getInt(q); u != v) {
        return (isUnsigned ? static_cast<uint64_t>(u) < static_cast<uint64_t>(v) : u < v) ? -1 : 1;
      }
    }
    return 0;
  };
  std::vector<int64_t> order(size), first, counts, place(size), rank;
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](int64_t a, int64_t c) {
    int sign = compareSlices(a, c);
    return sign < 0 || (sign == 0 && a < c);
  });
  for (int64_t i = 0; i < size; ++i) {
    if (i == 0 || compareSlices(order[i - 1], order[i]) != 0) {
      first.push_back(order[i]);
      counts.push_back(0);
    }
    ++counts.back();
    place[order[i]] = static_cast<int64_t>(first.size()) - 1;
  }
  int64_t found = first.size();
  if (!n.getInt("sorted", 1)) { // in the order of the first occurrences
    rank.resize(found);
    std::iota(rank.begin(), rank.end(), 0);
    llvm::sort(rank, [&](int64_t a, int64_t c) { return first[a] < first[c]; });
    std::vector<int64_t> oldFirst = first, oldCounts = counts, newPlace(found);
    for (int64_t i = 0; i < found; ++i) {
      first[i] = oldFirst[rank[i]];
      counts[i] = oldCounts[rank[i]];
      newPlace[rank[i]] = i;
    }
    for (int64_t &each : place)
      each = newPlace[each];
  }
  TensorBuilder &b = n.b;
  Value values = flat ? b.reshape(n[0], shape) : n[0];
  auto type = RankedTensorType::get(nn::replaceAxis(shape, axis, {found}), n.element(0));
  values = nn::GatherOp::create(b, type, values, n.intVector(first), axis);
  return n.yieldBound({{values, isUnsigned},
                       {n.intVector(first), false},
                       {n.intVector(place), false},
                       {n.intVector(counts), false}});
}

namespace {

/// A box by its corners.
struct Box {
  double top, left, bottom, right;
  double area() const { return (bottom - top) * (right - left); }
};

} // namespace

static double overlap(const Box &a, const Box &c) {
  double height = std::min(a.bottom, c.bottom) - std::max(a.top, c.top),
         width = std::min(a.right, c.right) - std::max(a.left, c.left);
  if (height <= 0 || width <= 0 || a.area() <= 0 || c.area() <= 0)
    return 0;
  return height * width / (a.area() + c.area() - height * width);
}

LogicalResult nonMaxSuppression(Node &n) {
  const HostTensor *boxes = nullptr, *scores = nullptr;
  if (failed(n.constant(0, "boxes", boxes)) || failed(n.constant(1, "scores", scores)))
    return failure();
  SmallVector<int64_t> most;
  SmallVector<double> limit, least;
  if ((n.has(2) && failed(n.ints(2, "max_output_boxes_per_class", most))) ||
      (n.has(3) && failed(n.floats(3, "iou_threshold", limit))) ||
      (n.has(4) && failed(n.floats(4, "score_threshold", least))))
    return failure();
  if (!n.isFloat(0) || !n.isFloat(1))
    return n.refuse("its boxes or scores are not floating-point");
  Ints shape = n.shape(0), scored = n.shape(1);
  if (shape.size() != 3 || scored.size() != 3 || shape[0] != scored[0] || shape[1] != scored[2] ||
      shape[2] != 4)
    return n.refuse("boxes of shape " + shapeText(shape) + " and scores of shape " + shapeText(scored) +
                    " do not fit");
  int64_t count = shape[1], bound = most.empty() ? 0 : most[0];
  // Each box of each class is compared with those that are kept.
  if (failed(n.list(elementCount(
          {scored[0], scored[1], count, std::clamp<int64_t>(bound, 1, std::max<int64_t>(count, 1))}))))
    return failure();
  double mostOverlap = limit.empty() ? 0 : limit[0];
  bool centers = n.getInt("center_point_box", 0);
  auto box = [&](int64_t image, int64_t i) -> Box {
    double v[4];
    for (int64_t k = 0; k < 4; ++k)
      v[k] = boxes->getFloat((image * count + i) * 4 + k);
    if (centers)
      return {v[1] - v[3] / 2, v[0] - v[2] / 2, v[1] + v[3] / 2, v[0] + v[2] / 2};
    return {std::min(v[0], v[2]), std::min(v[1], v[3]), std::max(v[0], v[2]), std::max(v[1], v[3])};
  };
  SmallVector<int64_t> chosen;
  for (int64_t image = 0; image < scored[0]; ++image)
    for (int64_t label = 0; label < scored[1]; ++label) {
      auto score = [&](int64_t i) { return scores->getFloat((image * scored[1] + label) * count + i); };
      std::vector<int64_t> order;
      for (int64_t i = 0; i < count; ++i)
        if (least.empty() || score(i) > least[0])
          order.push_back(i);
      llvm::sort(order, [&](int64_t a, int64_t c) {
        return score(a) > score(c) || (score(a) == score(c) && a < c);
      });
      SmallVector<int64_t> kept;
      for (int64_t i : order) {
        if (static_cast<int64_t>(kept.size()) >= bound)
          break;
        if (llvm::all_of(kept, [&](int64_t other) {
              return overlap(box(image, i), box(image, other)) <= mostOverlap;
            }))
          kept.push_back(i);
      }
      for (int64_t i : kept)
        chosen.append({image, label, i});
    }
  return n.yieldAs(n.intConstant(chosen, {static_cast<int64_t>(chosen.size()) / 3, 3}), false);
}

} // namespace ortc::legalize::handlers
