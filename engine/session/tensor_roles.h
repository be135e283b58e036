// The role of each tensor of a checkpoint.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <string>

#include "engine/data/data_source.h"
#include "support/Status.h"

namespace ortc::engine {

/// The part that a tensor has in training.
enum class TensorRole { // in the order of ORTC_SAVED_ROLES
  Parameter,            ///< trained
  State,  ///< what optimizers, averages, loss scales and waiting gradients keep from step to step
  Scalar, ///< a hyper-parameter
  Buffer  ///< a tensor of the model that steps change and nothing trains: running statistics
};

/// In front of a tensor's name, the key of its role in the metadata; parameters have none.
inline constexpr char kRoleKey[] = "ortc.role.";

/// "parameter", "buffer", "state" or "scalar".
const char *getRoleName(TensorRole role);

/// Roles by the names of tensors.
using TensorRoles = std::map<std::string, TensorRole>;

/// The roles of all tensors of a checkpoint. Fails for one that is unknown. A file whose metadata have none, from
/// before they did or of another tool, is judged by names and shapes: a float64 number without dimensions is a scalar;
/// "loss_scale", and what is named after another tensor ("NAME.exp_avg") and fits its shape, is a state.
Status readRoles(const DataSource &checkpoint, TensorRoles &roles);

} // namespace ortc::engine
