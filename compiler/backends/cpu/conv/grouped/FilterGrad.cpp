// Filter gradient of groups and of points.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// dW = A^T B: rows of a register tile are neighbours in (filter position along the last dimension, channel),
// columns are features, the reduction runs over the results of a block of image rows. Blocks are added up in
// the filter itself, image after image, so that no sum is one long chain. A chunk owns a filter position of
// the first dimension and a range of column blocks: chunks share nothing, at the price of copying the padded
// image once for each.
#include "compiler/backends/cpu/conv/ConvAlgorithms.h"

#include "dialects/nn/NnShapes.h"

using namespace mlir;

namespace ortc::cpu {

using namespace emit;
using namespace kernels;

/// Of the gradient in a block: with the source's, in the second-level cache.
static constexpr int64_t kGradientBytes = 256 << 10;
/// Results of a block, unless depthwise: two vectors of each gradient, and as many rows of the source as a
/// tile reads, in the first-level cache.
static constexpr int64_t kBlockResults = 128;
/// More bytes than this with fewer operations a byte are a stream.
static constexpr int64_t kStreamBytes = 8 << 20, kStreamIntensity = 12;
/// Most ranges that the column blocks are split in.
static constexpr int64_t kColumnRanges = 4;
/// With fewer operations a byte and lane on more than a second-level cache holds, the next block of points is fetched.
static constexpr int64_t kFetchIntensity = 2;
/// Rows of a tile, unless depthwise: with few vectors of columns, enough sums to be in flight.
static constexpr int64_t kMostRows = 12;

namespace {

class FilterGradEmitter : public ConvEmitter {
public:
  FilterGradEmitter(ModuleOp module, const ConvSpec &spec, const Target &target)
      : ConvEmitter(module, spec, target) {
    if (isMatrixProduct()) {
      joinPoints();
      fetchesNext = bytesRead > target.machine.l2Bytes && shape.flops() < kFetchIntensity * lanes * bytesRead;
    }
    for (int64_t d = 0; d < shape.rank(); ++d)
      walks.push_back(forwardWalk(shape, d));
  }

  KernelInfo emit(ModuleOp module) {
    block = planSource({walks}, shape.input, shape.channels, elementBytes);
    bool depthwise = shape.isDepthwise();
    // Rows of the gradient are read again for every tile, as those of the source are.
    int64_t rowBytes = nn::elementCount(ArrayRef(shape.output).drop_front()) * shape.features * elementBytes;
    block.limitPoints(
        std::clamp<int64_t>(kGradientBytes / std::max<int64_t>(1, rowBytes), 1, block.blockPoints),
        shape.output[0]);
    if (!depthwise) {
      int64_t ofPoint = nn::elementCount(ArrayRef(shape.output).drop_front());
      block.limitPoints(std::clamp<int64_t>(kBlockResults / ofPoint, 1, block.blockPoints), shape.output[0]);
    }
    groupColumns = depthwise ? shape.features : shape.groupFeatures();
    int64_t groups = depthwise ? 1 : shape.groups;
    columnBlocks = (groupColumns + kConvColumns - 1) / kConvColumns;
    int64_t total = groups * columnBlocks, ranges = isStream() || shape.parts > 1 ? 1 : rangesOf(total);
    perRange = (total + ranges - 1) / ranges;
    ranges = (total + perRange - 1) / perRange;
    info.chunks = shape.filter[0] * ranges;

    begin(module, block.copied ? block.elements() * elementBytes : 0);
    if (block.copied)
      blockBuffer = kernel.workspaceView(*this, getLoc(), 0, element, block.elements());
    clearBlock(block);
    firstTap = div(kernel.chunk, ranges);
    Value range = rem(kernel.chunk, ranges);
    IndexRange own{mul(range, perRange), minimum(mul(add(range, 1), perRange), index(total))};
    overOwnColumns(own,
                   [&](Value group, Value column, int64_t width) { clearColumns(group, column, width); });
    loop(0, shape.batch, 1, [&](Value n) {
      loop(0, block.blocks, 1, [&](Value b) {
        image = n;
        blockIndex = b;
        fillBlock(block, operandBuffer(0), n, b);
        overOwnColumns(own,
                       [&](Value group, Value column, int64_t width) { addBlock(group, column, width); });
      });
    });
    return info;
  }

private:
  /// Whether the window is every point of the image.
  bool isMatrixProduct() const {
    auto all = [](ArrayRef<int64_t> values, int64_t wanted) {
      return llvm::all_of(values, [&](int64_t value) { return value == wanted; });
    };
    return shape.groups == 1 && all(shape.filter, 1) && all(shape.strides, 1) && all(shape.low, 0) &&
           shape.input == shape.output;
  }
  /// All points of all images become one line, which blocks cut anywhere.
  void joinPoints() {
    int64_t points = shape.batch * nn::elementCount(shape.input);
    shape.batch = 1;
    shape.input = shape.output = {points};
    shape.filter = shape.strides = shape.dilations = {1};
    shape.low = {0};
  }

  /// Whether memory is the limit: little arithmetic on more than a cache holds. Workers that read pieces of
  /// the same lines would fetch everything twice, and be no faster than one.
  bool isStream() const { return bytesRead > kStreamBytes && shape.flops() < kStreamIntensity * bytesRead; }

  /// Ranges that `total` column blocks are split in: the fewest that keep workers as busy as more would.
  /// Every range reads the source again, and pieces of the gradient's lines.
  int64_t rangesOf(int64_t total) const {
    int64_t best = 1;
    double least = 0;
    for (int64_t ranges = 1; ranges <= std::min(total, kColumnRanges); ++ranges) {
      int64_t blocks = (total + ranges - 1) / ranges;
      std::vector<int64_t> chunks((total + blocks - 1) / blocks, 0);
      for (int64_t i = 0; i < total; ++i)
        chunks[i / blocks] += std::min(kConvColumns, groupColumns - i % columnBlocks * kConvColumns);
      std::vector<int64_t> all;
      for (int64_t tap = 0; tap < shape.filter[0]; ++tap)
        all.insert(all.end(), chunks.begin(), chunks.end());
      double imbalance = findImbalance(all, target.workers);
      if (ranges == 1 || imbalance < least)
        best = ranges, least = imbalance;
    }
    return best;
  }

  /// The column blocks of this chunk: body(group, first column in the group, width).
  void overOwnColumns(IndexRange own, llvm::function_ref<void(Value, Value, int64_t)> body) {
    int64_t rest = groupColumns % kConvColumns;
    loop(own, 1, [&](Value at) {
      Value group = div(at, columnBlocks), part = rem(at, columnBlocks), column = mul(part, kConvColumns);
      if (rest == 0 || columnBlocks == 1) {
        body(group, column, std::min(groupColumns, kConvColumns));
        return;
      }
      Value isLast = arith::CmpIOp::create(*this, arith::CmpIPredicate::eq, part, index(columnBlocks - 1));
      auto branch = scf::IfOp::create(*this, isLast, /*withElseRegion=*/true);
      OpBuilder::InsertionGuard guard(*this);
      setInsertionPoint(branch.thenYield());
      body(group, column, rest);
      setInsertionPoint(branch.elseYield());
      body(group, column, kConvColumns);
    });
  }

  /// Filter positions of all dimensions but the first and the last: body(them).
  void overMiddleTaps(SmallVector<Value> taps, llvm::function_ref<void(ArrayRef<Value>)> body) {
    int64_t d = taps.size() + 1;
    if (d >= shape.rank() - 1) {
      body(taps);
      return;
    }
    loop(0, shape.filter[d], 1, [&](Value t) {
      auto inner = taps;
      inner.push_back(t);
      overMiddleTaps(inner, body);
    });
  }

  /// First element of row `row` (last filter position times channels of a group, plus channel) of the filter.
  Value filterAt(ArrayRef<Value> middle, Value row, Value column) {
    Value tap = shape.rank() == 1 ? index(0) : firstTap;
    for (auto [i, t] : llvm::enumerate(middle))
      tap = add(mul(tap, shape.filter[i + 1]), t);
    int64_t rows = lastTaps() * (shape.isDepthwise() ? 1 : shape.groupChannels());
    if (shape.rank() == 1)
      row = add(row, mul(firstTap, shape.isDepthwise() ? 1 : shape.groupChannels()));
    return add(mul(add(mul(tap, rows), row), shape.features), column);
  }

  /// Filter positions along the tiled dimension: with one dimension the chunk has chosen it already.
  int64_t lastTaps() const { return shape.rank() == 1 ? 1 : shape.filter.back(); }

  Value featureColumn(Value group, Value column) {
    return add(mul(group, shape.isDepthwise() ? 0 : shape.groupFeatures()), column);
  }

  void clearColumns(Value group, Value column, int64_t width) {
    int64_t rows = lastTaps() * (shape.isDepthwise() ? 1 : shape.groupChannels());
    overMiddleTaps({}, [&](ArrayRef<Value> middle) {
      loop(0, rows, 1, [&](Value row) {
        zeroRun(operandBuffer(2), filterAt(middle, row, featureColumn(group, column)), width);
      });
    });
  }

  /// Adds what the block of image rows in hand contributes.
  void addBlock(Value group, Value column, int64_t width) {
    overMiddleTaps({}, [&](ArrayRef<Value> middle) {
      int64_t channels = shape.groupChannels();
      tiles(width, columns, [&](Value part, int64_t partWidth) {
        Value at = add(column, part);
        if (shape.isDepthwise()) {
          tileRows(lastTaps(), middle, group, at, partWidth, index(0), walks.back().tapStep * shape.channels);
        } else {
          loop(0, lastTaps(), 1,
               [&](Value tap) { tileRows(channels, middle, group, at, partWidth, tap, 1); });
        }
      });
    });
  }

  /// Tiles over `count` rows whose operands lie `rowStride` apart in the source; the first belongs to filter position
  /// `tap` along the last dimension.
  void tileRows(int64_t count, ArrayRef<Value> middle, Value group, Value column, int64_t width, Value tap,
                int64_t rowStride) {
    int64_t vectors = (width + lanes - 1) / lanes;
    int64_t highest = shape.isDepthwise() ? 6 : kMostRows;
    int64_t most = std::clamp<int64_t>(target.machine.tiles.accumulators / vectors, 1, highest), from = 0;
    for (auto [size, pieces] : evenTiles(count, most)) {
      loop(from, from + size * pieces, size,
           [&](Value row) { emitTile(size, row, middle, group, column, width, tap, rowStride); });
      from += size * pieces;
    }
  }

  void emitTile(int64_t rows, Value row, ArrayRef<Value> middle, Value group, Value column, int64_t width,
                Value tap, int64_t rowStride) {
    int64_t rank = shape.rank();
    bool depthwise = shape.isDepthwise();
    // Results of this block: points of dimension 0, then the other dimensions.
    Value begin = mul(blockIndex, block.blockPoints);
    Value points = sub(minimum(add(begin, block.blockPoints), index(shape.output[0])), begin);
    SmallVector<ReductionLoop> loops{{Offset(points), 1}};
    for (int64_t d = 1; d < rank; ++d)
      loops.push_back({Offset(shape.output[d]), 1});
    loops.back().unroll = std::min<int64_t>(4, shape.output.back());

    // Source position of the first result with this tile's taps.
    SmallVector<Value> position;
    for (int64_t d = 0; d < rank; ++d) {
      Value t = d == 0 ? firstTap : d == rank - 1 ? tap : middle[d - 1];
      Value at = add(mul(t, walks[d].tapStep), walks[d].base + (block.copied ? block.origin[d] : 0));
      if (d == 0 && !block.copied)
        at = add(at, mul(begin, walks[0].sourceStride));
      position.push_back(at);
    }
    Value sourceBase = add(sourceOffset(block, image, position), mul(row, rowStride));
    sourceBase = add(sourceBase, depthwise ? column : mul(group, shape.groupChannels()));
    Value sourceBuffer = block.copied ? blockBuffer : operandBuffer(0);
    SmallVector<int64_t> sourceSteps(rank), gradientSteps(rank);
    int64_t sourceStride = shape.channels, gradientStride = shape.features;
    for (int64_t d = rank - 1; d >= 0; --d) {
      sourceSteps[d] = sourceStride * walks[d].sourceStride;
      gradientSteps[d] = gradientStride;
      sourceStride *= block.sizes[d];
      gradientStride *= shape.output[d];
    }
    Value gradientBase = add(mul(image, gradientStride), mul(begin, gradientSteps[0]));
    gradientBase = add(gradientBase, featureColumn(group, column));
    auto walk = [&](Value at, ReductionIndex k, ArrayRef<int64_t> steps) {
      for (int64_t d = 0; d < rank; ++d)
        at = add(at, mul(offsetValue(k[d]), steps[d]));
      return at;
    };

    Value filterRow = add(row, mul(tap, depthwise ? 1 : shape.groupChannels()));
    auto run = [&](int64_t firstVector, int64_t count, int64_t lanesUsed) {
      // Tiles of rows take turns with the lines that the columns of a point have.
      int64_t lineElements = 64 / elementBytes, lines = (count * lanes + lineElements - 1) / lineElements,
              tiles = (shape.groupChannels() + rows - 1) / rows, linesOfTile = (lines + tiles - 1) / tiles;
      Value firstLine = rem(div(row, rows), (lines + linesOfTile - 1) / linesOfTile);
      Value nextSource = add(sourceBase, block.blockPoints * shape.channels);
      Value nextGradient = add(add(gradientBase, mul(firstLine, linesOfTile * lineElements)),
                               block.blockPoints * shape.features + firstVector * lanes);
      auto fetchNext = [&](ReductionIndex k) {
        fetch(sourceBuffer, walk(nextSource, k, sourceSteps), /*writes=*/false, /*level=*/2);
        for (int64_t i = 0; i < linesOfTile; ++i)
          fetch(operandBuffer(1), add(walk(nextGradient, k, gradientSteps), i * lineElements),
                /*writes=*/false, /*level=*/2);
      };
      SmallVector<Value> init(rows * count, splat(element, 0, lanesUsed));
      auto loadA = [&](int64_t r, ReductionIndex k) -> Value {
        Value at = add(walk(sourceBase, k, sourceSteps), r * rowStride);
        return depthwise ? load(sourceBuffer, add(at, firstVector * lanes), lanesUsed)
                         : loadScalar(sourceBuffer, at);
      };
      auto loadB = [&](int64_t v, ReductionIndex k) {
        if (fetchesNext && v == 0)
          fetchNext(k);
        return load(operandBuffer(1), add(walk(gradientBase, k, gradientSteps), (firstVector + v) * lanes),
                    lanesUsed);
      };
      auto sums =
          emitMicrokernel(*this, getLoc(), {rows, count, lanesUsed}, loops, init, {loadA, loadB}, fma);
      for (int64_t r = 0; r < rows; ++r) {
        Value at = filterAt(middle, add(filterRow, r), featureColumn(group, column));
        for (int64_t v = 0; v < count; ++v) {
          Value place = add(at, (firstVector + v) * lanes);
          Value old = load(operandBuffer(2), place, lanesUsed);
          store(arith::AddFOp::create(*this, old, sums[r * count + v]), operandBuffer(2), place);
        }
      }
    };
    int64_t whole = width / lanes, vectors = (width + lanes - 1) / lanes;
    if (depthwise) {
      for (int64_t v = 0; v < vectors; ++v)
        run(v, 1, std::min(lanes, width - v * lanes));
      return;
    }
    if (whole)
      run(0, whole, lanes);
    if (whole < vectors)
      run(whole, 1, width - whole * lanes);
  }

  bool fetchesNext = false;
  SmallVector<Walk, 3> walks;
  SourceBlock block;
  int64_t groupColumns = 0, columnBlocks = 0, perRange = 0;
  Value firstTap, image, blockIndex;
};

} // namespace

KernelInfo emitGroupedFilterGrad(ModuleOp module, const ConvSpec &spec, const Target &target) {
  return FilterGradEmitter(module, spec, target).emit(module);
}

} // namespace ortc::cpu
