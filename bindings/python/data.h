// Arrays and functions of Python as what the engine reads: data, batches that come one after the other, metrics.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <exception>
#include <memory>
#include <nanobind/nanobind.h>
#include <string>

#include "bindings/python/session.h"
#include "engine/training/trainer.h"

namespace ortc::python {

/// The exception of a function of Python that the engine has called. The engine only knows of a failure; whoever has
/// called the engine raises it again.
class Pending {
public:
  /// Calls a function that may throw; keeps what it throws.
  template <typename Function> Status run(Function function) {
    try {
      function();
      return Status();
    } catch (...) {
      if (!exception)
        exception = std::current_exception();
      return Status::failure("a function of Python has failed");
    }
  }
  /// Whether it is one that nobody handles but who has called: KeyboardInterrupt, SystemExit.
  bool isExit() const;
  /// Throws it, where there is one.
  void raise();

private:
  std::exception_ptr exception;
};

/// Arrays by name, which stay where they are and are kept. `path` begins messages. Raises ShapeError for what is no
/// array of numbers.
std::unique_ptr<engine::DataSource> makeSource(const std::string &path, const nanobind::dict &arrays);

/// Batches by name, which a function of an epoch's number gives an iterator of. They are read in place. Somebody else
/// keeps the function.
class Stream : public engine::BatchStream {
public:
  Stream(nanobind::handle begin, Session &session, const engine::Artifact &artifact, Pending &pending)
      : function(begin), own(session), artifact(artifact), pending(pending) {}

  Status begin(int64_t epoch) override;
  Status next(engine::Session &session, uint32_t role, const engine::Entry *&entry) override;
  /// The slices of an evaluation.
  std::unique_ptr<engine::SliceSource> makeSlices(int64_t epoch);

private:
  nanobind::handle function;
  nanobind::object batches;
  Session &own;
  const engine::Artifact &artifact;
  Pending &pending;
};

/// A function from outputs and inputs of a batch, dicts of arrays, to a sum and a count; what an evaluation computes is
/// the quotient of both over all batches. Somebody else keeps the function.
std::shared_ptr<engine::SliceMetric> makeMetric(nanobind::handle function, const engine::Artifact &artifact,
                                                const engine::Entry &entry, Pending &pending);

} // namespace ortc::python
