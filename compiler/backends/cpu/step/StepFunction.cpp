// The code that calls a program's kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step is straight-line code, but for its loops: for each kernel it stores the buffers' addresses in an
// array on the stack and calls
// `ortc_dispatch`, which traces, and runs the chunks on the pool or in order. Checks return early with their status;
// the guard returns when the loss is not finite and the host asked for that.
// Code generators take more than linear time over one function, so long steps are cut: functions of their
// own, called one after the other, hold so many kernels each, and end with a status as the step does.
// With fast numerics denormal numbers count as zero while kernels run (they would cost a hundred times as much on some
// processors), with portable numerics they are numbers, whatever the caller has: the step sets the processor's mode and
// puts the caller's back; tasks on other threads do the same.
#include "compiler/backends/cpu/step/StepFunction.h"

#include "compiler/backends/cpu/isa/Architecture.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include "ortc/call.h"

#include <optional>

using namespace mlir;

namespace ortc::cpu {

namespace {

/// Where ortc_call (call.h) has its members, by the size of a pointer.
struct CallLayout {
  int64_t pointer;
  int64_t bases = 8, ext = bases + pointer, parallelFor = ext + pointer, pool = parallelFor + pointer,
          flags = offsetof(ortc_call, flags), trace = pool + pointer + 2 * sizeof(uint32_t),
          traceContext = trace + pointer, detail = traceContext + pointer;
};
static_assert(CallLayout{8}.bases == offsetof(ortc_call, bases) &&
              CallLayout{8}.detail == offsetof(ortc_call, detail) &&
              CallLayout{8}.trace == offsetof(ortc_call, trace));
static_assert(CallLayout{4}.trace == 32 && CallLayout{4}.detail == 40);

/// Short words for the llvm dialect.
class CodeBuilder : public ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  LLVM::LLVMPointerType pointerType() { return LLVM::LLVMPointerType::get(getContext()); }
  Value integer(Type type, int64_t value) { return LLVM::ConstantOp::create(*this, type, value); }
  Value address(Value base, int64_t bytes) {
    if (bytes == 0)
      return base;
    return LLVM::GEPOp::create(*this, pointerType(), getI8Type(), base,
                               LLVM::GEPArg(static_cast<int32_t>(bytes)), LLVM::GEPNoWrapFlags::inbounds);
  }
  /// As `address`, for offsets that a GEPArg cannot hold, too (256 MiB and more).
  Value farAddress(Value base, int64_t bytes) {
    if (llvm::isInt<29>(bytes))
      return address(base, bytes);
    return LLVM::GEPOp::create(*this, pointerType(), getI8Type(), base,
                               LLVM::GEPArg(integer(getI64Type(), bytes)), LLVM::GEPNoWrapFlags::inbounds);
  }
  Value load(Type type, Value base, int64_t offset) {
    return LLVM::LoadOp::create(*this, type, address(base, offset));
  }
  Value loadPointer(Value base, int64_t offset) { return load(pointerType(), base, offset); }
  Value null() { return LLVM::ZeroOp::create(*this, pointerType()); }
  Value compare(LLVM::ICmpPredicate predicate, Value a, Value b) {
    return LLVM::ICmpOp::create(*this, predicate, a, b);
  }

  /// A new block after the current one; the builder moves into it when `enter`.
  Block *block(LLVM::LLVMFuncOp function) {
    OpBuilder::InsertionGuard guard(*this);
    return createBlock(&function.getBody(), function.getBody().end());
  }
};

/// The mode of the processor that says how denormal numbers are treated.
class DenormalMode {
public:
  /// At the start of a function: saves the mode, and sets what `numerics` wants.
  DenormalMode(CodeBuilder &b, const Architecture &architecture, Numerics numerics)
      : b(b), architecture(architecture),
        saved(architecture.emitDenormalMode(b, b.getLoc(), denormalsAreZero(numerics))) {}
  /// Before every return.
  void restore() { architecture.emitRestoreMode(b, b.getLoc(), saved); }

private:
  CodeBuilder &b;
  const Architecture &architecture;
  Value saved;
};

constexpr StringLiteral kDispatch = "ortc_dispatch";

/// `void ortc_task({task, args} *context, i64 chunk, i64 worker)`: a task on a thread of the pool.
LLVM::LLVMFuncOp createTask(ModuleOp module, const Isa &isa, Numerics numerics) {
  MLIRContext *context = module.getContext();
  auto pointer = LLVM::LLVMPointerType::get(context);
  auto none = LLVM::LLVMVoidType::get(context);
  OpBuilder outer = OpBuilder::atBlockBegin(module.getBody());
  auto type = LLVM::LLVMFunctionType::get(none, {pointer, outer.getI64Type(), outer.getI64Type()});
  auto function =
      LLVM::LLVMFuncOp::create(outer, module.getLoc(), kTaskFunction, type, LLVM::Linkage::Internal);
  CodeBuilder b(module.getLoc(), context);
  Block *entry = function.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  DenormalMode mode(b, *isa.architecture, numerics);
  Value task = b.loadPointer(entry->getArgument(0), 0),
        args = b.loadPointer(entry->getArgument(0), isa.pointerBytes);
  LLVM::CallOp::create(b, type, ValueRange{task, args, entry->getArgument(1), entry->getArgument(2)});
  mode.restore();
  LLVM::ReturnOp::create(b, ValueRange{});
  return function;
}

/// `void ortc_dispatch(ortc_call *call, task, void **args, i64 chunks, i1 parallel, i32 kernel)`.
LLVM::LLVMFuncOp createDispatch(ModuleOp module, const Isa &isa, Numerics numerics) {
  if (auto existing = module.lookupSymbol<LLVM::LLVMFuncOp>(kDispatch))
    return existing;
  LLVM::LLVMFuncOp onThread = createTask(module, isa, numerics);
  CallLayout layout{isa.pointerBytes};
  MLIRContext *context = module.getContext();
  auto pointer = LLVM::LLVMPointerType::get(context);
  auto none = LLVM::LLVMVoidType::get(context);
  OpBuilder outer = OpBuilder::atBlockBegin(module.getBody());
  Type i64 = outer.getI64Type(), i32 = outer.getI32Type();
  auto type = LLVM::LLVMFunctionType::get(none, {pointer, pointer, pointer, i64, outer.getI1Type(), i32});
  auto function = LLVM::LLVMFuncOp::create(outer, module.getLoc(), kDispatch, type, LLVM::Linkage::Internal);
  function.setPassthroughAttr(outer.getArrayAttr({outer.getStringAttr("noinline")}));
  CodeBuilder b(module.getLoc(), context);
  Block *entry = function.addEntryBlock(b);
  Value call = entry->getArgument(0), task = entry->getArgument(1), args = entry->getArgument(2),
        chunks = entry->getArgument(3), parallel = entry->getArgument(4), kernel = entry->getArgument(5);

  auto taskType = LLVM::LLVMFunctionType::get(none, {pointer, i64, i64});
  auto traceType = LLVM::LLVMFunctionType::get(none, {pointer, i32, i32});
  auto poolType = LLVM::LLVMFunctionType::get(none, {pointer, i64, pointer, pointer});
  b.setInsertionPointToStart(entry);
  Value pair = LLVM::AllocaOp::create(b, pointer, pointer, b.integer(i64, 2), 16);
  // Calls trace(context, kernel, phase) when the host wants it, and goes on in a new block.
  auto trace = [&](uint32_t phase) {
    Value hook = b.loadPointer(call, layout.trace);
    Block *traced = b.block(function), *next = b.block(function);
    LLVM::CondBrOp::create(b, b.compare(LLVM::ICmpPredicate::ne, hook, b.null()), traced, next);
    b.setInsertionPointToStart(traced);
    Value context = b.loadPointer(call, layout.traceContext);
    LLVM::CallOp::create(b, traceType, ValueRange{hook, context, kernel, b.integer(i32, phase)});
    LLVM::BrOp::create(b, ValueRange{}, next);
    b.setInsertionPointToStart(next);
  };

  trace(ORTC_TRACE_BEGIN);
  Value pool = b.loadPointer(call, layout.parallelFor);
  Value hasPool = b.compare(LLVM::ICmpPredicate::ne, pool, b.null());
  Block *onPool = b.block(function), *loop = b.block(function), *done = b.block(function);
  Value zero = b.integer(i64, 0);
  loop->addArgument(i64, module.getLoc());
  LLVM::CondBrOp::create(b, LLVM::AndOp::create(b, hasPool, parallel), onPool, ValueRange{}, loop,
                         ValueRange{zero});

  b.setInsertionPointToStart(onPool);
  Value handle = b.loadPointer(call, layout.pool);
  LLVM::StoreOp::create(b, task, b.address(pair, 0));
  LLVM::StoreOp::create(b, args, b.address(pair, layout.pointer));
  Value wrapped = LLVM::AddressOfOp::create(b, onThread);
  LLVM::CallOp::create(b, poolType, ValueRange{pool, handle, chunks, wrapped, pair});
  LLVM::BrOp::create(b, ValueRange{}, done);

  b.setInsertionPointToStart(loop);
  Value chunk = loop->getArgument(0);
  LLVM::CallOp::create(b, taskType, ValueRange{task, args, chunk, b.integer(i64, 0)});
  Value next = LLVM::AddOp::create(b, chunk, b.integer(i64, 1));
  LLVM::CondBrOp::create(b, b.compare(LLVM::ICmpPredicate::slt, next, chunks), loop, ValueRange{next}, done,
                         ValueRange{});

  b.setInsertionPointToStart(done);
  trace(ORTC_TRACE_END);
  LLVM::ReturnOp::create(b, ValueRange{});
  return function;
}

/// Calls in one function, those in its loops included, and the pointers that they pass.
constexpr size_t kMaxPlaces = 3000;

size_t sumPlaces(Block &block);

/// The places that `op` takes in the function it is written to. A loop with too many is cut into functions of
/// its own, and takes as many as it has calls of them.
size_t countPlaces(Operation &op) {
  if (isa<plan::BufferOp>(op))
    return 0;
  auto loop = dyn_cast<plan::LoopOp>(op);
  if (!loop)
    return 1 + op.getNumOperands();
  size_t places = sumPlaces(loop.getBody().front());
  return places <= kMaxPlaces ? places : 2 * places / kMaxPlaces;
}

size_t sumPlaces(Block &block) {
  size_t places = 0;
  for (Operation &op : block)
    places += countPlaces(op);
  return places;
}

/// What a step and its parts share.
struct StepCode {
  ModuleOp module;
  const Architecture &architecture;
  Numerics numerics;
  CallLayout layout;
  const llvm::StringMap<StepKernel> &kernels;
  std::string name; ///< of the step
  LLVM::LLVMFuncOp dispatch;
  SymbolTable symbols;
  size_t most = 1; ///< pointers that a kernel takes
  size_t parts = 0;
  PointerCalls pointerCalls;

  StepCode(ModuleOp module, plan::ProgramOp program, StringRef name,
           const llvm::StringMap<StepKernel> &kernels, const Isa &isa, Numerics numerics)
      : module(module), architecture(*isa.architecture), numerics(numerics), layout{isa.pointerBytes},
        kernels(kernels), name(name), dispatch(createDispatch(module, isa, numerics)), symbols(module) {
    program.walk([&](plan::StepOp step) {
      most = std::max<size_t>(most, step.getInputs().size() + step.getOutputs().size() + 1);
    });
  }

  LLVM::LLVMFuncOp declare(StringRef name, LLVM::LLVMFunctionType type) {
    if (auto existing = symbols.lookup<LLVM::LLVMFuncOp>(name))
      return existing;
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    auto function = LLVM::LLVMFuncOp::create(builder, module.getLoc(), name, type);
    function.setVisibility_(LLVM::Visibility::Hidden);
    symbols.insert(function);
    return function;
  }
};

/// Emits one function: a step or a part of it.
class FunctionEmitter {
public:
  explicit FunctionEmitter(StepCode &code)
      : code(code), layout(code.layout), b(code.module.getLoc(), code.module.getContext()) {}

  void emitStepFunction(plan::ProgramOp program) {
    function = code.declare(code.name, LLVM::LLVMFunctionType::get(b.getI32Type(), {b.pointerType()}));
    function.setPassthroughAttr(b.getArrayAttr({b.getStringAttr("optsize")}));
    enter([&] { mode.emplace(b, code.architecture, code.numerics); });
    emitSteps(program.getBody().front());
    emitReturn(b.integer(b.getI32Type(), ORTC_STEP_OK));
  }

private:
  /// The function of a part in so many loops, `i32(call, iterations...)`. The step has set the mode of the processor.
  LLVM::LLVMFuncOp emitPart(ArrayRef<Operation *> ops, size_t loops) {
    SmallVector<Type> types{b.pointerType()};
    types.append(loops, b.getI64Type());
    OpBuilder outer = OpBuilder::atBlockEnd(code.module.getBody());
    function = LLVM::LLVMFuncOp::create(
        outer, code.module.getLoc(), code.name + "_part_" + std::to_string(code.parts++),
        LLVM::LLVMFunctionType::get(b.getI32Type(), types), LLVM::Linkage::Internal);
    code.symbols.insert(function);
    function.setPassthroughAttr(b.getArrayAttr({b.getStringAttr("noinline"), b.getStringAttr("optsize")}));
    enter([] {});
    llvm::append_range(iterations, function.getArguments().drop_front());
    for (Operation *op : ops)
      emitOperation(*op);
    emitReturn(b.integer(b.getI32Type(), ORTC_STEP_OK));
    return function;
  }

  /// Begins the function; `setMode` comes behind the array for pointers.
  void enter(llvm::function_ref<void()> setMode) {
    Block *entry = function.addEntryBlock(b);
    call = entry->getArgument(0);
    b.setInsertionPointToStart(entry);
    args =
        LLVM::AllocaOp::create(b, b.pointerType(), b.pointerType(), b.integer(b.getI64Type(), code.most), 16);
    setMode();
    Value bases = b.loadPointer(call, layout.bases);
    for (int64_t region : {ORTC_BASE_CONSTANTS, ORTC_BASE_PERSISTENT, ORTC_BASE_TRANSIENT})
      regions.push_back(b.loadPointer(bases, region * layout.pointer));
    ext = b.loadPointer(call, layout.ext);
  }

  void emitReturn(Value status) {
    if (mode)
      mode->restore();
    LLVM::ReturnOp::create(b, status);
  }

  void emitSteps(Block &block) {
    if (sumPlaces(block) <= kMaxPlaces) {
      for (Operation &op : block)
        emitOperation(op);
      return;
    }
    SmallVector<Operation *> part;
    size_t places = 0;
    auto callPart = [&] {
      if (part.empty())
        return;
      LLVM::LLVMFuncOp callee = FunctionEmitter(code).emitPart(part, iterations.size());
      SmallVector<Value> operands{call};
      llvm::append_range(operands, iterations);
      Value status = LLVM::CallOp::create(b, callee, operands).getResult();
      returnWhen(b.compare(LLVM::ICmpPredicate::ne, status, b.integer(b.getI32Type(), ORTC_STEP_OK)), status);
      part.clear();
      places = 0;
    };
    for (Operation &op : block) {
      size_t more = countPlaces(op);
      if (more == 0)
        continue;
      if (places + more > kMaxPlaces)
        callPart();
      part.push_back(&op);
      places += more;
    }
    callPart();
  }

  void emitOperation(Operation &op) {
    if (auto step = dyn_cast<plan::StepOp>(op))
      emitStep(step);
    else if (auto guard = dyn_cast<plan::GuardOp>(op))
      emitGuard(guard);
    else if (auto loop = dyn_cast<plan::LoopOp>(op))
      emitLoop(loop);
  }

  void emitLoop(plan::LoopOp loop) {
    Type i64 = b.getI64Type();
    int64_t count = loop.getTripCount();
    Value first = b.integer(i64, loop.getReverse() ? count - 1 : 0),
          last = b.integer(i64, loop.getReverse() ? 0 : count - 1);
    if (Value limit = loop.getLimit())
      last = clampLast(LLVM::LoadOp::create(b, b.getI32Type(), addressOf(limit)), last);
    Value step = b.integer(i64, loop.getReverse() ? -1 : 1);
    Block *body = b.block(function), *done = b.block(function);
    body->addArgument(i64, b.getLoc());
    LLVM::BrOp::create(b, ValueRange{first}, body);
    b.setInsertionPointToStart(body);
    iterations.push_back(body->getArgument(0));
    emitSteps(loop.getBody().front());
    Value here = iterations.pop_back_val();
    Value next = LLVM::AddOp::create(b, here, step);
    LLVM::CondBrOp::create(b, b.compare(LLVM::ICmpPredicate::eq, here, last), done, ValueRange{}, body,
                           ValueRange{next});
    b.setInsertionPointToStart(done);
  }

  /// The last iteration of a loop of `limit`, at least the first and at most `last`.
  Value clampLast(Value limit, Value last) {
    Type i64 = b.getI64Type();
    Value wanted = LLVM::SubOp::create(b, LLVM::SExtOp::create(b, i64, limit), b.integer(i64, 1));
    Value zero = b.integer(i64, 0);
    Value notBelow =
        LLVM::SelectOp::create(b, b.compare(LLVM::ICmpPredicate::slt, wanted, zero), zero, wanted);
    return LLVM::SelectOp::create(b, b.compare(LLVM::ICmpPredicate::slt, notBelow, last), notBelow, last);
  }

  Value addressOf(Value buffer) {
    auto op = buffer.getDefiningOp<plan::BufferOp>();
    int64_t offset = op.getOffset();
    Value address = op.getRegion() == plan::Region::external
                        ? b.loadPointer(ext, offset * layout.pointer)
                        : b.farAddress(regions[static_cast<size_t>(op.getRegion())], offset);
    for (auto [iteration, stride] : llvm::zip(iterations, op.getStrides().value_or(ArrayRef<int64_t>()))) {
      if (stride == 0)
        continue;
      Value bytes = LLVM::MulOp::create(b, iteration, b.integer(b.getI64Type(), stride));
      address = LLVM::GEPOp::create(b, b.pointerType(), b.getI8Type(), address, LLVM::GEPArg(bytes),
                                    LLVM::GEPNoWrapFlags::inbounds);
    }
    return address;
  }

  void emitStep(plan::StepOp step) {
    const StepKernel &kernel = code.kernels.find(step.getKernel())->second;
    int64_t slot = 0;
    auto pass = [&](Value pointer) {
      LLVM::StoreOp::create(b, pointer, b.address(args, layout.pointer * slot++));
    };
    for (Value buffer : step.getInputs())
      pass(addressOf(buffer));
    for (Value buffer : step.getOutputs())
      pass(addressOf(buffer));
    if (kernel.usesWorkspace)
      pass(b.farAddress(regions[ORTC_BASE_TRANSIENT], step.getScratch().value()));

    Type i32 = b.getI32Type(), i64 = b.getI64Type();
    if (kernel.isCheck) {
      auto type = LLVM::LLVMFunctionType::get(i32, {b.pointerType(), b.pointerType()});
      auto callee = code.declare(kernel.symbol, type);
      Value detail = b.loadPointer(call, layout.detail);
      Value status = LLVM::CallOp::create(b, callee, ValueRange{args, detail}).getResult();
      returnWhen(b.compare(LLVM::ICmpPredicate::ne, status, b.integer(i32, ORTC_STEP_OK)), status);
      return;
    }
    auto none = LLVM::LLVMVoidType::get(b.getContext());
    auto callee = code.declare(kernel.symbol, LLVM::LLVMFunctionType::get(none, {b.pointerType(), i64, i64}));
    code.pointerCalls[kDispatch.str()].insert(kernel.symbol); // also when there is no pool
    if (kernel.isParallel) {
      code.pointerCalls[kDispatch.str()].insert(kTaskFunction.str());
      code.pointerCalls[kTaskFunction.str()].insert(kernel.symbol);
    }
    Value task = LLVM::AddressOfOp::create(b, callee);
    LLVM::CallOp::create(b, code.dispatch,
                         ValueRange{call, task, args, b.integer(i64, kernel.chunks),
                                    b.integer(b.getI1Type(), kernel.isParallel),
                                    b.integer(i32, kernel.traceIndex)});
    if (auto ready = step->getAttrOfType<DenseI64ArrayAttr>(plan::kReady))
      emitReady(ready.asArrayRef());
  }

  /// Tells a host that traces of gradients that are final.
  void emitReady(ArrayRef<int64_t> values) {
    Type i32 = b.getI32Type();
    auto type =
        LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {b.pointerType(), i32, i32});
    Value hook = b.loadPointer(call, layout.trace);
    Block *traced = b.block(function), *next = b.block(function);
    LLVM::CondBrOp::create(b, b.compare(LLVM::ICmpPredicate::ne, hook, b.null()), traced, next);
    b.setInsertionPointToStart(traced);
    Value context = b.loadPointer(call, layout.traceContext);
    for (int64_t value : values)
      LLVM::CallOp::create(
          b, type, ValueRange{hook, context, b.integer(i32, value), b.integer(i32, ORTC_TRACE_READY)});
    LLVM::BrOp::create(b, ValueRange{}, next);
    b.setInsertionPointToStart(next);
  }

  /// Not finite: all exponent bits set.
  void emitGuard(plan::GuardOp guard) {
    Type i32 = b.getI32Type();
    Value flags = b.load(i32, call, layout.flags);
    Value asked = b.compare(LLVM::ICmpPredicate::ne,
                            LLVM::AndOp::create(b, flags, b.integer(i32, ORTC_CALL_STOP_ON_NOT_FINITE)),
                            b.integer(i32, 0));
    auto element = cast<FloatType>(cast<MemRefType>(guard.getLoss().getType()).getElementType());
    Type bitsType = b.getIntegerType(element.getWidth());
    APInt mask = APFloat::getInf(element.getFloatSemantics()).bitcastToAPInt();
    Value bits = LLVM::LoadOp::create(b, bitsType, addressOf(guard.getLoss()));
    Value exponent = LLVM::ConstantOp::create(b, bitsType, b.getIntegerAttr(bitsType, mask));
    Value notFinite = b.compare(LLVM::ICmpPredicate::eq, LLVM::AndOp::create(b, bits, exponent), exponent);
    returnWhen(LLVM::AndOp::create(b, asked, notFinite), b.integer(i32, ORTC_STEP_NOT_FINITE));
  }

  void returnWhen(Value condition, Value status) {
    Block *leave = b.block(function), *next = b.block(function);
    LLVM::CondBrOp::create(b, condition, leave, next);
    b.setInsertionPointToStart(leave);
    emitReturn(status);
    b.setInsertionPointToStart(next);
  }

  StepCode &code;
  const CallLayout &layout;
  CodeBuilder b;
  LLVM::LLVMFuncOp function;
  std::optional<DenormalMode> mode; ///< absent in parts
  Value call, args, ext;
  SmallVector<Value> regions;
  SmallVector<Value> iterations; ///< of the loops around, outermost first
};

} // namespace

PointerCalls createStepFunction(ModuleOp module, plan::ProgramOp program, StringRef symbol,
                                const llvm::StringMap<StepKernel> &kernels, const Isa &isa,
                                Numerics numerics) {
  StepCode code(module, program, symbol, kernels, isa, numerics);
  FunctionEmitter(code).emitStepFunction(program);
  return std::move(code.pointerCalls);
}

} // namespace ortc::cpu
