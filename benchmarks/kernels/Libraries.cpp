// Which library does which work.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "benchmarks/kernels/Libraries.h"

#include "benchmarks/kernels/Dnnl.h"
#include "benchmarks/kernels/OpenBlas.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace ortc::benchmarks {

using Cases = std::vector<LibraryCase>;
using Arguments = const std::vector<void *> &;

#ifdef ORTC_HAVE_DNNL

Cases librariesFor(const Convolution &c, ConvolutionKind kind) {
  return {
      {kDnnl, [=](Arguments arguments) { return prepareDnnlConvolution(c, kind, false, arguments); }},
      {kDnnlPlain, [=](Arguments arguments) { return prepareDnnlConvolution(c, kind, true, arguments); }}};
}
Cases librariesForSoftmax(int64_t rows, int64_t columns) {
  return {{kDnnl, [=](Arguments arguments) { return prepareDnnlSoftmax(rows, columns, arguments); }}};
}
Cases librariesForLayerNorm(int64_t rows, int64_t columns) {
  return {{kDnnl, [=](Arguments arguments) { return prepareDnnlLayerNorm(rows, columns, arguments); }}};
}
Cases librariesForLayerNormGradient(int64_t rows, int64_t columns) {
  return {
      {kDnnl, [=](Arguments arguments) { return prepareDnnlLayerNormGradient(rows, columns, arguments); }}};
}
Cases librariesForGelu(int64_t elements) {
  return {{kDnnl, [=](Arguments arguments) { return prepareDnnlGelu(elements, arguments); }}};
}

#else

Cases librariesFor(const Convolution &, ConvolutionKind) { return {}; }
Cases librariesForSoftmax(int64_t, int64_t) { return {}; }
Cases librariesForLayerNorm(int64_t, int64_t) { return {}; }
Cases librariesForLayerNormGradient(int64_t, int64_t) { return {}; }
Cases librariesForGelu(int64_t) { return {}; }

#endif

Cases librariesFor([[maybe_unused]] const Product &p) {
  Cases cases;
#ifdef ORTC_HAVE_DNNL
  cases.push_back({kDnnl, [=](Arguments arguments) { return prepareDnnlProduct(p, arguments); }});
#endif
#ifdef ORTC_HAVE_OPENBLAS
  cases.push_back({kOpenBlas, [=](Arguments arguments) { return prepareOpenBlasProduct(p, arguments); }});
#endif
  return cases;
}

std::string describeLibraries() {
  std::string text;
#ifdef ORTC_HAVE_DNNL
  text += describeDnnl();
#endif
#ifdef ORTC_HAVE_OPENBLAS
  text += (text.empty() ? "" : ", ") + describeOpenBlas();
#endif
  return text;
}

void restartInNeutralEnvironment(char **argv) {
  bool isNeutral = true;
  for (const char *name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}) {
    const char *value = getenv(name);
    if (value && std::strcmp(value, "1") == 0)
      continue;
    setenv(name, "1", 1);
    isNeutral = false;
  }
  for (const char *name :
       {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA"}) {
    isNeutral &= getenv(name) == nullptr;
    unsetenv(name);
  }
  if (isNeutral)
    return;
  execv("/proc/self/exe", argv);
  std::perror("cannot start again with one thread a library");
  std::exit(1);
}

} // namespace ortc::benchmarks
