// Sums of products: what contractions and convolutions have in common.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/emit/MathExpansion.h"
#include "compiler/backends/gpu/KernelBuilder.h"
#include "compiler/kernels/SumOrder.h"

#include <optional>

namespace ortc::gpu {

/// The matrix that has the rows of the results, or the one that has their columns.
enum class Side { row, column };

/// A position along the depth: `start` + `step`, where `start` is a multiple of `span` and `step` is less.
struct DepthPosition {
  mlir::Value start, step;
  int64_t span = 1;
};

/// Its digits, as those of a position in a row-major tensor. They come only from `start`, which the threads of a block
/// have in common, where no step reaches a neighbour of the innermost row.
llvm::SmallVector<mlir::Value> delinearize(ThreadBuilder &b, const DepthPosition &k,
                                           llvm::ArrayRef<int64_t> sizes);

/// Where an element of a matrix is stored.
struct ElementPlace {
  mlir::Value buffer, at;
  /// Where it does not hold, the element is zero and `at` leads nowhere. Null: it always holds.
  mlir::Value inside;
};

/// How far neighbours are from each other in memory, in elements: in row or column, and along the depth.
struct ElementStrides {
  int64_t index = 0, step = 0;
};

/// The places of the elements of matrices, and what becomes of sums. An object is for one launch.
class ProductAccess {
public:
  virtual ~ProductAccess() = default;
  /// Comes first: `number` is that of the product, in [0, ProductShape::products).
  virtual void begin(ThreadBuilder &b, mlir::Value number) = 0;
  /// Element `k` of row or column `index`. All three are within their bounds.
  virtual ElementPlace locate(ThreadBuilder &b, Side side, mlir::Value index, const DepthPosition &k) = 0;
  /// Where the places of all rows or columns, at the `span` steps from a multiple of it on, follow from one of them and
  /// have the same condition; null otherwise. So one address does for all that a thread loads of a stage.
  virtual std::optional<ElementStrides> stridesOf(Side, int64_t /*span*/) const { return std::nullopt; }
  virtual void store(ThreadBuilder &b, mlir::Value row, mlir::Value column, mlir::Value sum) = 0;
  /// A condition under which all elements of one side are zero, the same for all of the product; null: never.
  virtual mlir::Value isEmpty(ThreadBuilder &) { return {}; }
};

/// How the elements of one side are stored.
struct OperandLayout {
  /// Whether neighbours in memory differ in k; else in row or column.
  bool isAlongDepth = false;
  /// So many neighbours, a power of two, have one place and one condition, and start at a multiple of their bytes.
  int64_t run = 1;
  /// The type that is extended to that of the sums (`Widening`), null otherwise. f16 and bf16 are stored as i16.
  mlir::Type narrow = {};
};

/// `products` products of matrices: rows x depth times depth x columns.
struct ProductShape {
  int64_t products = 1, rows = 1, columns = 1, depth = 1;
  mlir::Type element; ///< of sums, f32 or f64
  OperandLayout row = {}, column = {};
  /// Where the results of the products lie beside each other within a row.
  bool areProductsInRows = false;
  /// Whether an element's place is computed anew for each, as convolutions do.
  bool isGathered = false;
  /// Steps of the depth within which such places differ by their distance only, from multiples of it on; 0: none.
  int64_t gatheredRun = 0;
  bool mayCutDepth = false; ///< whatever order of sums that leads to
  /// Parts of the depth that are summed side by side; their sums are added in order. All but the last are multiples of
  /// `partUnit`. `emitProduct` chooses them.
  int64_t parts = 1, partUnit = kPartDepthUnit;

  int64_t results() const { return products * rows * columns; }
  /// Tiles of so many rows and columns that cover all results.
  int64_t countTiles(int64_t tileRows, int64_t tileColumns) const;
  int64_t partDepth() const; ///< of all parts but the last, which may have less
  const OperandLayout &layoutOf(Side side) const { return side == Side::row ? row : column; }
};

/// An element as the type of the sums.
mlir::Value loadElement(ThreadBuilder &b, const ProductShape &shape, ProductAccess &access, Side side,
                        mlir::Value index, const DepthPosition &k);

/// The longest run of elements of `bits` that divides all of `strides` and starts at multiples of its bytes, at most 16
/// bytes. `alignment`: bytes that the start of the buffer is a multiple of.
int64_t longestRun(llvm::ArrayRef<int64_t> strides, unsigned bits, int64_t alignment);

/// The positions along the depth of a part, none where `access` says that the product is empty.
IndexRange rangeOf(ThreadBuilder &b, const ProductShape &shape, ProductAccess &access, mlir::Value part);

/// So many parts that a device is busy, where there is enough for each to sum. Depends on the shape only: so the order
/// of sums does, whatever is fused with them.
int64_t chooseParts(const ProductShape &shape);

/// Adds the launches: tiles through shared memory, on tensor cores with fast numerics where there are some, or a thread
/// for each result where rows or columns are few. Every sum is that of k from the first to the last, part by part.
/// `makeAccess`: for the buffers of a launch.
void emitProduct(
    KernelBuilder &kernel, ProductShape shape,
    llvm::function_ref<std::unique_ptr<ProductAccess>(llvm::ArrayRef<mlir::Value> buffers)> makeAccess,
    const MathOptions &options);

} // namespace ortc::gpu
