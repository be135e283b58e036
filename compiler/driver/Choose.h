// Plans of other tensors to train.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/driver/Compiled.h"
#include "compiler/options/CompileOptions.h"
#include "compiler/report/TrainChoices.h"
#include "compiler/report/UpdateSets.h"
#include "support/Status.h"

#include <functional>
#include <string>
#include <vector>

namespace ortc::driver {

/// Refuses options with which there is nothing for --fit to choose.
Status checkFit(const CompileOptions &options);

/// The sets of --fit, the first of which is `asked`: what compile() has made of `options`, up to the phase `place`.
/// Each other one is compiled as far, after a call of `progress`. Sets that cannot be planned, such as tensors that no
/// gradient reaches, are left out.
std::vector<report::UpdateSet> planSets(CompileOptions options, Compiled &asked,
                                        const std::function<void(const std::string &what)> &progress);

/// The same for --train-choices.
std::vector<report::TrainChoice> planChoices(CompileOptions options, Compiled &asked);

} // namespace ortc::driver
