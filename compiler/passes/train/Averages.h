// Averages of parameters over the updates: state that steps keep for evaluation.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/options/UpdateSpecs.h"
#include "compiler/passes/train/ProgramTensors.h"

namespace ortc::train {

/// One kind of averages, `ema` or `swa`: of each parameter the state `NAME.kind`, and of all of them `kind.n_averaged`,
/// how many updates are in it. A new value v moves the average a by (v - a) share; the first one is the average.
class Averages {
public:
  /// Declares the count, and computes the share of an update that comes after `updates` others (i64).
  static mlir::FailureOr<Averages> ema(const EmaSpec &spec, ProgramTensors &tensors,
                                       nn::TensorBuilder &builder);
  static mlir::FailureOr<Averages> swa(const SwaSpec &spec, mlir::Value updates, ProgramTensors &tensors,
                                       nn::TensorBuilder &builder);

  /// The count after this update, and before it.
  const Port &getCount() const { return count; }
  mlir::Value getCountBefore() const { return countBefore; }
  /// Declares the average of a parameter whose new value is `value`: the average after this update, and before it.
  mlir::FailureOr<std::pair<Port, mlir::Value>>
  move(TensorOp parameter, mlir::Value value, ProgramTensors &tensors, nn::TensorBuilder &builder) const;

private:
  Averages(const char *kind, Port count, mlir::Value countBefore, mlir::Value share)
      : kind(kind), count(count), countBefore(countBefore), share(share) {}

  const char *kind;
  Port count;
  mlir::Value countBefore, share; ///< i64, f64
};

} // namespace ortc::train
