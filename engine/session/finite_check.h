// Whether what a session trains is made of finite numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/session/session.h"

namespace ortc::engine {

/// The kinds of numbers among some.
struct Finiteness {
  int64_t elements = 0, nans = 0, infinities = 0;
  double largest = 0; ///< magnitude of the finite ones

  static Finiteness of(DataType type, const uint8_t *data, size_t bytes);
  /// The first element for which it holds that it is NaN, or infinite; -1: none.
  static int64_t find(DataType type, const uint8_t *data, size_t bytes, bool isNan);
};

/// A tensor that is not finite.
struct BadTensor {
  std::string name;
  Finiteness found;
  bool isParameter = true; ///< not a statistic, a state or a constant
  /// "'w' has 2 nan and 1 inf among its 6 values".
  std::string describe() const;
};

/// The tensors of a session that a checkpoint has, over a training. A tensor that is not finite before the first step
/// is the model's affair; one that becomes so is a training that has gone astray, and no checkpoint is worth having.
class FiniteCheck {
public:
  /// Before the first step. Reads all of them once.
  Status begin(const Artifact &artifact, Session &session);
  /// The first tensor that was not finite at the beginning, or that constants of the artifact are not.
  const std::optional<BadTensor> &getBadAtFirst() const { return badAtFirst; }
  /// The first parameter or running statistic that has become so since. Reads them all, and copies those of a device.
  Status checkModel(Session &session, std::optional<BadTensor> &bad);
  /// The same of parameters and state: NaN in both, infinities in what belongs to the model. An optimizer may have
  /// sums of squares that no number holds, and step on.
  Status checkSaved(Session &session, std::optional<BadTensor> &bad);
  /// The largest magnitude among the finite parameters: at the beginning, and now.
  double getLargestAtFirst() const { return largestAtFirst; }
  Status findLargest(Session &session, double &largest);
  /// A constant of the artifact that is NaN; where there is none, one that is infinite.
  Status findBadConstant(Session &session, std::optional<BadTensor> &bad);

private:
  struct Tensor {
    std::string name;
    DataType type = DataType::None;
    size_t bytes = 0;
    bool isParameter = false, isOfModel = false;
    int64_t badAtFirst = 0; ///< of what must be finite
    int64_t countBad(const Finiteness &found) const {
      return found.nans + (isOfModel ? found.infinities : 0);
    }
  };
  Status visit(Session &session, const Tensor &tensor, const std::function<void(const uint8_t *)> &look);
  Status check(Session &session, bool isAll, std::optional<BadTensor> &bad);

  std::vector<Tensor> tensors, constants;
  std::optional<BadTensor> badAtFirst;
  double largestAtFirst = 0;
  std::vector<uint8_t> copy; ///< of what has no place in the layout of ONNX, or is on a device
};

} // namespace ortc::engine
