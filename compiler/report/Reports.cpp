// What --report writes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/report/Reports.h"

#include "compiler/backends/cpu/program/KernelSurvey.h"
#include "compiler/tuning/MeasureKernels.h"

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

using namespace mlir;

namespace ortc::report {

bool findCosts(ModuleOp module, const kernels::ProgramKernels &kernels, const cpu::TargetCode &code,
               const CompileOptions &options, KernelCosts &costs, std::string &error) {
  bool runsHere = cpu::canRunHere(code.target);
  int lanes = static_cast<int>(code.target.lanes(32));
  costs.model =
      code.target.name == "native" ? cpu::measureCostModel(lanes) : cpu::getCostTable(code.target.machine);
  for (const cpu::KernelInfo &info : code.kernels) {
    cpu::KernelWork work = cpu::workOf(info, options.precision == Precision::F64);
    costs.estimates.push_back(cpu::estimateSeconds(work, costs.model));
  }
  if (runsHere)
    costs.times = tuning::measureKernels(module, kernels, code, error);
  return !runsHere || costs.times.size() == code.kernels.size();
}

using Json = nlohmann::ordered_json;

/// Four digits are more than an estimate or a measurement has.
static double roundNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return std::strtod(text, nullptr);
}

static Json reportKernel(const CompileFacts &facts, const cpu::KernelInfo &info, size_t number) {
  const KernelFacts &kernel = facts.kernels[number];
  Json item{{"name", kernel.name}, {"work", kernel.work}, {"shape", kernel.shape}};
  addOrigins(item, kernel);
  for (const CompileFacts::EntryFacts &entry : facts.entries)
    if (auto found = entry.calls.find(number); found != entry.calls.end())
      item["calls"][entry.name] = found->second;
  item["chunks"] = info.chunks;
  item["workspace"] = info.workspaceBytesPerWorker;
  item["flops"] = info.flops;
  item["bytes_read"] = info.bytesRead;
  item["bytes_written"] = info.bytesWritten;
  if (const cpu::KernelBlocking &blocking = info.blocking; !blocking.key.empty())
    item["blocking"] = {
        {"key", blocking.key}, {"from", blocking.isGiven ? "tuning" : "table"}, {"choice", blocking.choice}};
  return item;
}

static Json reportTarget(const CompileFacts &facts, const cpu::TargetCode &code, const KernelCosts &costs) {
  Json target{{"name", code.target.name}, {"code_bytes", code.blob.bytes.size()}};
  Json rates = Json::array();
  for (const host::CopyRate &rate : costs.model.machine.rates)
    rates.push_back({{"bytes", rate.bytes}, {"gbs", roundNumber(rate.bytesPerSecond * 1e-9)}});
  target["machine"] = {{"from", costs.model.isMeasured ? "measurement" : "table"},
                       {"gflops", roundNumber(costs.model.machine.flopRate * 1e-9)},
                       {"call_us", roundNumber(costs.model.callSeconds * 1e6)},
                       {"copies", rates}};
  for (size_t i = 0; i < facts.entries.size(); ++i) {
    const CompileFacts::EntryFacts &entry = facts.entries[i];
    double estimated = 0, measured = 0;
    for (auto [kernel, calls] : entry.calls) {
      estimated += static_cast<double>(calls) * costs.estimates[kernel];
      measured += costs.times.empty() ? 0 : static_cast<double>(calls) * costs.times[kernel];
    }
    Json item{{"name", entry.name}, {"estimated_ms", roundNumber(estimated * 1e3)}};
    if (!costs.times.empty())
      item["measured_ms"] = roundNumber(measured * 1e3);
    item["stack"] = Json::object();
    addStack(item["stack"], code.stack[i]);
    target["entries"].push_back(item);
  }
  target["kernels"] = Json::array();
  for (size_t i = 0; i < code.kernels.size(); ++i) {
    Json item = reportKernel(facts, code.kernels[i], i);
    item["estimated_us"] = roundNumber(costs.estimates[i] * 1e6);
    if (!costs.times.empty() && costs.times[i] > 0)
      item["measured_us"] = roundNumber(costs.times[i] * 1e6);
    target["kernels"].push_back(item);
  }
  return target;
}

std::string makeReport(const CompileFacts &facts, const std::vector<PhaseTime> &phases,
                       const std::vector<cpu::TargetCode> &codes, const std::vector<KernelCosts> &costs) {
  Json report{{"model", facts.modelFile}};
  for (const PhaseTime &phase : phases)
    report["phases"].push_back({{"name", phase.name}, {"seconds", phase.seconds}});
  for (const CompileFacts::EntryFacts &entry : facts.entries)
    report["entries"].push_back({{"name", entry.name},
                                 {"steps", entry.steps},
                                 {"flops", entry.flops},
                                 {"bytes_read", entry.bytesRead},
                                 {"bytes_written", entry.bytesWritten},
                                 {"bound", entry.memory.maxLive},
                                 {"source_order", entry.memory.sourceOrder}});
  for (size_t i = 0; i < codes.size(); ++i)
    report["targets"].push_back(reportTarget(facts, codes[i], costs[i]));
  return report.dump(1) + "\n";
}

} // namespace ortc::report
