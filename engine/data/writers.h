// Writers of npz and safetensors files; each file appears whole or not at all.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>

#include "support/ElementTypes.h"
#include "support/Status.h"

namespace ortc::engine {

/// An array to be written: dense, row-major, little-endian.
struct OutputArray {
  std::string name;
  DataType type = DataType::None;
  Shape shape;
  std::vector<uint8_t> data;
};

/// Stored members, zip64 where sizes ask for it, no times: the same arrays give the same bytes. bfloat16,
/// which npy does not have, is written as float32.
Status writeNpz(const std::string &path, const std::vector<OutputArray> &arrays);

/// Arrays in the given order, aligned to 8 bytes as far as their sizes keep them so.
Status writeSafetensors(const std::string &path, const std::vector<OutputArray> &arrays,
                        const std::map<std::string, std::string> &metadata);

} // namespace ortc::engine
