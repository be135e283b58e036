// What the parts of the runtime share: handles, messages, memory, views.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The whole library has 16 KiB for code and texts, which explains some habits: one function behind several of
// the C interface, checks in one place, texts that name the status in their first byte.
#pragma once

#include <string.h>

#include "ortc/ortc.h"

namespace ortc {

/// What went wrong: nullptr, or a text whose first byte is the status. %s, %d (int64_t) and %u stand for the
/// handle's `arguments`, in order.
using Error = const char *;
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
/// Of a part of the artifact, and its number.
#define E_DAMAGED E_HASH "%s %u does not match its hash"

/// What a text speaks about: numbers, or strings that live as long as the call.
struct Arguments {
  uint64_t at[4];
  void set(int i, uint64_t value) { at[i] = value; }
  void set(int i, const char *text) { at[i] = (uint64_t)(uintptr_t)text; }
};
/// The status of an error, and its text in `message`, if there is one.
ortc_status report(ortc_message *message, Error error, const Arguments *arguments = nullptr);

/// Writes `value` in base 10 before `end`, where it puts a terminator; returns the first digit.
char *putDigits(uint64_t value, char *end);

/// Memory aligned to ORTC_ALIGNMENT; nullptr when there is none. Without hooks of the host it is whole pages of zeros.
void *allocate(const ortc_host &host, size_t bytes);
void release(const ortc_host &host, void *memory, size_t bytes);

/// Reads a structure of the caller's, zeros where it is null or older.
void readStructure(void *own, const void *given, uint32_t bytes);
template <typename T> T copyIn(const T *given) {
  T own;
  readStructure(&own, given, sizeof own);
  return own;
}

/// A section; `count` rows, or bytes where it has none.
struct Table {
  const uint8_t *data;
  uint64_t bytes, count;
};

/// A strided tensor, with dimensions that lie behind each other merged: dense ones end up with rank 1.
struct View {
  uint8_t *data;
  uint64_t count; ///< elements
  uint32_t element, rank;
  int64_t dims[ORTC_MAX_RANK], strides[ORTC_MAX_RANK];

  __attribute__((noinline)) bool isDense() const { return rank == 1 && strides[0] == (int64_t)element; }
  uint64_t bytes() const { return count * element; }
};
/// Bytes of one element; 0 for what cannot be stored.
uint32_t elementSize(uint8_t dtype);
/// "F32", ...; nullptr where safetensors has no such dtype.
const char *safetensorsDtype(uint8_t dtype);
View makeView(void *data, const ortc_file_view &v);
/// Copies elements [first, first + count), in row-major order, between the view and dense memory.
void transfer(const View &view, uint64_t first, uint64_t count, uint8_t *dense, bool toDense);

/// Read-only mapping of a whole file; empty files have no data.
struct MappedFile {
  const uint8_t *data;
  size_t bytes;
};
Error mapFile(const char *path, MappedFile &file, Arguments &arguments);
void unmapFile(const MappedFile &file);
/// Lets go of its pages, which come back when they are read again: they count as memory of the process.
void forgetPages(const MappedFile &file);
/// Zeroed memory, in huge pages where there are some: filling it takes half the time, and steps are faster.
void *allocatePages(size_t bytes);
void releasePages(void *memory, size_t bytes);
/// Makes an executable copy of `code`; the copy, not the original, is what must have the digest.
Error makeExecutable(const void *code, size_t bytes, const uint8_t digest[32], void **copy);

/// An entry that can be run here: its row and its code.
struct Step {
  const ortc_file_entry *entry;
  ortc_step_fn function;
};

} // namespace ortc

struct ortc_program {
  // The first 128 bytes are cheaper to get at.
  ortc::Step *steps;
  uint32_t stepCount, codeOrdinal;
  ortc_file_header *head; ///< copy of header and section table
  ortc::Table
      tables[ORTC_SECTION_KERNEL_NAMES + 1]; ///< by kind; copies, when the file is mapped (it might change)
  const uint8_t *image;
  uint64_t imageBytes;
  uint64_t features; ///< of this machine
  const ortc_file_section *codeSection;
  void *code; ///< executable copy
  size_t headBytes;
  ortc::MappedFile file; ///< to be unmapped; else the image is the caller's
  ortc::Arguments arguments;
  uint64_t regionBytes[4]; ///< by enum ortc_region; transient: of the entry that is being checked
  ortc_host host;
  const ortc_file_section *chosen[ORTC_SECTION_SIGNATURE + 1]; ///< by kind, but for code
  mutable uint32_t areImagesGood; ///< atomic: several threads may find 0 and check

  template <typename Row> const Row &row(uint32_t kind, uint64_t i) const {
    return ((const Row *)tables[kind].data)[i];
  }
  const ortc_file_section &section(uint32_t i) const { return ((const ortc_file_section *)(head + 1))[i]; }
  const ortc_file_tensor &tensor(uint32_t i) const { return row<ortc_file_tensor>(ORTC_SECTION_TENSORS, i); }
  const ortc_file_value &value(uint32_t i) const { return row<ortc_file_value>(ORTC_SECTION_VALUES, i); }
  uint32_t tensorCount() const { return (uint32_t)tables[ORTC_SECTION_TENSORS].count; }
  /// The name in row `i` of a table whose rows begin with one; nullptr past its end.
  const char *listed(uint32_t kind, uint32_t i) const;
  /// "" for an offset that is not in the strings.
  const char *string(uint32_t offset) const;
};

struct ortc_session {
  const ortc_program *program;
  ortc::Arguments arguments;
  uint8_t *regions[4]; ///< by enum ortc_region
  void **ext;          ///< one per row of the values table; nullptr: not given
  uint8_t *seen;       ///< one per tensor, for loading
  uint32_t binding;
  const ortc_file_entry
      *gradients; ///< of the step that has just left gradients in the transient region, or nullptr
  ortc_call call; ///< of every step; `ext` is the entry's
  ortc_detail detail;
  uint64_t allocated; ///< bytes, from the session on
  ortc_message message;
};

namespace ortc {

/// Looks a tensor up by name; gradients and loss have none. ORTC_NONE if there is none.
uint32_t findTensor(const ortc_program *program, const char *name);
/// A tensor or value that lies in memory of the session.
View locate(const ortc_session *session, const ortc_file_view &v);
inline bool isCheckpointed(const ortc_file_tensor &tensor) {
  return tensor.role <= ORTC_ROLE_SCALAR && tensor.role != ORTC_ROLE_CONSTANT;
}

/// Order-independent checksum of a checkpoint's data: the sum over its tensors of a hash that is seeded with
/// the name and runs over the dense bytes in words of 8 (the last filled up with zeros). Every step is a
/// bijection, so no change of a single word goes unseen; it costs memory speed.
uint64_t hashName(uint64_t hash, const char *text, size_t bytes);
uint64_t hashData(uint64_t hash, const uint8_t *data, size_t bytes);
constexpr uint64_t kHashSeed = 0xcbf29ce484222325u;
/// The checksum as it is written: 60 bits of the sum, always with 19 digits.
inline uint64_t checksumOf(uint64_t sum) { return sum >> 4 | (uint64_t)1 << 60; }
constexpr size_t kTextLimit = 1024; ///< longest key or value of a checkpoint's strings, terminator included

} // namespace ortc
