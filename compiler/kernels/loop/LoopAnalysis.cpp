// Writes a tensor program as a loop program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Values are walked from the outputs with their indices as affine expressions of the domain's dimensions. A
// reshape that cuts through a dimension asks for that dimension to be split. The walk starts again with the
// finer domain. At the end, neighbouring dimensions that every expression sees as one are merged again. A
// reduction's tree depends on its own shape and axes, so its reduced dimensions must come out of this
// unsplit.
#include "compiler/kernels/loop/LoopProgram.h"

#include "dialects/nn/Elementwise.h"
#include "dialects/nn/NnShapes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace ortc::kernels {

namespace {

using Indices = SmallVector<IndexExpr, 4>;

/// Of ten rounds of six operations, half of them on 64 bits.
constexpr int64_t kRandomCost = 80;

/// Raised by the walk: dimension `dim` must become (size / inner, inner).
struct Split {
  unsigned dim;
  int64_t inner;
};

class Analyzer {
public:
  Analyzer(ValueRange inputs, ValueRange outputs, std::string &reason)
      : inputs(inputs), outputs(outputs), reason(reason) {
    for (auto [i, input] : llvm::enumerate(inputs))
      buffers.try_emplace(input, i);
  }

  std::optional<LoopProgram> run() {
    if (!chooseDomain())
      return std::nullopt;
    for (int attempt = 0; attempt < 16; ++attempt) {
      program = LoopProgram();
      program.dims = domain;
      known.clear();
      walked.clear();
      reductionOf.clear();
      split.reset();
      failed = false;
      if (domain.size() > 24)
        return fail("too many dimensions"), std::nullopt;
      build();
      if (split) {
        LoopDim outer = domain[split->dim], inner = outer;
        outer.size /= split->inner;
        inner.size = split->inner;
        domain[split->dim] = outer;
        domain.insert(domain.begin() + split->dim + 1, inner);
        continue;
      }
      if (failed)
        return std::nullopt;
      mergeDims();
      if (!checkReducedDims())
        return std::nullopt;
      finish();
      return std::move(program);
    }
    return fail("reshapes need too many splits"), std::nullopt;
  }

private:
  bool fail(const Twine &why) {
    reason = why.str();
    failed = true;
    return false;
  }
  static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

  /// Segments of neighbouring dimensions of one kind, without dimensions of size one.
  static SmallVector<LoopDim> segmentsOf(nn::ReduceOp op) {
    SmallVector<LoopDim> segments;
    for (auto [d, size] : llvm::enumerate(typeOf(op.getInput()).getShape())) {
      bool reduced = llvm::is_contained(op.getAxes(), static_cast<int64_t>(d));
      if (size == 1)
        continue;
      if (!segments.empty() && segments.back().reduced == reduced)
        segments.back().size *= size;
      else
        segments.push_back({size, reduced});
    }
    return segments;
  }
  /// The order of summation depends on these sizes.
  static SmallVector<int64_t> treeOf(ArrayRef<LoopDim> segments) {
    SmallVector<int64_t> tree;
    for (const LoopDim &dim : segments)
      if (dim.reduced)
        tree.push_back(dim.size);
    tree.push_back(!segments.empty() && segments.back().reduced);
    return tree;
  }

  bool chooseDomain() {
    for (Value output : outputs)
      if (typeOf(output).getNumElements() == 0)
        return fail("empty tensor");
    // Reductions between outputs and inputs, in a deterministic order.
    SmallVector<Value> stack(outputs.begin(), outputs.end());
    llvm::DenseSet<Value> seen;
    nn::ReduceOp first;
    int64_t most = 0;
    while (!stack.empty()) {
      Value value = stack.pop_back_val();
      if (buffers.contains(value) || !seen.insert(value).second)
        continue;
      Operation *op = value.getDefiningOp();
      if (!op || !isLoopOperation(op))
        return fail(op ? "operation " + op->getName().getStringRef() + " is no loop operation"
                       : Twine("value is no input"));
      if (auto reduce = dyn_cast<nn::ReduceOp>(op)) {
        if (typeOf(reduce.getInput()).getNumElements() == 0)
          return fail("empty tensor");
        if (!first || typeOf(reduce.getInput()).getNumElements() > most) {
          first = reduce;
          most = typeOf(reduce.getInput()).getNumElements();
        }
      }
      stack.append(op->operand_begin(), op->operand_end());
    }
    if (first) {
      domain = segmentsOf(first);
      tree = treeOf(domain);
      return true;
    }
    if (outputs.empty())
      return fail("no output");
    for (int64_t size : typeOf(outputs.front()).getShape())
      if (size != 1)
        domain.push_back({size, false});
    return true;
  }

  IndexExpr number(int64_t value) const {
    IndexExpr expr;
    expr.constant = value;
    expr.scales.assign(domain.size(), 0);
    return expr;
  }
  static IndexExpr sum(const IndexExpr &a, const IndexExpr &b, int64_t scale) {
    IndexExpr result = a;
    result.constant += b.constant * scale;
    for (size_t d = 0; d < result.scales.size(); ++d)
      result.scales[d] += b.scales[d] * scale;
    for (IndexExpr::Dynamic term : b.dynamic)
      if (scale != 0)
        result.dynamic.push_back({term.node, term.scale * scale});
    return result;
  }
  /// Row-major position over the domain's dimensions that `wanted` selects.
  IndexExpr positionOver(llvm::function_ref<bool(const LoopDim &)> wanted) const {
    IndexExpr expr = number(0);
    int64_t stride = 1;
    for (size_t d = domain.size(); d-- > 0;)
      if (wanted(domain[d])) {
        expr.scales[d] = stride;
        stride *= domain[d].size;
      }
    return expr;
  }
  IndexExpr linear(ArrayRef<IndexExpr> indices, ArrayRef<int64_t> shape) const {
    IndexExpr expr = number(0);
    int64_t stride = 1;
    for (size_t i = shape.size(); i-- > 0;) {
      expr = sum(expr, indices[i], stride);
      stride *= shape[i];
    }
    return expr;
  }

  uint64_t dimsOf(const IndexExpr &expr) const {
    uint64_t dims = 0;
    for (size_t d = 0; d < expr.scales.size(); ++d)
      if (expr.scales[d] != 0)
        dims |= uint64_t(1) << d;
    for (const IndexExpr::Dynamic &term : expr.dynamic)
      dims |= program.nodes[term.node].dims;
    return dims;
  }
  unsigned addNode(LoopNode node) {
    if (node.at.scales.empty())
      node.at.scales.assign(domain.size(), 0);
    node.dims |= dimsOf(node.at);
    auto inherit = [&](unsigned from) {
      node.dims |= program.nodes[from].dims;
      node.depth = std::max(node.depth, program.nodes[from].depth);
    };
    for (unsigned operand : node.operands)
      inherit(operand);
    for (const IndexExpr::Dynamic &term : node.at.dynamic)
      inherit(term.node);
    program.nodes.push_back(std::move(node));
    return program.nodes.size() - 1;
  }
  IndexExpr dynamicIndex(unsigned node) const {
    IndexExpr expr = number(0);
    expr.dynamic.push_back({node, 1});
    return expr;
  }
  IndexExpr divided(const IndexExpr &expr, int64_t divisor, LoopNode::Kind kind) {
    if (divisor == 1)
      return kind == LoopNode::quotient ? expr : number(0);
    LoopNode node;
    node.kind = kind;
    node.element = IndexType::get(inputsContext());
    node.at = expr;
    node.step = divisor;
    node.cost = 10;
    return dynamicIndex(addNode(std::move(node)));
  }
  MLIRContext *inputsContext() const { return outputs.front().getContext(); }

  /// The indices into `shape` of the element at row-major position `position`.
  Indices delinearize(const IndexExpr &position, ArrayRef<int64_t> shape) {
    int64_t rank = shape.size();
    Indices result(rank, number(0));
    if (rank == 0) // a scalar, wherever it is read from
      return result;
    if (llvm::is_contained(shape, 0)) {
      fail("an empty tensor is read");
      return result;
    }
    nn::Shape strides = nn::rowMajorStrides(shape);
    bool affine = position.dynamic.empty() && position.constant >= 0 &&
                  llvm::all_of(position.scales, [](int64_t scale) { return scale >= 0; });
    if (affine) {
      int64_t rest = position.constant;
      SmallVector<int64_t> largest(rank, 0);
      for (int64_t i = 0; i < rank; ++i) {
        result[i].constant = largest[i] = rest / strides[i];
        rest %= strides[i];
      }
      for (size_t d = 0; d < position.scales.size() && affine; ++d) {
        int64_t scale = position.scales[d], size = domain[d].size;
        if (scale == 0)
          continue;
        // The dimension of `shape` that this one starts in: the outermost whose stride divides into the scale.
        int64_t i = 0;
        while (i + 1 < rank && (strides[i] > scale || shape[i] == 1))
          ++i;
        if (scale % strides[i] != 0) {
          affine = false;
          break;
        }
        int64_t step = scale / strides[i];
        if (step * size > shape[i] && i > 0) {
          int64_t inner = shape[i] % step == 0 ? shape[i] / step : 0;
          if (inner > 1 && inner < size && size % inner == 0) {
            if (!split)
              split = Split{static_cast<unsigned>(d), inner};
            return result;
          }
        }
        result[i].scales[d] += step;
        largest[i] += step * (size - 1);
      }
      for (int64_t i = 1; i < rank && affine; ++i)
        affine = largest[i] < shape[i];
      if (affine)
        return result;
      result.assign(rank, number(0));
    }
    for (int64_t i = 0; i < rank; ++i) {
      if (shape[i] == 1)
        continue;
      IndexExpr whole = divided(position, strides[i], LoopNode::quotient);
      bool outermost = llvm::all_of(shape.take_front(i), [](int64_t size) { return size == 1; });
      result[i] = outermost ? whole : divided(whole, shape[i], LoopNode::remainder);
    }
    return result;
  }

  void build() {
    IndexExpr all = positionOver([](const LoopDim &) { return true; });
    IndexExpr row = positionOver([](const LoopDim &dim) { return !dim.reduced; });
    for (Value input : inputs)
      program.buffers.push_back(input.getType());
    int64_t points = program.elements(false) * program.elements(true);
    for (auto [i, output] : llvm::enumerate(outputs)) {
      auto type = typeOf(output);
      LoopOutput entry;
      entry.buffer = inputs.size() + i;
      entry.element = type.getElementType();
      if (type.getNumElements() == program.elements(false))
        entry.perRow = program.elements(true) != 1, entry.at = row;
      else if (type.getNumElements() == points)
        entry.at = all;
      else {
        fail("outputs of different sizes");
        return;
      }
      program.buffers.push_back(type);
      entry.node = walk(output, delinearize(entry.at, type.getShape()));
      if (failed || split)
        return;
      if (entry.perRow && (program.nodes[entry.node].dims & program.reducedMask())) {
        fail("an output per row changes along the row");
        return;
      }
      program.outputs.push_back(entry);
    }
  }

  unsigned walk(Value value, const Indices &indices) {
    if (failed || split)
      return 0;
    std::pair<Value, unsigned> key{value, hash(indices)};
    for (unsigned i : known[key])
      if (walked[i].first == indices)
        return walked[i].second;
    unsigned node = createNode(value, indices);
    if (!failed && !split) {
      known[key].push_back(walked.size());
      walked.push_back({indices, node});
    }
    return node;
  }

  static unsigned hash(const Indices &indices) {
    llvm::hash_code code = 0;
    for (const IndexExpr &expr : indices) {
      code = llvm::hash_combine(code, expr.constant, llvm::hash_combine_range(expr.scales));
      for (const IndexExpr::Dynamic &term : expr.dynamic)
        code = llvm::hash_combine(code, term.node, term.scale);
    }
    return static_cast<unsigned>(size_t(code));
  }

  unsigned createNode(Value value, const Indices &indices) {
    auto type = typeOf(value);
    LoopNode node;
    node.element = type.getElementType();
    if (auto buffer = buffers.find(value); buffer != buffers.end()) {
      node.kind = LoopNode::load;
      node.buffer = buffer->second;
      node.at = linear(indices, type.getShape());
      node.cost = 1;
      return addNode(std::move(node));
    }
    Operation *op = value.getDefiningOp();
    if (nn::isElementwise(op)) {
      node.kind = LoopNode::operation;
      node.op = op;
      node.cost = elementwiseCost(op);
      for (Value operand : op->getOperands())
        node.operands.push_back(walk(operand, indices));
      return failed || split ? 0 : addNode(std::move(node));
    }
    return llvm::TypeSwitch<Operation *, unsigned>(op)
        .Case([&](arith::ConstantOp constant) {
          node.kind = LoopNode::constant;
          node.op = op;
          if (!isa<SplatElementsAttr>(constant.getValue()))
            node.at = linear(indices, type.getShape());
          return addNode(std::move(node));
        })
        .Case([&](nn::IotaOp iota) {
          node.kind = LoopNode::iota;
          node.at = indices[iota.getAxis()];
          node.cost = 1;
          return addNode(std::move(node));
        })
        .Case([&](nn::RandomOp random) {
          node.kind = LoopNode::random;
          node.op = op;
          node.index = cast<OpResult>(value).getResultNumber();
          node.at = linear(indices, type.getShape());
          node.cost = kRandomCost;
          node.operands.push_back(walk(random.getStep(), Indices()));
          return failed || split ? 0 : addNode(std::move(node));
        })
        .Case([&](nn::BroadcastOp broadcast) {
          Indices inner;
          for (auto [i, dim] : llvm::enumerate(broadcast.getDimensions()))
            inner.push_back(typeOf(broadcast.getInput()).getDimSize(i) == 1 ? number(0) : indices[dim]);
          return walk(broadcast.getInput(), inner);
        })
        .Case([&](nn::ReshapeOp reshape) {
          Indices inner =
              delinearize(linear(indices, type.getShape()), typeOf(reshape.getInput()).getShape());
          return walk(reshape.getInput(), inner);
        })
        .Case([&](nn::TransposeOp transpose) {
          Indices inner(indices.size(), number(0));
          for (auto [i, from] : llvm::enumerate(transpose.getPermutation()))
            inner[from] = indices[i];
          return walk(transpose.getInput(), inner);
        })
        .Case([&](nn::SliceOp slice) {
          Indices inner;
          for (auto [i, index] : llvm::enumerate(indices))
            inner.push_back(sum(number(slice.getStarts()[i]), index, slice.getStrides()[i]));
          return walk(slice.getInput(), inner);
        })
        .Case([&](nn::ReverseOp reverse) {
          Indices inner = indices;
          for (int64_t axis : reverse.getAxes())
            inner[axis] = sum(number(type.getDimSize(axis) - 1), indices[axis], -1);
          return walk(reverse.getInput(), inner);
        })
        .Case([&](nn::PadOp pad) { return walkPad(pad, indices); })
        .Case([&](nn::ConcatOp concat) { return walkConcat(concat, indices); })
        .Case([&](nn::GatherOp gather) {
          int64_t axis = gather.getAxis(), count = typeOf(gather.getIndices()).getRank();
          Indices at(indices.begin() + axis, indices.begin() + axis + count);
          Indices inner(indices.begin(), indices.begin() + axis);
          inner.push_back(dynamicIndex(walk(gather.getIndices(), at)));
          if (failed || split)
            return 0u;
          inner.append(indices.begin() + axis + count, indices.end());
          return walk(gather.getInput(), inner);
        })
        .Case([&](nn::GatherElementsOp gather) {
          Indices inner = indices;
          inner[gather.getAxis()] = dynamicIndex(walk(gather.getIndices(), indices));
          return failed || split ? 0u : walk(gather.getInput(), inner);
        })
        .Case([&](nn::ReduceOp reduce) { return walkReduce(reduce, indices); })
        .Default([&](Operation *other) {
          fail("operation " + other->getName().getStringRef() + " is no loop operation");
          return 0u;
        });
  }

  unsigned walkPad(nn::PadOp pad, const Indices &indices) {
    auto input = typeOf(pad.getInput());
    if (input.getNumElements() == 0)
      return walk(pad.getValue(), {});
    Indices inner = indices;
    SmallVector<LoopNode> tests;
    for (int64_t d = 0; d < input.getRank(); ++d) {
      int64_t low = pad.getLow()[d], step = pad.getInterior()[d] + 1;
      if (low == 0 && pad.getHigh()[d] == 0 && step == 1)
        continue;
      LoopNode test;
      test.kind = LoopNode::range;
      test.element = input.getElementType();
      test.at = indices[d];
      test.low = low;
      test.high = low + (input.getDimSize(d) - 1) * step + 1;
      test.step = step;
      test.cost = 2;
      inner[d] = divided(sum(indices[d], number(1), -low), step, LoopNode::quotient);
      tests.push_back(test);
    }
    unsigned outside = walk(pad.getValue(), {}), result = walk(pad.getInput(), inner);
    if (failed || split)
      return 0;
    for (LoopNode &test : llvm::reverse(tests)) {
      test.operands = {result, outside};
      result = addNode(std::move(test));
    }
    return result;
  }

  unsigned walkConcat(nn::ConcatOp concat, const Indices &indices) {
    int64_t axis = concat.getAxis(), start = 0;
    SmallVector<std::pair<Value, int64_t>> parts;
    for (Value input : concat.getInputs()) {
      if (typeOf(input).getNumElements() != 0)
        parts.push_back({input, start});
      start += typeOf(input).getDimSize(axis);
    }
    unsigned result = 0;
    for (auto [p, part] : llvm::enumerate(llvm::reverse(parts))) {
      Indices inner = indices;
      inner[axis] = sum(indices[axis], number(1), -part.second);
      unsigned inside = walk(part.first, inner);
      if (failed || split)
        return 0;
      if (p == 0) {
        result = inside;
        continue;
      }
      LoopNode test;
      test.kind = LoopNode::range;
      test.element = typeOf(part.first).getElementType();
      test.at = indices[axis];
      test.low = part.second;
      test.high = part.second + typeOf(part.first).getDimSize(axis);
      test.cost = 2;
      test.operands = {inside, result};
      result = addNode(std::move(test));
    }
    return result;
  }

  unsigned walkReduce(nn::ReduceOp op, const Indices &indices) {
    auto input = typeOf(op.getInput()), result = typeOf(op.getResult());
    auto segments = segmentsOf(op);
    if (ArrayRef<int64_t>(treeOf(segments)) != ArrayRef<int64_t>(tree)) {
      fail("reductions over different dimensions");
      return 0;
    }
    IndexExpr row = positionOver([](const LoopDim &dim) { return !dim.reduced; });
    if (result.getNumElements() != program.elements(false) || !(linear(indices, result.getShape()) == row)) {
      fail("the result of a reduction is read at another position");
      return 0;
    }
    if (auto existing = reductionOf.find(op); existing != reductionOf.end())
      return program.reductions[existing->second].node;
    SmallVector<int64_t> reducedShape;
    for (int64_t axis : op.getAxes())
      reducedShape.push_back(input.getDimSize(axis));
    Indices along = delinearize(positionOver([](const LoopDim &dim) { return dim.reduced; }), reducedShape);
    if (failed || split)
      return 0;
    Indices inner;
    for (int64_t d = 0, kept = 0, reduced = 0; d < input.getRank(); ++d)
      inner.push_back(llvm::is_contained(op.getAxes(), d) ? along[reduced++] : indices[kept++]);
    unsigned from = walk(op.getInput(), inner);
    if (failed || split)
      return 0;
    LoopNode node;
    node.kind = LoopNode::reduction;
    node.element = result.getElementType();
    node.index = program.reductions.size();
    node.depth = program.nodes[from].depth + 1;
    for (size_t d = 0; d < domain.size(); ++d)
      if (!domain[d].reduced)
        node.dims |= uint64_t(1) << d;
    unsigned pass = program.nodes[from].depth, number = addNode(std::move(node));
    program.reductions.push_back({op.getKind(), op, result.getElementType(), from, number, pass});
    reductionOf[op] = program.reductions.size() - 1;
    return number;
  }

  template <typename Function> void forEachExpr(Function function) {
    for (LoopNode &node : program.nodes)
      function(node.at);
    for (LoopOutput &output : program.outputs)
      function(output.at);
  }

  void mergeDims() {
    for (size_t d = 0; d + 1 < program.dims.size();) {
      LoopDim &outer = program.dims[d], &inner = program.dims[d + 1];
      bool merges = outer.reduced == inner.reduced;
      if (merges)
        forEachExpr(
            [&](const IndexExpr &expr) { merges &= expr.scales[d] == expr.scales[d + 1] * inner.size; });
      if (!merges) {
        ++d;
        continue;
      }
      outer.size *= inner.size;
      program.dims.erase(program.dims.begin() + d + 1);
      forEachExpr([&](IndexExpr &expr) { expr.scales.erase(expr.scales.begin() + d); });
    }
  }

  bool checkReducedDims() {
    if (tree.empty())
      return true;
    if (treeOf(program.dims) != tree)
      return fail("a reduced dimension is split");
    return true;
  }

  void finish() {
    // Dimensions were renumbered: the masks follow.
    uint64_t parallel = 0;
    for (auto [d, dim] : llvm::enumerate(program.dims))
      if (!dim.reduced)
        parallel |= uint64_t(1) << d;
    for (LoopNode &node : program.nodes) {
      node.dims = node.kind == LoopNode::reduction ? parallel : dimsOf(node.at);
      for (unsigned operand : node.operands)
        node.dims |= program.nodes[operand].dims;
    }
    program.laneDim = static_cast<int>(program.dims.size()) - 1;
    unsigned reductionPasses = 0;
    for (const LoopReduction &reduction : program.reductions)
      reductionPasses = std::max(reductionPasses, reduction.pass + 1);
    program.passes = reductionPasses;
    for (LoopOutput &output : program.outputs) {
      output.pass = program.nodes[output.node].depth;
      if (!output.perRow)
        program.passes = std::max(program.passes, output.pass + 1);
    }
  }

  ValueRange inputs, outputs;
  std::string &reason;
  llvm::DenseMap<Value, unsigned> buffers;
  SmallVector<LoopDim> domain;
  SmallVector<int64_t> tree; ///< of the reductions; empty without one
  LoopProgram program;
  std::vector<std::pair<Indices, unsigned>> walked; ///< where values were read, and their nodes
  /// Positions in `walked` by value and hash of the indices: a value may be read in thousands of places.
  llvm::DenseMap<std::pair<Value, unsigned>, SmallVector<unsigned, 1>> known;
  llvm::DenseMap<Operation *, unsigned> reductionOf;
  std::optional<Split> split;
  bool failed = false;
};

} // namespace

std::optional<LoopProgram> analyzeLoops(ValueRange inputs, ValueRange outputs, std::string &reason) {
  return Analyzer(inputs, outputs, reason).run();
}

} // namespace ortc::kernels
