// Tensors that hold the same elements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/EqualTensors.h"

#include "support/Random.h"

#include "compiler/frontend/onnx.pb.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace ortc::frontend {

/// Permutations of so many dimensions are tried: 720.
static constexpr size_t kMostPermuted = 6;
/// Passes over two tensors, one after the other in the shape of either: 4 dimensions have 23 permutations
/// that are not the identity.
static constexpr size_t kPasses = 2 * 24;
/// To begin with a permutation costs as much as so many comparisons.
static constexpr size_t kBeginning = 64;
/// Comparisons that are for nothing: permutations of 6 dimensions of 512 elements take that many.
static constexpr size_t kFreeComparisons = 2 * 720 * (512 + kBeginning);
/// Elements of a stretch that is looked at, and stretches of a tensor.
static constexpr size_t kStretch = 4096, kStretches = 16;

static size_t widthOf(const TensorData &tensor) { return static_cast<size_t>(dataTypeBytes(tensor.type)); }

/// Calls `body` with a zero of the unsigned integer that has the width of the elements.
template <typename Body> static auto withElement(size_t width, Body body) {
  switch (width) {
  case 1:
    return body(uint8_t(0));
  case 2:
    return body(uint16_t(0));
  case 4:
    return body(uint32_t(0));
  default:
    return body(uint64_t(0));
  }
}

template <typename Element> static Element elementAt(const char *bytes, size_t index) {
  Element element;
  std::memcpy(&element, bytes + index * sizeof element, sizeof element);
  return element;
}

static std::vector<int64_t> dropOnes(const std::vector<int64_t> &dims) {
  std::vector<int64_t> kept;
  std::copy_if(dims.begin(), dims.end(), std::back_inserter(kept), [](int64_t dim) { return dim != 1; });
  return kept;
}

/// Whether `copy` has the elements of `original`, a tensor of the shape `dims`, in the order of its
/// transpose. False when there are no comparisons left.
template <typename Element>
static bool isTranspose(const char *original, const std::vector<int64_t> &dims,
                        const std::vector<int64_t> &permutation, const char *copy, size_t &comparisons) {
  size_t rank = dims.size();
  comparisons -= std::min(comparisons, kBeginning);
  std::vector<size_t> strides(rank, 1), sizes(rank), steps(rank), at(rank, 0);
  for (size_t i = rank - 1; i-- > 0;)
    strides[i] = strides[i + 1] * static_cast<size_t>(dims[i + 1]);
  for (size_t i = 0; i < rank; ++i) {
    sizes[i] = static_cast<size_t>(dims[static_cast<size_t>(permutation[i])]);
    steps[i] = strides[static_cast<size_t>(permutation[i])];
  }
  size_t row = sizes[rank - 1], step = steps[rank - 1], offset = 0;
  for (;;) {
    if (comparisons < row)
      return false;
    size_t equal = 0;
    while (equal < row &&
           elementAt<Element>(original, offset + equal * step) == elementAt<Element>(copy, equal))
      ++equal;
    comparisons -= equal;
    if (equal < row)
      return false;
    copy += row * sizeof(Element);
    size_t axis = rank - 1;
    while (axis-- > 0) {
      offset += steps[axis];
      if (++at[axis] < sizes[axis])
        break;
      offset -= steps[axis] * sizes[axis];
      at[axis] = 0;
      if (axis == 0)
        return true;
    }
    if (rank == 1)
      return true;
  }
}

/// A permutation under which `copy` is a transpose of `original` as a tensor of the shape `dims`, but not the identity.
static std::vector<int64_t> findPermutation(const TensorData &original, const std::vector<int64_t> &dims,
                                            const TensorData &copy, size_t &comparisons) {
  if (dims.size() < 2 || dims.size() > kMostPermuted)
    return {};
  std::vector<int64_t> permutation(dims.size());
  std::iota(permutation.begin(), permutation.end(), 0);
  return withElement(widthOf(original), [&](auto element) {
    while (comparisons && std::next_permutation(permutation.begin(), permutation.end()))
      if (isTranspose<decltype(element)>(original.bytes.data(), dims, permutation, copy.bytes.data(),
                                         comparisons))
        return permutation;
    return std::vector<int64_t>();
  });
}

size_t comparisonsFor(size_t elements) { return kPasses * elements + kFreeComparisons; }

std::optional<TensorView> findView(const TensorData &original, const TensorData &copy) {
  size_t width = std::max(widthOf(original), size_t(1)),
         comparisons = comparisonsFor(original.bytes.size() / width);
  return findView(original, copy, comparisons);
}

std::optional<TensorView> findView(const TensorData &original, const TensorData &copy, size_t &comparisons) {
  if (original.type != copy.type || original.bytes.size() != copy.bytes.size() || !original.strings.empty() ||
      !copy.strings.empty())
    return std::nullopt;
  if (original.bytes == copy.bytes)
    return TensorView{original.dims, {}};
  comparisons -= std::min(comparisons, original.bytes.size() / 16); // many at a time
  std::vector<int64_t> dims = dropOnes(original.dims);
  if (std::vector<int64_t> permutation = findPermutation(original, dims, copy, comparisons);
      !permutation.empty())
    return TensorView{dims, permutation};
  // The other way round: the original is a transpose of the copy, which is cut into more dimensions, or others.
  dims = dropOnes(copy.dims);
  std::vector<int64_t> back = findPermutation(copy, dims, original, comparisons);
  if (back.empty())
    return std::nullopt;
  TensorView view{std::vector<int64_t>(dims.size()), std::vector<int64_t>(dims.size())};
  for (size_t i = 0; i < dims.size(); ++i) {
    view.shape[i] = dims[static_cast<size_t>(back[i])];
    view.permutation[static_cast<size_t>(back[i])] = static_cast<int64_t>(i);
  }
  return view;
}

/// A hash of type and size, and of the elements that `visit` is called for.
template <typename Visit> static uint64_t hash(const TensorData &tensor, Visit visit) {
  uint64_t result = mixBits(tensor.bytes.size() * 64 + static_cast<uint64_t>(tensor.type));
  size_t width = widthOf(tensor);
  if (tensor.bytes.size() < width || width == 0)
    return result;
  // A sum does not depend on the order.
  return withElement(width, [&](auto element) {
    visit(tensor.bytes.size() / width, [&](size_t i) {
      result += mixBits(elementAt<decltype(element)>(tensor.bytes.data(), i) + kGoldenGamma);
    });
    return result;
  });
}

uint64_t hashEnds(const TensorData &tensor) {
  // The first element and the last one stay where they are, whatever the permutation.
  return hash(tensor, [](size_t count, auto add) {
    add(0);
    add(count - 1);
  });
}

uint64_t hashElements(const TensorData &tensor) {
  return hash(tensor, [](size_t count, auto add) {
    for (size_t i = 0; i < count; ++i)
      add(i);
  });
}

/// The value of a floating-point element.
static double valueOf(const TensorData &tensor, size_t index) {
  const char *bytes = tensor.bytes.data();
  switch (tensor.type) {
  case proto::TensorProto::DOUBLE: {
    uint64_t bits = elementAt<uint64_t>(bytes, index);
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  case proto::TensorProto::FLOAT16: {
    uint16_t bits = elementAt<uint16_t>(bytes, index);
    int exponent = (bits >> 10) & 31, fraction = bits & 1023;
    double value = exponent == 31  ? (fraction ? NAN : INFINITY)
                   : exponent == 0 ? std::ldexp(fraction, -24)
                                   : std::ldexp(fraction + 1024, exponent - 25);
    return bits >> 15 ? -value : value;
  }
  default: {
    uint32_t bits = tensor.type == proto::TensorProto::BFLOAT16
                        ? static_cast<uint32_t>(elementAt<uint16_t>(bytes, index)) << 16
                        : elementAt<uint32_t>(bytes, index);
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return static_cast<double>(value);
  }
  }
}

/// Whether most of the gaps between ascending values are equal, but for rounding.
static bool isEvenlySpaced(const std::vector<double> &values) {
  std::vector<double> gaps;
  for (size_t i = 1; i < values.size(); ++i)
    gaps.push_back(values[i] - values[i - 1]);
  if (gaps.empty())
    return true;
  std::vector<double> sorted = gaps;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2), sorted.end());
  double middle = sorted[sorted.size() / 2];
  auto equal = std::count_if(gaps.begin(), gaps.end(),
                             [&](double gap) { return std::fabs(gap - middle) <= 0.01 * middle; });
  return static_cast<size_t>(equal) * 4 >= gaps.size() * 3;
}

static bool isRandomStretch(const TensorData &tensor, size_t first, size_t count) {
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) {
    double value = valueOf(tensor, first + i);
    if (!std::isfinite(value))
      return false;
    values.push_back(value);
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (values.size() < 4 || values.size() * 2 < count || isEvenlySpaced(values))
    return false;
  for (double &value : values)
    value = value == 0 ? 0 : std::log(std::fabs(value));
  std::sort(values.begin(), values.end());
  return !isEvenlySpaced(values);
}

bool looksRandom(const TensorData &tensor) {
  size_t count = tensor.bytes.size() / widthOf(tensor), length = std::min(count, kStretch);
  size_t stretches = std::min(kStretches, count / std::max(length, size_t(1)));
  for (size_t i = 0; i < stretches; ++i)
    if (isRandomStretch(tensor, stretches > 1 ? (count - length) / (stretches - 1) * i : 0, length))
      return true;
  return false;
}

} // namespace ortc::frontend
