// What a step demands of weights beside a small loss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Penalties and the limit of norms are Keras': regularizers.L1L2 and constraints.MaxNorm. Penalties are added to
// gradients, not to the loss that a step gives. A mask takes away gradients, too, so that state of what stays zero does
// not grow.
#include "compiler/passes/train/Constraints.h"

#include "compiler/passes/train/Channels.h"
#include "compiler/passes/train/Optimizers.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "support/Plural.h"

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

static constexpr double kKerasEpsilon = 1e-7;

const RegularizeSpec *Constraints::find(TensorOp parameter) const {
  auto found = llvm::find_if(specs.regularizers, [&](const RegularizeSpec &spec) {
    return spec.pattern.matches(parameter.getName().str());
  });
  return found == specs.regularizers.end() ? nullptr : &*found;
}

const Mask *Constraints::findMask(TensorOp parameter) const {
  auto found = specs.masks ? specs.masks->find(parameter.getName().str()) : Masks::const_iterator();
  return specs.masks && found != specs.masks->end() ? &found->second : nullptr;
}

static std::string formatDims(ArrayRef<int64_t> dims) {
  std::string text = "[";
  for (int64_t dim : dims)
    text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  return text + "]";
}

/// The initial values, those that the mask takes away set to zero.
static LogicalResult maskInitial(TensorOp parameter, const Mask &mask) {
  ElementsAttr initial = parameter.getInitialAttr();
  if (!initial)
    return success();
  auto type = cast<RankedTensorType>(parameter.getType());
  size_t element = type.getElementTypeBitWidth() / 8, count = mask.keeps.size();
  auto resource = dyn_cast<DenseResourceElementsAttr>(initial);
  auto dense = dyn_cast<DenseElementsAttr>(initial);
  AsmResourceBlob *blob = resource ? resource.getRawHandle().getBlob() : nullptr;
  ArrayRef<char> bytes = blob ? blob->getData() : dense ? dense.getRawData() : ArrayRef<char>();
  bool isSplat = dense && dense.isSplat();
  if (bytes.size() != (isSplat ? element : count * element))
    return parameter.emitError() << "the initial value of '" << parameter.getName() << "' cannot be read";
  AsmResourceBlob masked = HeapAsmResourceBlob::allocate(count * element, alignof(uint64_t));
  char *to = masked.getMutableData().data();
  for (size_t i = 0; i < count; ++i)
    if (mask.keeps[i])
      std::memcpy(to + i * element, bytes.data() + (isSplat ? 0 : i * element), element);
    else
      std::memset(to + i * element, 0, element);
  parameter.setInitialAttr(DenseResourceElementsAttr::get(type, parameter.getName(), std::move(masked)));
  return success();
}

LogicalResult Constraints::apply(ArrayRef<TensorOp> parameters) {
  std::set<std::string> used;
  for (TensorOp parameter : parameters) {
    const RegularizeSpec *spec = find(parameter);
    const Mask *mask = findMask(parameter);
    if (findChannels(parameter) && (mask || (spec && spec->maxNorm)))
      return parameter.emitError() << (mask ? "--mask" : "--regularize with max_norm")
                                   << " is for whole tensors, and of '" << parameter.getName()
                                   << "' --train trains some channels; leave one of both out";
    int64_t rank = cast<RankedTensorType>(parameter.getType()).getRank();
    if (spec && spec->maxNorm && spec->axis >= std::max<int64_t>(rank, 1))
      return parameter.emitError() << "--regularize '" << spec->text << "': axis is " << spec->axis
                                   << " but '" << parameter.getName() << "' has "
                                   << formatCount(rank, "dimension");
    if (!mask)
      continue;
    ArrayRef<int64_t> shape = cast<RankedTensorType>(parameter.getType()).getShape();
    if (ArrayRef<int64_t>(mask->shape) != shape)
      return parameter.emitError() << "--mask: '" << parameter.getName() << "' has shape "
                                   << formatDims(mask->shape) << ", but the parameter has "
                                   << formatDims(shape);
    used.insert(parameter.getName().str());
    if (failed(maskInitial(parameter, *mask)))
      return failure();
  }
  if (!specs.masks)
    return success();
  std::vector<std::string> names;
  for (TensorOp parameter : parameters)
    names.push_back(parameter.getName().str());
  for (const auto &[name, mask] : *specs.masks)
    if (!used.count(name))
      return emitError(b.getLoc()) << "--mask: '" << name << "' is the name of no trained tensor; closest: "
                                   << listClosest(name, names);
  return success();
}

/// The mask as a constant in the layout of the parameter.
Value Constraints::maskOut(TensorOp parameter, const Mask &mask, Value value) {
  ArrayRef<int64_t> permutation;
  if (auto stored = parameter.getPermutation())
    permutation = *stored;
  RankedTensorType type = TensorBuilder::typeOf(value).clone(b.getI1Type());
  int64_t rank = type.getRank();
  SmallVector<int64_t> strides(rank, 1), steps(rank), place(rank, 0); // strides: of the file
  for (int64_t i = rank - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * mask.shape[i + 1];
  for (int64_t i = 0; i < rank; ++i)
    steps[i] = strides[permutation.empty() ? i : permutation[i]];
  SmallVector<bool> keeps(mask.keeps.size());
  int64_t at = 0;
  for (size_t i = 0; i < keeps.size(); ++i) {
    keeps[i] = mask.keeps[at];
    for (int64_t k = rank - 1; k >= 0; --k) {
      at += steps[k];
      if (++place[k] < type.getDimSize(k))
        break;
      at -= steps[k] * place[k];
      place[k] = 0;
    }
  }
  auto constant = arith::ConstantOp::create(b, DenseElementsAttr::get(type, keeps));
  return b.select(constant, value, b.zerosLike(value));
}

FailureOr<Value> Constraints::scalar(const RegularizeSpec &spec, const char *name, double value) {
  if (value == 0)
    return Value();
  return tensors.getScalar("regularize" + std::to_string(&spec - specs.regularizers.data()) + "." + name,
                           value);
}

/// g + l1 sign(w) + 2 l2 w
FailureOr<Value> Constraints::constrainGradient(TensorOp parameter, Value value, Value gradient) {
  if (const RegularizeSpec *spec = find(parameter)) {
    FailureOr<Value> l1 = scalar(*spec, "l1", spec->l1), l2 = scalar(*spec, "l2", spec->l2);
    if (failed(l1) || failed(l2))
      return failure();
    if (*l1) {
      Value zero = b.zerosLike(value), rate = spread(b, *l1, value);
      Value isAbove = b.compare(arith::CmpFPredicate::OGT, value, zero);
      Value isBelow = b.compare(arith::CmpFPredicate::OLT, value, zero);
      gradient = b.add(gradient, b.select(isAbove, rate, b.select(isBelow, b.neg(rate), zero)));
    }
    if (*l2)
      gradient = b.add(gradient, b.mul(value, spread(b, b.mulScalar(*l2, 2), value)));
  }
  const Mask *mask = findMask(parameter);
  return mask ? maskOut(parameter, *mask, gradient) : gradient;
}

/// w min(n, max_norm) / (n + 1e-7), for the norm n of each unit.
FailureOr<Value> Constraints::constrainValue(TensorOp parameter, Value value) {
  if (const RegularizeSpec *spec = find(parameter)) {
    FailureOr<Value> limit = scalar(*spec, "max_norm", spec->maxNorm);
    if (failed(limit))
      return failure();
    if (*limit) {
      int64_t rank = TensorBuilder::rankOf(value), axis = spec->axis;
      if (auto permutation = parameter.getPermutation())
        axis = llvm::find(*permutation, axis) - permutation->begin();
      auto axes = llvm::to_vector(
          llvm::make_filter_range(llvm::seq<int64_t>(0, rank), [&](int64_t each) { return each != axis; }));
      Value norm = b.sqrt(b.sum(b.mul(value, value), axes));
      Value kept = b.minimum(norm, spread(b, *limit, norm));
      Value factor = b.div(kept, b.addScalar(norm, kKerasEpsilon));
      value = b.mul(value, b.broadcastAlong(factor, TensorBuilder::shapeOf(value), axes));
    }
  }
  const Mask *mask = findMask(parameter);
  return mask ? maskOut(parameter, *mask, value) : value;
}

} // namespace ortc::train
