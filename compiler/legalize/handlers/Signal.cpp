// Fourier transforms, windows, mel scale.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A transform is a product with a constant matrix: its lengths are known, and its gradient is the product with the
// transposed one.
#include "compiler/legalize/Formulas.h"
#include "compiler/legalize/handlers/Window.h"

#include <cmath>

using namespace mlir;

namespace ortc::legalize::handlers {

/// The one integer that operand `i` holds.
static LogicalResult readLength(Node &n, unsigned i, StringRef what, int64_t least, int64_t &value) {
  SmallVector<int64_t> values;
  if (failed(n.ints(i, what, values)))
    return failure();
  if (values.size() != 1 || values[0] < least || values[0] > kMostSize)
    return n.refuse("its " + what + " is not one integer from " + Twine(least) + " to " + Twine(kMostSize));
  value = values[0];
  return success();
}

/// Yields `count` numbers as the type that `output_datatype` asks for.
static LogicalResult yieldNumbers(Node &n, Ints shape, llvm::function_ref<double(int64_t)> number) {
  int64_t wanted = n.getInt("output_datatype", 1);
  ElementType type = n.elementType(wanted);
  if (!type.type)
    return n.refuse("results of ONNX element type " + Twine(wanted) + " are not supported");
  HostTensor values(RankedTensorType::get(shape, type.type));
  for (int64_t i = 0, count = values.size(); i < count; ++i)
    if (values.isFloat())
      values.setFloat(i, number(i));
    else
      values.setInt(i, static_cast<int64_t>(number(i)));
  return n.yieldAs(n.constantOf(values), type.isUnsigned, type.lowBits);
}

/// a0 - a1 cos(x) + a2 cos(2 x).
static LogicalResult cosineWindow(Node &n, double a0, double a1, double a2) {
  int64_t size;
  if (failed(readLength(n, 0, "size", 0, size)) || failed(n.list(size)))
    return failure();
  int64_t period = std::max<int64_t>(n.getInt("periodic", 1) ? size : size - 1, 1);
  return yieldNumbers(n, {size}, [&](int64_t i) {
    double x = 2 * M_PI * static_cast<double>(i) / static_cast<double>(period);
    return a0 - a1 * std::cos(x) + a2 * std::cos(2 * x);
  });
}

LogicalResult hannWindow(Node &n) { return cosineWindow(n, 0.5, 0.5, 0); }
LogicalResult hammingWindow(Node &n) { return cosineWindow(n, 25.0 / 46, 1 - 25.0 / 46, 0); }
LogicalResult blackmanWindow(Node &n) { return cosineWindow(n, 0.42, 0.5, 0.08); }

/// Triangles between neighbouring mel points, measured in whole bins of the spectrogram.
LogicalResult melWeightMatrix(Node &n) {
  int64_t bins, length, rate;
  SmallVector<double> edges;
  if (failed(readLength(n, 0, "num_mel_bins", 0, bins)) ||
      failed(readLength(n, 1, "dft_length", 0, length)) || failed(readLength(n, 2, "sample_rate", 1, rate)) ||
      failed(n.floats(3, "lower_edge_hertz", edges)) || failed(n.floats(4, "upper_edge_hertz", edges)))
    return failure();
  int64_t rows = length / 2 + 1;
  if (edges.size() != 2)
    return n.refuse("its edges are no scalars");
  if (failed(n.list(elementCount({rows + 1, bins + 2}))))
    return failure();
  auto melOf = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  double low = melOf(edges[0]), step = (melOf(edges[1]) - low) / static_cast<double>(bins + 2);
  SmallVector<int64_t> points;
  for (int64_t i = 0; i < bins + 2; ++i) {
    double hertz = 700 * (std::pow(10, (low + step * static_cast<double>(i)) / 2595) - 1);
    double point = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    if (!(point >= 0 && point <= static_cast<double>(rows)) ||
        (i > 0 && point < static_cast<double>(points.back())))
      return n.refuse("its edges lie outside what the transform resolves");
    points.push_back(static_cast<int64_t>(point));
  }
  std::vector<double> values(rows * bins, 0.0);
  bool fits = true;
  auto set = [&](int64_t row, int64_t bin, double value) {
    fits &= row < rows;
    if (row < rows)
      values[row * bins + bin] = value;
  };
  for (int64_t i = 0; i < bins; ++i) {
    int64_t lower = points[i], centre = points[i + 1], upper = points[i + 2];
    if (lower == centre)
      set(centre, i, 1);
    for (int64_t k = lower; lower != centre && k <= centre; ++k)
      set(k, i, static_cast<double>(k - lower) / static_cast<double>(centre - lower));
    for (int64_t k = centre; k < upper; ++k)
      set(k, i, static_cast<double>(upper - k) / static_cast<double>(upper - centre));
  }
  if (!fits)
    return n.refuse("its edges lie outside what the transform resolves");
  return yieldNumbers(n, {rows, bins}, [&](int64_t i) { return values[i]; });
}

namespace {
struct Transform {
  int64_t length;
  bool inverse, onesided;
};
} // namespace

/// x along `axis`, its last dimension real or real and imaginary. Null when the matrix is too large.
static Value transform(Node &n, Value x, int64_t axis, const Transform &how) {
  TensorBuilder &b = n.b;
  Shape shape(TensorBuilder::shapeOf(x));
  int64_t rank = static_cast<int64_t>(shape.size()), parts = shape.back(), length = how.length;
  bool toReal = how.inverse && how.onesided;
  int64_t half = length / 2 + 1, used = std::min(toReal ? half : length, shape[axis]);
  int64_t results = how.onesided && !how.inverse ? half : length, resultParts = toReal ? 1 : 2;
  if (failed(n.list(elementCount({used, parts, results, resultParts}) + 2 * length)))
    return {};
  // matrix[i, p, k, q]: what part p of place i adds to part q of place k.
  std::vector<double> cosines(length), sines(length);
  for (int64_t i = 0; i < length; ++i) {
    double angle = 2 * M_PI * static_cast<double>(i) / static_cast<double>(length);
    cosines[i] = 4 * i == length || 4 * i == 3 * length ? 0 : std::cos(angle);
    sines[i] = 2 * i == length ? 0 : std::sin(angle);
  }
  HostTensor matrix(RankedTensorType::get({used, parts, results, resultParts}, TensorBuilder::elementOf(x)));
  int64_t at = 0;
  for (int64_t i = 0; i < used; ++i)
    for (int64_t p = 0; p < parts; ++p)
      for (int64_t k = 0; k < results; ++k)
        for (int64_t q = 0; q < resultParts; ++q) {
          int64_t place = static_cast<int64_t>(static_cast<unsigned __int128>(i) * k % length);
          double sine = how.inverse ? sines[place] : -sines[place];
          // (re + i im)(cos + i sine)
          double value = p == q ? cosines[place] : p == 0 ? sine : -sine;
          if (how.inverse)
            value /= static_cast<double>(length);
          if (toReal && i > 0 && 2 * i != length) // its mirror image is not there
            value *= 2;
          matrix.setFloat(at++, value);
        }
  Value weights = n.constantOf(matrix);
  std::string labels, wanted;
  for (int64_t d = 0; d + 1 < rank; ++d) {
    labels += d == axis ? 'N' : static_cast<char>('a' + d);
    wanted += d == axis ? 'K' : static_cast<char>('a' + d);
  }
  return contract(b, b.sliceAxis(x, axis, 0, used), labels + "P", weights, "NPKQ", wanted + "Q",
                  /*exact=*/true);
}

LogicalResult dft(Node &n) {
  int64_t rank = n.rank(0), axis = n.version() < 20 ? n.getInt("axis", 1) : -2;
  if (n.version() >= 20 && n.has(2)) {
    SmallVector<int64_t> given;
    if (failed(n.ints(2, "axis", given)))
      return failure();
    if (given.size() != 1)
      return n.refuse("its axis is no scalar");
    axis = given[0];
  }
  if (!n.isFloat(0) || rank < 2 || rank > 16 || n.shape(0).back() < 1 || n.shape(0).back() > 2)
    return n.refuse("its input of shape " + shapeText(n.shape(0)) + " is no real or complex signal");
  if (failed(n.axis(axis, rank)))
    return failure();
  if (axis == rank - 1)
    return n.refuse("its axis is the one of real and imaginary parts");
  Transform how{n.shape(0)[axis], n.getInt("inverse", 0) != 0, n.getInt("onesided", 0) != 0};
  if (how.inverse && how.onesided)
    how.length = 2 * (how.length - 1);
  if (n.has(1) && failed(readLength(n, 1, "dft_length", 1, how.length)))
    return failure();
  if (how.length < 1 || n.shape(0)[axis] < 1)
    return n.refuse("a transform of length " + Twine(how.length));
  Value y = transform(n, n[0], axis, how);
  return y ? n.yield(y) : failure();
}

LogicalResult stft(Node &n) {
  TensorBuilder &b = n.b;
  int64_t step, length = n.has(2) && n.rank(2) == 1 ? n.shape(2)[0] : n.rank(0) > 1 ? n.shape(0)[1] : 0;
  if (failed(n.sameElements({0, 2})) || failed(readLength(n, 1, "frame_step", 1, step)) ||
      (n.has(3) && failed(readLength(n, 3, "frame_length", 1, length))))
    return failure();
  Shape x(n.shape(0));
  if (!n.isFloat(0) || x.size() != 3 || x[2] < 1 || x[2] > 2 || length < 1 || length > x[1])
    return n.refuse("frames of length " + Twine(length) + " of a signal of shape " + shapeText(x));
  if (n.has(2) && n.shape(2) != Ints({length}))
    return n.refuse("a window of shape " + shapeText(n.shape(2)) + " for frames of length " + Twine(length));
  int64_t frames = 1 + (x[1] - length) / step;
  if (failed(n.list(elementCount({frames, length}))))
    return failure();
  HostTensor places(RankedTensorType::get({frames, length}, b.getI64Type()));
  for (int64_t f = 0; f < frames; ++f)
    for (int64_t i = 0; i < length; ++i)
      places.setInt(f * length + i, f * step + i);
  Shape cut = {x[0], frames, length, x[2]};
  Value y = nn::GatherOp::create(b, RankedTensorType::get(cut, n.element(0)), n[0], n.constantOf(places), 1);
  if (n.has(2))
    y = b.mul(y, b.broadcast(n[2], cut, {2}));
  y = transform(n, y, 2, {length, false, n.getInt("onesided", 1) != 0});
  return y ? n.yield(y) : failure();
}

/// A depthwise convolution over time that sees the past: the state, or zeros, stands before the input.
LogicalResult causalConvWithState(Node &n) {
  TensorBuilder &b = n.b;
  if (n.rank(0) != 3 || n.rank(1) != 3)
    return n.refuse("its input or its weight has not 3 dimensions");
  Shape x(n.shape(0)), w(n.shape(1));
  StringRef activation = n.getString("activation", "none");
  if (w[0] != x[1] || w[1] != 1 || w[2] < 1 || w[2] > kMostWindow || elementCount(x) == 0)
    return n.refuse("an input of shape " + shapeText(x) + " and a weight of shape " + shapeText(w));
  int64_t past = w[2] - 1;
  Shape state = {x[0], x[1], past};
  if ((n.has(2) && n.shape(2) != Ints({x[1]})) || (n.has(3) && n.shape(3) != Ints(state)))
    return n.refuse("its bias or its past state does not fit an input of shape " + shapeText(x));
  if (activation != "none" && activation != "silu" && activation != "swish")
    return n.refuse("activation '" + activation + "' is not known");
  Value padded = n.has(3) && past > 0 ? b.concat({n[3], n[0]}, 2) : b.padZeros(n[0], {0, 0, past}, {0, 0, 0});
  SmallVector<int64_t> one = {1}, none = {0};
  Value y = nn::ConvOp::create(b, RankedTensorType::get({x[0], x[2], x[1]}, n.element(0)),
                               b.transpose(padded, channelsLast(3)), b.transpose(n[1], filterLast(3)), one,
                               none, none, one, x[1]);
  if (n.has(2))
    y = b.add(y, b.broadcast(n[2], TensorBuilder::shapeOf(y), {2}));
  y = b.transpose(y, channelsFirst(3));
  Value results[2] = {activation == "none" ? y : swish(b, y, 1), b.sliceAxis(padded, 2, x[2], past)};
  return n.yield(results);
}

} // namespace ortc::legalize::handlers
