// What can go wrong, and how it is said.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <stdint.h>

namespace ortc {

// X(name, status, text): in a text, %s, %d (int64_t), %u and %p (enum Part) stand for the handle's arguments, in order.
#define ORTC_ERRORS(X)                                                                                       \
  X(Misaligned, ARGUMENT, "misaligned memory")                                                               \
  X(NullPointer, ARGUMENT, "a NULL pointer")                                                                 \
  X(ReadOnly, ARGUMENT, "'%s' is read-only")                                                                 \
  X(TensorMisaligned, ARGUMENT, "'%s' is misaligned")                                                        \
  X(TooManyWorkers, ARGUMENT, "%u workers, the limit is %u")                                                 \
  X(TooLong, ARGUMENT, "'%s' is too long, or reserved")                                                      \
  X(NoArtifact, FORMAT, "not an ortc artifact")                                                              \
  X(CutShort, FORMAT, "artifact is cut short")                                                               \
  X(Malformed, FORMAT, "%p %u is malformed")                                                                 \
  X(BadCheckpoint, FORMAT, "malformed checkpoint")                                                           \
  X(CheckpointEnds, FORMAT, "checkpoint ends before '%s'")                                                   \
  X(TensorTwice, FORMAT, "checkpoint has '%s' twice")                                                        \
  X(Newer, VERSION, "%p %u needs a newer runtime")                                                           \
  X(NoCode, TARGET, "no code for this processor")                                                            \
  X(NotExecutable, TARGET, "%p %u cannot be executed")                                                       \
  X(Damaged, HASH, "%p %u does not match its hash")                                                          \
  X(NotTrusted, HASH, "not trusted by host")                                                                 \
  X(WrongChecksum, HASH, "wrong checksum")                                                                   \
  X(NoMemory, MEMORY, "out of memory")                                                                       \
  X(CannotRead, IO, "cannot read %s (errno %u)")                                                             \
  X(NotAFile, IO, "%s is not a regular file")                                                                \
  X(CannotWrite, IO, "cannot write %s (errno %u)")                                                           \
  X(SinkFailed, IO, "sink failed")                                                                           \
  X(NoTensor, NOT_FOUND, "no '%s' in binding '%s'")                                                          \
  X(NoGradient, NOT_FOUND, "'%s' has no gradient")                                                           \
  X(NotBindable, NOT_FOUND, "'%s' cannot be bound")                                                          \
  X(NoEntry, NOT_FOUND, "binding '%s' has no such entry")                                                    \
  X(TensorAbsent, NOT_FOUND, "checkpoint has no '%s'")                                                       \
  X(WrongSize, SHAPE, "'%s' has %u bytes, not %u, or strides")                                               \
  X(WrongNumber, SHAPE, "'%s' cannot be this number")                                                        \
  X(WrongShape, SHAPE, "'%s' has another shape or dtype")                                                    \
  X(OutOfRange, RANGE, "index %d in '%s' is out of range [%d, %d)")                                          \
  X(NotFinite, NOT_FINITE, "the loss is not finite")                                                         \
  X(NotGiven, STATE, "'%s' is not bound or written")                                                         \
  X(NoGradients, STATE, "no gradients")                                                                      \
  X(OnDevice, STATE, "'%s' is on a device")                                                                  \
  X(UnknownResult, INTERNAL, "step returned %d")

/// A number, and not a pointer to the text: half the code, as every function returns some.
enum Error : uint8_t {
  kNoError,
#define ORTC_ERROR(name, status, text) k##name,
  ORTC_ERRORS(ORTC_ERROR)
#undef ORTC_ERROR
      kTold ///< by a device, with a status and a text of its own
};

/// A part of an artifact.
enum Part : uint8_t {
  kPartHeader,
  kPartFormat,
  kPartSection,
  kPartSectionKind,
  kPartTensor,
  kPartValue,
  kPartEntry,
  kPartCode,
  kPartCallAbi
};
#define ORTC_PARTS "header\0format\0section\0section kind\0tensor\0value\0entry\0code\0call ABI"

} // namespace ortc
