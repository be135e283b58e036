// Kernels' work in oneDNN 2.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "benchmarks/kernels/Libraries.h"

namespace ortc::benchmarks {

using LibraryRunPtr = std::unique_ptr<LibraryRun>;

LibraryRunPtr prepareDnnlProduct(const Product &product, const std::vector<void *> &arguments);
/// `channelsLast`: activations as they are; the filter is in the library's layout either way.
LibraryRunPtr prepareDnnlConvolution(const Convolution &convolution, ConvolutionKind kind, bool channelsLast,
                                     const std::vector<void *> &arguments);
LibraryRunPtr prepareDnnlSoftmax(int64_t rows, int64_t columns, const std::vector<void *> &arguments);
LibraryRunPtr prepareDnnlLayerNorm(int64_t rows, int64_t columns, const std::vector<void *> &arguments);
LibraryRunPtr prepareDnnlLayerNormGradient(int64_t rows, int64_t columns,
                                           const std::vector<void *> &arguments);
LibraryRunPtr prepareDnnlGelu(int64_t elements, const std::vector<void *> &arguments);

std::string describeDnnl();

} // namespace ortc::benchmarks
