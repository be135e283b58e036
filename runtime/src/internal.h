// What the parts of the runtime share: handles, messages, memory, views.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef ORTC_RUNTIME_SRC_INTERNAL_H
#define ORTC_RUNTIME_SRC_INTERNAL_H

#include <stdarg.h>
#include <string.h>

#include "ortc/ortc.h"

namespace ortc {

/// Writes `format` into `text`, always terminated. Knows %s, %d (int64_t) and %u (uint64_t).
void formatText(char *text, size_t capacity, const char *format, va_list arguments);
/// Fills `message`, when there is one, and returns `status`.
ortc_status fail(ortc_message *message, ortc_status status, const char *format, ...);

void *allocate(const ortc_host &host, size_t bytes);
void release(const ortc_host &host, void *memory, size_t bytes);

/// True when [offset, offset + bytes) lies within `size`.
inline bool isWithin(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

/// Copies a structure of this version into the caller's, which may be older or newer.
template <typename T> ortc_status copyOut(T *target, const T &source) {
  if (!target || target->size < sizeof(uint32_t))
    return ORTC_E_ARGUMENT;
  uint32_t size = target->size;
  memcpy(target, &source, size < sizeof(T) ? size : sizeof(T));
  target->size = size;
  return ORTC_OK;
}

/// Rows of a table in the file, `rowBytes` apart.
template <typename T> struct Table {
  const uint8_t *data;
  uint32_t count, rowBytes;
  const T &operator[](uint32_t i) const { return *(const T *)(data + (size_t)i * rowBytes); }
};

/// A strided tensor, with dimensions that lie behind each other merged: dense ones end up with rank 1.
struct View {
  uint8_t *data;
  uint64_t count; ///< elements
  uint32_t element, rank;
  int64_t dims[ORTC_MAX_RANK + 1], strides[ORTC_MAX_RANK + 1];

  bool isDense() const { return rank == 1 && strides[0] == (int64_t)element; }
};
uint32_t elementSize(uint8_t dtype);
View makeView(uint8_t *data, uint8_t dtype, uint32_t rank, const int64_t *dims, const int64_t *strides);
/// Copies elements [first, first + count), in row-major order, between the view and dense memory.
void transfer(const View &view, uint64_t first, uint64_t count, uint8_t *dense, bool toDense);

/// Read-only mapping of a whole file; nullptr when it cannot be had. An empty file gives a mapping of 0
/// bytes.
struct MappedFile {
  const uint8_t *data = nullptr;
  size_t bytes = 0;
};
ortc_status mapFile(const char *path, MappedFile &file, ortc_message *message);
void unmapFile(const MappedFile &file);
/// An executable copy of `code`; the copy, not the original, is what must have the digest.
ortc_status makeExecutable(const void *code, size_t bytes, const uint8_t digest[32], void **copy);
void releaseExecutable(void *copy, size_t bytes);

/// An entry that can be run here: its row and its code.
struct Step {
  const ortc_file_entry *entry;
  ortc_step_fn function;
};

} // namespace ortc

struct ortc_program {
  ortc_host host;
  ortc::MappedFile file; ///< to be unmapped; else the caller's image
  const uint8_t *image;
  uint64_t imageBytes;
  ortc_file_header header;
  ortc_file_section *sections; ///< copied, header.section_count of them
  uint8_t *tables;             ///< copies of the tables of a mapped file, which somebody might change
  size_t tableBytes;
  ortc::Table<ortc_file_tensor> tensors;
  ortc::Table<ortc_file_binding> bindings;
  ortc::Table<ortc_file_entry> entries;
  ortc::Table<ortc_file_value> values;
  ortc::Table<uint32_t> checkNames, kernelNames;
  const char *strings;
  uint64_t stringBytes;
  const uint8_t *constants, *persistent;
  uint64_t constantBytes, persistentBytes; ///< of the sections
  const ortc_file_section *codeSection;
  uint32_t codeOrdinal;
  void *code; ///< executable copy
  ortc::Step *steps;
  uint32_t stepCount;

  const char *string(uint32_t offset) const { return strings + offset; }
};

struct ortc_session {
  const ortc_program *program;
  size_t handleBytes;
  ortc_session_options options;
  uint64_t transientBytes, ioBytes;
  uint8_t *regions[4]; ///< by enum ortc_region
  uint32_t owned;      ///< bit per region
  uint32_t binding;
  uint32_t gradients; ///< binding whose gradients lie in the transient region, or ORTC_NONE
  ortc_message message;
  void **ext;    ///< one per row of the values table; nullptr: not given
  uint8_t *seen; ///< one per tensor, for loading
};

namespace ortc {

/// Looks a tensor up by name; gradients and loss have none. ORTC_NONE if there is none.
uint32_t findTensor(const ortc_program *program, const char *name);
/// The stored tensor (parameter, constant, state, scalar) as a view of the session's memory.
View storedView(const ortc_session *session, const ortc_file_tensor &tensor);
inline bool isCheckpointed(const ortc_file_tensor &tensor) {
  return tensor.role == ORTC_ROLE_PARAMETER || tensor.role == ORTC_ROLE_STATE ||
         tensor.role == ORTC_ROLE_SCALAR;
}
/// State that may be missing from a checkpoint, all of it at once.
inline bool isFreshable(const ortc_file_tensor &tensor) {
  return tensor.role == ORTC_ROLE_STATE && !(tensor.flags & ORTC_TENSOR_IN_MODEL);
}

/// Order-independent checksum of a checkpoint's data: the sum over its tensors of a hash that is seeded with
/// the name and runs over the dense bytes in words of 8 (the last filled up with zeros). Every step is a
/// bijection, so no change of a single word goes unseen; it costs memory speed.
uint64_t hashName(uint64_t hash, const char *text, size_t bytes);
uint64_t hashData(uint64_t hash, const uint8_t *data, size_t bytes);
constexpr uint64_t kHashSeed = 0xcbf29ce484222325u;

/// safetensors' name of an ONNX dtype, nullptr when it has none.
const char *safetensorsDtype(uint8_t dtype);
constexpr size_t kTextLimit = 1024; ///< longest key or value of a checkpoint's strings, terminator included

} // namespace ortc

#endif // ORTC_RUNTIME_SRC_INTERNAL_H
