// What the environment says about the emulated device; read by cuInit.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

#include "test/gpu/emulator/run/Runner.h"

namespace ortc::emulator {

struct Options {
  int capability = 80;           ///< ORTC_EMULATOR_SM: 10 * major + minor
  uint64_t memory;               ///< ORTC_EMULATOR_MEMORY: bytes
  int driver = 13000;            ///< ORTC_EMULATOR_DRIVER: 1000 * major + 10 * minor
  uint32_t threads = 1;          ///< ORTC_EMULATOR_THREADS
  Order order;                   ///< ORTC_EMULATOR_ORDER: forward, reverse, random:SEED
  bool isChecked = true;         ///< ORTC_EMULATOR_CHECKS: off
  bool failsOnLeaks = false;     ///< ORTC_EMULATOR_LEAKS: fail
  bool printsStatistics = false; ///< ORTC_EMULATOR_STATS: 1
  bool isLazy = false;           ///< ORTC_EMULATOR_LAZY: 1
  std::string countFile;         ///< ORTC_EMULATOR_COUNT: a path; nothing: no counting
  bool countsLines = false;      ///< ORTC_EMULATOR_COUNT_LINES: 1
  uint64_t sample = 0;           ///< ORTC_EMULATOR_SAMPLE: blocks of a launch; 0: all
  enum class Approximate : uint8_t {
    Allow,
    Report,
    Refuse
  } approximate = Approximate::Allow; ///< ORTC_EMULATOR_APPROXIMATE
};

/// Reads the environment; what makes no sense is said on stderr and left at its default.
Options readOptions();

/// Writes a line to stderr, with the name of the emulator in front.
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

} // namespace ortc::emulator
