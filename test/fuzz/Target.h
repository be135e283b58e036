// What fuzz targets are: a function for each kind of file, which must come back from whatever bytes it gets.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ortc::fuzz {

using Input = std::span<const uint8_t>;

/// In a build with ORTC_FUZZ each is a program of libFuzzer; everywhere else ReplayTest.cpp runs them on the files of
/// corpus/ and found/. True when the file was taken. Code of a file is never run. What a target finds wrong,
/// beside what sanitizers see, goes to demand().
bool fuzzArtifact(
    Input file); ///< the runtime: open, create a session, use its tensors; what `ortc run` reads of it
bool fuzzInspect(Input file);     ///< `ortc verify` and `ortc inspect`
bool fuzzManifest(Input file);    ///< what tools read in the manifest of an artifact
bool fuzzCheckpoint(Input file);  ///< into a session of a small artifact
bool fuzzOnnx(Input file);        ///< the checker of models, without MLIR
bool fuzzImport(Input file);      ///< the same into MLIR, and legalised for training and for evaluation
bool fuzzNpz(Input file);         ///< a data file; every array in it
bool fuzzNpy(Input file);         ///< one array
bool fuzzIdx(Input file);         ///< a data file, plain or gzipped
bool fuzzSafetensors(Input file); ///< a data file; every array in it
bool fuzzTar(Input file);         ///< a data file; every array in it
bool fuzzTable(Input file);       ///< CSV as a data file; every array in it, and one of all columns
bool fuzzTokens(Input file);      ///< a data file; both arrays
bool fuzzCsv(Input file);         ///< problems and plans of the planner; packings are solved and validated
bool fuzzTune(Input file);        ///< the file of --tune

inline void demand(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "fuzz target: %s\n", what);
  std::abort();
}

inline std::string_view asText(Input file) {
  return {reinterpret_cast<const char *>(file.data()), file.size()};
}

/// Reads every byte.
inline void touch(const void *data, size_t bytes) {
  volatile uint8_t sum = 0;
  for (size_t i = 0; i < bytes; ++i)
    sum = uint8_t(sum + static_cast<const uint8_t *>(data)[i]);
}

/// A file in memory, for what opens paths.
class MemoryFile {
public:
  explicit MemoryFile(Input contents);
  ~MemoryFile();
  MemoryFile(const MemoryFile &) = delete;
  MemoryFile &operator=(const MemoryFile &) = delete;
  const std::string &getPath() const { return path; }

private:
  int descriptor;
  std::string path;
};

} // namespace ortc::fuzz
