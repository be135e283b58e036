// The ways to make a kernel of a convolution.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/conv/ConvEmitter.h"

namespace ortc::cpu {

/// The three operations, as bits.
enum ConvOperation : unsigned { kForward = 1, kInputGrad = 2, kFilterGrad = 4 };

struct ConvAlgorithm {
  const char *name;
  unsigned operations; ///< ConvOperation: those that it makes
  /// Whether it is for this convolution, where no algorithm before it is. A choice that changes the order of
  /// sums depends on the shape alone.
  bool (*applies)(const ConvSpec &spec, const kernels::ConvShape &shape, const Target &target);
  llvm::FailureOr<KernelInfo> (*emit)(mlir::ModuleOp module, const ConvSpec &spec, const Target &target);
};

/// In order of preference; the last ones are for all.
llvm::ArrayRef<ConvAlgorithm> convAlgorithms();
/// The first that is for this convolution.
const ConvAlgorithm &chooseAlgorithm(const ConvSpec &spec, const Target &target);

// grouped/: groups that are at least a vector wide; filter gradients also of windows that are points.
KernelInfo emitGroupedConv(mlir::ModuleOp module, const ConvSpec &spec, const Target &target);
KernelInfo emitGroupedFilterGrad(mlir::ModuleOp module, const ConvSpec &spec, const Target &target);

// narrow/: lanes run across groups. An element is summed over the taps in order of source position, then over
// the channels of its group (by four where there are eight). Of a filter gradient, a chunk owns a range of
// features; sums of tiles of a few rows are added up image after image.
KernelInfo emitNarrowConv(mlir::ModuleOp module, const ConvSpec &spec, const Target &target);
KernelInfo emitNarrowFilterGrad(mlir::ModuleOp module, const ConvSpec &spec, const Target &target);

// dense/: one group, every channel meets every feature.
llvm::FailureOr<KernelInfo> emitDenseConv(mlir::ModuleOp module, const ConvSpec &spec, const Target &target);
llvm::FailureOr<KernelInfo> emitDenseFilterGrad(mlir::ModuleOp module, const ConvSpec &spec,
                                                const Target &target);

// shallow/: one group of few channels.
/// Whether images and filter are better read in place.
bool isShallowConv(const ConvSpec &spec, const kernels::ConvShape &shape, const Target &target);
KernelInfo emitShallowConv(mlir::ModuleOp module, const ConvSpec &spec, const Target &target);
/// Whether a run of a window's row fills vectors better.
bool isScattered(const kernels::ConvShape &shape);
KernelInfo emitScatteredInputGrad(mlir::ModuleOp module, const ConvSpec &spec, const Target &target);
/// Whether a register tile takes in rows of the window.
bool isShallowFilterGrad(const kernels::ConvShape &shape);
KernelInfo emitShallowFilterGrad(mlir::ModuleOp module, const ConvSpec &spec, const Target &target);

// winograd/: chunks are groups of tiles and ranges of columns. Workspace: transformed filters, tiles and
// results of a group. Of a filter gradient, a chunk owns a phase of the window, a block of channels and a
// range of columns.
llvm::FailureOr<KernelInfo> emitWinogradConv(mlir::ModuleOp module, const ConvSpec &spec,
                                             const Target &target);
llvm::FailureOr<KernelInfo> emitWinogradFilterGrad(mlir::ModuleOp module, const ConvSpec &spec,
                                                   const Target &target);

// Product.cpp: the window is a point.
bool isProduct(const ConvSpec &spec);
/// Whether the matrix unit makes it faster than vectors, which gain nothing from the copies that the unit needs.
bool isProductForUnit(const ConvSpec &spec, const Target &target);
llvm::FailureOr<KernelInfo> emitProduct(mlir::ModuleOp module, const ConvSpec &spec, const Target &target);

} // namespace ortc::cpu
