// Learning rates and metrics of the engine, for JavaScript.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>

#include "bindings/training/evaluation.h"
#include "bindings/training/rates.h"

namespace ortc::bindings {
namespace {

/// The objects of one instance of the module.
struct Host {
  Rates rates;
  Evaluation evaluation;
  std::string text; ///< what a call takes or gives, or why it has failed
};

/// ortc_status, as index.mjs has it.
int32_t report(Host &host, Status status) {
  if (status.isOk())
    return 0;
  host.text = status.getMessage();
  return status.getCode() == ExitCode::Refused ? 1 : 2;
}

} // namespace
} // namespace ortc::bindings

using namespace ortc;
using bindings::Host;

/// No exceptions: memory that ends, or an invariant that does not hold, is a trap, which index.mjs makes an error.
void std::__libcpp_verbose_abort(const char *, ...) noexcept { __builtin_trap(); }

#define EXPORT(name) extern "C" __attribute__((export_name(#name)))

EXPORT(create) Host *create() { return new Host; }

/// A place for so many bytes of text, which the next call takes.
EXPORT(room) char *room(Host *host, size_t bytes) {
  host->text.resize(bytes);
  return host->text.data();
}
EXPORT(text) const char *text(const Host *host) { return host->text.data(); }
EXPORT(textBytes) size_t textBytes(const Host *host) { return host->text.size(); }

EXPORT(parseRates) int32_t parseRates(Host *host, double base, double steps) {
  return report(*host, bindings::Rates::parse(host->text, base, int64_t(steps), host->rates));
}
EXPORT(getRate) double getRate(const Host *host, double step) { return host->rates.get(int64_t(step)); }
EXPORT(follow) void follow(Host *host, double value, int32_t isMaximum) {
  host->rates.follow(value, isMaximum != 0);
}
EXPORT(formatState) void formatState(Host *host) { host->text = host->rates.formatState(); }
EXPORT(parseState) int32_t parseState(Host *host) {
  return report(*host, host->rates.parseState(host->text));
}

EXPORT(openManifest) int32_t openManifest(Host *host) {
  return report(*host, host->evaluation.open(host->text));
}
EXPORT(addValue)
int32_t addValue(Host *host, size_t binding, int32_t isInput, int32_t type, size_t rank, const double *dims) {
  const Shape shape(dims, dims + rank);
  return report(*host, host->evaluation.addValue(binding, isInput != 0, {host->text, DataType(type), shape}));
}
EXPORT(addMetric) int32_t addMetric(Host *host) { return report(*host, host->evaluation.add(host->text)); }
EXPORT(begin) int32_t begin(Host *host) { return report(*host, host->evaluation.begin()); }
EXPORT(countTensors) size_t countTensors(const Host *host) { return host->evaluation.getTensors().size(); }
EXPORT(nameTensor) void nameTensor(Host *host, size_t tensor) {
  host->text = host->evaluation.getTensors()[tensor];
}
EXPORT(getPlace) int32_t getPlace(Host *host, size_t binding, size_t tensor, uint8_t **at, size_t *bytes) {
  std::vector<uint8_t> *place = nullptr;
  const Status status = host->evaluation.getPlace(binding, tensor, place);
  if (place) {
    *at = place->data();
    *bytes = place->size();
  }
  return report(*host, status);
}
/// `rows`: NaN for all.
EXPORT(addSlice) int32_t addSlice(Host *host, size_t binding, double rows) {
  return report(*host, host->evaluation.addSlice(binding, std::isnan(rows) ? std::nullopt
                                                                           : std::optional(int64_t(rows))));
}
EXPORT(compute) size_t compute(Host *host, double *values) {
  size_t count = 0;
  for (const auto &[name, value] : host->evaluation.compute())
    values[count++] = value;
  return count;
}
