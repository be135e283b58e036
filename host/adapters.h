// Low-rank adapters of an artifact, and the files in which the PEFT library keeps them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/Status.h"

namespace ortc::host {

/// A layer of weight W gives `W x + scale B (A x)`, A [rank, in] and B [out, rank].
struct Adapter {
  std::string weight, a, b;              ///< tensors
  std::string quantized, quantizedScale; ///< tensors that the weight is stored as; empty: as the model has it
  std::string kind;                      ///< "linear", "embedding" or "conv"
  bool isTransposed = false;             ///< the weight is [in, out] in the model's file
  int64_t rank = 1;
  double alpha = 1, dropout = 0, scale = 1;
  bool isRankStabilized = false;
};

/// The two files of a folder of PEFT's.
inline constexpr char kPeftConfig[] = "adapter_config.json", kPeftTensors[] = "adapter_model.safetensors";

/// Reads the key "adapters" of a manifest, which most have not; `where` begins messages.
Status parseAdapters(const std::string &manifest, const std::string &where, std::vector<Adapter> &adapters);

/// What PEFT calls a tensor of an adapter.
std::string peftName(const std::string &tensor);

/// Whether a configuration of PEFT's, `text`, describes these: rank and scale of each, and nothing that the tensors of
/// low-rank factors alone do not say (DoRA, biases). `where` begins messages.
Status checkPeftConfig(const std::string &text, const std::string &where,
                       const std::vector<Adapter> &adapters);

/// PEFT's configuration of these, at least one. Fails where they differ in what it has once only: dropout, and how the
/// scale follows from the rank.
Status makePeftConfig(const std::vector<Adapter> &adapters, std::string &config);

} // namespace ortc::host
