// Products in OpenBLAS.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "benchmarks/kernels/Libraries.h"

namespace ortc::benchmarks {

std::unique_ptr<LibraryRun> prepareOpenBlasProduct(const Product &product,
                                                   const std::vector<void *> &arguments);
std::string describeOpenBlas();

} // namespace ortc::benchmarks
