// Whether what a session trains is made of finite numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/session/finite_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "support/Elements.h"
#include "support/Text.h"

namespace ortc::engine {

/// The largest magnitude, as bits: of finite numbers below those of infinity. Compilers make vectors of it.
template <typename Bits> static Bits findMagnitude(const uint8_t *data, size_t count) {
  constexpr Bits kMagnitude = Bits(~Bits(0)) >> 1;
  Bits largest = 0;
  for (size_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, data + i * sizeof(Bits), sizeof(Bits));
    largest = std::max(largest, Bits(bits & kMagnitude));
  }
  return largest;
}

/// The largest magnitude of numbers that are all finite; false where they are not.
static bool readFinite(DataType type, const uint8_t *data, size_t bytes, double &largest) {
  uint8_t element[8];
  auto read = [&](auto example, auto infinity) {
    const auto magnitude = findMagnitude<decltype(example)>(data, bytes / sizeof(example));
    std::memcpy(element, &magnitude, sizeof(magnitude));
    largest = loadAsDouble(type, element);
    return magnitude < infinity;
  };
  switch (type) {
  case DataType::Float32:
    return read(uint32_t(), 0x7F800000u);
  case DataType::Float64:
    return read(uint64_t(), uint64_t(0x7FF0000000000000));
  case DataType::Float16:
    return read(uint16_t(), uint16_t(0x7C00));
  case DataType::BFloat16:
    return read(uint16_t(), uint16_t(0x7F80));
  default:
    return true;
  }
}

static bool isAllFinite(DataType type, const uint8_t *data, size_t bytes) {
  double largest = 0;
  return readFinite(type, data, bytes, largest);
}

Finiteness Finiteness::of(DataType type, const uint8_t *data, size_t bytes) {
  Finiteness found;
  const size_t element = getElementBytes(type);
  found.elements = int64_t(bytes / element);
  if (readFinite(type, data, bytes, found.largest))
    return found;
  found.largest = 0;
  for (size_t at = 0; at < bytes; at += element) {
    const double value = loadAsDouble(type, data + at);
    found.nans += std::isnan(value);
    found.infinities += std::isinf(value);
    if (std::isfinite(value))
      found.largest = std::max(found.largest, std::fabs(value));
  }
  return found;
}

int64_t Finiteness::find(DataType type, const uint8_t *data, size_t bytes, bool isNan) {
  if (isAllFinite(type, data, bytes))
    return -1;
  const size_t element = getElementBytes(type);
  for (size_t at = 0; at < bytes; at += element)
    if (const double value = loadAsDouble(type, data + at); isNan ? std::isnan(value) : std::isinf(value))
      return int64_t(at / element);
  return -1;
}

std::string BadTensor::describe() const {
  std::string what = found.nans ? std::to_string(found.nans) + " nan" : "";
  if (found.infinities)
    what += (what.empty() ? "" : " and ") + std::to_string(found.infinities) + " inf";
  return "'" + name + "' has " + what + " among its " + formatCount(found.elements, "value");
}

Status FiniteCheck::begin(const Artifact &artifact, Session &session) {
  *this = FiniteCheck();
  for (uint32_t i = 0; i < artifact.getInfo().tensor_count; ++i) {
    ortc_tensor_info info = ORTC_INIT(ortc_tensor_info);
    if (ortc_tensor_get(artifact.getProgram(), i, &info) != ORTC_OK || !isFloat(DataType(info.dtype)))
      continue;
    const bool isParameter = info.role == ORTC_ROLE_PARAMETER;
    Tensor tensor{info.name, DataType(info.dtype), info.bytes, isParameter,
                  isParameter || (info.flags & ORTC_TENSOR_IN_MODEL) != 0};
    if (info.role == ORTC_ROLE_CONSTANT)
      constants.push_back(std::move(tensor));
    if (info.role != ORTC_ROLE_PARAMETER && info.role != ORTC_ROLE_STATE)
      continue;
    ORTC_TRY(visit(session, tensor, [&](const uint8_t *data) {
      const Finiteness found = Finiteness::of(tensor.type, data, tensor.bytes);
      tensor.badAtFirst = tensor.countBad(found);
      if (tensor.badAtFirst && !badAtFirst)
        badAtFirst = BadTensor{tensor.name, found};
      if (tensor.isParameter)
        largestAtFirst = std::max(largestAtFirst, found.largest);
    }));
    tensors.push_back(std::move(tensor));
  }
  return Status();
}

Status FiniteCheck::visit(Session &session, const Tensor &tensor,
                          const std::function<void(const uint8_t *)> &look) {
  void *data = nullptr;
  if (ortc_data(session.get(), tensor.name.c_str(), &data) == ORTC_OK) {
    look(static_cast<const uint8_t *>(data));
    return Status();
  }
  copy.resize(std::max(copy.size(), tensor.bytes));
  if (ortc_read(session.get(), tensor.name.c_str(), copy.data(), tensor.bytes) != ORTC_OK)
    return Status::failure("'" + tensor.name + "': " + ortc_session_message(session.get()));
  look(copy.data());
  return Status();
}

Status FiniteCheck::check(Session &session, bool isAll, std::optional<BadTensor> &bad) {
  bad.reset();
  for (const Tensor &tensor : tensors) {
    if (!tensor.isOfModel && !isAll)
      continue;
    ORTC_TRY(visit(session, tensor, [&](const uint8_t *data) {
      const Finiteness found = Finiteness::of(tensor.type, data, tensor.bytes);
      if (tensor.countBad(found) > tensor.badAtFirst)
        bad = BadTensor{tensor.name, found, tensor.isParameter};
    }));
    if (bad)
      return Status();
  }
  return Status();
}

Status FiniteCheck::checkModel(Session &session, std::optional<BadTensor> &bad) {
  return check(session, /*isAll=*/false, bad);
}

Status FiniteCheck::checkSaved(Session &session, std::optional<BadTensor> &bad) {
  return check(session, /*isAll=*/true, bad);
}

Status FiniteCheck::findLargest(Session &session, double &largest) {
  largest = 0;
  for (const Tensor &tensor : tensors)
    if (tensor.isParameter)
      ORTC_TRY(visit(session, tensor, [&](const uint8_t *data) {
        largest = std::max(largest, Finiteness::of(tensor.type, data, tensor.bytes).largest);
      }));
  return Status();
}

Status FiniteCheck::findBadConstant(Session &session, std::optional<BadTensor> &bad) {
  bad.reset();
  for (const Tensor &tensor : constants) {
    ORTC_TRY(visit(session, tensor, [&](const uint8_t *data) {
      const Finiteness found = Finiteness::of(tensor.type, data, tensor.bytes);
      if (found.nans || (found.infinities && !bad))
        bad = BadTensor{tensor.name, found};
    }));
    if (bad && bad->found.nans)
      return Status();
  }
  return Status();
}

} // namespace ortc::engine
