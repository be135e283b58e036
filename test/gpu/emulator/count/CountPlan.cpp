// Classes of instructions by their opcodes, and loops by branches that go back.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/count/CountPlan.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "test/gpu/emulator/decode/Decoder.h"
#include "test/gpu/emulator/run/Program.h"

namespace ortc::emulator {
namespace {

using Parts = std::vector<std::string_view>;

/// Without the predicate in front and the operands behind.
std::string opcodeOf(const std::string &text) {
  size_t first = 0;
  if (text[0] == '@')
    first = text.find_first_not_of(' ', std::min(text.find(' '), text.size() - 1));
  const size_t end = text.find_first_of(" ;", first);
  return text.substr(first, end == text.npos ? end : end - first);
}

bool isOneOf(std::string_view op, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

std::string spaceOf(const Parts &parts) {
  for (std::string_view part : parts)
    for (std::string_view space : {"global", "shared", "local", "param", "const"})
      if (part.substr(0, part.find("::")) == space)
        return std::string(space);
  return "generic";
}

std::string bitsOf(const Parts &parts) {
  const int count = contains(parts, "v8") ? 8 : contains(parts, "v4") ? 4 : contains(parts, "v2") ? 2 : 1;
  return std::to_string(count * widthOfType(parts.back()));
}

/// Arithmetic, by its type.
std::string arithmeticOf(std::string_view op, std::string_view type, bool isApproximate) {
  if (isOneOf(op, {"ex2", "lg2", "sin", "cos", "tanh"}) || isApproximate)
    return "special";
  if (isOneOf(op, {"div", "rem", "sqrt", "rcp", "rsqrt"})) // exact: routines of many instructions
    return "divide";
  if (isOneOf(op, {"setp", "set", "selp", "slct"}))
    return "compare";
  if (type == "f64")
    return "f64";
  if (isOneOf(type, {"f16", "bf16", "f16x2", "bf16x2"}))
    return "half";
  if (type == "f32" || type == "f32x2") {
    const std::string kind = isOneOf(op, {"fma", "mad"})   ? "fma"
                             : op == "mul"                 ? "mul"
                             : isOneOf(op, {"add", "sub"}) ? "add"
                                                           : "other";
    return std::string(type) + "." + kind;
  }
  return widthOfType(type) ? "integer" : "other";
}

AccessKind accessOf(const Instruction &i, const std::string &name) {
  auto startsWith = [&](std::string_view start) { return name.compare(0, start.size(), start) == 0; };
  if (startsWith("load.const") || i.action == Action::Compute)
    return AccessKind::None;
  return startsWith("load.")                                  ? AccessKind::Load
         : startsWith("store.")                               ? AccessKind::Store
         : startsWith("atomic.")                              ? AccessKind::Atomic
         : startsWith("cp.async") && name != "cp.async.group" ? AccessKind::Copy
         : startsWith("ldmatrix") || startsWith("stmatrix")   ? AccessKind::Matrix
                                                              : AccessKind::None;
}

/// Where a warp may go on after a place.
std::vector<uint32_t> successorsOf(const Kernel &kernel, uint32_t place) {
  const Instruction &i = kernel.code[place];
  std::vector<uint32_t> next;
  if (i.action == Action::Branch)
    next.push_back(i.target);
  if (i.action == Action::BranchTable)
    next.assign(kernel.lists.begin() + i.list, kernel.lists.begin() + i.list + i.target);
  const bool isJump =
      i.action == Action::Branch || i.action == Action::BranchTable || i.action == Action::Exit;
  if ((!isJump || i.predicate != kNone) && place + 1 < kernel.code.size())
    next.push_back(place + 1);
  return next;
}

/// Branches back are those to a place on the way to them, in a walk from the start. Their loop is what leads to
/// them without passing the place they go to.
std::vector<CountPlan::Loop> findLoops(const Kernel &kernel) {
  const uint32_t size = uint32_t(kernel.code.size());
  std::vector<std::vector<uint32_t>> next(size), before(size);
  for (uint32_t place = 0; place < size; ++place) {
    next[place] = successorsOf(kernel, place);
    for (uint32_t to : next[place])
      before[to].push_back(place);
  }
  enum : uint8_t { Unseen, OnTheWay, Done };
  std::vector<uint8_t> state(size, Unseen);
  std::vector<std::pair<uint32_t, size_t>> way = {{0, 0}}; // place, successors that were followed
  std::map<uint32_t, std::set<uint32_t>> bodies;           // by head
  state[0] = OnTheWay;
  while (!way.empty()) {
    auto &[place, followed] = way.back();
    if (followed == next[place].size()) {
      state[place] = Done;
      way.pop_back();
      continue;
    }
    const uint32_t from = place, to = next[place][followed++];
    if (state[to] == OnTheWay) {
      std::set<uint32_t> &body = bodies[to];
      std::vector<uint32_t> rest = {from};
      body.insert(to);
      while (!rest.empty()) {
        const uint32_t each = rest.back();
        rest.pop_back();
        if (body.insert(each).second)
          rest.insert(rest.end(), before[each].begin(), before[each].end());
      }
    } else if (state[to] == Unseen) {
      state[to] = OnTheWay;
      way.push_back({to, 0});
    }
  }
  std::vector<CountPlan::Loop> loops;
  for (const auto &[head, body] : bodies) {
    const bool isInnermost =
        std::none_of(bodies.begin(), bodies.end(), [&, head = head, &body = body](const auto &other) {
          return other.first != head && body.count(other.first);
        });
    CountPlan::Loop loop = {kernel.code[head].statement, {}};
    for (uint32_t place : body)
      loop.statements.insert(kernel.code[place].statement);
    if (isInnermost)
      loops.push_back(loop);
  }
  return loops;
}

} // namespace

std::string classOfText(const std::string &text) {
  const std::string opcode = opcodeOf(text);
  const Parts parts = splitOpcode(opcode);
  const std::string_view op = parts[0];
  if (op == "mma" && parts.size() > 7)
    return "mma." + std::string(parts[3]) + "." + std::string(parts[6]) + "." + std::string(parts[7]);
  if (op == "wgmma" && parts.size() > 7)
    return "wgmma." + std::string(parts[4]) + "." + std::string(parts[5]) + "." + std::string(parts[6]);
  if (isOneOf(op, {"ldmatrix", "stmatrix"}))
    return std::string(op) +
           (contains(parts, "x4")   ? ".x4"
            : contains(parts, "x2") ? ".x2"
                                    : ".x1") +
           (contains(parts, "trans") ? ".trans" : "");
  if (isOneOf(op, {"ld", "ldu"}))
    return "load." + spaceOf(parts) + "." + bitsOf(parts);
  if (op == "st")
    return "store." + spaceOf(parts) + "." + bitsOf(parts);
  if (isOneOf(op, {"atom", "red"}))
    return "atomic." + spaceOf(parts);
  if (op == "mbarrier" || contains(parts, "mbarrier"))
    return "mbarrier";
  if (op == "cp")
    return contains(parts, "commit_group") || contains(parts, "wait_group") || contains(parts, "wait_all")
               ? "cp.async.group"
               : "cp.async";
  if (isOneOf(op, {"bar", "barrier"}))
    return contains(parts, "warp") ? "barrier.warp" : "barrier";
  static const std::map<std::string_view, std::string> kOthers = {
      {"shfl", "shuffle"}, {"vote", "vote"},        {"match", "vote"},  {"redux", "vote"},
      {"elect", "vote"},   {"activemask", "vote"},  {"bra", "branch"},  {"brx", "branch"},
      {"call", "branch"},  {"wgmma", "wgmma.sync"}, {"fence", "fence"}, {"ret", "branch"},
      {"exit", "branch"},  {"end", "branch"},       {"cvt", "convert"}, {"cvta", "move"},
      {"mov", "move"}};
  auto found = kOthers.find(op);
  if (found != kOthers.end())
    return found->second;
  return arithmeticOf(op, parts.back(), contains(parts, "approx"));
}

std::shared_ptr<const CountPlan> planCounts(const Kernel &kernel) {
  auto plan = std::make_shared<CountPlan>();
  std::map<std::string, uint32_t> numbers;
  auto numberOf = [&](const std::string &name) {
    auto [found, isNew] = numbers.insert({name, uint32_t(plan->classes.size())});
    if (isNew)
      plan->classes.push_back(name);
    return found->second;
  };
  for (const SourceLine &statement : kernel.statements)
    plan->classOf.push_back(numberOf(classOfText(statement.text)));
  plan->places.resize(kernel.code.size());
  for (uint32_t place = 0; place < kernel.code.size(); ++place) {
    const Instruction &i = kernel.code[place];
    CountPlan::Place &counted = plan->places[place];
    counted.isFirst = place == 0 || kernel.code[place - 1].statement != i.statement;
    counted.access = accessOf(i, plan->classes[plan->classOf[i.statement]]);
    if (counted.access == AccessKind::Copy)
      plan->classOf[i.statement] = numberOf("cp.async." + std::to_string(i.bytes));
  }
  plan->loops = findLoops(kernel);
  return plan;
}

} // namespace ortc::emulator
