// Products in OpenBLAS.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_BENCHMARKS_KERNELS_OPENBLAS_H
#define ORTC_BENCHMARKS_KERNELS_OPENBLAS_H

#include "benchmarks/kernels/Libraries.h"

namespace ortc::benchmarks {

std::unique_ptr<LibraryRun> prepareOpenBlasProduct(const Product &product,
                                                   const std::vector<void *> &arguments);
std::string describeOpenBlas();

} // namespace ortc::benchmarks

#endif // ORTC_BENCHMARKS_KERNELS_OPENBLAS_H
