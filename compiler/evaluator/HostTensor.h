// A tensor in host memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row-major elements, held wide: floating point as double, integers and booleans as sign-extended int64
// (booleans as 0 or 1). What an element type cannot hold is rounded away when a value is stored.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ortc::evaluator {

/// Constants of up to this many bytes are `dense` attributes; larger ones are resources.
inline constexpr int64_t kInlineConstantBytes = 4096;

class HostTensor {
public:
  HostTensor() = default;
  /// All zeros.
  explicit HostTensor(mlir::RankedTensorType type);
  /// Reads dense, splat and resource attributes; fails on others.
  static mlir::FailureOr<HostTensor> fromAttribute(mlir::ElementsAttr attribute);
  /// A dense attribute, or above kInlineConstantBytes a resource named after `name`.
  mlir::ElementsAttr toAttribute(llvm::StringRef name = "constant") const;

  mlir::RankedTensorType getType() const { return type; }
  llvm::ArrayRef<int64_t> getShape() const { return type.getShape(); }
  int64_t getRank() const { return type.getRank(); }
  int64_t size() const { return type.getNumElements(); }
  bool isFloat() const { return mlir::isa<mlir::FloatType>(type.getElementType()); }

  double getFloat(int64_t i) const { return floats[i]; }
  int64_t getInt(int64_t i) const { return ints[i]; }
  void setFloat(int64_t i, double value) { floats[i] = value; }
  void setInt(int64_t i, int64_t value) { ints[i] = value; }
  /// Copies one element of a tensor of the same kind.
  void copy(int64_t to, const HostTensor &from, int64_t at) {
    if (isFloat())
      floats[to] = from.floats[at];
    else
      ints[to] = from.ints[at];
  }
  /// The same elements under another type of equal count and kind.
  HostTensor withType(mlir::RankedTensorType other) const;
  /// `count` elements from `at` on, all of a tensor of the same kind, to `to`.
  void copy(int64_t to, const HostTensor &from, int64_t at, int64_t count) {
    if (isFloat())
      std::copy_n(from.floats.begin() + at, count, floats.begin() + to);
    else
      std::copy_n(from.ints.begin() + at, count, ints.begin() + to);
  }
  /// Rounds every number (of a floating-point type) or wraps every integer to its element type.
  void round();
  void wrap();

private:
  /// From and to little-endian elements in whole bytes.
  void read(const char *data);
  void write(char *data) const;

  mlir::RankedTensorType type;
  std::vector<double> floats;
  std::vector<int64_t> ints;
};

/// `value` as the floating-point type `element` holds it.
double roundTo(mlir::Type element, double value);
/// `value` as the integer type `element` holds it: wrapped and sign-extended; i1 gives 0 or 1.
int64_t wrapTo(mlir::Type element, int64_t value);
/// Steps `index` to the next element in row-major order; false after the last one.
bool nextIndex(llvm::MutableArrayRef<int64_t> index, llvm::ArrayRef<int64_t> shape);

} // namespace ortc::evaluator
