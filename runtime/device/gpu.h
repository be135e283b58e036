// What the parts of a device library share: the device, its programs, the memory of a session.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <stdlib.h>
#include <string.h>

#include "ortc/ortc.h"
#include "runtime/device/driver.h"

namespace ortc::device {

/// Puts a text into `message` and returns the status.
__attribute__((format(printf, 3, 4))) int32_t fail(ortc_message *message, ortc_status status,
                                                   const char *format, ...);

struct Device {
  ortc_device table; ///< first: what the runtime has is a pointer to it
  const Vendor *vendor;
  Driver driver;
  Context context;
  int handle, processor; ///< processor: as the vendor counts
  int version;           ///< of the driver: 12040 is CUDA 12.4
  int mostShared;        ///< bytes of shared memory that a block can have
  char name[96];
  char model[48]; ///< of the processor, with its article: "an sm_90"; the table has it without

  /// Makes the context the thread's and says what went wrong with a call of the driver, if anything.
  int32_t enter(ortc_message *message) const;
  int32_t check(Result result, const char *what, ortc_message *message) const;
  /// The driver's words.
  const char *describe(Result result) const;
};

/// A program whose code the driver has.
struct Module {
  const Device *device;
  const ortc_device_program *program;
  ortc_device_code code;
  Image image;
  Function functions[1]; ///< one for each kernel
};

/// A graph that was captured from a list, for these places of the external values.
struct Plan {
  Plan *next;
  const void *list;
  GraphCode code;
  uint32_t count;
  Address places[1];
};

/// What the host and the device tell each other of a step, in pinned memory.
struct Mailbox {
  ortc_device_status clean, seen;
  uint8_t loss[8];
};

/// The memory of a session.
struct Memory {
  const Module *module;
  Address base; ///< of the one allocation: regions and status
  uint64_t bytes;
  Address regions[4], status;
  Stream stream;
  Event staged; ///< the last inputs have left the staging memory
  bool isStaging;
  Mailbox *mailbox;
  uint8_t *staging; ///< pinned, laid out as the region ORTC_REGION_IO; nullptr until it is needed
  Plan *plans;      ///< the one used last first
  struct Place {
    Address used;              ///< by kernels
    bool isCopied, isOnDevice; ///< from or to where it is bound; what lies there
  } *places;                   ///< of the external values of the step that is being run
  // A tensor that is being read in parts.
  uint8_t *part;
  Address partPlace;

  const Device &device() const { return *module->device; }
  const Driver &driver() const { return module->device->driver; }
  const ortc_device_program &program() const { return *module->program; }
  /// Whether all of this lies in memory of the device: of the session's own, or of what the driver knows.
  bool isOnDevice(const void *data, uint64_t bytes) const;
  void forgetPart() {
    free(part);
    part = nullptr;
  }
};

/// Reads a row of a code section, wherever it stands.
template <typename Row>
Row readRow(const ortc_device_program &program, uint64_t table, uint64_t rowBytes, uint64_t i) {
  Row row;
  memcpy(&row, (const uint8_t *)program.code + table + rowBytes * i, sizeof row);
  return row;
}
constexpr uint32_t kMostArguments = 512; ///< of a kernel

/// Checks all of a code section against its program; `code` gets its head.
int32_t checkCode(const ortc_device_program &program, ortc_device_code &code, ortc_message *message);

/// Opens a device of a vendor for its public functions, and closes it.
ortc_status openDevice(const Vendor &vendor, uint32_t ordinal, const ortc_device **device,
                       ortc_message *message);
void closeDevice(const ortc_device *device);

// The functions of ortc_device.
int32_t load(void *context, const ortc_device_program *program, void **module, ortc_message *message);
void unload(void *module);
int32_t create(void *module, uint32_t flags, void *bases[4], void **memory, ortc_message *message);
void destroy(void *memory);
int32_t reset(void *memory, ortc_message *message);
int32_t copy(void *memory, const ortc_view *view, uint64_t first, uint64_t count, void *dense,
             uint32_t toDense, ortc_message *message);
int32_t run(void *memory, const ortc_device_step *step, const ortc_call *call, double *loss,
            ortc_message *message);

/// Returns from a function with what a call of the driver fails with.
#define ORTC_TRY_DRIVER(device, call, what)                                                                  \
  do                                                                                                         \
    if (int32_t status = (device).check(call, what, message))                                                \
      return status;                                                                                         \
  while (0)

} // namespace ortc::device
