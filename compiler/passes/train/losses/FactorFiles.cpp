// Factors of a loss that a file has.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/losses/FactorFiles.h"

#include "support/Elements.h"
#include "support/MappedFile.h"
#include "support/Npy.h"
#include "support/Plural.h"

#include <cmath>

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

static Status readNpy(const std::string &path, Array &array) {
  std::shared_ptr<const MappedFile> file;
  ORTC_TRY(MappedFile::open(path, file));
  return parseNpy(file->getData(), file->getBytes(), path, file, array);
}

/// Whether a file of shape `given` broadcasts to `shape`, as NumPy has it.
static bool broadcasts(ArrayRef<int64_t> given, ArrayRef<int64_t> shape) {
  if (given.size() > shape.size())
    return false;
  ArrayRef<int64_t> end = shape.take_back(given.size());
  for (auto [size, wanted] : llvm::zip_equal(given, end))
    if (size != 1 && size != wanted)
      return false;
  return true;
}

FailureOr<Value> readFactors(const LossOperands &operands) {
  TensorBuilder &b = operands.b;
  const Settings &settings = operands.settings;
  const bool areClasses = settings.has(kClassWeight);
  const char *key = areClasses ? kClassWeight : kPosWeight;
  const std::string path = settings.has(key) ? settings.getWord(key) : kNoFile;
  if (path == kNoFile)
    return Value();
  auto fail = [&](const std::string &what) {
    return emitError(b.getLoc()) << "--loss " << operands.loss.text << ": " << what;
  };
  Array array;
  if (Status status = readNpy(path, array); !status.isOk())
    return fail(status.getMessage());
  if (array.type != DataType::Float32 && array.type != DataType::Float64)
    return fail(path + " holds " + getTypeName(array.type) + " but must hold float32 or float64");
  auto prediction = TensorBuilder::typeOf(operands.prediction);
  const int64_t classes = prediction.getRank() == 0 ? 1 : prediction.getDimSize(operands.axis);
  if (areClasses && (array.shape.size() != 1 || array.shape[0] != classes))
    return fail(path + " has shape " + formatShape(array.shape) + " but there are " +
                formatCount(classes, "class", "classes"));
  if (!areClasses && !broadcasts(array.shape, prediction.getShape()))
    return fail(path + " has shape " + formatShape(array.shape) +
                ", which does not broadcast to the logits' " +
                formatShape(Shape(prediction.getShape().begin(), prediction.getShape().end())));
  const size_t size = getElementBytes(array.type);
  SmallVector<APFloat> rounded;
  const bool isDouble = prediction.getElementType().isF64();
  for (size_t i = 0; i * size < array.bytes; ++i) {
    double value = loadAsDouble(array.type, array.data + i * size);
    if (!(value >= 0) || std::isinf(isDouble ? value : static_cast<float>(value)))
      return fail(path + " has " + formatValue(value) + " at index " + std::to_string(i) +
                  " but factors must be finite and not negative");
    rounded.push_back(isDouble ? APFloat(value) : APFloat(static_cast<float>(value)));
  }
  auto type = RankedTensorType::get(array.shape, prediction.getElementType());
  return arith::ConstantOp::create(b, DenseElementsAttr::get(type, rounded)).getResult();
}

} // namespace ortc::train
