// A session over the C interface, with the inputs of a zoo entry.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ortc/ortc.h"
#include "test/e2e/Tool.h"

namespace ortc::test {

using Bytes = std::vector<uint8_t>;

/// Opens the artifact in `folder`; its failures are failures of the test. One worker, or the device of `host`.
/// `flags`: enum ortc_session_flags.
class Session {
public:
  explicit Session(const std::string &folder, const ortc_host *host = nullptr, uint32_t flags = 0,
                   ortc_trace_fn trace = nullptr, void *traceContext = nullptr);
  ~Session();
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  ortc_session *get() const { return session; }
  ortc_program *getProgram() const { return program; }
  std::string message() const { return ortc_session_message(session); }

  /// Writes the `step`-th slice of every array of `source` that is an input of the binding in use.
  void writeSlice(const engine::DataSource &source, size_t step);
  /// Every parameter, state and scalar by name: what a step may change.
  std::map<std::string, Bytes> readPersistent() const;

private:
  ortc_program *program = nullptr;
  ortc_session *session = nullptr;
};

/// Whole training steps of one session, and gradients and update of the other, give the same bits after each; between
/// the two no parameter has changed.
void expectSameInTwoSegments(Session &whole, Session &cut, const engine::DataSource &data, int steps);

} // namespace ortc::test
