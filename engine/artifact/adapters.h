// Low-rank adapters of an artifact, and the files in which the PEFT library keeps them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "support/OutputPaths.h"
#include "support/Status.h"

namespace ortc::engine {

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

/// The files that are read of `--load`, `path`: itself, or the two of a folder of PEFT's, which need not be there.
std::vector<NamedFile> listLoadedFiles(const std::string &path);

/// Reads the key "adapters" of a manifest, which most have not; `where` begins messages.
Status parseAdapters(const std::string &manifest, const std::string &where, std::vector<Adapter> &adapters);

/// What a checkpoint says of these in its metadata, by key: the scale of each, which no tensor tells.
std::map<std::string, std::string> formatScales(const std::vector<Adapter> &adapters);

/// Fails where the metadata of the checkpoint at `path` has another scale; one without the key is of an older version,
/// or of another host.
Status checkScales(const std::map<std::string, std::string> &metadata, const std::string &path,
                   const std::vector<Adapter> &adapters);

/// What PEFT calls a tensor of an adapter.
std::string peftName(const std::string &tensor);

/// Whether a configuration of PEFT's, `text`, describes these: rank and scale of each, and nothing that the tensors of
/// low-rank factors alone do not say (DoRA, biases, whole layers). `where` begins messages.
Status checkPeftConfig(std::string_view text, const std::string &where, const std::vector<Adapter> &adapters);

/// PEFT's configuration of these, at least one. Fails where they differ in what it has once only: dropout, and how the
/// scale follows from the rank.
Status makePeftConfig(const std::vector<Adapter> &adapters, std::string &config);

} // namespace ortc::engine
