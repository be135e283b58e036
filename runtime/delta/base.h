// What a training began with: tensors of a checkpoint, or the initial weights of an artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "ortc/delta.h"

namespace ortc::delta {

/// What went wrong: a status in front of a text, in which '#' is the name of the tensor; nullptr: nothing.
using Failure = const char *;

/// Looks tensors up one after the other, and gives parts of the last one.
class Base {
public:
  Base(const ortc_delta &delta, const ortc_program *program) : delta(delta), program(program) {}

  Failure open();
  /// The tensor of this number in the artifact's table.
  Failure find(uint32_t number, const ortc_tensor_info &tensor);
  /// Elements [first, first + count) of it, in row-major order, of its own type.
  Failure read(uint64_t first, uint32_t count, uint8_t *data);

private:
  bool isCheckpoint() const { return delta.base_bytes != 0; }
  bool fetch(uint64_t offset, void *data, uint32_t bytes);
  Failure findInHeader(const ortc_tensor_info &tensor);
  // The header, character by character; 0 behind its end.
  char peek();
  char next();
  char token();
  bool string(const char *expected, char *text, uint32_t room);
  uint64_t number();
  void skipValue();

  const ortc_delta &delta;
  const ortc_program *program;
  const ortc_file_tensor *rows = nullptr, *row = nullptr;
  const uint8_t *initial = nullptr;
  uint64_t initialBytes = 0, headerBytes = 0, begin = 0;
  uint32_t element = 0;
  uint64_t at = 0, windowAt = 0; ///< in the checkpoint
  uint32_t windowBytes = 0;
  bool isBroken = false;
  char window[64];
};

} // namespace ortc::delta
