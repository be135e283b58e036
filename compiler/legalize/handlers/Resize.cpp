// Resize, Upsample, AffineGrid.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Resampling is linear in the input and separable: every axis is multiplied by a matrix of interpolation
// weights that is known at compile time. Nearest neighbours are repetitions, slices or gathers instead.
//
// Where a last bit decides (the size that a scale gives, the nearest element, what is outside), coordinates are
// float32 and computed in the order of ONNX Runtime. Weights, which are continuous in them, are in double.
// A size is the whole number that the output has, as in ONNX Runtime and PyTorch; ONNX's reference takes
// scale * size. docs/exporters.md has what else differs.
#include "compiler/legalize/Formulas.h"
#include "compiler/legalize/Node.h"

#include <cmath>

using namespace mlir;

namespace ortc::legalize::handlers {

namespace {

/// One axis: its input and output size, output / input, and the region of tf_crop_and_resize.
struct Axis {
  int64_t dim, input, output;
  float scale;
  double start = 0, end = 1;

  bool isCropped() const { return start != 0 || end != 1; }
};

struct Resampling {
  std::string mode = "nearest", coordinates = "asymmetric";
  std::string rounding = ""; ///< before opset 11: down, and up where there are fewer elements than before
  double cubic = -0.75, beyond = 0;
  bool excludeOutside = false, antialias = false;

  template <typename Real> Real source(const Axis &axis, int64_t at) const;
  int64_t nearest(const Axis &axis, int64_t at) const;
  bool isOutside(const Axis &axis, int64_t at) const;
  double kernel(double x) const;
  /// [output, input] interpolation weights.
  HostTensor matrix(const Axis &axis, Type element) const;
};

} // namespace

/// The coordinate in the input of output place `at`.
template <typename Real> Real Resampling::source(const Axis &axis, int64_t at) const {
  Real x = static_cast<Real>(at), size = static_cast<Real>(axis.input),
       length = static_cast<Real>(axis.output), half = Real(0.5);
  if (coordinates == "align_corners")
    return length == 1 ? 0 : x * (size - 1) / (length - 1);
  if (coordinates == "asymmetric")
    return x / axis.scale;
  if (coordinates == "tf_crop_and_resize") {
    Real start = static_cast<Real>(axis.start), end = static_cast<Real>(axis.end);
    return length == 1 ? half * (start + end) * (size - 1)
                       : start * (size - 1) + x * (end - start) * (size - 1) / (length - 1);
  }
  if (coordinates == "tf_half_pixel_for_nn")
    return (x + half) / axis.scale;
  if (coordinates == "pytorch_half_pixel" && axis.output == 1)
    return 0;
  if (coordinates == "half_pixel_symmetric") { // its last sum is in double
    Real offset = size / 2 * (1 - length / (axis.scale * size));
    return static_cast<Real>(offset + (x + 0.5) / axis.scale - 0.5);
  }
  return (x + half) / axis.scale - half;
}

int64_t Resampling::nearest(const Axis &axis, int64_t at) const {
  float position = source<float>(axis, at), below = std::floor(position);
  bool isTie = std::fabs(position - below - 0.5f) < 1e-6f; // places that differ by rounding are one
  bool goesUp = rounding.empty()                   ? axis.scale < 1
                : rounding == "round_prefer_ceil"  ? isTie || position - below > 0.5f
                : rounding == "round_prefer_floor" ? !isTie && position - below > 0.5f
                                                   : rounding == "ceil";
  float whole = goesUp ? std::ceil(position) : below;
  return std::isnan(whole) ? 0 : static_cast<int64_t>(std::clamp(whole, 0.0f, float(axis.input - 1)));
}

/// Whether tf_crop_and_resize fills an output place.
bool Resampling::isOutside(const Axis &axis, int64_t at) const {
  float position = source<float>(axis, at);
  return coordinates == "tf_crop_and_resize" && (position < 0 || position > float(axis.input - 1));
}

double Resampling::kernel(double x) const {
  x = std::fabs(x);
  if (mode == "linear")
    return std::max(0.0, 1 - x);
  if (x <= 1)
    return ((cubic + 2) * x - (cubic + 3)) * x * x + 1;
  return x < 2 ? ((cubic * x - 5 * cubic) * x + 8 * cubic) * x - 4 * cubic : 0;
}

HostTensor Resampling::matrix(const Axis &axis, Type element) const {
  HostTensor weights(RankedTensorType::get({axis.output, axis.input}, element));
  double stretch = antialias ? std::max(1.0, 1.0 / axis.scale) : 1,
         radius = (mode == "linear" ? 1 : 2) * stretch;
  for (int64_t row = 0; row < axis.output; ++row) {
    double position = std::clamp(source<double>(axis, row), -1e9, 1e9), total = 0;
    int64_t first = static_cast<int64_t>(std::floor(position - radius)) + 1,
            last = static_cast<int64_t>(std::ceil(position + radius));
    auto counts = [&](int64_t i) { return !excludeOutside || (i >= 0 && i < axis.input); };
    for (int64_t i = first; i <= last; ++i)
      total += counts(i) ? kernel((static_cast<double>(i) - position) / stretch) : 0;
    for (int64_t i = first; i <= last && total != 0; ++i) // outside of all, there is nothing to weigh
      if (counts(i)) {
        int64_t at = row * axis.input + std::clamp<int64_t>(i, 0, axis.input - 1);
        weights.setFloat(at, weights.getFloat(at) +
                                 kernel((static_cast<double>(i) - position) / stretch) / total);
      }
  }
  return weights;
}

/// Elements of an axis by position: every one repeated equally often, evenly spaced ones, or any.
static Value takePositions(Node &n, Value x, int64_t dim, Ints positions) {
  TensorBuilder &b = n.b;
  Shape shape(TensorBuilder::shapeOf(x));
  int64_t size = shape[dim], count = positions.size(), repeat = count / size;
  auto all = [&](auto matches) { return llvm::all_of(llvm::seq<int64_t>(0, count), matches); };
  if (repeat > 0 && count % size == 0 && all([&](int64_t i) { return positions[i] == i / repeat; })) {
    Shape wide = shape, dimensions;
    wide.insert(wide.begin() + dim + 1, repeat);
    for (int64_t i = 0; i < static_cast<int64_t>(wide.size()); ++i)
      if (i != dim + 1)
        dimensions.push_back(i);
    shape[dim] = count;
    return b.reshape(b.broadcast(x, wide, dimensions), shape);
  }
  int64_t step = count > 1 ? positions[1] - positions[0] : 1;
  if (step > 0 && all([&](int64_t i) { return positions[i] == positions[0] + i * step; })) {
    SmallVector<int64_t> starts(shape.size(), 0), strides(shape.size(), 1);
    starts[dim] = positions[0];
    strides[dim] = step;
    shape[dim] = count;
    return b.slice(x, starts, shape, strides);
  }
  auto type = RankedTensorType::get(nn::replaceAxis(shape, dim, {count}), TensorBuilder::elementOf(x));
  return nn::GatherOp::create(b, type, x, n.intVector(positions), dim);
}

/// Each dimension has a letter.
static constexpr int64_t kMostDimensions = 8;

/// y[.., o, ..] = sum over i of weights[o, i] x[.., i, ..].
static Value multiplyAxis(Node &n, Value x, const Axis &axis, const HostTensor &weights) {
  std::string labels = StringRef("abcdefgh").take_front(TensorBuilder::rankOf(x)).str(), result = labels;
  result[axis.dim] = 'o';
  return contract(n.b, x, labels, n.constantOf(weights), std::string("o") + labels[axis.dim], result,
                  /*exact=*/true);
}

/// No axis is larger than this before or after.
static constexpr int64_t kMostSize = int64_t(1) << 20;

static LogicalResult checkSizes(Node &n, ArrayRef<Axis> axes) {
  for (const Axis &axis : axes) {
    if (axis.output > kMostSize || axis.input > kMostSize)
      return n.refuse("dimension " + Twine(axis.dim) + " is resized from " + Twine(axis.input) + " to " +
                      Twine(axis.output) + ", more than supported");
    if (axis.output < 1)
      return n.refuse("dimension " + Twine(axis.dim) + " would have no elements");
  }
  return success();
}

/// Sizes and scales of the axes from the operands, as the version has them.
static LogicalResult readAxes(Node &n, SmallVector<Axis> &axes) {
  int64_t rank = n.rank(0);
  SmallVector<int64_t> which = n.getInts("axes"), sizes;
  SmallVector<double> scales, roi;
  if (!n.hasAttribute("axes"))
    which = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  bool isUpsample = n.op.getOpType() == "Upsample", isOld = isUpsample || n.version() < 11;
  auto given = [&](unsigned i) { return n.has(i) && elementCount(n.shape(i)) > 0; };
  if (isUpsample && n.version() < 9) {
    for (float scale : n.op.getFloats("scales"))
      scales.push_back(scale);
  } else if (isOld) {
    if (failed(n.floats(1, "scales", scales)))
      return failure();
  } else if ((given(1) && n.getString("coordinate_transformation_mode", "") == "tf_crop_and_resize" &&
              failed(n.floats(1, "roi", roi))) ||
             (given(3) ? failed(n.ints(3, "sizes", sizes))
                       : !given(2) || failed(n.floats(2, "scales", scales)))) {
    return n.reason().empty() && !given(2) && !given(3) ? n.refuse("neither scales nor sizes are given")
                                                        : failure();
  }
  size_t count = which.size();
  if ((sizes.empty() ? scales.size() : sizes.size()) != count || (!roi.empty() && roi.size() != 2 * count))
    return n.refuse("its scales or sizes do not fit " + Twine(count) + " axes");
  SmallVector<int64_t> sorted = which; // checks all, but the order belongs to the sizes
  if (failed(n.axes(sorted, rank)))
    return failure();
  for (double each : roi)
    if (!(std::fabs(each) <= kMostSize))
      return n.refuse("a roi that is not finite, or far outside its input");
  for (size_t i = 0; i < count; ++i) {
    if (failed(n.axis(which[i], rank)))
      return failure();
    Axis axis{which[i], n.shape(0)[which[i]], 0, 0};
    if (axis.input < 1)
      return n.refuse("dimension " + Twine(axis.dim) + " has no elements to resize");
    if (!sizes.empty()) {
      axis.output = sizes[i];
      axis.scale = static_cast<float>(sizes[i]) / static_cast<float>(axis.input);
    } else {
      axis.scale = static_cast<float>(scales[i]);
      if (!(scales[i] > 0 && scales[i] <= kMostSize))
        return n.refuse("a scale that is not from 0 to " + Twine(kMostSize));
      axis.output = static_cast<int64_t>(axis.scale * static_cast<float>(axis.input));
    }
    if (!roi.empty()) {
      axis.start = roi[i];
      axis.end = roi[i + count];
    }
    axes.push_back(axis);
  }
  StringRef policy = n.getString("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    return n.refuse("keep_aspect_ratio_policy '" + policy + "' is not known");
  if (sizes.empty() || policy == "stretch" || axes.empty())
    return checkSizes(n, axes);
  float common = axes.front().scale;
  for (const Axis &axis : axes)
    common = policy == "not_larger" ? std::min(common, axis.scale) : std::max(common, axis.scale);
  for (Axis &axis : axes) {
    axis.scale = common;
    float size = std::round(common * static_cast<float>(axis.input));
    axis.output = static_cast<int64_t>(std::min(size, static_cast<float>(kMostElements)));
  }
  return checkSizes(n, axes);
}

LogicalResult resize(Node &n) {
  TensorBuilder &b = n.b;
  Resampling how;
  how.mode = n.getString("mode", "nearest").str();
  if (how.mode == "bilinear")
    how.mode = "linear";
  if (how.mode != "nearest" && how.mode != "linear" && how.mode != "cubic")
    return n.refuse("mode '" + how.mode + "' is not supported");
  if (n.op.getOpType() == "Resize" && n.version() >= 11) {
    how.coordinates = n.getString("coordinate_transformation_mode", "half_pixel").str();
    how.rounding = n.getString("nearest_mode", "round_prefer_floor").str();
    how.cubic = n.getFloat("cubic_coeff_a", -0.75f);
    how.beyond = n.getFloat("extrapolation_value", 0);
    how.excludeOutside = n.getInt("exclude_outside", 0);
    how.antialias = n.getInt("antialias", 0);
    if (!llvm::is_contained({"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"},
                            StringRef(how.rounding)))
      return n.refuse("nearest_mode '" + how.rounding + "' is not known");
  }
  if (!llvm::is_contained({"align_corners", "asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn",
                           "pytorch_half_pixel", "half_pixel_symmetric", "half_pixel"},
                          StringRef(how.coordinates)))
    return n.refuse("coordinate_transformation_mode '" + how.coordinates + "' is not known");
  SmallVector<Axis> axes;
  if (failed(readAxes(n, axes)))
    return failure();
  if (how.mode != "nearest" && !n.isFloat(0))
    return n.refuse("interpolation of integers is not supported");
  if (n.rank(0) > kMostDimensions)
    return n.refuse("an input of more than " + Twine(kMostDimensions) + " dimensions");
  // Sizes that stay are copies, whatever the scale says; with antialias, axis by axis.
  auto stays = [](const Axis &axis) { return axis.output == axis.input && !axis.isCropped(); };
  if (llvm::all_of(axes, stays))
    return n.yield(n[0]);
  Value y = n[0];
  for (const Axis &axis : axes) {
    if (stays(axis) && (axis.scale == 1 || how.antialias))
      continue;
    if (failed(n.list(axis.output * ((how.mode == "nearest" ? 0 : axis.input) + 2)))) // at most 2^41
      return failure();
    SmallVector<int64_t> positions, outside;
    for (int64_t o = 0; o < axis.output; ++o) {
      positions.push_back(how.nearest(axis, o));
      outside.push_back(how.isOutside(axis, o));
    }
    y = how.mode == "nearest" ? takePositions(n, y, axis.dim, positions)
                              : multiplyAxis(n, y, axis, how.matrix(axis, TensorBuilder::elementOf(y)));
    if (!llvm::is_contained(outside, 1))
      continue;
    Ints shape = TensorBuilder::shapeOf(y);
    Value mask = b.broadcast(n.intConstant(outside, {axis.output}, b.getI1Type()), shape, {axis.dim});
    y = b.select(mask, b.constantLike(y, how.beyond), y);
  }
  return n.yield(y);
}

// theta times the homogeneous coordinates of the output's pixels, which are known.
LogicalResult affineGrid(Node &n) {
  SmallVector<int64_t> size;
  if (failed(n.ints(1, "size", size)))
    return failure();
  for (int64_t each : size)
    if (each < 1)
      return n.refuse("a size of " + shapeText(size));
  if (!n.isFloat(0))
    return n.refuse("theta is not floating-point");
  int64_t spatial = static_cast<int64_t>(size.size()) - 2;
  if (spatial < 2 || spatial > 3 || n.shape(0) != Ints({size[0], spatial, spatial + 1}))
    return n.refuse("theta of shape " + shapeText(n.shape(0)) + " does not fit a size of " + shapeText(size));
  Ints dims = Ints(size).drop_front(2);
  int64_t volume = elementCount(dims);
  if (failed(n.list(elementCount({volume, spatial + 1}))))
    return failure();
  bool align = n.getInt("align_corners", 0);
  HostTensor base(RankedTensorType::get({volume, spatial + 1}, n.element(0)));
  for (int64_t i = 0; i < volume; ++i) {
    int64_t rest = i, first = i * (spatial + 1);
    base.setFloat(first + spatial, 1);
    for (int64_t d = spatial; d-- > 0; rest /= dims[d]) { // x is the last dimension
      double at = static_cast<double>(rest % dims[d]), extent = static_cast<double>(dims[d]);
      base.setFloat(first + spatial - 1 - d,
                    align ? (extent == 1 ? 0 : -1 + 2 * at / (extent - 1)) : (2 * at + 1) / extent - 1);
    }
  }
  TensorBuilder &b = n.b;
  Value grid = contract(b, n[0], "nij", n.constantOf(base), "vj", "nvi", /*exact=*/true);
  Shape shape = {size[0]};
  shape.append(dims.begin(), dims.end());
  shape.push_back(spatial);
  return n.yield(b.reshape(grid, shape));
}

} // namespace ortc::legalize::handlers
