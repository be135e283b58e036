// Checks that end a step: indices out of range, a loss that is not finite.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/gpu/CheckKernel.h"

#include "compiler/backends/gpu/StatusBlock.h"
#include "dialects/nn/NnDialect.h"

using namespace mlir;

namespace ortc::gpu {

namespace {

Value constant64(ThreadBuilder &b, int64_t value) {
  return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
}

} // namespace

void generateCheck(KernelBuilder &kernel, func::FuncOp function, const GeneratorOptions &options) {
  auto check = *function.getOps<nn::CheckIndexOp>().begin();
  auto type = cast<RankedTensorType>(check.getType());
  Type element = type.getElementType();
  int64_t count = type.getNumElements(), lower = static_cast<int64_t>(check.getLower()),
          upper = static_cast<int64_t>(check.getUpper());
  if (count == 0)
    return;
  kernel.launch(1, kBlockThreads, [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments) {
    Value thread = b.thread(), input = arguments.buffers[0], output = arguments.buffers[1];
    auto widen = [&](Value index) -> Value {
      return element.isInteger(64) ? index : arith::ExtSIOp::create(b, b.getI64Type(), index).getResult();
    };
    auto compare = [&](arith::CmpIPredicate predicate, Value x, int64_t y) -> Value {
      return arith::CmpIOp::create(b, predicate, x, constant64(b, y));
    };
    // Positions are as wide as the kernel's indices, and `count` is none. The bad index is kept with its position:
    // where the kernel writes in place, memory has another one by then.
    Value none = b.index(count);
    auto own = b.fold(
        {b.index(0), none}, kBlockThreads, {none, constant64(b, 0)}, [&](Value start, ValueRange carried) {
          Value i = b.add(start, thread);
          return b.guarded(b.less(i, count), carried, [&]() -> SmallVector<Value> {
            Value index = b.loadScalar(input, i), wide = widen(index);
            Value isGood = arith::AndIOp::create(b, compare(arith::CmpIPredicate::sge, wide, lower),
                                                 compare(arith::CmpIPredicate::slt, wide, upper));
            if (auto ignore = check.getIgnore())
              isGood = arith::OrIOp::create(b, isGood, compare(arith::CmpIPredicate::eq, wide, *ignore));
            Value other = arith::ConstantOp::create(b, b.getIntegerAttr(element, upper > 0 ? 0 : lower));
            memref::StoreOp::create(b, b.choose(isGood, index, other), output, ValueRange{i});
            Value bad = b.choose(isGood, none, i);
            Value isLower = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, bad, carried[0]);
            return {b.choose(isLower, bad, carried[0]), b.choose(isLower, wide, carried[1])};
          });
        });
    Value shared = kernel.shared(b, b.getI64Type(), kBlockThreads);
    Value first = arith::IndexCastOp::create(b, b.getI64Type(), own[0]);
    memref::StoreOp::create(b, first, shared, ValueRange{thread});
    for (int64_t half = kBlockThreads / 2; half >= 1; half /= 2) {
      b.barrier();
      b.guarded(b.less(thread, half), [&] {
        Value low = b.loadScalar(shared, thread), high = b.loadScalar(shared, b.add(thread, half));
        memref::StoreOp::create(b, arith::MinSIOp::create(b, low, high), shared, ValueRange{thread});
      });
    }
    b.barrier();
    Value lowest = b.loadScalar(shared, b.index(0));
    Value isBad = compare(arith::CmpIPredicate::ne, first, count);
    Value isLowest = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, first, lowest);
    b.guarded(arith::AndIOp::create(b, isBad, isLowest), [&] {
      StatusBlock status(b, arguments.status);
      b.guarded(status.isGood(), [&] {
        constexpr size_t kDetail = offsetof(ortc_device_status, detail);
        status.store32(kDetail + offsetof(ortc_detail, name), options.checkName);
        status.store32(kDetail + offsetof(ortc_detail, from_end), lower < 0);
        status.store64(kDetail + offsetof(ortc_detail, index), own[1]);
        status.store64(kDetail + offsetof(ortc_detail, limit), constant64(b, upper));
        status.store32(offsetof(ortc_device_status, status), ORTC_STEP_RANGE);
      });
    });
  });
}

void createGuard(ModuleOp module, StringRef symbol, FloatType loss, const Processor &processor) {
  OpBuilder outer(module.getContext());
  outer.setInsertionPointToEnd(module.getBody());
  ThreadBuilder b(UnknownLoc::get(module.getContext()), outer, processor);
  Type types[] = {MemRefType::get({1}, loss), StatusBlock::typeOf(b)};
  auto function = func::FuncOp::create(b, symbol, b.getFunctionType(types, {}));
  function->setAttr(kThreadsAttribute, b.getI64IntegerAttr(kWarp));
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToStart(entry);
  Operation *end = func::ReturnOp::create(b);
  b.setInsertionPoint(end);
  StatusBlock status(b, entry->getArgument(1));
  b.guarded(b.less(b.thread(), 1), [&] {
    Value value = b.loadScalar(entry->getArgument(0), b.index(0));
    // The difference of a number that is not finite from itself is NaN.
    Value difference = arith::SubFOp::create(b, value, value);
    Value isBad = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, difference, difference);
    Value flag = arith::ConstantOp::create(b, b.getI32IntegerAttr(ORTC_CALL_STOP_ON_NOT_FINITE));
    Value masked = arith::AndIOp::create(b, status.load(offsetof(ortc_device_status, flags)), flag);
    Value isWanted = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, masked, flag);
    Value stops = arith::AndIOp::create(b, arith::AndIOp::create(b, isBad, isWanted), status.isGood());
    b.guarded(stops, [&] { status.store32(offsetof(ortc_device_status, status), ORTC_STEP_NOT_FINITE); });
  });
}

} // namespace ortc::gpu
