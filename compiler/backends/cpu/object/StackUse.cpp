// Frames from the code generator, longest path over calls. LLVM's section .stack_sizes is not enough: it leaves out the
// return address, what a function takes more when it aligns its stack pointer (it says 120 bytes of a frame that takes
// up to 192), and who calls whom.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/object/StackUse.h"

#include "compiler/backends/cpu/isa/Architecture.h"

#include "llvm/CodeGen/MachineFrameInfo.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/TargetFrameLowering.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Target/TargetMachine.h"

#include <algorithm>

using namespace llvm;

namespace ortc::cpu {

static std::optional<uint64_t> findFrameBytes(const MachineFunction &function,
                                              const Architecture &architecture) {
  const TargetSubtargetInfo &target = function.getSubtarget();
  const TargetFrameLowering &lowering = *target.getFrameLowering();
  const MachineFrameInfo &info = function.getFrameInfo();
  if (info.hasVarSizedObjects() || info.hasOpaqueSPAdjustment())
    return std::nullopt;
  uint64_t returnAddress = -lowering.getOffsetOfLocalArea(), stackAlign = lowering.getStackAlign().value();
  uint64_t bytes = returnAddress + info.getStackSize();
  if (target.getRegisterInfo()->hasStackRealignment(function)) {
    std::optional<uint64_t> aligned = architecture.findAlignedFrame(info, stackAlign, returnAddress);
    if (!aligned)
      return std::nullopt;
    bytes = *aligned;
  }
  if (!lowering.hasReservedCallFrame(function)) // then arguments on the stack come and go with the calls
    bytes += alignTo(info.getMaxCallFrameSize(), stackAlign);
  return bytes;
}

/// The function that an instruction calls by name; empty when it calls through a pointer.
static std::string findCallee(const MachineInstr &call) {
  for (const MachineOperand &operand : call.operands()) {
    if (operand.isGlobal())
      return operand.getGlobal()->getName().str();
    if (operand.isSymbol())
      return operand.getSymbolName();
  }
  return "";
}

namespace {

class StackFramePass : public MachineFunctionPass {
public:
  static char ID; // which passes of LLVM must have
  StackFramePass(StackFrames &frames, const Architecture &architecture)
      : MachineFunctionPass(ID), frames(frames), architecture(architecture) {}

  void getAnalysisUsage(AnalysisUsage &usage) const override {
    usage.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(usage);
  }

  bool runOnMachineFunction(MachineFunction &function) override {
    StackFrame &frame = frames[function.getName().str()];
    frame.bytes = findFrameBytes(function, architecture);
    for (const MachineBasicBlock &block : function)
      for (const MachineInstr &instruction : block) {
        if (!instruction.isCall())
          continue;
        if (std::string callee = findCallee(instruction); callee.empty())
          frame.callsPointers = true;
        else
          frame.calls.insert(callee);
      }
    return false;
  }

private:
  StackFrames &frames;
  const Architecture &architecture;
};

char StackFramePass::ID = 0;

/// Walks over calls, the innermost first.
class Walk {
public:
  Walk(const StackFrames &frames, const PointerCalls &pointers) : frames(frames), pointers(pointers) {}

  std::optional<uint64_t> visit(const std::string &name) {
    // What is still being visited calls itself: it has no bytes yet.
    auto [known, isNew] = found.try_emplace(name);
    auto frame = frames.find(name);
    if (!isNew || frame == frames.end() || !frame->second.bytes)
      return known->second;
    auto leads = pointers.find(name);
    if (frame->second.callsPointers && leads == pointers.end())
      return std::nullopt;
    std::set<std::string> callees = frame->second.calls;
    if (frame->second.callsPointers)
      callees.insert(leads->second.begin(), leads->second.end());
    uint64_t deepest = 0;
    for (const std::string &callee : callees) {
      std::optional<uint64_t> bytes = visit(callee);
      if (!bytes)
        return std::nullopt;
      deepest = std::max(deepest, *bytes);
    }
    return known->second = *frame->second.bytes + deepest;
  }

private:
  const StackFrames &frames;
  const PointerCalls &pointers;
  std::map<std::string, std::optional<uint64_t>> found;
};

} // namespace

MachineFunctionPass *createStackFramePass(StackFrames &frames, const Architecture &architecture) {
  return new StackFramePass(frames, architecture);
}

std::optional<uint64_t> findStackUse(const StackFrames &frames, const PointerCalls &pointers,
                                     const std::string &function) {
  return Walk(frames, pointers).visit(function);
}

} // namespace ortc::cpu
