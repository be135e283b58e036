// What an artifact file holds, as plain data: the writer's input and the reader's output.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/artifact/Image.h"
#include "ortc/format.h"

namespace ortc::artifact {

/// A row of the tensor table. Role parameter, state, scalar: a view of the persistent region; constant: of
/// the constants. Inputs, outputs, gradients and loss need name, role, dtype, dims (and `owner`: gradients)
/// only.
struct Tensor {
  std::string name;
  ortc_tensor_role role = ORTC_ROLE_PARAMETER;
  uint8_t dtype = 1;            ///< ONNX TensorProto.DataType
  std::vector<int64_t> dims;    ///< of the ONNX tensor
  std::vector<int64_t> strides; ///< bytes per dimension; empty = dense
  uint64_t offset = 0;          ///< of the first element in the region
  uint32_t owner = ORTC_NONE;   ///< index of the parameter a state or gradient belongs to
  uint32_t flags = 0;           ///< ortc_tensor_flags
};

/// A value of an entry that the host sees.
struct Value {
  uint32_t tensor = 0;
  std::vector<int64_t> dims;
  std::vector<int64_t> strides = {}; ///< empty = dense
  // The rest is for internal values only (gradients, loss).
  ortc_region region = ORTC_REGION_TRANSIENT;
  uint64_t offset = 0;
};

/// A computation that a host can call: one role and one binding.
struct Entry {
  std::string name; ///< e.g. "train/default"
  ortc_entry_role role = ORTC_ENTRY_TRAIN;
  uint32_t binding = 0, segment = 0;
  uint32_t target =
      ORTC_NONE; ///< index in Artifact::codes, or ORTC_NONE: the plan is the same for all of them
  std::vector<Value>
      external; ///< inputs and outputs: ortc_call.ext in this order; what is bound may have strides
  std::vector<Value> internal; ///< gradients and loss, in memory of the session
  uint32_t loss = ORTC_NONE; ///< ordinal of the loss, which is internal, in `external` followed by `internal`
  /// Transient bytes = fixedBytes + workers * workerBytes; rounded up to ORTC_ALIGNMENT. The compiler places
  /// scratch among the values: 0 a worker.
  uint64_t fixedBytes = 0, workerBytes = 0;
};

struct Code {
  std::string name;                       ///< as --target has it
  uint32_t architecture = ORTC_ARCH_NONE; ///< enum ortc_architecture; any number in files of others
  uint64_t features = 0;                  ///< bits of the architecture's enum in ortc/format.h
  Bytes bytes;                            ///< a blob (ortc/call.h)
};

/// The contents of a model.ortc, which writeArtifact() lays out.
struct Artifact {
  std::vector<Tensor> tensors;
  std::vector<std::string> bindings;
  std::vector<Entry> entries;
  uint32_t maxWorkers = 1;
  Image constants;
  Image persistent;                     ///< may be shorter than the region, whose rest is zero
  uint64_t persistentBytes = 0;         ///< of the region
  std::vector<Code> codes;              ///< most capable last: the last one that a machine can run is used
  std::vector<std::string> checkNames;  ///< by ortc_detail.name
  std::vector<std::string> kernelNames; ///< by the number given to ortc_call.trace
  std::string manifest;                 ///< JSON
  Bytes source;                         ///< ONNX; empty = none
  Bytes signature;                      ///< empty = none
};

/// Bytes of one element; 0 for types that cannot be stored (string, complex, 4-bit).
uint32_t elementBytes(uint8_t dtype);
/// Row-major strides in bytes.
std::vector<int64_t> denseStrides(const std::vector<int64_t> &dims, uint32_t elementBytes);

} // namespace ortc::artifact
