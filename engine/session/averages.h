// Averages of parameters in place of these.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "engine/session/session.h"

namespace ortc::engine {

/// `--weights`: refuses what is no kind of averages. "" stands for the parameters themselves.
Status checkWeightsName(const std::string &name);

/// Copies the averages of a kind ("ema", "swa") that a session has to the parameters that they are of, one after the
/// other; "" copies nothing. Refuses where the artifact has none, or nothing was averaged yet.
Status takeAverages(const Artifact &artifact, Session &session, const std::string &kind);

/// Averages in place of parameters for a while: of an evaluation within a training. It takes memory for the parameters.
class AveragesInPlace {
public:
  /// Does nothing for "", and where nothing was averaged yet.
  Status take(const Artifact &artifact, Session &session, const std::string &kind);
  /// The parameters as they were.
  Status giveBack(Session &session);
  bool isTaken() const { return !kept.empty(); }

private:
  std::vector<std::pair<std::string, std::vector<uint8_t>>> kept;
};

/// Whether the artifact keeps averages of a kind.
bool hasAverages(const Artifact &artifact, const std::string &kind);

/// How many times parameters have been averaged, of a kind that the artifact keeps.
Status countAveraged(Session &session, const std::string &kind, double &count);

/// Refuses where the artifact keeps no averages of a kind; "" stands for the parameters.
Status checkAverages(const Artifact &artifact, const std::string &flag, const std::string &kind);

} // namespace ortc::engine
