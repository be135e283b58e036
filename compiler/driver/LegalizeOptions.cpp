// The options of the phase `legalize`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/LegalizeOptions.h"

namespace ortc::driver {

legalize::LegalizeOptions makeLegalizeOptions(const CompileOptions &options, const ModelFacts &model,
                                              unsigned binding, legalize::Mode mode) {
  legalize::LegalizeOptions legal{.mode = mode,
                                  .binding = binding,
                                  .shapes = options.bindings[binding].shapes,
                                  .train = options.train,
                                  .freeze = options.freeze,
                                  .materialized = options.materialized,
                                  .trainable = model.trainable,
                                  .frozen = model.detached,
                                  .scales = model.scales,
                                  .batchNorm = options.batchNorm,
                                  .dropout = options.dropout,
                                  .lossOutputs = namedLossInputs(options),
                                  .packed = model.packed,
                                  .seed = options.seed,
                                  .float64 = options.precision == Precision::F64,
                                  .trains = trains(options)};
  if (model.teacher)
    legal.freeze.push_back(*model.teacher);
  if (model.adapters && legal.train.empty())
    legal.trainable = model.adapters;
  else if (model.adapters)
    legal.train.push_back(*model.adapters);
  if (model.frozen)
    legal.frozen.insert(legal.frozen.begin(), *model.frozen);
  if (legal.lossOutputs.empty())
    legal.lossOutputs = options.cotangents;
  return legal;
}

} // namespace ortc::driver
