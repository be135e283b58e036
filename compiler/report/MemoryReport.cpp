// Memory plans as JSON, as CSV and as a page.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/report/MemoryReport.h"

#include "compiler/planning/csv/CsvRecords.h"

#include <nlohmann/json.hpp>

namespace ortc::report {

using Json = nlohmann::ordered_json;

/// Tensors that the summary names, of those alive at the peak.
static constexpr size_t kLargest = 10;

static Json describeBuffer(const PlannedBuffer &buffer) {
  return {{"name", buffer.name},     {"type", buffer.type},   {"bytes", buffer.bytes},
          {"offset", buffer.offset}, {"first", buffer.first}, {"last", buffer.last}};
}

static Json describePeak(const MemoryPlan &plan) {
  size_t peak = plan.findPeak();
  std::vector<const PlannedBuffer *> alive = plan.findAlive(peak);
  Json tensors = Json::array();
  for (size_t i = 0; i < alive.size() && i < kLargest; ++i)
    tensors.push_back(describeBuffer(*alive[i]));
  return {{"step", peak},
          {"bytes", plan.steps[peak].live},
          {"kernel", plan.steps[peak].kernel},
          {"for", plan.steps[peak].origins},
          {"alive", alive.size()},
          {"tensors", tensors}};
}

Json summarizeMemory(const MemoryPlan &plan) {
  Json memory{{"transient", plan.bytes},
              {"bound", plan.maxLive},
              {"order_bound", plan.orderBound},
              {"source_order", plan.sourceOrder}};
  if (const auto &made = plan.recomputation)
    memory["recompute"] = {{"picoseconds", made->time},
                           {"plain_picoseconds", made->plainTime},
                           {"least_picoseconds", made->leastTime},
                           {"least_bytes", made->leastBytes},
                           {"repeated", made->repeated}};
  for (const BudgetPoint &point : plan.curve) {
    Json item{{"budget", point.budget}, {"possible", point.isPossible}};
    if (point.isPossible) {
      item["transient"] = point.transient;
      item["added_time"] = point.addedTime;
    }
    item["least_added_time"] = point.boundTime;
    memory["curve"].push_back(item);
  }
  if (!plan.steps.empty())
    memory["peak"] = describePeak(plan);
  return memory;
}

Json makePlanReport(const std::string &model, const SharedMemory &shared,
                    const std::vector<MemoryPlan> &plans) {
  Json report{{"model", model},
              {"memory",
               {{"constants", shared.constants},
                {"persistent", shared.persistent},
                {"max_workers", shared.workers}}}};
  report["entries"] = Json::array();
  for (const MemoryPlan &plan : plans) {
    Json steps = Json::array(), buffers = Json::array();
    for (const PlannedStep &step : plan.steps)
      steps.push_back({{"kernel", step.kernel}, {"for", step.origins}, {"bytes", step.live}});
    for (const PlannedBuffer &buffer : plan.buffers)
      buffers.push_back(describeBuffer(buffer));
    report["entries"].push_back(
        {{"name", plan.entry}, {"memory", summarizeMemory(plan)}, {"steps", steps}, {"buffers", buffers}});
  }
  return report;
}

std::string makeBufferTable(const std::vector<MemoryPlan> &plans) {
  std::string table = "id,lower,upper,size,alignment,gaps,pool,offset,entry,type\n";
  auto field = [&](const std::string &text, char end) { table += text + end; };
  auto number = [&](uint64_t value) { field(std::to_string(value), ','); };
  for (size_t pool = 0; pool < plans.size(); ++pool) {
    for (const PlannedBuffer &buffer : plans[pool].buffers) {
      if (buffer.bytes == 0)
        continue;
      // At the step that writes in place of it, a buffer is no longer needed but for what is not written.
      uint64_t taken = 0;
      for (const PlannedBuffer &other : plans[pool].buffers)
        if (&other != &buffer && !other.isScratch && other.offset == buffer.offset &&
            other.first == buffer.last && other.first > buffer.first)
          taken = std::max(taken, other.bytes);
      field(planning::csv::quote(buffer.name), ',');
      number(buffer.first);
      number(buffer.last + (taken < buffer.bytes));
      number(buffer.bytes);
      number(64);
      field(taken > 0 && taken < buffer.bytes
                ? std::to_string(buffer.last) + "-" + std::to_string(buffer.last + 1) + "@" +
                      std::to_string(taken) + ":" + std::to_string(buffer.bytes)
                : "",
            ',');
      number(pool);
      number(buffer.offset);
      field(planning::csv::quote(plans[pool].entry), ',');
      field(buffer.type, '\n');
    }
  }
  return table;
}

} // namespace ortc::report
