// Rounding to integers in front of layers that are trained to be quantised.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference", 2018,
// with the ranges of torch.ao.quantization. A quantiser is a node `FakeQuantize` of the domain `ai.ortc`:
//
//   inputs      x; minimum and maximum, the range that was seen: scalars, or vectors over the channels. Where the scale
//               is learned, also what has been added to the scale of that range.
//   attributes  bits; symmetric: integers around zero, else from zero on with a zero point; axis of the channels,
//               absent where there is one range; averaging: the weight of a step in the moving averages, absent where
//               the range is the least and the largest of all; steps that observe, absent where all do.
#pragma once

#include "compiler/frontend/Model.h"
#include "compiler/frontend/OwnOperators.h"

#include <functional>

namespace ortc::frontend {

struct QuantizerSettings {
  int64_t bits = 8;
  bool isPerChannel = true; ///< of weights
  bool isAveraged = true;
  double averaging = 0.01;
  int64_t observedSteps = 0; ///< 0: all
  bool isLearned = false;
  std::string flag; ///< as given, for messages
};

/// One node that was put in.
struct FakeQuantizer {
  std::string tensor; ///< what it rounds: a weight, or what layers read
  bool isWeight = false;
  int64_t axis = -1;                         ///< of the channels; -1: one range
  std::string minimum, maximum, scaleOffset; ///< initializers; the last is empty where no scale is learned
  std::vector<std::string> layers;           ///< outputs of the nodes that read what it gives
  size_t setting = 0;                        ///< which of the settings
};

struct QuantizerReport {
  std::vector<FakeQuantizer> quantizers;
  std::vector<std::string> others; ///< initializers that were chosen, and are no weights of such layers
};

/// Edits the graph: a quantiser behind every weight for which `choose` gives the number of a setting (-1: none) and in
/// front of what its layers read beside it. Layers are MatMul, Gemm, Conv and ConvTranspose, also behind Transpose and
/// Identity; other readers of a weight get it as it is. Refuses models that are quantised already.
Status addFakeQuantizers(std::shared_ptr<const Model> &model, const std::vector<QuantizerSettings> &settings,
                         const std::function<int(const std::string &name)> &choose, QuantizerReport &report);

} // namespace ortc::frontend
