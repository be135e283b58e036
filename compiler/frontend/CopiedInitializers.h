// One parameter in several initializers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Folding writes a weight that several operations read once for each of them: bitwise equal, transposed or
// reshaped, under names that the exporter makes up. And it merges what is equal by chance: the weights of
// fresh norms, of copied layers.
#pragma once

#include "compiler/frontend/EqualTensors.h"
#include "compiler/frontend/InitializerGraph.h"

#include <string>
#include <vector>

namespace ortc::frontend {

/// An initializer that is a view of another one.
struct FoundCopy {
  std::string copy, original;
  TensorView view;
  bool isFolded = false; ///< the file says so; else the elements do
};

/// What initializers of equal elements turn out to be.
struct FoundCopies {
  std::vector<FoundCopy> same;    ///< one parameter
  std::vector<FoundCopy> perhaps; ///< nothing in the file tells, and the elements may be equal by chance
};

/// Which copies with made-up names are the parameters that they are equal to. What the file says decides: the
/// parameters that a value was folded from, and the modules in the names of nodes ("/layers.0/fc/MatMul").
/// Where it says nothing, elements that look drawn at random do. Costs a few passes over the tensors of which
/// another one has the type, the size and both ends: what would take longer is left apart.
FoundCopies findCopies(const InitializerGraph &g);

/// Identity nodes with made-up names that stand for a parameter of another module of the model, in order.
std::vector<int> findMergedCopies(const InitializerGraph &g);

} // namespace ortc::frontend
