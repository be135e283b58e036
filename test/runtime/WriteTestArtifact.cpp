// Writes the test artifact to the file given: for programs that need one on disk.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <filesystem>

#include "test/runtime/TestArtifact.h"

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  ortc::artifact::Bytes file = ortc::test::makeFile();
  ortc::test::writeFile(argv[1], file);
  return file.empty() || std::filesystem::file_size(argv[1]) != file.size();
}
