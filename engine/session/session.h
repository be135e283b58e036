// A session of the runtime with its buffers, threads and checkpoints.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <map>

#include "engine/artifact/artifact.h"
#include "engine/data/feeder.h"

struct ortc_pool;

namespace ortc::engine {

/// Strings by key, kept in a checkpoint.
using Metadata = std::map<std::string, std::string>;

/// How a session runs its steps.
struct SessionOptions {
  uint32_t threads = 0; ///< 0: as many as the artifact allows and the machine has
  bool stopOnNotFinite = false;
  ortc_trace_fn trace = nullptr; ///< called around every kernel
  void *traceContext = nullptr;
};

/// What loading a checkpoint found.
struct LoadResult {
  bool freshState = false; ///< the file had weights alone
  uint32_t loaded = 0, ignored = 0;
  Metadata metadata;
  std::string unused; ///< says what of a folder of PEFT's is not loaded; "" where all is
  std::vector<std::string>
      notes; ///< what a training that goes on should say: values that it replaces, state that is dropped
};

/// Refuses what a training cannot go on from.
using CheckMetadata = std::function<Status(const Metadata &metadata)>;

/// Reads what Session::feed() takes.
Status fill(const Batches &batches, int64_t slice, const Order *order, Feed &feed);

/// Does a step of a binding in a session of somebody else's: a guard around it, say. Gives what the step gives.
/// `writes`: the step writes its inputs to the session first.
using PerformStep =
    std::function<ortc_status(uint32_t binding, bool writes, const std::function<ortc_status()> &step)>;

/// One session; the artifact must outlive it. Inputs and outputs live in buffers of this class, one for each
/// name and binding, which all entries of the binding share.
class Session {
public:
  static Status create(const Artifact &artifact, const SessionOptions &options, Session &session);
  /// Over a session that somebody else keeps, and what is bound to it. Inputs are written to it before every step,
  /// outputs are read when they are asked for.
  static void adopt(const Artifact &artifact, ortc_session *shared, PerformStep perform, Session &session);
  Session();
  ~Session();
  Session(Session &&) noexcept;
  Session &operator=(Session &&) noexcept;

  ortc_session *get() const { return session.get(); }
  uint32_t getThreads() const { return threads; }

  /// Fills the inputs of an entry with slice k of the data, cut where they are smaller than those the data are for.
  Status feed(const Entry &entry, const Batches &batches, int64_t slice, const Order *order);
  /// The same from what was read ahead.
  Status feed(const Feed &feed);
  /// Says that whoever keeps the session has given it the inputs of the next steps of an entry.
  void accept(const Entry &entry);
  /// Runs an entry. `loss` is NaN where it has none. On failure `status` tells what the runtime said.
  Status step(const Entry &entry, double &loss, ortc_status *status = nullptr);
  /// What the runtime said of the last step or checkpoint.
  ortc_status getStatus() const { return told; }
  void clearStatus() { told = ORTC_OK; }
  /// The buffer of an input or output.
  Status getBuffer(const Entry &entry, const std::string &name, uint8_t *&data);
  /// A view of an input or output; its type is None when the entry has no value of that name.
  TensorView view(const Entry &entry, const std::string &name);

  /// A checkpoint, or a folder of PEFT's with adapters for all that the artifact has. `check` sees the metadata of a
  /// checkpoint before anything changes.
  Status load(const std::string &path, LoadResult &result, const CheckMetadata &check = nullptr);
  Status save(const std::string &path, const Metadata &metadata);
  Status getScalar(const std::string &name, double &value);
  Status setScalar(const std::string &name, double value);

private:
  struct State;
  using Destroy = Release<ortc_session_destroy>;
  struct DestroyPool {
    void operator()(ortc_pool *pool) const;
  };
  Status use(const Entry &entry);
  ortc_status giveInputs(const Entry &entry);
  ortc_status call(const Entry &entry, double &loss);
  Status fail(const std::string &what, ortc_status status) const;
  Status checkScalars(const std::string &path);
  Status loadPeftFolder(const std::string &folder, LoadResult &result);
  Status loadAdapter(const DataSource &source, const std::string &name);

  const Artifact *artifact = nullptr;
  uint32_t threads = 1;
  std::unique_ptr<ortc_pool, DestroyPool> pool; // outlives the session below
  std::unique_ptr<ortc_session, Destroy> session;
  std::unique_ptr<State> state;
  PerformStep perform; ///< empty: the session is this object's own
  ortc_status told = ORTC_OK;
};

} // namespace ortc::engine
