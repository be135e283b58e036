// The file of counts: an array in JSON with an object for each launch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdio>
#include <string>

#include "test/gpu/emulator/count/Counter.h"

namespace ortc::emulator {

class CountFile {
public:
  /// `hasLines`: rows tell of each line of the PTX too.
  CountFile(const std::string &path, bool hasLines);
  CountFile(const CountFile &) = delete;
  ~CountFile();
  /// Gives a launch its counts, which are empty.
  void begin(Launch &launch);
  /// Writes the row of a launch that has run.
  void write(const Launch &launch);

private:
  std::FILE *file;
  bool hasLines;
  LaunchCounts counts;
};

} // namespace ortc::emulator
