// Attention and its gradients: products of scores, as one kernel that stores no scores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/kernels/attention/AttentionForm.h"

#include "compiler/kernels/SumOrder.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace ortc::kernels {

using Axis = AttentionForm::Axis;
using ScoreDim = AttentionForm::ScoreDim;

/// Fewer rows or keys leave most of a block unused.
static constexpr int64_t kLeastRows = 64;

bool fitsAttention(int64_t rows, int64_t keys, int64_t depth, int64_t columns, int64_t parts, int64_t most) {
  auto isShort = [&](int64_t size) {
    return size % 8 == 0 && static_cast<int64_t>(llvm::PowerOf2Ceil(size)) * parts <= most;
  };
  return std::min(rows, keys) >= kLeastRows && isShort(depth) && isShort(columns);
}

bool isAttention(ArrayRef<Operation *> ops) { return llvm::count_if(ops, llvm::IsaPred<nn::DotOp>) > 1; }

static int64_t countOf(ArrayRef<Axis> axes) {
  int64_t count = 1;
  for (const Axis &axis : axes)
    count *= axis.size;
  return count;
}

int AttentionForm::dimOf(const Axis &axis) const {
  SmallVector<int64_t> steps = program.steps();
  for (size_t d = 0; d < steps.size(); ++d)
    if (steps[d] <= axis.step && axis.step % steps[d] == 0 &&
        (steps[d] * program.dims[d].size) % (axis.step * axis.size) == 0)
      return static_cast<int>(d);
  return -1;
}

int64_t AttentionForm::products() const { return countOf(others); }
int64_t AttentionForm::groupCount() const { return countOf(groups); }

namespace {

/// Row-major steps of the dims of a product's result, from those of all its dims.
SmallVector<ScoreDim> resultDims(const ContractionShape &shape) {
  SmallVector<ScoreDim> dims;
  for (ArrayRef<ContractionDim> some : {ArrayRef(shape.batch), ArrayRef(shape.m), ArrayRef(shape.n)})
    for (const ContractionDim &dim : some)
      dims.push_back({dim, 1});
  int64_t step = 1;
  for (ScoreDim &dim : llvm::reverse(dims)) {
    dim.step = step;
    step *= dim.dim.size;
  }
  return dims;
}

class Analysis {
public:
  Analysis(ValueRange inputs, ValueRange outputs, std::string &reason)
      : inputs(inputs), outputs(outputs), reason(reason) {}

  std::optional<AttentionForm> run() {
    if (!findProducts() || !findMixes() || !analyzeScores() || !findAxes() || !placeScores())
      return std::nullopt;
    return std::move(form);
  }

private:
  bool fail(StringRef why) {
    reason = why.str();
    return false;
  }

  /// The products that outputs are made by are mixes, and those in front of them make scores.
  bool findProducts() {
    llvm::SetVector<Operation *> found;
    SmallVector<Value> stack(outputs.begin(), outputs.end());
    llvm::DenseSet<Value> seen;
    while (!stack.empty()) {
      Value value = stack.pop_back_val();
      if (llvm::is_contained(inputs, value) || !seen.insert(value).second)
        continue;
      Operation *op = value.getDefiningOp();
      if (!op)
        return fail("a value is no input");
      if (isa<nn::DotOp>(op))
        found.insert(op);
      llvm::append_range(stack, op->getOperands());
    }
    for (Operation *op : found) {
      auto dot = cast<nn::DotOp>(op);
      auto isInFront = [&](Value value) { return reaches(value, found); };
      if (isInFront(dot.getLhs()) || isInFront(dot.getRhs()))
        mixes.push_back(dot);
      else
        fronts.push_back(dot);
    }
    auto isBefore = [](nn::DotOp a, nn::DotOp b) { return a->isBeforeInBlock(b); };
    llvm::sort(mixes, isBefore);
    llvm::sort(fronts, isBefore);
    return !fronts.empty() || fail("there are no scores");
  }

  /// Whether `value` is computed from one of `dots`.
  bool reaches(Value value, const llvm::SetVector<Operation *> &dots) {
    SmallVector<Value> stack{value};
    llvm::DenseSet<Value> seen;
    while (!stack.empty()) {
      Value next = stack.pop_back_val();
      if (llvm::is_contained(inputs, next) || !seen.insert(next).second)
        continue;
      Operation *op = next.getDefiningOp();
      if (!op)
        continue;
      if (dots.contains(op))
        return true;
      llvm::append_range(stack, op->getOperands());
    }
    return false;
  }

  /// The products along the keys with what follows each of them.
  bool findMixes() {
    for (auto [number, output] : llvm::enumerate(outputs)) {
      nn::DotOp made;
      // An output belongs to the one mix that it is computed from.
      for (nn::DotOp mix : mixes) {
        llvm::SetVector<Operation *> one;
        one.insert(mix);
        if (!reaches(output, one))
          continue;
        if (made)
          return fail("an output has two mixes");
        made = mix;
      }
      if (!made) {
        form.rowOutputs.push_back(number);
        continue;
      }
      AttentionForm::Mix mix;
      llvm::SetVector<Operation *> all;
      for (nn::DotOp front : fronts)
        all.insert(front);
      bool isLeft = reaches(made.getLhs(), all), isRight = reaches(made.getRhs(), all);
      if (isLeft == isRight)
        return fail("both sides of a mix are scores");
      mix.scoreOperand = isLeft ? 0 : 1;
      Value scores = isLeft ? made.getLhs() : made.getRhs();
      if (auto widening = findWidening(scores)) // which the product does itself
        scores = widening->from;
      SmallVector<Value> from(inputs);
      from.push_back(scores);
      auto contraction = ContractionForm::analyze(from, output, reason);
      if (!contraction)
        return false;
      mix.form = std::move(*contraction);
      mix.output = mixed.size();
      mixed.push_back(scores);
      form.mixes.push_back(std::move(mix));
      form.mixOutputs.push_back(number);
    }
    if (form.mixes.size() != mixes.size())
      return fail("a mix has not exactly one output");
    return true;
  }

  /// Everything between the scores, as a loop program.
  bool analyzeScores() {
    SmallVector<Value> from(inputs), to(mixed);
    for (nn::DotOp front : fronts) {
      AttentionForm::Scores scores;
      scores.dot = front;
      auto contraction = ContractionForm::analyze(inputs, front.getResult(), reason);
      if (!contraction)
        return false;
      scores.shape = contraction->shape;
      scores.buffer = from.size();
      from.push_back(front.getResult());
      form.scores.push_back(std::move(scores));
    }
    for (unsigned number : form.rowOutputs)
      to.push_back(outputs[number]);
    auto program = analyzeLoops(from, to, reason);
    if (!program)
      return false;
    form.program = std::move(*program);
    for (size_t i = 0; i < to.size(); ++i) {
      const LoopOutput &output = form.program.outputs[i];
      bool isMixed = i < mixed.size();
      if (isMixed == output.perRow || !output.at.dynamic.empty() || output.at.constant != 0)
        return fail("outputs are neither mixed nor of rows");
    }
    return true;
  }

  /// What a row and a key are: of the mixes, which must agree, or where there are none, of the sums.
  bool findAxes() {
    const LoopProgram &program = form.program;
    std::optional<SmallVector<Axis>> axes; // row, key, groups
    for (AttentionForm::Mix &mix : form.mixes) {
      const ContractionShape &shape = mix.form.shape;
      unsigned scores = mix.scoreOperand;
      SmallVector<ContractionDim> columns = collapseDims(scores == 0 ? shape.n : shape.m);
      ArrayRef<ContractionDim> own = scores == 0 ? shape.m : shape.n;
      if (shape.k.empty() || columns.size() != 1 || own.empty())
        return fail("columns are of several dims");
      auto isInner = [&](const ContractionDim &a, const ContractionDim &b) {
        return a.strides[scores] < b.strides[scores];
      };
      mix.key = *llvm::min_element(shape.k, isInner);
      mix.row = *llvm::min_element(own, isInner);
      mix.column = columns.front();
      SmallVector<Axis> found;
      for (const ContractionDim &dim : {mix.row, mix.key})
        found.push_back({dim.size, dim.strides[scores]});
      for (ArrayRef<ContractionDim> some : {ArrayRef(shape.batch), own, ArrayRef(shape.k)})
        for (const ContractionDim &dim : some)
          if (int64_t step = dim.strides[scores]; step != found[1].step)
            mix.dims.push_back({dim, step});
      for (const ContractionDim &dim : shape.k)
        if (int64_t step = dim.strides[scores]; step != found[1].step)
          found.push_back({dim.size, step});
      if (axes && *axes != found)
        return fail("mixes have other rows or keys");
      axes = found;
    }
    if (!axes) {
      axes = axesOfSums();
      if (axes->empty())
        return fail("there are no rows and keys");
    }
    form.row = (*axes)[0];
    form.key = (*axes)[1];
    form.groups.append(axes->begin() + 2, axes->end());
    if (program.reducedMask() != 0 && !form.groups.empty())
      return fail("sums are along several axes");
    if (uint64_t reduced = program.reducedMask()) {
      // One dim, which is all keys.
      unsigned d = llvm::countr_zero(reduced);
      if (reduced != uint64_t(1) << d || program.steps()[d] != form.key.step ||
          program.dims[d].size != form.key.size)
        return fail("sums are not along the keys");
    }
    return cutOthers();
  }

  /// Rows are the scores of one result of a product beside its keys.
  SmallVector<Axis> axesOfSums() {
    const LoopProgram &program = form.program;
    uint64_t reduced = program.reducedMask();
    if (reduced == 0)
      return {};
    unsigned d = llvm::countr_zero(reduced);
    Axis key{program.dims[d].size, program.steps()[d]};
    const ContractionShape &shape = form.scores.front().shape;
    for (ArrayRef<ContractionDim> some : {ArrayRef(shape.m), ArrayRef(shape.n)})
      if (some.size() == 1 && some.front().size * key.size == sizeOf(shape.m) * sizeOf(shape.n))
        if (key.step == 1 || some.front().size == key.step)
          return {{some.front().size, key.step == 1 ? key.size : 1}, key};
    return {};
  }

  bool cutOthers() {
    int64_t total = 1;
    for (const LoopDim &dim : form.program.dims)
      total *= dim.size;
    SmallVector<int64_t> cuts{1, total};
    SmallVector<Axis> known{form.row, form.key};
    known.append(form.groups.begin(), form.groups.end());
    for (const Axis &axis : known)
      cuts.append({axis.step, axis.step * axis.size});
    llvm::sort(cuts);
    cuts.erase(llvm::unique(cuts), cuts.end());
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      if (cuts[i] < 1 || cuts[i + 1] % cuts[i] != 0)
        return fail("rows and keys overlap");
      Axis piece{cuts[i + 1] / cuts[i], cuts[i]};
      const auto *axis = llvm::find(known, piece);
      if (axis == known.end())
        form.others.push_back(piece);
      else
        known.erase(axis);
    }
    std::reverse(form.others.begin(), form.others.end());
    if (!known.empty())
      return fail("rows and keys overlap");
    // No index of the program's dims carries into another one.
    for (const Axis &axis : {form.row, form.key})
      if (form.dimOf(axis) < 0)
        return fail("rows or keys are parts of several dims");
    return true;
  }

  /// Where the scores of a position are in the products that make them.
  bool placeScores() {
    for (AttentionForm::Scores &scores : form.scores) {
      const LoopNode *load = nullptr;
      for (const LoopNode &node : form.program.nodes)
        if (node.kind == LoopNode::load && node.buffer == scores.buffer) {
          if (load && !(load->at == node.at))
            return fail("scores are read at several places");
          load = &node;
        }
      SmallVector<ContractionDim> depth = collapseDims(scores.shape.k);
      if (!load || !load->at.dynamic.empty() || load->at.constant != 0 || depth.size() != 1 ||
          llvm::any_of(load->at.scales, [](int64_t scale) { return scale < 0; }))
        return fail("scores are not read in place");
      scores.depth = depth.front();
      scores.dims = resultDims(scores.shape);
      SmallVector<int64_t> steps = form.program.steps();
      auto stepOf = [&](const Axis &axis) {
        int d = form.dimOf(axis);
        return load->at.scales[d] * (axis.step / steps[d]);
      };
      /// The operand that moves along the axis, and how far.
      auto follow = [&](const Axis &axis, unsigned &operand, int64_t &stride) {
        for (const ScoreDim &dim : scores.dims)
          if (dim.step == stepOf(axis) && dim.dim.size % axis.size == 0)
            for (unsigned i : {0u, 1u})
              if (dim.dim.strides[i] != 0 && dim.dim.strides[1 - i] == 0) {
                operand = i;
                stride = dim.dim.strides[i];
                return true;
              }
        return false;
      };
      unsigned keyOperand = 0;
      if (!follow(form.row, scores.rowOperand, scores.rowStride) ||
          !follow(form.key, keyOperand, scores.keyStride) || keyOperand == scores.rowOperand)
        return fail("rows and keys are not those of the scores");
      // Rows are loaded once for all groups.
      for (const Axis &axis : form.groups) {
        unsigned operand = 0;
        int64_t stride = 0;
        if (form.dimOf(axis) < 0 || !follow(axis, operand, stride) || operand == scores.rowOperand)
          return fail("rows differ by group");
      }
    }
    return true;
  }

  ValueRange inputs, outputs;
  std::string &reason;
  AttentionForm form;
  SmallVector<nn::DotOp> fronts, mixes;
  SmallVector<Value> mixed; ///< scores that mixes take
};

} // namespace

std::optional<AttentionForm> AttentionForm::analyze(ValueRange inputs, ValueRange outputs,
                                                    std::string &reason) {
  return Analysis(inputs, outputs, reason).run();
}

bool AttentionForm::suits(const FusionLimits &limits, std::string &reason) const {
  if (scores.size() > 2 || mixes.size() > 2) {
    reason = "a kernel of attention has at most two products of scores and two mixes";
    return false;
  }
  auto fits = [&](const ContractionShape &shape, int64_t size) {
    int64_t parts = shape.narrowA && shape.narrowB ? 1 : kWideParts;
    return shape.accumulatorType.isF32() &&
           fitsAttention(row.size, key.size, size, size, parts, limits.attentionParts);
  };
  bool fitsAll =
      llvm::all_of(scores, [&](const Scores &each) { return fits(each.shape, each.depth.size); }) &&
      llvm::all_of(mixes, [&](const Mix &mix) { return fits(mix.form.shape, mix.column.size); });
  if (!fitsAll)
    reason = "heads are too large or too small for a kernel of attention, or not of f32 sums";
  if (fitsAll && limits.hasAttention && !limits.hasAttention(*this)) {
    reason = "a block of a target has no room for this attention";
    return false;
  }
  return fitsAll;
}

KernelWork AttentionForm::work() const {
  KernelWork work = program.work();
  for (const Scores &each : scores)
    work.flops += each.shape.flops() * program.passes;
  for (const Mix &mix : mixes)
    work.flops += mix.form.work().flops;
  return work;
}

} // namespace ortc::kernels
