// The gradients of an artifact against differences of its own loss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

#include "engine/session/difference.h"
#include "engine/session/session.h"

namespace ortc::engine {

/// How one trained tensor did.
struct TensorCheck {
  std::string name;
  int64_t elements = 0;
  int64_t probes = 0, kinks = 0;
  double worst = 0;                 ///< largest relative error of a probe that no kink explains
  std::string where;                ///< "direction 1", "[3, 0]"
  double gradient = 0, numeric = 0; ///< of that probe
  bool isGood = true;
};

/// How many differences are computed, and how close they must come.
struct GradientCheckOptions {
  uint64_t seed = 0;
  double tolerance = 1e-5;
  int64_t directions = 2,
          weights = 3; ///< probes of a tensor; the first weight is the one of the largest gradient
};

/// The values that an input without data may have, [low, high); both zero: any floating-point number, or the integer 1.
struct InputRange {
  int64_t low = 0, high = 0;
};

/// Fills the inputs of an entry: floating point from a normal distribution ([0, 1) for `label`, which may be
/// a probability), integers from their range.
Status fillInputs(Session &session, const Entry &entry, const std::map<std::string, InputRange> &ranges,
                  uint64_t seed);

/// Checks every trained tensor on the inputs that the session has. `entry` is a gradients entry, of an artifact in
/// float64. Leaves the parameters as they were. Fails where the loss is not finite.
Status checkGradients(Session &session, const Artifact &artifact, const Entry &entry,
                      const GradientCheckOptions &options, std::vector<TensorCheck> &results);

/// A table, the worst first.
std::string formatChecks(std::vector<TensorCheck> results, double tolerance);

} // namespace ortc::engine
