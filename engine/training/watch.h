// What `ortc run --watch` says of tensors while they are trained.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/report.h"
#include "engine/session/session.h"

namespace ortc::engine {

/// Of the elements that are numbers; infinities are. All zero where there are none.
struct TensorStatistics {
  double least = 0, most = 0, mean = 0;
  int64_t numbers = 0, notNumbers = 0;

  static TensorStatistics of(DataType type, const uint8_t *data, size_t bytes);
  /// A JSON object: min, max, mean (null without a number, or where not finite) and nan, their count.
  std::string format() const;
};

/// Tensors of floating point whose whole names match: parameters, running statistics, state of the optimizer; and the
/// gradients of the parameters among them.
class Watch {
public:
  /// Refuses what is no regular expression (ECMAScript).
  static Status parse(const std::string &text, Watch &watch);
  bool isEmpty() const { return !expression; }
  /// Finds the tensors; refuses an expression that matches none.
  Status open(const ortc_program *program);

  /// A training step in two parts, which together give its bits, with gradients to see in between; `gradients` and
  /// `update` are entries of the binding that is fed.
  Status step(Session &session, const Entry &gradients, const Entry &update, bool stopOnNotFinite,
              double &loss, ortc_status *told);
  /// Reads the values, after a step. Gives fields `values`, and `gradients` where step() has seen them since.
  Status describe(Session &session, EventFields &fields);

private:
  struct Expression; // hides std::regex, which is slow to compile
  struct Tensor {
    std::string name;
    DataType type = DataType::None, gradientType = DataType::None; ///< None: it has no gradient
    size_t bytes = 0, gradientBytes = 0;
  };
  std::string text;
  std::shared_ptr<const Expression> expression;
  std::vector<Tensor> tensors;
  std::string gradients;     ///< a JSON object; "" where there is none
  std::vector<uint8_t> copy; ///< of the largest one
};

} // namespace ortc::engine
