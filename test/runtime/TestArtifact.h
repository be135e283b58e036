// A small artifact with real code (steps.c), and RAII around the runtime's handles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "compiler/artifact/ArtifactWriter.h"
#include "ortc/ortc.h"

namespace ortc::test {

using artifact::Artifact;
using artifact::Bytes;

/// Indices in the test artifact's tensor table.
enum TestTensor { kW, kMomentum, kStep, kRate, kShift, kX, kLabel, kY, kGradient, kLoss };

/// y = x w^T with w [2, 3] stored transposed, momentum, a step counter and a learning rate; batch 4 in
/// binding "batch" (train, eval, predict, gradients, update), batch 1 in binding "single" (predict, eval).
Artifact makeArtifact();
/// Its file; fails the test when it cannot be written.
Bytes makeFile(const Artifact &artifact = makeArtifact());
/// Writes it to `path` with a manifest that says what the loss is made of, as hosts need it.
void writeTestArtifact(const std::string &path);
/// The contents of a file.
Bytes readFile(const std::string &path);
void writeFile(const std::string &path, const Bytes &bytes);

/// A copy at an aligned address.
class AlignedBytes {
public:
  explicit AlignedBytes(const Bytes &bytes)
      : size(bytes.size()), memory(std::aligned_alloc(64, (bytes.size() + 127) / 64 * 64), std::free) {
    if (size)
      std::memcpy(memory.get(), bytes.data(), size);
  }
  void *data() const { return memory.get(); }
  const size_t size;

private:
  std::unique_ptr<void, void (*)(void *)> memory;
};

struct CloseProgram {
  void operator()(ortc_program *program) const { ortc_program_close(program); }
};
struct DestroySession {
  void operator()(ortc_session *session) const { ortc_session_destroy(session); }
};
using ProgramHandle = std::unique_ptr<ortc_program, CloseProgram>;
using SessionHandle = std::unique_ptr<ortc_session, DestroySession>;

/// An open program with its file in memory.
struct OpenProgram {
  explicit OpenProgram(const Bytes &file, const ortc_host *host = nullptr);
  AlignedBytes image;
  ortc_status status;
  ortc_message message{};
  ProgramHandle program;
};

SessionHandle makeSession(const ortc_program *program, const ortc_session_options *options = nullptr);

/// Batch `seed` of the training data, written into the session.
struct Batch {
  float x[4][3];
  int64_t label[4];
};
Batch makeBatch(unsigned seed);
void writeBatch(ortc_session *session, unsigned seed);
/// One training step on batch `seed`; its loss.
double trainOn(ortc_session *session, unsigned seed);
/// Everything a checkpoint keeps, as bytes.
Bytes stateOf(ortc_session *session);

/// A folder of this test's own, emptied.
std::string makeFolder(const std::string &name);

} // namespace ortc::test
