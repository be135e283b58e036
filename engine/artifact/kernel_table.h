// What the manifest says about the kernels of an artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

namespace ortc::engine {

/// A kernel, which any number of steps may call.
struct KernelFacts {
  std::string name;        ///< "kernel_7"
  std::string work;        ///< "conv + elementwise"; empty: the manifest says nothing about the kernel
  std::string shape;       ///< "64x14x14x6 * 5x5x6x16 -> 64x10x10x16"
  std::string place;       ///< the nodes of the model that it works for, and the parameters it updates
  double flops = 0;        ///< of a call
  double bytes = 0;        ///< read and written by a call
  bool isParallel = false; ///< its calls are shared by the threads of the session
};

/// All kernels of an artifact.
struct KernelTable {
  std::vector<KernelFacts> kernels; ///< by the number that a trace hook gets
  bool isDouble = false;            ///< the artifact computes in float64
};

/// Reads the keys "kernels" and "flags". A manifest without kernels gives an empty table.
KernelTable parseKernelTable(const std::string &manifest);

} // namespace ortc::engine
