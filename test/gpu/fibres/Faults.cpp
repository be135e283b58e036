// Faults in kernels for AMD GPUs, put into the code that fibres run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/fibres/Faults.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"

#include <algorithm>
#include <iterator>
#include <optional>

using namespace llvm;

namespace ortc::fibres {

static constexpr unsigned kSharedSpace = 3; // of AMD's address spaces
static constexpr size_t kMostOfKind = 8;
static constexpr const char *kNames[] = {"barrier", "product", "sum", "part", "swizzle", "load", "store"};

std::string Fault::name() const { return std::string(kNames[kind]) + " " + std::to_string(number); }

static StringRef calleeOf(const CallInst &call) {
  const Function *function = call.getCalledFunction();
  return function ? function->getName() : StringRef();
}

/// How an instruction is broken, if there is a way.
static std::optional<Fault::Kind> kindOf(const Instruction &instruction) {
  if (auto *call = dyn_cast<CallInst>(&instruction)) {
    StringRef name = calleeOf(*call);
    if (name.starts_with("llvm.amdgcn.s.barrier"))
      return Fault::barrier;
    if (name.contains(".mfma.") || name.contains(".wmma."))
      return Fault::product;
    return std::nullopt;
  }
  if (auto *load = dyn_cast<LoadInst>(&instruction); load && load->getPointerAddressSpace() == kSharedSpace)
    return Fault::load;
  if (auto *store = dyn_cast<StoreInst>(&instruction);
      store && store->getPointerAddressSpace() == kSharedSpace)
    return Fault::store;
  switch (instruction.getOpcode()) {
  case Instruction::FAdd: { // not one that begins with zeros
    auto *first = dyn_cast<Constant>(instruction.getOperand(1));
    return first && first->isZeroValue() ? std::nullopt : std::optional(Fault::sum);
  }
  case Instruction::FSub:
    return Fault::part;
  case Instruction::Xor: // not the negation of a condition
    return instruction.getType()->isIntOrIntVectorTy(1) ? std::nullopt : std::optional(Fault::swizzle);
  default:
    return std::nullopt;
  }
}

std::vector<Fault> listFaults(const Module &module) {
  size_t counts[std::size(kNames)] = {};
  for (const Function &function : module)
    for (const Instruction &instruction : instructions(function))
      if (auto kind = kindOf(instruction))
        ++counts[*kind];
  std::vector<Fault> faults;
  for (size_t kind = 0; kind < std::size(kNames); ++kind) {
    size_t step = std::max<size_t>((counts[kind] + kMostOfKind - 1) / kMostOfKind, 1);
    for (size_t number = 0; number < counts[kind]; number += step)
      faults.push_back({static_cast<Fault::Kind>(kind), number});
  }
  return faults;
}

static void breakInstruction(Instruction &instruction, Fault::Kind kind) {
  IRBuilder<> builder(&instruction);
  auto further = [&](Value *pointer) { return builder.CreateConstGEP1_64(builder.getInt8Ty(), pointer, 16); };
  switch (kind) {
  case Fault::load:
    instruction.setOperand(0, further(instruction.getOperand(0)));
    return;
  case Fault::store:
    instruction.setOperand(1, further(instruction.getOperand(1)));
    return;
  case Fault::product:
    instruction.replaceAllUsesWith(instruction.getOperand(2));
    break;
  case Fault::sum:
  case Fault::part:
  case Fault::swizzle:
    instruction.replaceAllUsesWith(instruction.getOperand(0));
    break;
  case Fault::barrier:
    break;
  }
  instruction.eraseFromParent();
}

void putFault(Module &module, const Fault &fault) {
  size_t number = 0;
  for (Function &function : module)
    for (Instruction &instruction : instructions(function))
      if (kindOf(instruction) == fault.kind && number++ == fault.number)
        return breakInstruction(instruction, fault.kind);
}

} // namespace ortc::fibres
