// Low-rank adapters beside weights that stay as they are.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LoRA (Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2021) as the PEFT library lays it out: a layer
// of weight W gives `W x + scale B (A x)`, where A [rank, in] and B [out, rank] are trained.
#pragma once

#include "compiler/frontend/Model.h"

#include <functional>

namespace ortc::frontend {

struct LoraSettings {
  int64_t rank = 8;
  double scale = 2;          ///< alpha / rank, or alpha / sqrt(rank)
  double dropout = 0;        ///< of what A reads, in training
  std::string flag;          ///< as given, for messages
  bool beginsRandom = false; ///< both factors, so that each has a gradient to check
};

enum class LoraKind { linear, embedding, conv };

/// What was put beside one weight.
struct LoraAdapter {
  std::string weight, a, b;   ///< initializers; `a` and `b` are new, in PEFT's shapes
  std::string quantized;      ///< integers that the weight is stored as; empty: it is as the file has it
  std::string quantizedScale; ///< and their scales
  LoraKind kind = LoraKind::linear;
  bool isTransposed = false; ///< the weight of the file is [in, out]
  size_t setting = 0;        ///< which of the settings
};

/// Edits the graph: adapters beside every initializer for which `choose` gives the number of a setting; -1: none. All
/// readers of a chosen one must be MatMul or Gemm (weight on the right, through Transpose and Identity), Gather along
/// its first axis, or Conv of one group. A begins with the numbers of torch.nn.Linear (of an embedding, B with those of
/// torch.nn.Embedding), drawn from `seed`, the other with zeros: the first step computes what the model does.
Status addLoraAdapters(std::shared_ptr<const Model> &model, const std::vector<LoraSettings> &settings,
                       const std::function<int(const std::string &name)> &choose, uint64_t seed,
                       std::vector<LoraAdapter> &adapters);

} // namespace ortc::frontend
