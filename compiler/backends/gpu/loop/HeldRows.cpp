// Rows whose elements stay in registers from pass to pass.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/loop/HeldRows.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace ortc::kernels;

namespace ortc::gpu {

namespace {

/// Values that a thread holds at most, of the 255 registers that it may have.
constexpr int64_t kMostHeld = 64;

/// Marks the nodes that `roots` need and that are not `known`. Returns those that they need of the known ones.
llvm::BitVector needs(const LoopProgram &program, llvm::SmallVector<unsigned> roots,
                      const llvm::BitVector &known, llvm::BitVector &seen) {
  llvm::BitVector needed(program.nodes.size());
  while (!roots.empty()) {
    unsigned number = roots.pop_back_val();
    if (known.test(number))
      needed.set(number);
    if (known.test(number) || seen.test(number))
      continue;
    seen.set(number);
    const LoopNode &node = program.nodes[number];
    roots.append(node.operands.begin(), node.operands.end());
    for (const IndexExpr::Dynamic &term : node.at.dynamic)
      roots.push_back(term.node);
  }
  return needed;
}

/// Most values of an element of a row that live between two passes.
int64_t countHeld(const LoopProgram &program) {
  int64_t most = 0;
  llvm::BitVector known(program.nodes.size());
  for (unsigned pass = 0; pass + 1 < program.passes; ++pass) {
    llvm::BitVector seen(program.nodes.size());
    needs(program, program.rootsOf(pass), known, seen);
    known |= seen;
    llvm::SmallVector<unsigned> later;
    for (unsigned other = pass + 1; other < program.passes; ++other)
      later.append(program.rootsOf(other));
    seen.reset();
    llvm::BitVector held = needs(program, later, known, seen);
    most = std::max<int64_t>(most, llvm::count_if(held.set_bits(), [&](unsigned number) {
                               const LoopNode &node = program.nodes[number];
                               bool isPlain = node.kind == LoopNode::constant || node.kind == LoopNode::iota;
                               return !isPlain && (node.dims >> program.laneDim & 1);
                             }));
  }
  return most;
}

} // namespace

bool holdsRows(const LoopProgram &program, int64_t count) {
  int64_t held = countHeld(program);
  return held > 0 && held * count <= kMostHeld;
}

} // namespace ortc::gpu
