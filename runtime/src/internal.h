// What the parts of the runtime share: handles, messages, memory, views.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The whole library has 16 KiB for code and texts, which explains some habits: one function behind several of
// the C interface, checks in one place, errors that are numbers in a list of texts.
#pragma once

#include <string.h>

#include "ortc/device.h"
#include "ortc/ortc.h"
#include "runtime/src/errors.h"

namespace ortc {

/// What a text speaks about: numbers, or strings that live as long as the call.
struct Arguments {
  uint64_t at[4];
  ortc_status told;     ///< status of a device's error, whose text is the message already
  ortc_message message; ///< of the last failure
  void set(int i, uint64_t value) { at[i] = value; }
  void set(int i, const char *text) { at[i] = (uint64_t)(uintptr_t)text; }
};
/// The status of an error, and its text in `message`, if there is one.
ortc_status report(ortc_message *message, Error error, const Arguments *arguments = nullptr);
/// The same with the text in `arguments`.
ortc_status report(Error error, Arguments &arguments);
/// The error of a device that returned `status`, and put its text into `arguments`.
Error tell(int32_t status, Arguments &arguments);

/// The text with this number of those that stand behind each other, each terminated.
const char *findText(const char *texts, uint32_t number);
/// Writes `value` in base 10 before `end`, where it puts a terminator; returns the first digit.
char *putDigits(uint64_t value, char *end);

/// Whether the product of two sizes is too large: above 64 bits, or where that would take a function of the compiler's
/// library, above what a region may have.
inline bool multiplyOverflows(uint64_t a, uint64_t b, uint64_t *product) {
#if defined(__LP64__)
  return __builtin_mul_overflow(a, b, product);
#else
  *product = a * b;
  return a && b && __builtin_clzll(a) + __builtin_clzll(b) < 128 - ORTC_REGION_BITS - 1;
#endif
}

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

/// A strided tensor, with dimensions that lie behind each other merged: dense ones end up with rank 1.
struct View : ortc_view {
  __attribute__((noinline)) bool isDense() const { return rank == 1 && strides[0] == (int64_t)element; }
  uint64_t bytes() const { return count * element; }
};
/// Bytes of one element; 0 for what cannot be stored.
uint32_t elementSize(uint8_t dtype);
/// "F32", ...; nullptr where safetensors has no such dtype.
const char *safetensorsDtype(uint8_t dtype);
View makeView(void *data, const ortc_file_view &v);

/// Read-only mapping of a whole file; empty files have no data.
struct FileMapping {
  const uint8_t *data;
  size_t bytes;
};
/// Opens an image; what is passed on by the C interface comes first, as it is there. `functions`: of a model that is
/// linked into the program (static.h), nullptr, or kOwnFile: the image is a file's, which is taken over, whatever
/// happens.
ortc_status openImage(FileMapping image, const ortc_host *host, ortc_program **program, ortc_message *message,
                      const ortc_step_fn *functions);
inline const ortc_step_fn *const kOwnFile = (const ortc_step_fn *)1;

// What a platform gives, in platform_*.cpp. Those with files have mapFile and ortc_checkpoint_save, too
// (files_*.cpp), and the functions of files.cpp.

/// `arguments`: what the text of an error speaks of.
Error mapFile(const char *path, FileMapping &file, Arguments &arguments);
void unmapFile(const FileMapping &file);
/// Lets go of its pages, which come back when they are read again: they count as memory of the process.
void forgetPages(const FileMapping &file);
/// Zeroed memory, in huge pages where there are some: filling it takes half the time, and steps are faster.
void *allocatePages(size_t bytes);
void releasePages(void *memory, size_t bytes);
/// Sets the code of a program to a copy of `bytes` that nobody can write to; the copy, not the original, is what must
/// have the digest. It can be executed, unless a device does that, or it is linked in: then `functions` are there.
Error loadCode(ortc_program *program, const uint8_t *bytes, const ortc_file_section &section);

/// An entry that can be run here; the list is an ortc_step_fn, but for a device.
using Step = ortc_device_step;
using Table = ortc_table;

} // namespace ortc

/// Of a program, besides what devices see of it. These and that come first: 128 bytes are cheaper to get at.
struct ortc_program_head {
  ortc_file_header *head; ///< copy of header and section table
  size_t headBytes;
  const uint8_t *image;
  uint64_t imageBytes;
  const ortc_file_section *codeSection;
  const ortc_step_fn
      *functions; ///< what the offsets of a blob's entries count; nullptr: they are places in the code
  void *module;   ///< of the device
  ortc::FileMapping file;         ///< to be unmapped; else the image is the caller's
  mutable uint32_t areImagesGood; ///< atomic: several threads may find 0 and check
};

/// Tables are copies when the file is mapped (it might change).
struct ortc_program : ortc_program_head, ortc_device_program {
  ortc_host host;
  ortc::Arguments arguments;
  const ortc_file_section *chosen[ORTC_SECTION_SIGNATURE + 1]; ///< by kind, but for code

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
  // The first 128 bytes are cheaper to get at.
  const ortc_program *program;
  uint8_t *regions[4]; ///< by enum ortc_region
  void **ext;          ///< one per row of the values table; nullptr: not given
  uint8_t *seen;       ///< one per tensor, for loading
  uint32_t binding;
  const ortc_file_entry
      *gradients;     ///< of the step that has just left gradients in the transient region, or nullptr
  void *memory;       ///< of the device, whose regions are these
  uint64_t allocated; ///< bytes, from the session on
  ortc::Arguments arguments;
  ortc_call call; ///< of every step; `ext` is the entry's
  ortc_detail detail;
};

namespace ortc {

/// Looks a tensor up by name; gradients and loss have none. ORTC_NONE if there is none.
uint32_t findTensor(const ortc_program *program, const char *name);
/// A tensor or value that lies in memory of the session.
View locate(const ortc_session *session, const ortc_file_view &v);
/// transfer() of a tensor of the session, which may be on a device. What is written is a whole tensor.
Error move(ortc_session *session, const View &view, uint64_t first, uint64_t count, uint8_t *dense,
           bool toDense);
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
