// How kernels are cut, as far as a measurement may decide about it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/KernelChoice.h"

#include "mlir/IR/Diagnostics.h"

#include <algorithm>
#include <numeric>

namespace ortc::cpu {

double findImbalance(const std::vector<int64_t> &chunks, int64_t workers) {
  std::vector<int64_t> busy(std::max<int64_t>(1, workers), 0);
  for (int64_t work : chunks)
    *std::min_element(busy.begin(), busy.end()) += work;
  auto all = static_cast<double>(std::accumulate(busy.begin(), busy.end(), int64_t(0)));
  auto most = static_cast<double>(*std::max_element(busy.begin(), busy.end()));
  return all > 0 ? most * static_cast<double>(busy.size()) / all : 1;
}

double findImbalance(int64_t chunks, int64_t workers) {
  return static_cast<double>((chunks + workers - 1) / workers * workers) / static_cast<double>(chunks);
}

std::string describe(const KernelChoice &choice) {
  std::string text;
  for (const auto &[name, value] : choice)
    text += (text.empty() ? "" : ", ") + name + " " + std::to_string(value);
  return text;
}

llvm::LogicalResult refuseChoice(mlir::MLIRContext *context, const KernelChoices &choices,
                                 const std::string &key) {
  return mlir::emitError(mlir::UnknownLoc::get(context))
         << choices.source << ": '" << key << "' cannot be cut as " << describe(choices.byKey.at(key));
}

} // namespace ortc::cpu
