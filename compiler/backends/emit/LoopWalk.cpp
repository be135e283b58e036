// The walk over one point's reduced dimensions, pass by pass.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/emit/LoopWalk.h"

#include "compiler/backends/emit/Reduction.h"
#include "compiler/backends/emit/StorageConversion.h"
#include "compiler/kernels/SumOrder.h"

using namespace mlir;

namespace ortc::emit {

using namespace kernels;

LoopWalk::LoopWalk(LoopBuilder &builder, const LoopProgram &program, ValueRange buffers)
    : b(builder), program(program), buffers(buffers.begin(), buffers.end()),
      reducedMask(program.reducedMask()) {
  for (auto [d, dim] : llvm::enumerate(program.dims))
    if (dim.reduced && static_cast<int>(d) != program.laneDim)
      outerReduced.push_back(d);
}

void LoopWalk::hoistRoots(ElementEmitter &emitter, uint64_t inner) {
  llvm::BitVector seen(program.nodes.size());
  for (const LoopReduction &reduction : program.reductions)
    hoistReady(emitter, reduction.input, inner, seen);
  for (const LoopOutput &output : program.outputs)
    hoistReady(emitter, output.node, inner, seen);
}
/// Hoists what depends on no reduction.
void LoopWalk::hoistReady(ElementEmitter &emitter, unsigned number, uint64_t inner, llvm::BitVector &seen) {
  if (seen.test(number))
    return;
  const LoopNode &node = program.nodes[number];
  if (node.depth == 0)
    return emitter.hoist(number, inner, seen);
  seen.set(number);
  if (node.kind == LoopNode::reduction || node.kind == LoopNode::range)
    return;
  for (unsigned operand : node.operands)
    hoistReady(emitter, operand, inner, seen);
  for (const IndexExpr::Dynamic &term : node.at.dynamic)
    hoistReady(emitter, term.node, inner, seen);
}

SmallVector<unsigned> LoopWalk::reductionsOf(unsigned pass) const {
  SmallVector<unsigned> list;
  for (auto [r, reduction] : llvm::enumerate(program.reductions))
    if (reduction.pass == pass)
      list.push_back(r);
  return list;
}
bool LoopWalk::storesIn(unsigned pass) const {
  return llvm::any_of(program.outputs,
                      [&](const LoopOutput &output) { return !output.perRow && output.pass == pass; });
}

void LoopWalk::emitGroup(Group members, unsigned pass) {
  for (; pass < program.passes; ++pass) {
    auto list = reductionsOf(pass);
    if (list.empty() && !storesIn(pass))
      continue;
    for (ElementEmitter *member : members)
      hoistPass(*member, pass, reducedMask);
    SmallVector<Value> sums = walkReduced(members, pass, list, 0);
    finishPass(members, list, sums);
  }
  for (ElementEmitter *member : members)
    storePerRow(*member);
}

void LoopWalk::hoistPass(ElementEmitter &emitter, unsigned pass, uint64_t inner) {
  if (!inner)
    return;
  llvm::BitVector seen(program.nodes.size());
  for (const LoopReduction &reduction : program.reductions)
    if (reduction.pass == pass)
      emitter.hoist(reduction.input, inner, seen);
  for (const LoopOutput &output : program.outputs)
    if (!output.perRow && output.pass == pass)
      emitter.hoist(output.node, inner, seen);
}

SmallVector<Value> LoopWalk::walkReduced(Group members, unsigned pass, ArrayRef<unsigned> list,
                                         size_t level) {
  if (level == outerReduced.size())
    return emitPoint(members, pass, list);
  unsigned dim = outerReduced[level];
  int64_t size = program.dims[dim].size;
  bool innermost = level + 1 == outerReduced.size();
  auto identities = [&] { return identitiesOf(members, list); };
  auto join = [&](ValueRange total, ArrayRef<Value> part) { return joined(members, list, total, part); };
  auto over = [&](IndexRange range, ValueRange start) {
    return walkRange(members, pass, list, level, range, start);
  };
  if (!innermost || size <= kReductionBlock || list.empty())
    return over({b.index(0), b.index(size)}, identities());
  int64_t whole = size / kReductionBlock * kReductionBlock;
  SmallVector<Value> total = b.fold(
      {b.index(0), b.index(whole)}, kReductionBlock, identities(), [&](Value start, ValueRange carried) {
        return join(carried, over({start, b.add(start, kReductionBlock)}, identities()));
      });
  if (whole < size)
    total = join(total, over({b.index(whole), b.index(size)}, identities()));
  return total;
}

SmallVector<Value> LoopWalk::walkRange(Group members, unsigned pass, ArrayRef<unsigned> list, size_t level,
                                       IndexRange range, ValueRange start) {
  return b.fold(range, 1, start, [&](Value index, ValueRange carried) {
    for (ElementEmitter *member : members) {
      member->openScope();
      member->setIndex(outerReduced[level], index);
    }
    SmallVector<Value> inner = walkReduced(members, pass, list, level + 1);
    for (ElementEmitter *member : members)
      member->closeScope();
    return joined(members, list, carried, inner);
  });
}

SmallVector<Value> LoopWalk::joined(Group members, ArrayRef<unsigned> list, ValueRange total,
                                    ArrayRef<Value> part) {
  SmallVector<Value> values;
  for (size_t i = 0; i < part.size(); ++i)
    values.push_back(combine(b, program.reductions[list[i / members.size()]].kind, total[i], part[i]));
  return values;
}

Value LoopWalk::identityOf(unsigned number, const ElementEmitter &member) {
  const LoopReduction &reduction = program.reductions[number];
  return reductionIdentity(b, reduction.kind, accumulatorType(reduction.element), member.getWidth());
}

LoopWalk::Values LoopWalk::identitiesOf(Group members, List list) {
  Values values;
  for (unsigned r : list)
    for (ElementEmitter *member : members)
      values.push_back(identityOf(r, *member));
  return values;
}

Value LoopWalk::accumulated(ElementEmitter &emitter, const LoopReduction &reduction) {
  Value value = emitter.emitVector(reduction.input);
  Type element = program.nodes[reduction.input].element;
  return element.isF16() || element.isBF16() ? extendToF32(b, b.getLoc(), value, element) : value;
}

SmallVector<Value> LoopWalk::emitPoint(Group members, unsigned pass, ArrayRef<unsigned> list) {
  SmallVector<Value> values;
  for (unsigned r : list)
    for (ElementEmitter *member : members)
      values.push_back(accumulated(*member, program.reductions[r]));
  // All loads come before the stores: memory may be shared.
  SmallVector<std::pair<const LoopOutput *, Value>> stores;
  for (const LoopOutput &output : program.outputs)
    if (!output.perRow && output.pass == pass)
      for (ElementEmitter *member : members)
        stores.push_back({&output, member->emitVector(output.node)});
  for (auto [i, entry] : llvm::enumerate(stores)) {
    ElementEmitter &member = *members[i % members.size()];
    member.store(entry.second, entry.first->element, buffers[entry.first->buffer], entry.first->at);
  }
  return values;
}

void LoopWalk::finishPass(Group members, ArrayRef<unsigned> list, ArrayRef<Value> sums) {
  for (auto [i, sum] : llvm::enumerate(sums)) {
    const LoopReduction &reduction = program.reductions[list[i / members.size()]];
    Value value = sum;
    if (accumulatorType(reduction.element) != reduction.element)
      value = truncateFromF32(b, b.getLoc(), value, reduction.element);
    members[i % members.size()]->bind(reduction.node, value);
  }
}

void LoopWalk::storePerRow(ElementEmitter &emitter) {
  // All values come before the stores: an output may lie where an input of another one is.
  SmallVector<std::pair<const LoopOutput *, Value>> stores;
  for (const LoopOutput &output : program.outputs)
    if (output.perRow) {
      Value value = emitter.emit(output.node);
      stores.push_back({&output, program.lanesReduced() ? value : emitter.spreadLanes(value)});
    }
  for (auto [output, value] : stores)
    emitter.store(value, output->element, buffers[output->buffer], emitter.emitIndex(output->at));
}

} // namespace ortc::emit
