// The same work done by libraries that are installed: oneDNN 2 and OpenBLAS, on one thread.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "benchmarks/kernels/Shapes.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ortc::benchmarks {

/// Work that a library has been prepared for.
class LibraryRun {
public:
  virtual ~LibraryRun() = default;
  virtual void run() = 0;
  /// What run() computed, in the layout of the kernel's result.
  virtual std::vector<float> result() = 0;
};

/// A library's way of doing a kernel's work. `prepare` gets the kernel's arguments, reads its inputs from them and
/// writes elsewhere; it returns null where the library has no such function.
struct LibraryCase {
  const char *column; ///< of the table
  std::function<std::unique_ptr<LibraryRun>(const std::vector<void *> &arguments)> prepare;
};

inline constexpr const char *kDnnl = "oneDNN", *kDnnlPlain = "oneDNN, channels last", *kOpenBlas = "OpenBLAS";

/// Operands as they are stored, batches with strides.
std::vector<LibraryCase> librariesFor(const Product &product);
/// Once in the layouts that the library chooses, reordered outside of the timing, and once with activations as the
/// kernel reads and writes them.
std::vector<LibraryCase> librariesFor(const Convolution &convolution, ConvolutionKind kind);
std::vector<LibraryCase> librariesForSoftmax(int64_t rows, int64_t columns);
/// Arguments x, scale, shift, y, mean, inverse deviation.
std::vector<LibraryCase> librariesForLayerNorm(int64_t rows, int64_t columns);
/// Arguments x, gradient, mean, inverse deviation, scale, gradient of x; all scales have to be 1.
std::vector<LibraryCase> librariesForLayerNormGradient(int64_t rows, int64_t columns);
/// With erf, of that many numbers.
std::vector<LibraryCase> librariesForGelu(int64_t elements);

/// Names, versions and what they detected; empty without libraries.
std::string describeLibraries();

/// Libraries read their environment when they are loaded: where it asks for more than one thread or for kernels of
/// another machine, starts this program again without that.
void restartInNeutralEnvironment(char **argv);

} // namespace ortc::benchmarks
