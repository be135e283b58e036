// Products in OpenBLAS: one sgemm, or one after another.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "benchmarks/kernels/OpenBlas.h"

#include <cblas.h>

namespace ortc::benchmarks {
namespace {

class OpenBlasProduct final : public LibraryRun {
public:
  OpenBlasProduct(const Product &product, const std::vector<void *> &arguments)
      : p(product), a(static_cast<const float *>(arguments[0])), b(static_cast<const float *>(arguments[1])),
        c(static_cast<size_t>(p.batch * p.m * p.n)) {}

  void run() override {
    auto small = [](int64_t size) { return static_cast<blasint>(size); };
    for (int64_t i = 0; i < p.batch; ++i)
      cblas_sgemm(CblasRowMajor, p.transposeA ? CblasTrans : CblasNoTrans,
                  p.transposeB ? CblasTrans : CblasNoTrans, small(p.m), small(p.n), small(p.k), 1.0f,
                  a + i * p.m * p.k, small(p.transposeA ? p.m : p.k), b + i * p.k * p.n,
                  small(p.transposeB ? p.k : p.n), 0.0f, c.data() + i * p.m * p.n, small(p.n));
  }
  std::vector<float> result() override { return c; }

private:
  Product p;
  const float *a, *b;
  std::vector<float> c;
};

} // namespace

std::unique_ptr<LibraryRun> prepareOpenBlasProduct(const Product &product,
                                                   const std::vector<void *> &arguments) {
  return std::make_unique<OpenBlasProduct>(product, arguments);
}

std::string describeOpenBlas() {
  return std::string(openblas_get_config()) + " with kernels for " + openblas_get_corename();
}

} // namespace ortc::benchmarks
