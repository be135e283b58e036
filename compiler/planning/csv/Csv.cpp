// Problems and plans as CSV, both ways.
//
// Reading trusts nothing: every field is checked where it is used, and a message names the line. Bodies of
// loops are read with an explicit stack, so depth is not limited by the machine's.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/csv/Csv.h"

#include "compiler/planning/Arithmetic.h"
#include "compiler/planning/csv/CsvRecords.h"
#include "support/Plural.h"

namespace ortc::planning {

using namespace csv;

namespace {

constexpr size_t kMaxDepth = 16; ///< of nested bodies, as plan() has it

std::string join(const std::vector<uint32_t> &ids) {
  std::string result;
  for (uint32_t id : ids) {
    if (!result.empty())
      result += ' ';
    result += std::to_string(id);
  }
  return result;
}

void writeProblemRecords(const Problem &problem, std::string &out) {
  for (size_t b = 0; b < problem.buffers.size(); ++b) {
    const Buffer &buffer = problem.buffers[b];
    line(out, "buffer", b, quote(buffer.name), buffer.bytes, buffer.alignment, int(buffer.aliveAtStart),
         int(buffer.aliveAtEnd));
  }
  for (const View &view : problem.views)
    line(out, "view", view.view, view.base, view.offset);
  for (size_t s = 0; s < problem.steps.size(); ++s) {
    const Step &step = problem.steps[s];
    line(out, "step", s, quote(step.name), step.segment, join(step.reads), join(step.writes),
         join(step.after), step.workspace);
    for (const InPlace &pair : step.inPlace)
      line(out, "inplace", s, pair.read, pair.write);
    if (step.inner) {
      line(out, "inner", s);
      writeProblemRecords(*step.inner, out);
      line(out, "end");
    }
  }
}

void writePlanRecords(const Plan &plan, std::string &out) {
  line(out, "plan", 1, plan.arenaBytes, plan.arenaAlignment, plan.maxLive, plan.sourcePeak, plan.orderBound);
  auto offset = [](uint64_t value) { return value == kNoOffset ? std::string() : std::to_string(value); };
  for (size_t p = 0; p < plan.order.size(); ++p) {
    StepId s = plan.order[p];
    line(out, "step", p, s, offset(plan.workspaceOf[s]), offset(plan.innerArenaOf[s]));
    for (const InPlace &pair : plan.inPlace[s])
      line(out, "inplace", s, pair.read, pair.write);
    if (plan.inner[s]) {
      line(out, "inner", s);
      writePlanRecords(*plan.inner[s], out);
      line(out, "end");
    }
  }
  for (size_t b = 0; b < plan.storageOf.size(); ++b)
    line(out, "buffer", b,
         plan.storageOf[b] == kNoStorage ? std::string() : std::to_string(plan.storageOf[b]),
         plan.offsetOf[b]);
}

class ProblemReader {
public:
  explicit ProblemReader(std::string_view text) : reader(text) {}

  Expected<Problem> read() {
    Record record;
    if (!reader.next(record))
      return reader.status.isOk() ? syntax(1, "the file is empty") : reader.status;
    if (record.fields != std::vector<std::string>{"problem", "1"})
      return syntax(record.line, "a problem starts with 'problem,1'");
    levels.push_back(std::make_shared<Problem>());
    while (reader.next(record))
      ORTC_TRY(take(record));
    if (!reader.status.isOk())
      return reader.status;
    if (levels.size() > 1)
      return syntax(record.line,
                    "the body of " + formatCount(int64_t(levels.size()) - 1, "step") + " has no 'end'");
    ORTC_TRY(check(*levels[0]));
    return std::move(*levels[0]);
  }

private:
  Status take(const Record &record) {
    const std::string &kind = record.fields[0];
    Problem &problem = *levels.back();
    Fields fields(record);
    if (kind == "buffer") {
      fields.count(7);
      fields.sequence(1, "buffer id", problem.buffers.size());
      problem.buffers.push_back({fields.text(2), fields.number(3, "size"), fields.number(4, "alignment"),
                                 fields.flag(5, "alive at start"), fields.flag(6, "alive at end")});
    } else if (kind == "view") {
      fields.count(4);
      problem.views.push_back({fields.id(1, "buffer"), fields.id(2, "buffer"), fields.number(3, "offset")});
    } else if (kind == "step") {
      fields.count(8);
      fields.sequence(1, "step id", problem.steps.size());
      Step step;
      step.name = fields.text(2);
      step.segment = fields.id(3, "segment");
      step.reads = fields.ids(4, "buffer");
      step.writes = fields.ids(5, "buffer");
      step.after = fields.ids(6, "step");
      step.workspace = fields.number(7, "workspace");
      problem.steps.push_back(std::move(step));
    } else if (kind == "inplace") {
      fields.count(4);
      if (size_t s = fields.id(1, "step"); s + 1 != problem.steps.size())
        fields.fail("'inplace' of step " + std::to_string(s) + " does not follow its step");
      else
        problem.steps[s].inPlace.push_back({fields.id(2, "buffer"), fields.id(3, "buffer")});
    } else if (kind == "inner") {
      fields.count(2);
      if (size_t s = fields.id(1, "step"); s + 1 != problem.steps.size())
        fields.fail("'inner' of step " + std::to_string(s) + " does not follow its step");
      else if (problem.steps[s].inner)
        fields.fail("step " + std::to_string(s) + " has two bodies");
      else if (levels.size() > kMaxDepth)
        fields.fail("bodies are nested more than " + std::to_string(kMaxDepth) + " deep");
      else {
        auto body = std::make_shared<Problem>();
        problem.steps[s].inner = body;
        levels.push_back(std::move(body));
      }
    } else if (kind == "end") {
      fields.count(1);
      if (levels.size() == 1)
        fields.fail("'end' without 'inner'");
      else
        levels.pop_back();
    } else {
      fields.fail("unknown record '" + kind.substr(0, 40) + "'");
    }
    return fields.status;
  }

  RecordReader reader;
  std::vector<std::shared_ptr<Problem>> levels;
};

class PlanReader {
public:
  PlanReader(const Problem &problem, std::string_view text) : reader(text) { open(problem); }

  Expected<Plan> read() {
    Record record;
    while (reader.next(record))
      ORTC_TRY(take(record));
    if (!reader.status.isOk())
      return reader.status;
    if (levels.size() > 1)
      return syntax(record.line,
                    "the body of " + formatCount(int64_t(levels.size()) - 1, "step") + " has no 'end'");
    if (!levels[0].begun)
      return syntax(1, "a plan starts with 'plan,1'");
    return std::move(*levels[0].plan);
  }

private:
  struct Level {
    const Problem *problem;
    std::shared_ptr<Plan> plan;
    bool begun = false;
  };

  void open(const Problem &problem) {
    auto plan = std::make_shared<Plan>();
    plan->storageOf.assign(problem.buffers.size(), kNoStorage);
    plan->offsetOf.assign(problem.buffers.size(), 0);
    plan->workspaceOf.assign(problem.steps.size(), kNoOffset);
    plan->innerArenaOf.assign(problem.steps.size(), kNoOffset);
    plan->inPlace.resize(problem.steps.size());
    plan->inner.resize(problem.steps.size());
    levels.push_back({&problem, std::move(plan), false});
  }

  Status take(const Record &record) {
    const std::string &kind = record.fields[0];
    Level &level = levels.back();
    Plan &plan = *level.plan;
    Fields fields(record);
    auto below = [&](uint32_t id, size_t count, const char *what) {
      if (fields.isOk() && id >= count)
        fields.fail(std::string(what) + " " + std::to_string(id) + " but the problem has " +
                    std::to_string(count));
      return fields.isOk();
    };
    size_t steps = level.problem->steps.size(), buffers = level.problem->buffers.size();
    if (kind == "plan") {
      fields.count(7);
      if (fields.number(1, "version") != 1)
        fields.fail("a plan starts with 'plan,1'");
      if (level.begun)
        fields.fail("a second 'plan'");
      level.begun = true;
      plan.arenaBytes = fields.number(2, "arena", kMaxTotalBytes);
      plan.arenaAlignment = fields.number(3, "alignment", kMaxAlignment);
      plan.maxLive = fields.number(4, "max-live");
      plan.sourcePeak = fields.number(5, "source peak");
      plan.orderBound = fields.number(6, "bound");
    } else if (!level.begun) {
      fields.fail("a plan starts with 'plan,1'");
    } else if (kind == "step") {
      fields.count(5);
      fields.sequence(1, "position", plan.order.size());
      uint32_t s = fields.id(2, "step");
      if (below(s, steps, "step")) {
        plan.order.push_back(s);
        if (!fields.empty(3))
          plan.workspaceOf[s] = fields.number(3, "offset", kMaxTotalBytes);
        if (!fields.empty(4))
          plan.innerArenaOf[s] = fields.number(4, "offset", kMaxTotalBytes);
      }
    } else if (kind == "buffer") {
      fields.count(4);
      uint32_t b = fields.id(1, "buffer");
      if (below(b, buffers, "buffer")) {
        if (!fields.empty(2))
          plan.storageOf[b] = fields.id(2, "storage");
        plan.offsetOf[b] = fields.number(3, "offset", kMaxTotalBytes);
      }
    } else if (kind == "inplace") {
      fields.count(4);
      uint32_t s = fields.id(1, "step"), read = fields.id(2, "buffer"), write = fields.id(3, "buffer");
      if (below(s, steps, "step") && below(read, buffers, "buffer") && below(write, buffers, "buffer"))
        plan.inPlace[s].push_back({read, write});
    } else if (kind == "inner") {
      fields.count(2);
      uint32_t s = fields.id(1, "step");
      if (below(s, steps, "step")) {
        if (!level.problem->steps[s].inner || plan.inner[s]) {
          fields.fail("step " + std::to_string(s) + (plan.inner[s] ? " has two plans" : " has no body"));
        } else {
          open(*level.problem->steps[s].inner);
          levels[levels.size() - 2].plan->inner[s] = levels.back().plan;
        }
      }
    } else if (kind == "end") {
      fields.count(1);
      if (levels.size() == 1)
        fields.fail("'end' without 'inner'");
      else
        levels.pop_back();
    } else {
      fields.fail("unknown record '" + kind.substr(0, 40) + "'");
    }
    return fields.status;
  }

  RecordReader reader;
  std::vector<Level> levels;
};

} // namespace

std::string writeProblem(const Problem &problem) {
  std::string out;
  line(out, "problem", 1);
  writeProblemRecords(problem, out);
  return out;
}

Expected<Problem> readProblem(std::string_view text) { return ProblemReader(text).read(); }

std::string writePlan(const Plan &plan) {
  std::string out;
  writePlanRecords(plan, out);
  return out;
}

Expected<Plan> readPlan(const Problem &problem, std::string_view text) {
  return PlanReader(problem, text).read();
}

} // namespace ortc::planning
