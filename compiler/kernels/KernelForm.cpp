// One row for each kind of kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/kernels/KernelForm.h"

#include "compiler/kernels/attention/AttentionForm.h"
#include "compiler/kernels/contraction/ContractionForm.h"
#include "compiler/kernels/conv/ConvForm.h"
#include "compiler/kernels/loop/JoinedLoops.h"
#include "compiler/kernels/loop/LoopProgram.h"
#include "compiler/kernels/pool/PoolForm.h"
#include "compiler/kernels/scatter/ScatterForm.h"
#include "compiler/kernels/sort/SortForm.h"

using namespace mlir;

namespace ortc::kernels {

using Pairs = FailureOr<SmallVector<int64_t>>;

template <typename... Ops> static bool isAny(Operation *op) { return isa<Ops...>(op); }

static bool always(Operation *) { return true; }
static bool never(Operation *) { return false; }

/// Of kernels that are one operation, and write where nothing is read.
static bool suitsAlone(ValueRange, ValueRange, const FusionLimits &, std::string &reason) {
  reason = "the operation is a kernel of its own";
  return false;
}
static Pairs sharesNothing(ValueRange, ValueRange, std::string &) { return SmallVector<int64_t>(); }

static bool suitsLoop(ValueRange inputs, ValueRange outputs, const FusionLimits &, std::string &reason) {
  return analyzeLoops(inputs, outputs, reason).has_value();
}
static Pairs pairsOfLoop(ValueRange inputs, ValueRange outputs, std::string &reason) {
  bool isEmpty = llvm::all_of(
      outputs, [](Value value) { return cast<ShapedType>(value.getType()).getNumElements() == 0; });
  if (auto program = analyzeLoops(inputs, outputs, reason))
    return program->inPlacePairs();
  if (isEmpty)
    return SmallVector<int64_t>();
  return failure();
}

static bool suitsContraction(ValueRange inputs, ValueRange outputs, const FusionLimits &limits,
                             std::string &reason) {
  auto form = ContractionForm::analyze(inputs, outputs, reason);
  return form && form->suits(limits, reason);
}
static bool suitsAttention(ValueRange inputs, ValueRange outputs, const FusionLimits &limits,
                           std::string &reason) {
  auto form = AttentionForm::analyze(inputs, outputs, reason);
  return form && form->suits(limits, reason);
}
static bool suitsConv(ValueRange inputs, ValueRange outputs, const FusionLimits &, std::string &reason) {
  return ConvForm::analyze(inputs, outputs, reason).has_value();
}
static bool suitsScatter(ValueRange inputs, ValueRange outputs, const FusionLimits &, std::string &reason) {
  return FusedScatter::analyze(inputs, outputs, reason).has_value();
}

/// Of forms whose kernel takes an epilogue. One operation alone shares nothing, whatever it is.
template <typename Form> static Pairs pairsOf(ValueRange inputs, ValueRange outputs, std::string &reason) {
  auto form = Form::analyze(inputs, outputs, reason);
  return form ? form->inPlacePairs() : SmallVector<int64_t>();
}

template <typename Form> static KernelWork workOfForm(ValueRange inputs, ValueRange outputs) {
  std::string reason;
  auto form = Form::analyze(inputs, outputs, reason);
  return form ? form->work() : KernelWork();
}
static KernelWork workOfLoop(ValueRange inputs, ValueRange outputs) {
  std::string reason;
  auto program = analyzeLoops(inputs, outputs, reason);
  return program ? program->work() : KernelWork();
}
static KernelWork workOfJoined(ValueRange inputs, ValueRange outputs) {
  std::string reason;
  KernelWork all;
  if (auto loops = analyzeJoined(inputs, outputs, /*inPlace=*/{}, reason)) // work is the same in other parts
    for (const JoinedLoop &loop : *loops) {
      KernelWork work = loop.program.work();
      all.flops += work.flops;
      all.cost += work.cost;
    }
  return all;
}
static KernelWork workOfPooling(ValueRange, ValueRange outputs) {
  return workOfPool(outputs.front().getDefiningOp());
}
static KernelWork workOfScattering(ValueRange inputs, ValueRange outputs) {
  std::string reason;
  if (auto fused = FusedScatter::analyze(inputs, outputs, reason))
    return fused->work();
  Operation *op = outputs.front().getDefiningOp();
  return isa_and_nonnull<nn::ScatterAddOp, nn::ScatterOp, nn::ScatterElementsOp>(op) ? workOfScatter(op)
                                                                                     : KernelWork();
}

/// A table may be written in its own place.
static Pairs pairsOfScatter(ValueRange inputs, ValueRange outputs, std::string &reason) {
  auto scatter = outputs.front().getDefiningOp<nn::ScatterOp>();
  if (!scatter)
    return pairsOf<FusedScatter>(inputs, outputs, reason);
  return SmallVector<int64_t>{std::distance(inputs.begin(), llvm::find(inputs, scatter.getInput())), 0};
}

/// One step for each element along the axis; sorting has its own.
static KernelWork workOfScan(ValueRange, ValueRange outputs) {
  Operation *op = outputs.front().getDefiningOp();
  if (!isa_and_nonnull<nn::CumSumOp, nn::ArgReduceOp, nn::ArgSortOp>(op))
    return {};
  auto input = cast<RankedTensorType>(op->getOperand(0).getType());
  KernelWork work;
  work.cost = input.getNumElements();
  if (auto sort = dyn_cast<nn::ArgSortOp>(op))
    work.cost = SortColumn(sort).work() * SortColumn(sort).count;
  if (isa<nn::CumSumOp>(op) && isa<FloatType>(input.getElementType()))
    work.flops = work.cost;
  return work;
}
static KernelWork workOfCheck(ValueRange, ValueRange) { return {}; }

/// Every index is read before it is written.
static Pairs pairsOfCheck(ValueRange, ValueRange, std::string &) { return SmallVector<int64_t>{0, 0}; }

ArrayRef<KernelForm> kernelForms() {
  using plan::KernelKind;
  static constexpr KernelForm forms[] = {
      {KernelKind::contraction, isAny<nn::DotOp>, always, suitsContraction, pairsOf<ContractionForm>,
       workOfForm<ContractionForm>},
      {KernelKind::conv, isAny<nn::ConvOp, nn::ConvInputGradOp, nn::ConvFilterGradOp>, always, suitsConv,
       pairsOf<ConvForm>, workOfForm<ConvForm>},
      {KernelKind::pool, isAny<nn::MaxPoolOp, nn::MaxPoolGradOp, nn::AvgPoolOp, nn::AvgPoolGradOp>, never,
       suitsAlone, sharesNothing, workOfPooling},
      {KernelKind::scatter, isAny<nn::ScatterAddOp, nn::ScatterOp, nn::ScatterElementsOp>,
       isAny<nn::ScatterAddOp>, suitsScatter, pairsOfScatter, workOfScattering},
      {KernelKind::scan, isAny<nn::CumSumOp, nn::ArgReduceOp, nn::ArgSortOp>, never, suitsAlone,
       sharesNothing, workOfScan},
      {KernelKind::check, isAny<nn::CheckIndexOp>, never, suitsAlone, pairsOfCheck, workOfCheck},
      {KernelKind::loop, isLoopOperation, never, suitsLoop, pairsOfLoop, workOfLoop},
      {KernelKind::attention, never, always, suitsAttention, sharesNothing, workOfForm<AttentionForm>},
      {KernelKind::joined, never, never, suitsAlone, sharesNothing, workOfJoined}, // of kernels
  };
  return forms;
}

const KernelForm &formOf(plan::KernelKind kind) {
  return *llvm::find_if(kernelForms(), [&](const KernelForm &form) { return form.kind == kind; });
}

/// A table that is written in its own place is not read, and written where its rows are named.
static int64_t bytesRead(Value value) {
  auto isTable = [&](Operation *user) {
    auto scatter = dyn_cast<nn::ScatterOp>(user);
    return scatter && scatter.getInput() == value;
  };
  return !value.use_empty() && llvm::all_of(value.getUsers(), isTable)
             ? 0
             : plan::storedBytes(cast<ShapedType>(value.getType()));
}
static int64_t bytesWritten(Value value) {
  auto scatter = value.getDefiningOp<nn::ScatterOp>();
  return plan::storedBytes(scatter ? scatter.getUpdates().getType() : cast<ShapedType>(value.getType()));
}

KernelWork workOf(plan::KernelKind kind, ValueRange inputs, ValueRange outputs) {
  const bool isEmpty = llvm::all_of(
      outputs, [](Value value) { return cast<ShapedType>(value.getType()).getNumElements() == 0; });
  KernelWork work = isEmpty ? KernelWork() : formOf(kind).work(inputs, outputs);
  for (Value value : inputs)
    work.bytesRead += bytesRead(value);
  for (Value value : outputs)
    work.bytesWritten += bytesWritten(value);
  return work;
}

const KernelForm &formOf(ArrayRef<Operation *> ops) {
  if (isAttention(ops))
    return formOf(plan::KernelKind::attention);
  for (const KernelForm &form : kernelForms())
    if (llvm::any_of(ops, form.isRoot))
      return form;
  return formOf(plan::KernelKind::loop);
}

} // namespace ortc::kernels
