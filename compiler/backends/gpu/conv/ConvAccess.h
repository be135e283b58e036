// Convolutions and their gradients as products of matrices that are never stored.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/product/Product.h"
#include "compiler/kernels/conv/ConvForm.h"

namespace ortc::gpu {

/// A convolution as products, and where their elements are. What a window reads beside the image counts as zero.
///
/// - Forward, a product for each group: rows are positions of the output, columns features, depth is filter positions,
///   then channels.
/// - Input gradient, a product for each phase of the strides and each group: rows are positions of the input, columns
///   channels, depth is filter positions, then features. A dimension that has both stride and dilation has one phase,
///   whose rows meet most filter positions in vain.
/// - Filter gradient, a product for each part of the batch and each group: rows are filter positions and channels,
///   columns features, depth is images, then positions of the output.
struct ConvProduct {
  ProductShape shape;
  std::function<std::unique_ptr<ProductAccess>(llvm::ArrayRef<mlir::Value> buffers)> makeAccess;
};

/// `form` and `options` must outlive it; `kernel` knows its buffers.
ConvProduct makeConvProduct(const ConvForm &form, const MathOptions &options, const KernelBuilder &kernel);

} // namespace ortc::gpu
