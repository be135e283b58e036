// Sums of products: what contractions and convolutions have in common.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/product/Product.h"

#include "compiler/backends/emit/StorageConversion.h"
#include "compiler/backends/gpu/product/MatrixProduct.h"
#include "compiler/backends/gpu/product/TiledProduct.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ortc::gpu {

int64_t ProductShape::partDepth() const {
  return llvm::alignTo(llvm::divideCeilSigned(depth, parts), partUnit);
}

int64_t ProductShape::countTiles(int64_t tileRows, int64_t tileColumns) const {
  return products * llvm::divideCeilSigned(rows, tileRows) * llvm::divideCeilSigned(columns, tileColumns);
}

IndexRange rangeOf(ThreadBuilder &b, const ProductShape &shape, ProductAccess &access, Value part) {
  IndexRange range{b.index(0), b.index(shape.depth)};
  if (shape.parts > 1) {
    range.begin = b.mul(part, shape.partDepth());
    range.end = b.minimum(b.add(range.begin, shape.partDepth()), range.end);
  }
  if (Value isEmpty = access.isEmpty(b))
    range.end = b.choose(isEmpty, range.begin, range.end);
  return range;
}

/// So many parts that a device is busy where a thread has each sum.
static int64_t choosePartsOfThreads(const ProductShape &shape) {
  int64_t wanted = llvm::divideCeilSigned(kPartSums, std::max<int64_t>(shape.results(), 1));
  wanted = std::min({wanted, kMostDepthParts, shape.depth / kLeastPartDepth});
  if (wanted <= 1)
    return 1;
  ProductShape cut = shape; // also its unit
  cut.parts = wanted;
  return llvm::divideCeilSigned(shape.depth, cut.partDepth()); // none is empty
}

int64_t chooseParts(const ProductShape &shape) {
  if (isNarrow(shape))
    return choosePartsOfThreads(shape);
  return chooseCut(shape, listTiles(shape), /*mayCutDepth=*/true, kPartDepthUnit).parts;
}

/// value / size of `value` < `bound`. The product by a reciprocal is exact: each unit is too large by less than
/// `size` / 2^16 of the result's last. LLVM would divide by more instructions, in fewer bits.
static Value divideBelow(ThreadBuilder &b, Value value, int64_t size, int64_t bound) {
  constexpr int64_t kOne = 1 << 16;
  if (llvm::isPowerOf2_64(size) || bound * size > kOne || bound * (kOne / size + 1) >= int64_t(1) << 31)
    return b.div(value, size);
  return b.div(b.mul(value, llvm::divideCeilSigned(kOne, size)), kOne);
}

SmallVector<Value> delinearize(ThreadBuilder &b, const DepthPosition &k, ArrayRef<int64_t> sizes) {
  if (sizes.back() % k.span != 0)
    return delinearize(b, b.add(k.start, k.step), sizes);
  SmallVector<Value> digits(sizes.size());
  Value rest = k.start;
  int64_t bound = 1;
  for (int64_t size : sizes)
    bound *= size;
  for (size_t i = sizes.size(); i-- > 1; bound = llvm::divideCeilSigned(bound, sizes[i])) {
    Value quotient = divideBelow(b, rest, sizes[i], bound);
    digits[i] = b.sub(rest, b.mul(quotient, sizes[i]));
    rest = quotient;
  }
  digits[0] = rest;
  digits.back() = b.add(digits.back(), k.step);
  return digits;
}

Value loadElement(ThreadBuilder &b, const ProductShape &shape, ProductAccess &access, Side side, Value index,
                  const DepthPosition &k) {
  ElementPlace place = access.locate(b, side, index, k);
  auto load = [&]() -> Value {
    Value value = b.loadScalar(place.buffer, place.at);
    Type narrow = shape.layoutOf(side).narrow;
    return narrow ? extendToF32(b, b.getLoc(), value, narrow) : value;
  };
  if (!place.inside)
    return load();
  Value zero = arith::ConstantOp::create(b, b.getZeroAttr(shape.element));
  return b.guarded(place.inside, zero, [&]() -> SmallVector<Value> { return {load()}; })[0];
}

int64_t longestRun(ArrayRef<int64_t> strides, unsigned bits, int64_t alignment) {
  int64_t run = std::min(kAccessBytes, alignment) * 8 / bits;
  for (int64_t stride : strides)
    while (run > 1 && stride % run != 0)
      run /= 2;
  return std::max<int64_t>(run, 1);
}

namespace {

class ProductEmitter {
public:
  using MakeAccess = llvm::function_ref<std::unique_ptr<ProductAccess>(ArrayRef<Value>)>;
  ProductEmitter(KernelBuilder &kernel, const ProductShape &shape, MakeAccess makeAccess,
                 const MathOptions &options)
      : kernel(kernel), shape(shape), makeAccess(makeAccess), options(options) {}

  /// `matrix`: null without tensor cores.
  void emit(const MatrixPlan *matrix) {
    if (shape.parts > 1)
      kernel.reserveScratch(shape.parts * shape.results() * (shape.element.getIntOrFloatBitWidth() / 8));
    if (matrix) {
      emitMatrixTiles(*matrix);
    } else if (isNarrow(shape)) {
      emitThreads();
    } else {
      auto tiles = listTiles(shape);
      const TileCandidate &tile = tiles[chooseTile(shape, tiles)];
      // ptxas comes to two blocks of the largest tile by itself; where it must, it spills.
      bool isLargest = tile.rows * tile.columns == 128 * 128;
      emitTiles({tile.rows, tile.columns, tile.depth, isLargest ? 0 : tile.resident},
                estimateCycles(shape, tile, shape.parts));
    }
    if (shape.parts > 1)
      emitJoin();
  }

private:
  /// A result by its position in the order in which threads make them.
  struct Result {
    Value product, row, column;
  };
  Result resultAt(ThreadBuilder &b, Value position) {
    if (shape.areProductsInRows) {
      auto digits = delinearize(b, position, {shape.rows, shape.products, shape.columns});
      return {digits[1], digits[0], digits[2]};
    }
    auto digits = delinearize(b, position, {shape.products, shape.rows, shape.columns});
    return {digits[0], digits[1], digits[2]};
  }
  Value positionOf(ThreadBuilder &b, const Result &result) {
    Value outer = shape.areProductsInRows ? b.add(b.mul(result.row, shape.products), result.product)
                                          : b.add(b.mul(result.product, shape.rows), result.row);
    return b.add(b.mul(outer, shape.columns), result.column);
  }

  /// Sums of parts, one part after the other.
  Value partSums(ThreadBuilder &b, Value scratch) {
    auto type = MemRefType::get({shape.parts * shape.results()}, shape.element);
    return memref::ViewOp::create(b, type, scratch, b.index(0), ValueRange{});
  }
  void store(ThreadBuilder &b, ProductAccess &access, Value scratch, Value part, const Result &result,
             Value sum) {
    if (shape.parts == 1)
      return access.store(b, result.row, result.column, sum);
    Value at = b.add(b.mul(part, shape.results()), positionOf(b, result));
    memref::StoreOp::create(b, sum, partSums(b, scratch), ValueRange{at});
  }

  /// Steps of a block, each of so much of the depth.
  int64_t stepsOf(int64_t depth) const {
    return llvm::divideCeilSigned(shape.parts > 1 ? shape.partDepth() : shape.depth, depth);
  }

  void emitTiles(const ProductTile &tile, double cycles) {
    int64_t blocks = shape.parts * shape.countTiles(tile.rows, tile.columns);
    auto body = [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments) {
      auto access = makeAccess(arguments.buffers);
      emitTile(kernel, b, shape, tile, *access, options,
               [&](Value part, Value product, Value row, Value column, Value sum) {
                 store(b, *access, arguments.scratch, part, {product, row, column}, sum);
               });
    };
    kernel.launch(blocks, kTileThreads, body, {.resident = tile.resident});
    kernel.noteProduct(stepsOf(tile.depth), cycles);
  }

  void emitMatrixTiles(const MatrixPlan &plan) {
    int64_t blocks = shape.parts * shape.countTiles(plan.tile.rows, plan.tile.columns);
    auto body = [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments) {
      auto access = makeAccess(arguments.buffers);
      emitMatrixTile(kernel, b, shape, plan, *access,
                     [&](Value part, Value product, Value row, Value column, Value sum) {
                       store(b, *access, arguments.scratch, part, {product, row, column}, sum);
                     });
    };
    kernel.launch(blocks, plan.threads(), body,
                  {.resident = plan.resident, .keepsLoads = !plan.tile.isAsync});
    kernel.noteProduct(stepsOf(plan.tile.depth), plan.cycles);
  }

  void emitThreads() {
    auto body = [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments, Value position) {
      auto access = makeAccess(arguments.buffers);
      Value part = b.div(position, shape.results());
      Result result = resultAt(b, shape.parts == 1 ? position : b.rem(position, shape.results()));
      access->begin(b, result.product);
      IndexRange range = rangeOf(b, shape, *access, part);
      Value zero = arith::ConstantOp::create(b, b.getZeroAttr(shape.element));
      Value sum = b.fold(range, 1, zero, [&](Value k, ValueRange carried) -> SmallVector<Value> {
        DepthPosition position{k, b.index(0)};
        Value left = loadElement(b, shape, *access, Side::row, result.row, position);
        Value right = loadElement(b, shape, *access, Side::column, result.column, position);
        return {multiplyAdd(b, b.getLoc(), left, right, carried[0], options)};
      })[0];
      store(b, *access, arguments.scratch, part, result, sum);
    };
    kernel.launchThreads(shape.parts * shape.results(), body);
  }

  void emitJoin() {
    auto body = [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments, Value position) {
      auto access = makeAccess(arguments.buffers);
      Result result = resultAt(b, position);
      access->begin(b, result.product);
      Value sums = partSums(b, arguments.scratch);
      Value first = b.loadScalar(sums, position);
      Value sum = b.fold({b.index(1), b.index(shape.parts)}, 1, first,
                         [&](Value part, ValueRange carried) -> SmallVector<Value> {
                           Value next = b.loadScalar(sums, b.add(b.mul(part, shape.results()), position));
                           return {arith::AddFOp::create(b, carried[0], next)};
                         })[0];
      access->store(b, result.row, result.column, sum);
    };
    kernel.launchThreads(shape.results(), body);
  }

  KernelBuilder &kernel;
  const ProductShape &shape;
  MakeAccess makeAccess;
  const MathOptions &options;
};

} // namespace

void emitProduct(KernelBuilder &kernel, ProductShape shape, ProductEmitter::MakeAccess makeAccess,
                 const MathOptions &options) {
  if (shape.results() == 0)
    return;
  std::optional<MatrixPlan> matrix;
  if (kernel.getNumerics() == Numerics::Fast)
    matrix = planMatrix(shape, kernel.getProcessor(), kernel.usesTf32());
  if (matrix)
    shape.parts = matrix->parts, shape.partUnit = kMatrixPartUnit;
  else if (shape.mayCutDepth)
    shape.parts = chooseParts(shape);
  ProductEmitter(kernel, shape, makeAccess, options).emit(matrix ? &*matrix : nullptr);
}

} // namespace ortc::gpu
