// Functions and control flow.
//
// A call becomes a copy of the function: its parameters are the memory that the caller filled, and its return
// is a jump behind the copy. So there is no stack, and no recursion.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/decode/Decoder.h"

#include <map>

namespace ortc::emulator {
namespace {

constexpr int kDeepest = 64;
constexpr size_t kMostInstructions = size_t(1) << 22;

} // namespace

std::vector<std::string_view> splitOpcode(const std::string &opcode) {
  std::vector<std::string_view> parts;
  std::string_view rest = opcode;
  while (true) {
    size_t point = rest.find('.');
    parts.push_back(rest.substr(0, point));
    if (point == rest.npos)
      return parts;
    rest.remove_prefix(point + 1);
  }
}

bool contains(const std::vector<std::string_view> &parts, std::string_view part) {
  for (std::string_view p : parts)
    if (p == part)
      return true;
  return false;
}

Kernel Decoder::decode(const Function &function) {
  decodeOnce(function);
  if (usesDynamicShared) { // it lies behind the static variables, which are all known now
    dynamicBase = (kernel.sharedBytes + kernel.dynamicAlign - 1) / kernel.dynamicAlign * kernel.dynamicAlign;
    decodeOnce(function);
  }
  return std::move(kernel);
}

void Decoder::decodeOnce(const Function &function) {
  for (int k = 0; k < 2; ++k) {
    constants[k].clear();
    specials[k].clear();
  }
  sharedPlaces.clear();
  kernel = Kernel();
  kernel.name = function.name;
  for (int k = 0; k < 3; ++k)
    kernel.maxThreads[k] = function.maxThreads[k];
  kernel.isExactThreads = function.isExactThreads;
  Frame top{};
  top.function = &function;
  top.isKernel = true;
  for (const Variable *param : function.params) {
    uint64_t offset = (kernel.paramBytes + param->align - 1) / param->align * param->align;
    kernel.params.push_back({param->name, uint32_t(offset), uint32_t(param->bytes), param->pointerAlign});
    kernel.paramBytes = uint32_t(offset + param->bytes);
    top.places[param] = {Space::Param, offset};
  }
  decodeFunction(top, 0);
  kernel.statements.push_back({function.line, "end of the kernel"});
  current = nullptr;
  emit(Action::Exit, nullptr);
  finishJumps(top);
}

void Decoder::decodeFunction(Frame &newFrame, int newDepth) {
  Frame *outer = frame;
  int outerDepth = depth;
  const Statement *caller = current;
  frame = &newFrame;
  depth = newDepth;
  frame->registers.assign(frame->function->registers.size(), kNone);
  for (const Statement &s : frame->function->statements) {
    frame->starts.push_back(uint32_t(kernel.code.size()));
    if (s.opcode.empty()) // a mutation removed it
      continue;
    current = &s;
    kernel.statements.push_back({s.line, s.text});
    decodeStatement(s);
    if (kernel.code.size() > kMostInstructions)
      fail("kernel '" + kernel.name + "' has too many instructions");
  }
  frame->starts.push_back(uint32_t(kernel.code.size()));
  frame = outer;
  depth = outerDepth;
  current = caller;
}

/// Jumps whose target was not known yet.
void Decoder::finishJumps(Frame &done) {
  for (const Frame::Jump &jump : done.jumps) {
    if (jump.list == kNone)
      kernel.code[jump.instruction].target = done.starts[jump.statement];
    else
      kernel.lists[jump.list] = done.starts[jump.statement];
  }
}

void Decoder::decodeStatement(const Statement &s) {
  static const std::map<std::string_view, Member> kMembers = {
      {"bra", &Decoder::decodeBranch},
      {"brx", &Decoder::decodeBranchTable},
      {"call", &Decoder::decodeCall},
      {"ret", &Decoder::decodeReturn},
      {"exit", &Decoder::decodeExit},
      {"trap", &Decoder::decodeTrap},
      {"brkpt", &Decoder::decodeTrap},
      {"mov", &Decoder::decodeMove},
      {"setp", &Decoder::decodeSetPredicate},
      {"set", &Decoder::decodeSet},
      {"cvt", &Decoder::decodeConvert},
      {"ld", &Decoder::decodeLoad},
      {"ldu", &Decoder::decodeLoad},
      {"st", &Decoder::decodeStore},
      {"atom", &Decoder::decodeAtomic},
      {"red", &Decoder::decodeAtomic},
      {"cvta", &Decoder::decodeConvertAddress},
      {"isspacep", &Decoder::decodeIsSpace},
      {"cp", &Decoder::decodeCopyAsync},
      {"bar", &Decoder::decodeBarrier},
      {"barrier", &Decoder::decodeBarrier},
      {"shfl", &Decoder::decodeShuffle},
      {"vote", &Decoder::decodeVote},
      {"match", &Decoder::decodeMatch},
      {"redux", &Decoder::decodeReduce},
      {"elect", &Decoder::decodeElect},
      {"activemask", &Decoder::decodeActiveMask},
      {"ldmatrix", &Decoder::decodeMatrixAccess},
      {"stmatrix", &Decoder::decodeMatrixAccess},
      {"mma", &Decoder::decodeProduct},
      {"wgmma", &Decoder::decodeGroupProduct},
      {"mbarrier", &Decoder::decodeMbarrier},
      // Order and hints, which this execution does not need.
      {"membar", &Decoder::ignore},
      {"fence", &Decoder::decodeFence},
      {"prefetch", &Decoder::ignore},
      {"prefetchu", &Decoder::ignore},
      {"nanosleep", &Decoder::ignore},
      {"griddepcontrol", &Decoder::ignore},
      {"pmevent", &Decoder::ignore},
      {"discard", &Decoder::ignore},
      {"applypriority", &Decoder::ignore}};
  Parts parts = splitOpcode(s.opcode);
  auto found = kMembers.find(parts[0]);
  (this->*(found == kMembers.end() ? &Decoder::decodeArithmetic : found->second))(s, parts);
}

void Decoder::jumpTo(const Statement &, const std::string &label, uint32_t instruction, uint32_t list) {
  auto found = frame->function->labels.find(label);
  if (found == frame->function->labels.end())
    fail("there is no label '" + label + "'");
  frame->jumps.push_back({instruction, list, found->second});
}

void Decoder::decodeBranch(const Statement &s, const Parts &) {
  want(s, 1, 1);
  emit(Action::Branch, nullptr);
  jumpTo(s, s.operands[0].name, uint32_t(kernel.code.size() - 1), kNone);
}

void Decoder::decodeBranchTable(const Statement &s, const Parts &) {
  want(s, 2, 2);
  auto found = frame->function->branchTargets.find(s.operands[1].name);
  if (found == frame->function->branchTargets.end())
    fail("there is no list of targets '" + s.operands[1].name + "'");
  uint32_t index = source(s.operands[0], 32);
  Instruction &i = emit(Action::BranchTable, nullptr);
  i.a = index;
  i.list = uint32_t(kernel.lists.size());
  i.target = uint32_t(found->second.size());
  uint32_t instruction = uint32_t(kernel.code.size() - 1);
  for (const std::string &label : found->second) {
    uint32_t at = uint32_t(kernel.lists.size());
    kernel.lists.push_back(0);
    jumpTo(s, label, instruction, at);
  }
}

void Decoder::decodeReturn(const Statement &s, const Parts &parts) {
  if (frame->isKernel)
    return decodeExit(s, parts);
  emit(Action::Branch, nullptr);
  frame->jumps.push_back({uint32_t(kernel.code.size() - 1), kNone, frame->function->statements.size()});
}

void Decoder::decodeExit(const Statement &, const Parts &) { emit(Action::Exit, nullptr); }

/// call (result), function, (arguments): the parts that a function does not have are left out.
void Decoder::decodeCall(const Statement &s, const Parts &) {
  const Operand *results = nullptr, *name = nullptr, *arguments = nullptr;
  for (const Operand &operand : s.operands) {
    if (operand.kind == Kind::List)
      (name ? arguments : results) = &operand;
    else if (!name)
      name = &operand;
  }
  if (!name || name->kind != Kind::Name)
    fail("calls through registers are not supported");
  auto found = module.functions.find(name->name);
  if (found == module.functions.end() || !found->second->isDefined)
    fail("unresolved function '" + name->name + "'");
  if (depth >= kDeepest)
    fail("calls nest deeper than " + std::to_string(kDeepest) + ", or recursion");
  const Function &function = *found->second;
  Frame callee{};
  callee.function = &function;
  auto bind = [&](const Operand *given, const std::vector<const Variable *> &formal) {
    size_t count = given ? given->parts.size() : 0;
    if (count != formal.size())
      fail("'" + function.name + "' has " + std::to_string(formal.size()) + " parameters, given are " +
           std::to_string(count));
    for (size_t k = 0; k < count; ++k) {
      const Operand &part = given->parts[k];
      if (part.kind != Kind::Place || part.variable->space != Space::Param)
        fail("only arguments in .param are supported");
      if (part.variable->bytes != formal[k]->bytes)
        fail("argument '" + part.variable->name + "' has another size than the parameter");
      callee.places[formal[k]] = placeOf(*part.variable);
    }
  };
  bind(results, function.results);
  bind(arguments, function.params);
  // A predicated call is jumped over as a whole.
  uint32_t skip = kNone;
  if (s.predicate >= 0) {
    Instruction &i = emit(Action::Branch, nullptr);
    i.isNegated = !i.isNegated;
    skip = uint32_t(kernel.code.size() - 1);
  }
  decodeFunction(callee, depth + 1);
  finishJumps(callee);
  if (skip != kNone)
    kernel.code[skip].target = uint32_t(kernel.code.size());
}

} // namespace ortc::emulator
