// Builds the code that one thread of a block runs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/ThreadBuilder.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace ortc::gpu {

using Value = ThreadBuilder::Value;

namespace {

/// An index as the sum of a value, which may be null, and a constant.
struct Sum {
  explicit Sum(Value value) : value(value) {
    if (auto whole = ThreadBuilder::constantOf(value)) {
      this->value = {}, constant = *whole;
    } else if (auto add = value.getDefiningOp<arith::AddIOp>()) {
      if (auto part = ThreadBuilder::constantOf(add.getRhs()))
        this->value = add.getLhs(), constant = *part;
    }
  }
  Sum(Value value, int64_t constant) : value(value), constant(constant) {}

  Value in(ThreadBuilder &b) const {
    if (!value)
      return b.index(constant);
    if (constant == 0)
      return value;
    return arith::AddIOp::create(b, value, b.index(constant), arith::IntegerOverflowFlags::nsw);
  }

  Value value;
  int64_t constant = 0;
};

} // namespace

Value ThreadBuilder::add(Value a, Value b) {
  Sum left(a), right(b);
  Value both = left.value ? left.value : right.value;
  if (left.value && right.value)
    both = arith::AddIOp::create(*this, left.value, right.value, arith::IntegerOverflowFlags::nsw);
  return Sum(both, left.constant + right.constant).in(*this);
}

Value ThreadBuilder::sub(Value a, Value b) {
  Sum left(a), right(b);
  Value difference = left.value;
  if (right.value)
    difference = arith::SubIOp::create(*this, left.value ? left.value : index(0), right.value,
                                       arith::IntegerOverflowFlags::nsw);
  return Sum(difference, left.constant - right.constant).in(*this);
}

Value ThreadBuilder::mul(Value a, int64_t b) {
  if (b == 0)
    return index(0);
  Sum factor(a);
  if (factor.value && b != 1)
    factor.value = arith::MulIOp::create(*this, factor.value, index(b), arith::IntegerOverflowFlags::nsw);
  return Sum(factor.value, factor.constant * b).in(*this);
}

Value ThreadBuilder::callIntrinsic(Type result, StringRef name, ValueRange operands) {
  auto call = LLVM::CallIntrinsicOp::create(*this, result ? TypeRange{result} : TypeRange{},
                                            getStringAttr(name), operands, LLVM::FastmathFlagsAttr{});
  return result ? call.getResults() : Value();
}

SmallVector<Value> ThreadBuilder::callIntrinsic(Type element, int64_t count, StringRef name,
                                                ValueRange operands) {
  auto type = LLVM::LLVMStructType::getLiteral(getContext(), SmallVector<Type>(count, element));
  Value all = callIntrinsic(type, name, operands);
  SmallVector<Value> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(LLVM::ExtractValueOp::create(*this, all, i));
  return values;
}

Value ThreadBuilder::pointerTo(Value buffer, Value at) {
  auto type = cast<MemRefType>(buffer.getType());
  auto pointer = LLVM::LLVMPointerType::get(getContext(), type.getMemorySpaceAsInt());
  // Resolved after the conversion, when the buffer has a pointer (emit/Lowering.cpp).
  Value start = UnrealizedConversionCastOp::create(*this, pointer, buffer).getResult(0);
  Value place = arith::IndexCastOp::create(*this, getI64Type(), at);
  return LLVM::GEPOp::create(*this, pointer, type.getElementType(), start, ArrayRef<LLVM::GEPArg>{place});
}

Value ThreadBuilder::advance(Value pointer, Value bytes) {
  Value way = arith::IndexCastOp::create(*this, getI32Type(), bytes);
  return LLVM::GEPOp::create(*this, pointer.getType(), getI8Type(), pointer, ArrayRef<LLVM::GEPArg>{way});
}

Value ThreadBuilder::advance(Value pointer, int64_t bytes) {
  if (bytes == 0)
    return pointer;
  return LLVM::GEPOp::create(*this, pointer.getType(), getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(bytes)});
}

static unsigned runBytes(Type run) {
  auto vector = cast<VectorType>(run);
  return vector.getNumElements() * vector.getElementTypeBitWidth() / 8;
}

Value ThreadBuilder::loadRun(Value pointer, Type element, int64_t count) {
  auto type = VectorType::get({count}, element);
  return LLVM::LoadOp::create(*this, type, pointer, runBytes(type));
}

Value ThreadBuilder::loadFrom(Value pointer, Type element) {
  return LLVM::LoadOp::create(*this, element, pointer, element.getIntOrFloatBitWidth() / 8);
}

void ThreadBuilder::storeRun(Value run, Value pointer) {
  LLVM::StoreOp::create(*this, run, pointer, runBytes(run.getType()));
}

Value ThreadBuilder::runOf(ValueRange elements) {
  auto type = VectorType::get({static_cast<int64_t>(elements.size())}, elements.front().getType());
  Value run = LLVM::PoisonOp::create(*this, type);
  for (auto [i, element] : llvm::enumerate(elements))
    run = LLVM::InsertElementOp::create(*this, run, element, constant32(i));
  return run;
}

SmallVector<Value> ThreadBuilder::elementsOf(Value run) {
  SmallVector<Value> elements;
  for (int64_t i = 0; i < cast<VectorType>(run.getType()).getNumElements(); ++i)
    elements.push_back(LLVM::ExtractElementOp::create(*this, run, constant32(i)));
  return elements;
}

Value ThreadBuilder::constant32(int64_t value) {
  return arith::ConstantOp::create(*this, getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value ThreadBuilder::thread() {
  return latest ? latest : arith::IndexCastUIOp::create(*this, getIndexType(), readThread());
}

Value ThreadBuilder::readThread() {
  StringRef name = processor.isNvidia() ? "llvm.nvvm.read.ptx.sreg.tid.x" : "llvm.amdgcn.workitem.id.x";
  return callIntrinsic(getI32Type(), name, {});
}

Value ThreadBuilder::block() {
  StringRef name = processor.isNvidia() ? "llvm.nvvm.read.ptx.sreg.ctaid.x" : "llvm.amdgcn.workgroup.id.x";
  return arith::IndexCastUIOp::create(*this, getIndexType(), callIntrinsic(getI32Type(), name, {}));
}

Value ThreadBuilder::runAssembly(Type result, StringRef text, StringRef constraints, ValueRange operands) {
  auto assembly = LLVM::InlineAsmOp::create(
      *this, result ? TypeRange{result} : TypeRange{}, operands, text, constraints,
      /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(getContext(), LLVM::AsmDialect::AD_ATT), ArrayAttr());
  return result ? assembly.getRes() : Value();
}

/// An index that LLVM knows nothing about. LLVM merges two reads of a special register by intrinsics, but not two by
/// assembly.
Value ThreadBuilder::readByAssembly(StringRef text, StringRef constraints, ValueRange operands) {
  return arith::IndexCastUIOp::create(*this, getIndexType(),
                                      runAssembly(getI32Type(), text, constraints, operands));
}

Value ThreadBuilder::threadAgain() {
  return processor.isNvidia() ? readByAssembly("mov.u32 $0, %tid.x;", "=r", {}) : anew(thread());
}

Value ThreadBuilder::blockAgain() {
  return processor.isNvidia() ? readByAssembly("mov.u32 $0, %ctaid.x;", "=r", {}) : block();
}

void ThreadBuilder::endBranch(int64_t number) {
  if (!processor.isNvidia())
    runAssembly({}, "; end of branch " + std::to_string(number), "", {});
}

Value ThreadBuilder::anew(Value at) {
  if (processor.isNvidia())
    return at;
  return readByAssembly("", "=v,0", arith::IndexCastUIOp::create(*this, getI32Type(), at).getResult());
}

void ThreadBuilder::separate() {
  if (!processor.isNvidia())
    callIntrinsic({}, "llvm.amdgcn.sched.barrier", constant32(0));
}

void ThreadBuilder::barrier() {
  if (processor.isNvidia()) {
    callIntrinsic({}, "llvm.nvvm.barrier.cta.sync.aligned.all", ValueRange{constant32(0)});
    return;
  }
  LLVM::FenceOp::create(*this, LLVM::AtomicOrdering::release, "workgroup");
  callIntrinsic({}, "llvm.amdgcn.s.barrier", {});
  LLVM::FenceOp::create(*this, LLVM::AtomicOrdering::acquire, "workgroup");
}

void ThreadBuilder::warpBarrier() {
  if (processor.isNvidia()) {
    callIntrinsic({}, "llvm.nvvm.bar.warp.sync", ValueRange{constant32(-1)});
    return;
  }
  LLVM::FenceOp::create(*this, LLVM::AtomicOrdering::acq_rel, "wavefront");
  callIntrinsic({}, "llvm.amdgcn.wave.barrier", {});
}

Value ThreadBuilder::byWords(Value value, llvm::function_ref<Value(Value)> move) {
  Type type = value.getType();
  if (type.isIndex()) {
    Value moved = byWords(arith::IndexCastOp::create(*this, getI64Type(), value), move);
    return arith::IndexCastOp::create(*this, type, moved);
  }
  unsigned bits = type.getIntOrFloatBitWidth();
  Type integer = getIntegerType(bits);
  Value whole = isa<FloatType>(type) ? arith::BitcastOp::create(*this, integer, value).getResult() : value;
  Value moved;
  if (bits < 32) {
    moved = move(arith::ExtUIOp::create(*this, getI32Type(), whole));
    moved = arith::TruncIOp::create(*this, integer, moved);
  } else if (bits == 32) {
    moved = move(whole);
  } else {
    Value half = arith::ConstantOp::create(*this, getI64IntegerAttr(32));
    Value low = move(arith::TruncIOp::create(*this, getI32Type(), whole));
    Value high =
        move(arith::TruncIOp::create(*this, getI32Type(), arith::ShRUIOp::create(*this, whole, half)));
    Value upper = arith::ShLIOp::create(*this, arith::ExtUIOp::create(*this, integer, high), half);
    moved = arith::OrIOp::create(*this, arith::ExtUIOp::create(*this, integer, low), upper);
  }
  return isa<FloatType>(type) ? arith::BitcastOp::create(*this, type, moved).getResult() : moved;
}

/// The number of the lane in its wavefront.
Value ThreadBuilder::laneOfWave() {
  Value lane = callIntrinsic(getI32Type(), "llvm.amdgcn.mbcnt.lo", ValueRange{constant32(-1), constant32(0)});
  if (processor.subgroup == 32)
    return lane;
  return callIntrinsic(getI32Type(), "llvm.amdgcn.mbcnt.hi", ValueRange{constant32(-1), lane});
}

Value ThreadBuilder::wordOfLane(Value word, Value lane) {
  Value address = arith::ShLIOp::create(*this, lane, constant32(2));
  return callIntrinsic(getI32Type(), "llvm.amdgcn.ds.bpermute", ValueRange{address, word});
}

Value ThreadBuilder::shuffleDown(Value value, int64_t distance) {
  return byWords(value, [&](Value word) -> Value {
    if (processor.isNvidia())
      return callIntrinsic(getI32Type(), "llvm.nvvm.shfl.sync.down.i32",
                           ValueRange{constant32(-1), word, constant32(distance), constant32(kWarp - 1)});
    Value from = arith::AddIOp::create(*this, laneOfWave(), constant32(distance));
    return wordOfLane(word, from);
  });
}

Value ThreadBuilder::shuffleXor(Value value, int64_t bit) {
  return byWords(value, [&](Value word) -> Value {
    if (processor.isNvidia())
      return callIntrinsic(getI32Type(), "llvm.nvvm.shfl.sync.bfly.i32",
                           ValueRange{constant32(-1), word, constant32(bit), constant32(kWarp - 1)});
    Value from = arith::XOrIOp::create(*this, laneOfWave(), constant32(bit));
    return wordOfLane(word, from);
  });
}

Value ThreadBuilder::fromFirstLane(Value value) {
  return byWords(value, [&](Value word) -> Value {
    if (processor.isNvidia())
      return callIntrinsic(getI32Type(), "llvm.nvvm.shfl.sync.idx.i32",
                           ValueRange{constant32(-1), word, constant32(0), constant32(kWarp - 1)});
    Value first = arith::AndIOp::create(*this, laneOfWave(), constant32(-kWarp));
    return wordOfLane(word, first);
  });
}

void ThreadBuilder::guarded(Value condition, llvm::function_ref<void()> body) {
  auto branch = scf::IfOp::create(*this, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  body();
}

SmallVector<Value> ThreadBuilder::guarded(Value condition, ValueRange others,
                                          llvm::function_ref<SmallVector<Value>()> body) {
  if (others.empty()) {
    guarded(condition, [&] { body(); });
    return {};
  }
  auto branch = scf::IfOp::create(*this, others.getTypes(), condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(*this, body());
  setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(*this, others);
  return llvm::to_vector_of<Value>(branch.getResults());
}

} // namespace ortc::gpu
