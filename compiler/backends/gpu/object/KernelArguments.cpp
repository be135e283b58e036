// Where kernels for AMD's GPUs read their arguments.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/object/KernelArguments.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/AMDGPUAddrSpace.h"

using namespace llvm;

namespace ortc::gpu {

/// Up to so many addresses fit into scalar registers beside everything else.
static constexpr size_t kFewArguments = 24;

namespace {

class ArgumentLoader {
public:
  explicit ArgumentLoader(Function &kernel) : kernel(kernel), dominators(kernel), loops(dominators) {
    IRBuilder<> builder(&*kernel.getEntryBlock().getFirstInsertionPt());
    segment = builder.CreateIntrinsic(Intrinsic::amdgcn_kernarg_segment_ptr, {});
  }

  void run() {
    const DataLayout &layout = kernel.getDataLayout();
    uint64_t offset = 0;
    for (Argument &argument : kernel.args()) {
      Type *type = argument.getType();
      offset = alignTo(offset, layout.getABITypeAlign(type));
      if (type->isPointerTy())
        loadWhereUsed(argument, offset);
      offset += layout.getTypeAllocSize(type);
    }
  }

private:
  /// The block that loads what a use wants: that of a phi's operand, and outside of loops.
  BasicBlock *blockOf(const Use &use) const {
    auto *user = cast<Instruction>(use.getUser());
    auto *phi = dyn_cast<PHINode>(user);
    BasicBlock *block = phi ? phi->getIncomingBlock(use) : user->getParent();
    while (Loop *loop = loops.getLoopFor(block)) {
      BasicBlock *before = loop->getLoopPreheader();
      if (!before)
        break;
      block = before;
    }
    return block;
  }

  /// The arguments in memory, as something that LLVM does not take for the same in other blocks.
  Value *segmentIn(BasicBlock *block) {
    Value *&own = segments[block];
    if (!own) {
      Instruction *place = block == &kernel.getEntryBlock() ? cast<Instruction>(segment)->getNextNode()
                                                            : &*block->getFirstInsertionPt();
      IRBuilder<> builder(place);
      Type *type = segment->getType();
      auto *assembly = InlineAsm::get(FunctionType::get(type, {type}, /*isVarArg=*/false), "", "=s,0",
                                      /*hasSideEffects=*/true);
      own = builder.CreateCall(assembly, {segment});
    }
    return own;
  }

  /// Replaces the uses of a pointer at byte `offset` of the arguments, and of its casts, which LLVM writes at the
  /// beginning.
  void loadWhereUsed(Argument &argument, uint64_t offset) {
    SmallVector<Use *> uses;
    for (Use &use : argument.uses()) {
      auto *cast = dyn_cast<AddrSpaceCastInst>(use.getUser());
      if (!cast)
        uses.push_back(&use);
      else
        for (Use &further : cast->uses())
          uses.push_back(&further);
    }
    DenseMap<std::pair<BasicBlock *, Type *>, Value *> loaded;
    for (Use *use : uses) {
      BasicBlock *block = blockOf(*use);
      Type *type = use->get()->getType();
      Value *&value = loaded[{block, type}];
      if (!value)
        value = loadIn(block, offset, type);
      use->set(value);
    }
  }

  Value *loadIn(BasicBlock *block, uint64_t offset, Type *type) {
    auto *start = cast<Instruction>(segmentIn(block));
    IRBuilder<> builder(start->getNextNode());
    Value *place = builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), start, offset);
    // Arguments are addresses of the device's memory, which LLVM knows of those that it loads itself.
    LoadInst *load = builder.CreateAlignedLoad(builder.getPtrTy(AMDGPUAS::GLOBAL_ADDRESS), place, Align(8));
    load->setMetadata(LLVMContext::MD_invariant_load, MDNode::get(builder.getContext(), {}));
    load->setMetadata(LLVMContext::MD_noundef, MDNode::get(builder.getContext(), {}));
    return load->getType() == type ? load : builder.CreateAddrSpaceCast(load, type);
  }

  Function &kernel;
  DominatorTree dominators;
  LoopInfo loops;
  Value *segment;
  DenseMap<BasicBlock *, Value *> segments;
};

} // namespace

void loadArgumentsWhereUsed(Module &code) {
  for (Function &kernel : code)
    if (!kernel.isDeclaration() && kernel.getCallingConv() == CallingConv::AMDGPU_KERNEL &&
        kernel.arg_size() > kFewArguments)
      ArgumentLoader(kernel).run();
}

} // namespace ortc::gpu
