// Problems, plans and packings as CSV, both ways.
//
// Reading trusts nothing: every field is checked where it is used, and a message names the line. Bodies of
// loops are read with an explicit stack, so depth is not limited by the machine's.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/planning/Csv.h"

#include "compiler/planning/Arithmetic.h"

#include <charconv>

namespace ortc::planning {

namespace {

constexpr size_t kMaxDepth = 16; ///< of nested bodies, as plan() has it

Status syntax(size_t line, const std::string &what) {
  return {Code::kSyntax, "line " + std::to_string(line) + ": " + what};
}

struct Record {
  size_t line = 0;
  std::vector<std::string> fields;
};

/// Cuts text into records, one at a time; empty lines are passed over.
class RecordReader {
public:
  explicit RecordReader(std::string_view text) : text(text) {}

  /// False at the end of the text or on an error, which `status` then holds.
  bool next(Record &record) {
    while (at < text.size() && (text[at] == '\n' || text[at] == '\r'))
      advance();
    if (at >= text.size())
      return false;
    record.line = line;
    record.fields.assign(1, {});
    while (at < text.size() && text[at] != '\n') {
      if (text[at] == ',') {
        record.fields.emplace_back();
        advance();
      } else if (text[at] == '"' && record.fields.back().empty()) {
        if (!quoted(record))
          return false;
      } else if (text[at] == '\r' && (at + 1 == text.size() || text[at + 1] == '\n')) {
        advance();
      } else if (text[at] == '"' || text[at] == '\0') {
        return fail(line,
                    text[at] == '"' ? "a quote inside a field that does not start with one" : "a zero byte");
      } else {
        record.fields.back() += text[at];
        advance();
      }
    }
    return true;
  }

  Status status;

private:
  bool quoted(Record &record) {
    size_t opened = line;
    for (advance(); at < text.size(); advance()) {
      if (text[at] != '"') {
        record.fields.back() += text[at];
        continue;
      }
      advance();
      if (at >= text.size() || text[at] == ',' || text[at] == '\n' || text[at] == '\r')
        return true;
      if (text[at] != '"')
        return fail(line, "a quoted field goes on after its closing quote");
      record.fields.back() += '"';
    }
    return fail(opened, "a quoted field has no closing quote");
  }

  bool fail(size_t where, const char *what) {
    status = syntax(where, what);
    return false;
  }

  void advance() { line += text[at++] == '\n'; }

  std::string_view text;
  size_t at = 0, line = 1;
};

/// Typed access to the fields of a record; the first error stays.
class Fields {
public:
  explicit Fields(const Record &record) : record(record) {}

  void count(size_t wanted) {
    if (record.fields.size() != wanted)
      fail("'" + record.fields[0] + "' has " + std::to_string(record.fields.size() - 1) +
           " fields but needs " + std::to_string(wanted - 1));
  }

  uint64_t number(size_t field, const char *what, uint64_t most = UINT64_MAX) {
    return field < record.fields.size() ? parse(record.fields[field], what, most) : 0;
  }

  uint32_t id(size_t field, const char *what) { return uint32_t(number(field, what, UINT32_MAX - 1)); }

  bool flag(size_t field, const char *what) { return number(field, what, 1) != 0; }

  /// An id that must be the next one.
  void sequence(size_t field, const char *what, size_t expected) {
    uint64_t found = number(field, what);
    if (ok() && found != expected)
      fail(std::string(what) + " is " + std::to_string(found) + " but the next one is " +
           std::to_string(expected));
  }

  std::vector<uint32_t> ids(size_t field, const char *what) {
    std::vector<uint32_t> list;
    if (field >= record.fields.size())
      return list;
    std::string_view rest = record.fields[field];
    while (!rest.empty() && ok()) {
      size_t end = std::min(rest.find(' '), rest.size());
      if (end > 0)
        list.push_back(uint32_t(parse(rest.substr(0, end), what, UINT32_MAX - 1)));
      rest.remove_prefix(std::min(rest.size(), end + 1));
    }
    return list;
  }

  std::string text(size_t field) const {
    return field < record.fields.size() ? record.fields[field] : std::string();
  }
  bool empty(size_t field) const { return field >= record.fields.size() || record.fields[field].empty(); }

  void fail(const std::string &what) {
    if (ok())
      status = syntax(record.line, what);
  }
  bool ok() const { return status.ok(); }

  Status status;

private:
  uint64_t parse(std::string_view digits, const char *what, uint64_t most) {
    uint64_t value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc::result_out_of_range || (error == std::errc() && value > most))
      fail(std::string(what) + " " + std::string(digits) + " is above " + std::to_string(most));
    else if (error != std::errc() || end != digits.data() + digits.size())
      fail(std::string(what) + " '" + std::string(digits) + "' is not a number");
    return value;
  }

  const Record &record;
};

std::string quote(const std::string &field) {
  if (field.find_first_of(",\"\n\r") == std::string::npos)
    return field;
  std::string result(1, '"');
  for (char c : field)
    result.append(c == '"' ? 2 : 1, c);
  result += '"';
  return result;
}

/// Joins the fields of one record.
template <typename... Values> void line(std::string &out, const Values &...values) {
  auto text = [](const auto &value) {
    if constexpr (std::is_convertible_v<decltype(value), std::string>)
      return std::string(value);
    else
      return std::to_string(value);
  };
  ((out += text(values), out += ','), ...);
  out.back() = '\n';
}

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
         join(step.after), step.workspaceFixed, step.workspacePerWorker);
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
  line(out, "plan", 1, plan.arenaBytes, plan.perWorkerBytes, plan.arenaAlignment, plan.maxLive,
       plan.sourcePeak, plan.orderBound);
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
      return reader.status.ok() ? syntax(1, "the file is empty") : reader.status;
    if (record.fields != std::vector<std::string>{"problem", "1"})
      return syntax(record.line, "a problem starts with 'problem,1'");
    levels.push_back(std::make_shared<Problem>());
    while (reader.next(record))
      if (Status status = take(record); !status.ok())
        return status;
    if (!reader.status.ok())
      return reader.status;
    if (levels.size() > 1)
      return syntax(record.line, "the body of " + std::to_string(levels.size() - 1) + " steps has no 'end'");
    if (Status status = check(*levels[0]); !status.ok())
      return status;
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
      fields.count(9);
      fields.sequence(1, "step id", problem.steps.size());
      Step step;
      step.name = fields.text(2);
      step.segment = fields.id(3, "segment");
      step.reads = fields.ids(4, "buffer");
      step.writes = fields.ids(5, "buffer");
      step.after = fields.ids(6, "step");
      step.workspaceFixed = fields.number(7, "workspace");
      step.workspacePerWorker = fields.number(8, "workspace");
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
      if (Status status = take(record); !status.ok())
        return status;
    if (!reader.status.ok())
      return reader.status;
    if (levels.size() > 1)
      return syntax(record.line, "the body of " + std::to_string(levels.size() - 1) + " steps has no 'end'");
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
      if (fields.ok() && id >= count)
        fields.fail(std::string(what) + " " + std::to_string(id) + " but the problem has " +
                    std::to_string(count));
      return fields.ok();
    };
    size_t steps = level.problem->steps.size(), buffers = level.problem->buffers.size();
    if (kind == "plan") {
      fields.count(8);
      if (fields.number(1, "version") != 1)
        fields.fail("a plan starts with 'plan,1'");
      if (level.begun)
        fields.fail("a second 'plan'");
      level.begun = true;
      plan.arenaBytes = fields.number(2, "arena", kMaxTotalBytes);
      plan.perWorkerBytes = fields.number(3, "bytes per worker", kMaxTotalBytes);
      plan.arenaAlignment = fields.number(4, "alignment", kMaxAlignment);
      plan.maxLive = fields.number(5, "max-live");
      plan.sourcePeak = fields.number(6, "source peak");
      plan.orderBound = fields.number(7, "bound");
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

Expected<PackingProblem> readPacking(std::string_view text, std::vector<std::string> *ids,
                                     std::vector<uint64_t> *offsets) {
  RecordReader reader(text);
  Record record;
  if (!reader.next(record))
    return reader.status.ok() ? syntax(1, "the file is empty") : reader.status;
  constexpr size_t kAbsent = SIZE_MAX;
  auto find = [&](const char *name) {
    for (size_t i = 0; i < record.fields.size(); ++i)
      if (record.fields[i] == name)
        return i;
    return kAbsent;
  };
  size_t width = record.fields.size(), id = find("id"), lower = find("lower"), upper = find("upper"),
         size = find("size"), alignment = find("alignment"), offset = find("offset");
  bool inclusive = upper == kAbsent;
  if (lower == kAbsent)
    lower = find("start");
  if (inclusive)
    upper = find("end");
  for (auto [column, name] : {std::pair(id, "id"), {lower, "lower"}, {upper, "upper"}, {size, "size"}})
    if (column == kAbsent)
      return syntax(record.line, std::string("the header has no column '") + name + "'");
  PackingProblem problem;
  uint64_t total = 0;
  while (reader.next(record)) {
    Fields fields(record);
    if (record.fields.size() != width)
      return syntax(record.line, "there are " + std::to_string(record.fields.size()) +
                                     " fields but the header has " + std::to_string(width));
    Piece piece{fields.id(lower, "lower"),
                uint32_t(fields.number(upper, "upper", UINT32_MAX - 1) + inclusive),
                fields.number(size, "size")};
    uint64_t align = alignment == kAbsent ? 1 : fields.number(alignment, "alignment", kMaxAlignment);
    if (piece.begin >= piece.end)
      fields.fail("the buffer ends at " + std::to_string(piece.end) + ", not after it begins at " +
                  std::to_string(piece.begin));
    if (piece.size == 0)
      fields.fail("the buffer has no bytes");
    if (align == 0 || (align & (align - 1)) != 0)
      fields.fail("alignment " + std::to_string(align) + " is not a power of two");
    if (!addBytes(total, piece.size))
      fields.fail("the sum of all sizes is above " + std::to_string(kMaxTotalBytes));
    uint64_t placed = offset != kAbsent ? fields.number(offset, "offset", kMaxTotalBytes) : 0;
    if (!fields.ok())
      return fields.status;
    problem.items.push_back({{piece}, align});
    problem.sections = std::max(problem.sections, piece.end);
    if (ids)
      ids->push_back(record.fields[id]);
    if (offsets && offset != kAbsent)
      offsets->push_back(placed);
  }
  if (!reader.status.ok())
    return reader.status;
  return problem;
}

std::string writePacking(const PackingProblem &problem, const std::vector<std::string> &ids,
                         const std::vector<uint64_t> &offsets) {
  std::string out =
      offsets.empty() ? "id,lower,upper,size,alignment\n" : "id,lower,upper,size,alignment,offset\n";
  for (size_t i = 0; i < problem.items.size(); ++i) {
    const Item &item = problem.items[i];
    std::string id = i < ids.size() ? quote(ids[i]) : std::to_string(i);
    if (offsets.empty())
      line(out, id, item.pieces.front().begin, item.pieces.back().end, item.pieces.front().size,
           item.alignment);
    else
      line(out, id, item.pieces.front().begin, item.pieces.back().end, item.pieces.front().size,
           item.alignment, offsets[i]);
  }
  return out;
}

} // namespace ortc::planning
