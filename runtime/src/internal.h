// What the parts of the runtime share: handles, messages, memory, views.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The whole library has 16 KiB for code and texts, which explains some habits: one function behind several of
// the C interface, checks in one place, texts that name the status in their first byte.
#ifndef ORTC_RUNTIME_SRC_INTERNAL_H
#define ORTC_RUNTIME_SRC_INTERNAL_H

#include <stdarg.h>
#include <string.h>

#include "ortc/ortc.h"

namespace ortc {

// First byte of an error text: its status.
#define E_ARGUMENT "\1"
#define E_FORMAT "\2"
#define E_VERSION "\3"
#define E_TARGET "\4"
#define E_HASH "\5"
#define E_MEMORY "\6"
#define E_IO "\7"
#define E_NOT_FOUND "\10"
#define E_SHAPE "\11"
#define E_RANGE "\12"
#define E_NOT_FINITE "\13"
#define E_STATE "\14"
#define E_INTERNAL "\15"

/// Writes the text behind `format`'s first byte into `message`, if there is one, and returns that byte as the
/// status. Knows %s, %d (int64_t) and %u (uint64_t: cast smaller ones).
ortc_status fail(ortc_message *message, const char *format, ...);

/// Memory aligned to ORTC_ALIGNMENT; nullptr when there is none.
void *allocate(const ortc_host &host, size_t bytes);
void release(const ortc_host &host, void *memory, size_t bytes);

/// Copies as much of a structure as both sides know; both begin with their size.
ortc_status copyStructure(void *target, const void *source, uint32_t bytes);
/// A structure of the caller's, filled up with zeros where the caller is older. `given` may be null.
template <typename T> T copyIn(const T *given) {
  T own = {};
  if (given)
    memcpy((void *)&own, given, given->size < sizeof own ? given->size : sizeof own);
  return own;
}
template <typename T> ortc_status copyOut(T *target, const T &source) {
  return copyStructure(target, &source, sizeof source);
}

/// A section: rows of a table `rowBytes` apart, or bytes (rows of 1).
struct Table {
  const uint8_t *data;
  uint64_t bytes, count, rowBytes;
};

/// A strided tensor, with dimensions that lie behind each other merged: dense ones end up with rank 1.
struct View {
  uint8_t *data;
  uint64_t count; ///< elements
  uint32_t element, rank;
  int64_t dims[ORTC_MAX_RANK], strides[ORTC_MAX_RANK];

  bool isDense() const { return rank == 1 && strides[0] == (int64_t)element; }
  uint64_t bytes() const { return count * element; }
};
/// Bytes of one element; 0 for what cannot be stored.
uint32_t elementSize(uint8_t dtype);
/// Up to four characters; not terminated when there are four. nullptr where safetensors has no such dtype.
const char *safetensorsDtype(uint8_t dtype);
View makeView(uint8_t *data, uint8_t dtype, uint32_t rank, const int64_t *dims, const int64_t *strides);
/// Copies elements [first, first + count), in row-major order, between the view and dense memory.
void transfer(const View &view, uint64_t first, uint64_t count, uint8_t *dense, bool toDense);

/// Read-only mapping of a whole file; empty files have no data.
struct MappedFile {
  const uint8_t *data;
  size_t bytes;
};
ortc_status mapFile(const char *path, MappedFile &file, ortc_message *message);
void unmapFile(const MappedFile &file);
/// Makes an executable copy of `code`; the copy, not the original, is what must have the digest.
ortc_status makeExecutable(const void *code, size_t bytes, const uint8_t digest[32], void **copy,
                           ortc_message *message);
void releaseExecutable(void *copy, size_t bytes);

/// An entry that can be run here: its row and its code.
struct Step {
  const ortc_file_entry *entry;
  ortc_step_fn function;
};

} // namespace ortc

struct ortc_program {
  ortc::Step *steps;
  uint32_t stepCount;
  uint32_t codeOrdinal;
  const uint8_t *image;
  uint64_t imageBytes;
  const ortc_file_section *codeSection;
  void *code;    ///< executable copy
  uint8_t *head; ///< copy of header and section table
  size_t headBytes;
  ortc::Table tables[ORTC_SECTION_KERNEL_NAMES +
                     1]; ///< by kind; copies, when the file is mapped (somebody might change it)
  ortc::MappedFile file; ///< to be unmapped; else the image is the caller's
  ortc_file_header header;
  ortc_host host;

  template <typename Row> const Row &row(uint32_t kind, uint64_t i) const {
    return *(const Row *)(tables[kind].data + i * tables[kind].rowBytes);
  }
  const ortc_file_tensor &tensor(uint32_t i) const { return row<ortc_file_tensor>(ORTC_SECTION_TENSORS, i); }
  const ortc_file_value &value(uint32_t i) const { return row<ortc_file_value>(ORTC_SECTION_VALUES, i); }
  const ortc_file_section &section(uint32_t i) const {
    return *(const ortc_file_section *)(head + header.header_bytes + (size_t)i * header.section_bytes);
  }
  uint32_t tensorCount() const { return (uint32_t)tables[ORTC_SECTION_TENSORS].count; }
  /// "" for an offset that is not in the strings.
  const char *string(uint32_t offset) const;
  const char *name(const ortc_file_tensor &tensor) const { return string(tensor.name); }
};

struct ortc_session {
  ortc_message message; ///< first: a session is where its message is
  const ortc_program *program;
  uint8_t *regions[4]; ///< by enum ortc_region
  void **ext;          ///< one per row of the values table; nullptr: not given
  uint8_t *seen;       ///< one per tensor, for loading
  uint32_t binding;
  uint32_t gradients; ///< binding whose gradients lie in the transient region, or ORTC_NONE
  uint32_t owned;     ///< bit per region
  ortc_session_options options;
  ortc_sizes sizes;
};

namespace ortc {

/// Looks a tensor up by name; gradients and loss have none. ORTC_NONE if there is none.
uint32_t findTensor(const ortc_program *program, const char *name);
/// The stored tensor (parameter, constant, state, scalar) as a view of the session's memory.
View storedView(const ortc_session *session, const ortc_file_tensor &tensor);
inline bool isCheckpointed(const ortc_file_tensor &tensor) {
  return tensor.role <= ORTC_ROLE_SCALAR && tensor.role != ORTC_ROLE_CONSTANT;
}

/// Order-independent checksum of a checkpoint's data: the sum over its tensors of a hash that is seeded with
/// the name and runs over the dense bytes in words of 8 (the last filled up with zeros). Every step is a
/// bijection, so no change of a single word goes unseen; it costs memory speed.
uint64_t hashName(uint64_t hash, const char *text, size_t bytes);
uint64_t hashData(uint64_t hash, const uint8_t *data, size_t bytes);
constexpr uint64_t kHashSeed = 0xcbf29ce484222325u;
constexpr size_t kTextLimit = 1024; ///< longest key or value of a checkpoint's strings, terminator included

} // namespace ortc

#endif // ORTC_RUNTIME_SRC_INTERNAL_H
