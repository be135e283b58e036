// A second model whose output the trained one learns.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/Model.h"

#include <functional>
#include <string>
#include <vector>

namespace ortc::frontend {

/// Puts the nodes and initializers of the teacher beside those of `model`, under names that `rename` makes, and its
/// output `output` behind the others. Inputs of the teacher are those of the model of the same names. `initializers`
/// receives the new names. The teacher computes as in inference; `random` receives the nodes of it that draw random
/// numbers all the same. Refuses, without a change, where inputs differ or where names, opsets or functions clash;
/// messages begin with `flag`.
Status addTeacher(std::shared_ptr<const Model> &model, const Model &teacher, const std::string &output,
                  const std::function<std::string(const std::string &)> &rename, const std::string &flag,
                  std::vector<std::string> &initializers, std::vector<std::string> &random);

} // namespace ortc::frontend
