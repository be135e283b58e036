// Input gradient towards few channels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Few channels fill a small part of a vector. A point of the gradient adds to one run of a row of the image: window
// positions times channels. Lanes are that run. For every point and every row of its window the features are
// summed in registers, and the run is added to an image of sums, with a border, in the workspace.
//
// A row of points is cut into segments, and a register tile takes one point of each: their runs do not
// overlap, and the stores of one tile have left the store buffer when the next one reads them. Sums of an
// element are added in the order of the points' rows, in a row from the beginning of each segment on. That
// order depends on the shape alone.
#include "compiler/backends/cpu/conv/ConvAlgorithms.h"
#include "compiler/backends/cpu/conv/dense/DenseEmitter.h"

#include "dialects/nn/NnShapes.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

/// Lanes of a vector that as many channels fill well.
static constexpr int64_t kNarrowLanes = 8;
/// Adding a run to memory takes as long as summing this many features.
static constexpr int64_t kLeastFeatures = 8;
/// Such vectors in all rows of a window: each is code of its own.
static constexpr int64_t kMostWindow = 32;
/// Elements of the image of sums, and of the filter, which should stay in the second-level cache.
static constexpr int64_t kMostImage = 256 << 10, kMostFilter = 64 << 10;
/// Segments of a row of points.
static constexpr int64_t kSegments = 6;

/// Spatial sizes of the image of sums: all that windows reach, and all that there are results for.
static SmallVector<int64_t, 3> sumsSizes(const ConvShape &shape) {
  SmallVector<int64_t, 3> sizes;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    int64_t reached =
        (shape.output[d] - 1) * shape.strides[d] + (shape.filter[d] - 1) * shape.dilations[d] + 1;
    sizes.push_back(std::max(reached, shape.low[d] + shape.input[d]));
  }
  return sizes;
}

bool isScattered(const ConvShape &shape) {
  int64_t run = shape.filter.back() * shape.channels,
          filter = nn::elementCount(shape.filter) * shape.channels;
  int64_t vectors = filter / run * ((run + kNarrowLanes - 1) / kNarrowLanes);
  return shape.groups == 1 && shape.batch > 1 && shape.channels < kNarrowLanes &&
         shape.features >= kLeastFeatures && shape.filter.back() > 1 && shape.dilations.back() == 1 &&
         llvm::all_of(shape.low, [](int64_t low) { return low >= 0; }) &&
         llvm::all_of(shape.output, [](int64_t size) { return size > 0; }) && vectors <= kMostWindow &&
         nn::elementCount(sumsSizes(shape)) * shape.channels <= kMostImage &&
         filter * shape.features <= kMostFilter;
}

namespace {

class ScatteredInputGrad : public DenseEmitter {
public:
  ScatteredInputGrad(ModuleOp module, const ConvSpec &spec, const Target &target)
      : DenseEmitter(module, spec, target), sizes(sumsSizes(shape)),
        run(shape.filter.back() * shape.channels), runVectors((run + lanes - 1) / lanes),
        window(nn::elementCount(shape.filter) / shape.filter.back() * runVectors) {}

  KernelInfo emit(ModuleOp module) {
    int64_t perImage = std::max<int64_t>(1, shape.flops() / shape.batch);
    int64_t perChunk =
        std::clamp<int64_t>((target.machine.parallel.convFlops + perImage - 1) / perImage, 1, shape.batch);
    info.chunks = (shape.batch + perChunk - 1) / perChunk;
    // The last run is added as whole vectors.
    int64_t sumsElements = nn::elementCount(sizes) * shape.channels + runVectors * lanes;
    int64_t filterElements = shape.features * window * lanes;
    begin(module, bytesOf(sumsElements) + bytesOf(filterElements));
    imageSums = kernel.workspaceView(*this, getLoc(), 0, element, sumsElements);
    filter = kernel.workspaceView(*this, getLoc(), bytesOf(sumsElements), element, filterElements);
    packFilter();
    Value first = mul(kernel.chunk, perChunk);
    loop({first, minimum(add(first, perChunk), index(shape.batch))}, 1, [&](Value image) {
      zeroRun(imageSums, index(0), sumsElements);
      overPositions(ArrayRef(shape.output).drop_back(), {},
                    [&](ArrayRef<Value> row) { emitRow(image, row); });
      overPositions(shape.input, {}, [&](ArrayRef<Value> position) { finish(image, position); });
    });
    return info;
  }

private:
  /// filter[feature][row of the window][position along it, channel], rows in whole vectors.
  void packFilter() {
    Panel panel{Value(), runVectors, run - (runVectors - 1) * lanes, filter, Value(), window * lanes};
    loop(0, window / runVectors, 1, [&](Value row) {
      transposePanel(panel, operandBuffer(1), mul(row, run * shape.features), shape.features,
                     mul(row, runVectors * lanes), shape.features);
    });
  }

  void overPositions(ArrayRef<int64_t> bounds, SmallVector<Value> outer,
                     llvm::function_ref<void(ArrayRef<Value>)> body) {
    if (outer.size() == bounds.size())
      return body(outer);
    loop(0, bounds[outer.size()], 1, [&](Value i) {
      SmallVector<Value> position = outer;
      position.push_back(i);
      overPositions(bounds, position, body);
    });
  }

  /// The points of a row of the gradient, one of each segment at a time.
  void emitRow(Value image, ArrayRef<Value> row) {
    int64_t points = shape.output.back(), stride = shape.strides.back();
    int64_t apart = (shape.filter.back() + stride - 1) / stride; // so far, runs do not overlap
    int64_t segment = std::max((points + kSegments - 1) / kSegments, apart);
    int64_t segments = (points + segment - 1) / segment, last = points - (segments - 1) * segment;
    SmallVector<Value> indices{image};
    indices.append(row.begin(), row.end());
    SmallVector<int64_t> bounds{shape.batch};
    bounds.append(shape.output.begin(), shape.output.end() - 1);
    Value source = mul(linear(bounds, indices), points * shape.features);
    auto emitPoints = [&](int64_t begin, int64_t end, int64_t count) {
      if (count > 0)
        loop(begin, end, 1, [&](Value point) { emitTiles(source, row, point, segment, count); });
    };
    emitPoints(0, last, segments);
    emitPoints(last, segment, segments - 1);
  }

  /// `count` points, `segment` apart.
  void emitTiles(Value source, ArrayRef<Value> row, Value point, int64_t segment, int64_t count) {
    if (target.isa.forSize) // one code for all vectors and points
      return loop(0, window, 1, [&](Value vector) {
        loop(0, count, 1, [&](Value number) {
          emitTile(source, row, add(point, mul(number, segment)), segment, 1, vector, 1);
        });
      });
    int64_t most = target.machine.tiles.convVectors;
    for (int64_t vector = 0; vector < window; vector += most) {
      int64_t vectors = std::min(most, window - vector);
      int64_t rows = count;
      while (rows > 1 && !fits(rows, vectors))
        --rows;
      for (int64_t from = 0; from < count; from += rows)
        emitTile(source, row, add(point, from * segment), segment, std::min(rows, count - from),
                 index(vector), vectors);
    }
  }

  void emitTile(Value source, ArrayRef<Value> row, Value point, int64_t segment, int64_t rows, Value vector,
                int64_t vectors) {
    IndexBuilder at(*this, getLoc());
    Offset first(add(source, mul(point, shape.features)));
    auto loadA = [&](int64_t r, ReductionIndex k) -> Value {
      return loadScalar(operandBuffer(0),
                        at.value(at.add(at.add(first, k[0]), r * segment * shape.features)));
    };
    auto loadB = [&](int64_t v, ReductionIndex k) -> Value {
      return load(filter,
                  at.value(at.add(at.mul(k[0], window * lanes), offsetOf(mul(add(vector, v), lanes)))),
                  lanes);
    };
    SmallVector<Value> zeros(rows * vectors, splat(element, 0, lanes));
    SmallVector<Value> values = emitMicrokernel(
        *this, getLoc(), {rows, vectors, lanes},
        {{Offset(shape.features), unrollOf(rows * vectors, shape.features)}}, zeros, {loadA, loadB}, fma);
    for (int64_t v = 0; v < vectors; ++v) {
      Value number = add(vector, v), begin = placeOf(row, point, div(number, runVectors));
      Value along = mul(rem(number, runVectors), lanes);
      for (int64_t r = 0; r < rows; ++r) {
        Value place = add(begin, add(along, r * segment * shape.strides.back() * shape.channels));
        Value sum = arith::AddFOp::create(*this, load(imageSums, place, lanes), values[r * vectors + v]);
        store(sum, imageSums, place);
      }
    }
  }

  /// Where the run of `point` in row `number` of its window begins.
  Value placeOf(ArrayRef<Value> row, Value point, Value number) {
    SmallVector<Value> position(shape.rank());
    position.back() = mul(point, shape.strides.back());
    for (int64_t d = shape.rank() - 2; d >= 0; --d) {
      position[d] = add(mul(row[d], shape.strides[d]), mul(rem(number, shape.filter[d]), shape.dilations[d]));
      number = div(number, shape.filter[d]);
    }
    return mul(linear(sizes, position), shape.channels);
  }

  void finish(Value image, ArrayRef<Value> position) {
    SmallVector<Value> place, result{image};
    for (auto [at, low] : llvm::zip_equal(position, shape.low)) {
      place.push_back(add(at, low));
      result.push_back(at);
    }
    Value from = mul(linear(sizes, place), shape.channels);
    tiles(shape.channels, lanes, [&](Value channel, int64_t width) {
      result.push_back(channel);
      storeResult(result, load(imageSums, add(from, channel), width));
      result.pop_back();
    });
  }

  SmallVector<int64_t, 3> sizes; // of the image of sums
  int64_t run, runVectors;       // of one row of a window: elements, vectors
  int64_t window;                // vectors of all its rows
  Value imageSums, filter;
};

} // namespace

KernelInfo emitScatteredInputGrad(ModuleOp module, const ConvSpec &spec, const Target &target) {
  return ScatteredInputGrad(module, spec, target).emit(module);
}

} // namespace ortc::cpu
