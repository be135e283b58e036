// A learning rate that falls where evaluations get no better: torch.optim.lr_scheduler.ReduceLROnPlateau.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "support/Status.h"

namespace ortc::engine {

/// `--lr-schedule plateau:factor=0.1,patience=10,...`, with PyTorch's defaults.
class Plateau {
public:
  static constexpr const char *kName = "plateau";

  /// Whether a text of --lr-schedule is of this kind, and not a schedule.
  static bool isNamedBy(const std::string &text) { return text.substr(0, text.find(':')) == kName; }
  static Status parse(const std::string &text, Plateau &plateau);
  /// The text parse() takes.
  std::string format() const;

  /// What the rate is after one evaluation more.
  double follow(double value, bool isMaximum, double rate);

  /// What an evaluation changes, for checkpoints.
  std::string formatState() const;
  Status parseState(const std::string &text);

private:
  bool isBetter(double value, bool isMaximum) const;

  double factor = 0.1;
  /// evaluations without a better one that are waited for; the next one lowers the rate
  int64_t patience = 10;
  double threshold = 1e-4;
  bool isRelative = true; ///< a share of the best value, not a distance
  int64_t cooldown = 0;   ///< evaluations after a fall that do not count
  double minimum = 0;
  double epsilon = 1e-8; ///< smaller falls are none

  std::optional<double> best;
  int64_t bad = 0, cooling = 0;
};

} // namespace ortc::engine
