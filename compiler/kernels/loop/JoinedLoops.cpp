// Loops side by side in one kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/kernels/loop/JoinedLoops.h"

#include "compiler/kernels/SumOrder.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace ortc::kernels {

bool isPointwise(const LoopProgram &program) {
  return !program.lanesReduced() && program.elements(/*reduced=*/true) < 2 * kLeastColumnRows;
}

std::optional<ColumnCut> joinedCut(const LoopProgram &program) {
  auto cut = chooseColumnCut(program);
  return cut && cut->chunks == 1 ? cut : std::nullopt;
}

std::optional<int64_t> joinedWarps(const LoopProgram &program, bool sharesRows) {
  if (isPointwise(program))
    return 0;
  auto cut = sharesRows ? joinedCut(program) : std::nullopt;
  return cut ? std::optional(cut->warps) : std::nullopt;
}

/// Outputs that are computed with a common operation, or written where others are read, under the first of them.
static llvm::MapVector<unsigned, SmallVector<unsigned>> findParts(ValueRange inputs, ValueRange outputs,
                                                                  ArrayRef<int64_t> inPlace) {
  llvm::EquivalenceClasses<unsigned> parts;
  llvm::DenseMap<Operation *, unsigned> users;          // the first output that an operation is needed for
  llvm::DenseMap<Value, SmallVector<unsigned>> readers; // of an input
  for (auto [number, output] : llvm::enumerate(outputs)) {
    parts.insert(number);
    SmallVector<Value> stack{output};
    while (!stack.empty()) {
      Value value = stack.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (!op)
        readers[value].push_back(number);
      if (!op || op->hasTrait<OpTrait::ConstantLike>())
        continue;
      auto [user, isNew] = users.try_emplace(op, number);
      if (isNew)
        stack.append(op->operand_begin(), op->operand_end());
      else
        parts.unionSets(user->second, number);
    }
  }
  for (size_t i = 0; i < inPlace.size(); i += 2)
    for (unsigned reader : readers[inputs[inPlace[i]]])
      parts.unionSets(reader, inPlace[i + 1]);
  llvm::DenseMap<unsigned, unsigned> firsts; // by leader
  llvm::MapVector<unsigned, SmallVector<unsigned>> found;
  for (unsigned number = 0; number < outputs.size(); ++number) {
    unsigned first = firsts.try_emplace(parts.getLeaderValue(number), number).first->second;
    found[first].push_back(number);
  }
  return found;
}

std::optional<std::vector<JoinedLoop>> analyzeJoined(ValueRange inputs, ValueRange outputs,
                                                     ArrayRef<int64_t> inPlace, std::string &reason) {
  std::vector<JoinedLoop> loops;
  for (auto &[first, numbers] : findParts(inputs, outputs, inPlace)) {
    SmallVector<Value> own;
    for (unsigned number : numbers)
      own.push_back(outputs[number]);
    auto program = analyzeLoops(inputs, own, reason);
    if (!program)
      return std::nullopt;
    if (!isPointwise(*program) && !joinedCut(*program)) {
      reason = "a loop sums up many elements";
      return std::nullopt;
    }
    loops.push_back({std::move(*program), numbers});
  }
  return loops;
}

} // namespace ortc::kernels
