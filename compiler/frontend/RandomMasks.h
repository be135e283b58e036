// Dropout that a graph writes as its formula.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A graph that was exported in training mode may draw a mask itself: a uniform number below a threshold, the floor of
// one, a Bernoulli number. It is dropout by what is computed with it, however that is written: where the mask keeps a
// value x, the result is a x + b, elsewhere a number c, and
//
//   a = 1 / P(keep), b = c = 0                        dropout, of elements, channels, samples: the mean stays x
//   the mean and the variance of a standard normal x stay 0 and 1    alpha dropout
//   a = 1, b = c = 0                                  the same without a scale, as stochastic depth has it
//
// In inference all of them are x. A slope of PRelu that is drawn, a randomised leaky ReLU, has its mean there.
#pragma once

#include "compiler/frontend/ValueGraph.h"

#include <functional>
#include <optional>

namespace ortc::frontend {

/// A node whose result is, in inference, another value of the graph.
struct RandomMask {
  int node;                               ///< of the ValueGraph; its first output is meant
  int signal;                             ///< the value
  const proto::NodeProto *cast = nullptr; ///< a Cast, CastLike or Detach that stands between the two
  bool isScaled = true;
};

/// A node that draws uniform numbers, which are their mean in inference.
struct RandomSlope {
  int node;
  double mean;
};

struct RandomMasks {
  std::vector<RandomMask> masks;
  std::vector<RandomSlope> slopes;
  std::vector<int> others; ///< nodes that draw for something else, and that outputs need
};

/// The number that all elements of a constant are; nullopt where they differ, or where it is none.
using ReadNumber = std::function<std::optional<double>(const proto::TensorProto &)>;

/// Whether a node of any graph or function of the model draws random numbers, dropout aside.
bool drawsNumbers(const proto::ModelProto &model);

/// Finds them in one graph or function. O(nodes).
RandomMasks findRandomMasks(const ValueGraph &graph, const ReadNumber &read);

} // namespace ortc::frontend
