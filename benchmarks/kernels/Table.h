// Results as a markdown table.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "benchmarks/kernels/KernelBenchmark.h"

namespace ortc::benchmarks {

/// A kernel's line, with all columns there are.
std::string tableRow(const KernelResult &result);

/// A line for every kernel, and below them a line for every group.
void printTable(const std::vector<KernelResult> &results);

} // namespace ortc::benchmarks
