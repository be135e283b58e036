// Files of the GPU check: bytes as they are, and tensors as safetensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ortc/ortc.h"

namespace ortc::gpucheck {

/// Ends the program with a message when the file cannot be read.
std::string readFile(const std::string &path);

/// A JSON string.
std::string quote(const std::string &text);

/// Tensors to be written to a safetensors file.
class TensorFile {
public:
  void add(const std::string &name, const std::string &type, const std::vector<int64_t> &dims,
           const std::string &bytes);
  void add(const ortc_tensor_info &tensor, const std::string &bytes);
  /// Ends the program with a message when it cannot.
  void write(const std::string &path) const;

private:
  std::string header, data;
};

} // namespace ortc::gpucheck
