// What --report writes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/report/Reports.h"

#include "support/Json.h"

#include <cstdio>
#include <cstdlib>

using namespace mlir;

namespace ortc::report {

Expected<KernelCosts> findCosts(ModuleOp program, const kernels::ProgramKernels &kernels,
                                const backends::Target &target, const backends::TargetCode &code,
                                const CompileOptions &options) {
  KernelCosts costs{target.estimate(kernels.works, options.precision == Precision::F64), {}};
  if (!target.canRunHere())
    return costs;
  Expected<std::vector<double>> times = target.measure(program, kernels, code);
  if (!times)
    return times.getStatus();
  costs.times = std::move(*times);
  return costs;
}

using Json = nlohmann::ordered_json;

/// Four digits are more than an estimate or a measurement has.
static double roundNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return std::strtod(text, nullptr);
}

static Json reportKernel(const FamilyFacts &family, const backends::KernelInfo &info, size_t number) {
  const KernelFacts &kernel = family.kernels[number];
  Json item{{"name", kernel.name}, {"work", kernel.work}, {"shape", kernel.shape}};
  addOrigins(item, kernel);
  for (const EntryFacts &entry : family.entries)
    if (auto found = entry.calls.find(number); found != entry.calls.end())
      item["calls"][entry.name] = found->second;
  item["chunks"] = info.chunks;
  item["workspace"] = info.workspaceBytesPerWorker;
  item["flops"] = kernel.counts.flops;
  item["bytes_read"] = kernel.counts.bytesRead;
  item["bytes_written"] = kernel.counts.bytesWritten;
  if (const backends::KernelBlocking &blocking = info.blocking; !blocking.key.empty())
    item["blocking"] = {
        {"key", blocking.key}, {"from", blocking.isGiven ? "tuning" : "table"}, {"choice", blocking.choice}};
  return item;
}

static Json reportTarget(const FamilyFacts &family, const backends::TargetCode &code,
                         const KernelCosts &costs) {
  Json target{{"name", code.section.name}, {"code_bytes", code.section.bytes.size()}};
  Json rates = Json::array();
  for (const CopyRate &rate : costs.estimates.machine.rates)
    rates.push_back({{"bytes", rate.bytes}, {"gbs", roundNumber(rate.bytesPerSecond * 1e-9)}});
  target["machine"] = {{"from", costs.estimates.isMeasured ? "measurement" : "table"},
                       {"gflops", roundNumber(costs.estimates.machine.flopRate * 1e-9)},
                       {"call_us", roundNumber(costs.estimates.callSeconds * 1e6)},
                       {"copies", rates}};
  auto estimateOf = [&](size_t kernel) {
    double byCode = code.kernels[kernel].seconds;
    return byCode > 0 ? byCode : costs.estimates.seconds[kernel];
  };
  for (size_t i = 0; i < family.entries.size(); ++i) {
    const EntryFacts &entry = family.entries[i];
    double estimated = 0, measured = 0;
    for (auto [kernel, calls] : entry.calls) {
      estimated += static_cast<double>(calls) * estimateOf(kernel);
      measured += costs.times.empty() ? 0 : static_cast<double>(calls) * costs.times[kernel];
    }
    Json item{{"name", entry.name}, {"estimated_ms", roundNumber(estimated * 1e3)}};
    if (!costs.times.empty())
      item["measured_ms"] = roundNumber(measured * 1e3);
    item["stack"] = Json::object();
    if (i < code.stack.size())
      addStack(item["stack"], code.stack[i]);
    target["entries"].push_back(item);
  }
  target["kernels"] = Json::array();
  for (size_t i = 0; i < code.kernels.size(); ++i) {
    Json item = reportKernel(family, code.kernels[i], i);
    item["estimated_us"] = roundNumber(estimateOf(i) * 1e6);
    if (!costs.times.empty() && costs.times[i] > 0)
      item["measured_us"] = roundNumber(costs.times[i] * 1e6);
    target["kernels"].push_back(item);
  }
  return target;
}

std::string makeReport(const CompileFacts &facts, const std::vector<PhaseTime> &phases,
                       const std::vector<KernelCosts> &costs) {
  Json report{{"model", facts.modelFile}};
  for (const PhaseTime &phase : phases)
    report["phases"].push_back({{"name", phase.name}, {"seconds", phase.seconds}});
  for (const FamilyFacts &family : facts.families)
    for (const EntryFacts &entry : family.entries)
      report["entries"].push_back({{"name", entry.name},
                                   {"steps", entry.steps},
                                   {"flops", entry.flops},
                                   {"bytes_read", entry.bytesRead},
                                   {"bytes_written", entry.bytesWritten},
                                   {"transient", entry.memory.bytes},
                                   {"bound", entry.memory.maxLive},
                                   {"source_order", entry.memory.sourceOrder}});
  size_t number = 0;
  for (const FamilyFacts &family : facts.families)
    for (const backends::TargetCode *code : family.codes)
      report["targets"].push_back(reportTarget(family, *code, costs[number++]));
  return formatJson(report);
}

} // namespace ortc::report
