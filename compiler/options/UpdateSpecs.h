// What a step does beside the optimizer's formula: flags of `ortc train`, parsed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/options/NamePattern.h"
#include "support/Expected.h"
#include "support/Schedule.h"

namespace ortc {

/// `--ema decay=0.999,warmup=0,gamma=1,power=0.6667`: averages of parameters in which new values fade in.
struct EmaSpec {
  double decay = 0.999;
  bool warmsUp = false;              ///< the decay of update t is at most 1 - (1 + t / gamma)^-power
  double gamma = 1, power = 2.0 / 3; ///< of the warm-up
};

/// `--swa start=N,every=1`: the mean of the parameters after some updates.
struct SwaSpec {
  int64_t start = 0; ///< updates that take no part
  int64_t every = 1; ///< of the others, one in so many takes part, the first among them
};

/// `--regularize REGEX:l1=0,l2=0,max_norm=0,axis=0`.
struct RegularizeSpec {
  NamePattern pattern;
  double l1 = 0, l2 = 0; ///< of l1 sum |w| + l2 sum w^2, whose gradient is added to that of the loss
  double maxNorm = 0;    ///< of what has one index along `axis`, after the update; 0: no limit
  int64_t axis = 0;
  std::string text; ///< as given
};

/// Which elements of a tensor are weights: the others are zero.
struct Mask {
  std::vector<int64_t> shape;
  std::vector<bool> keeps; ///< row-major, as the model has the tensor
};
using Masks = std::map<std::string, Mask>;

struct UpdateSpecs {
  std::optional<Schedule> schedule; ///< of lr, by the number of updates; absent: the scalar as it is
  bool gradientNorm = false, parameterNorm = false; ///< outputs of a step
  std::optional<EmaSpec> ema;
  std::optional<SwaSpec> swa;
  std::vector<RegularizeSpec> regularizers; ///< the first match wins
  std::shared_ptr<const Masks> masks;       ///< null: none
};

/// `--schedule lr=KIND[:key=value,...]`.
Expected<Schedule> parseSchedule(std::string_view text);
Expected<EmaSpec> parseEma(std::string_view text);
Expected<SwaSpec> parseSwa(std::string_view text);
Expected<RegularizeSpec> parseRegularize(std::string_view text);
/// `--step-outputs grad_norm,param_norm`.
Status parseStepOutputs(std::string_view text, UpdateSpecs &specs);

/// The first of the flags that was given, in the order above; null: none was.
const char *findUpdateFlag(const UpdateSpecs &specs);
/// One that reads or moves all elements of a parameter in every step; null: none.
const char *findWholeTableFlag(const UpdateSpecs &specs);

} // namespace ortc
