// What a checkpoint has and an artifact lacks, or the other way round.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/checkpoint_facts.h"

#include <functional>
#include <vector>

#include "host/kernel_table.h"
#include "host/text.h"

namespace ortc::host {

/// Whether checkpoints hold it.
static bool isKept(const ortc_tensor_info &tensor) {
  return tensor.role == ORTC_ROLE_PARAMETER || tensor.role == ORTC_ROLE_STATE ||
         tensor.role == ORTC_ROLE_SCALAR;
}

static bool isOptimizerState(const ortc_tensor_info &tensor) {
  return tensor.role == ORTC_ROLE_STATE && !(tensor.flags & ORTC_TENSOR_IN_MODEL);
}

static void visitTensors(const ortc_program *program,
                         const std::function<void(const ortc_tensor_info &)> &visit) {
  ortc_tensor_info tensor{};
  tensor.size = sizeof(tensor);
  for (uint32_t i = 0; ortc_tensor_get(program, i, &tensor) == ORTC_OK; ++i)
    visit(tensor);
}

static std::string explainMissing(const ortc_program *program, const DataSource &checkpoint) {
  bool lacksOther = false;
  visitTensors(program, [&](const ortc_tensor_info &tensor) {
    lacksOther |= isKept(tensor) && tensor.role != ORTC_ROLE_SCALAR && !isOptimizerState(tensor) &&
                  !checkpoint.has(tensor.name);
  });
  return lacksOther ? "; it was saved with another model, or with other tensors trained (--train, --freeze)"
                    : "; it has the state of another optimizer: compile with the --optimizer and the "
                      "--accumulate that it was saved with, or load a file with weights alone";
}

/// The first tensor that does not fit.
static std::string explainShape(const ortc_program *program, const DataSource &checkpoint) {
  for (const std::string &name : checkpoint.getNames()) {
    ortc_tensor_info tensor{};
    tensor.size = sizeof(tensor);
    if (ortc_tensor_find(program, name.c_str(), &tensor) != ORTC_OK || !isKept(tensor))
      continue;
    Array array;
    if (Status status = checkpoint.describe(name, array); !status.isOk())
      return status.getMessage();
    auto type = static_cast<DataType>(tensor.dtype);
    Shape shape(tensor.dims, tensor.dims + tensor.rank);
    if (array.type == type && array.shape == shape)
      continue;
    return checkpoint.getPath() + ": '" + name + "' is " + getTypeName(array.type) + " " +
           formatShape(array.shape) + ", but the artifact needs " + getTypeName(type) + " " +
           formatShape(shape) +
           (array.shape != shape
                ? "; it was saved with another model"
                : "; compile with the --precision and --parameters that it was saved with, or "
                  "export it and compile the model that this writes");
  }
  return "";
}

std::string explainRefusal(const ortc_program *program, const DataSource &checkpoint, ortc_status status,
                           const std::string &message) {
  if (status == ORTC_E_NOT_FOUND)
    return message + explainMissing(program, checkpoint);
  std::string shapes = status == ORTC_E_SHAPE ? explainShape(program, checkpoint) : "";
  return shapes.empty() ? message : shapes;
}

std::string describeUnused(const ortc_program *program, const DataSource &checkpoint) {
  std::vector<std::string> unused;
  bool hasState = false;
  for (const std::string &name : checkpoint.getNames()) {
    ortc_tensor_info tensor{};
    tensor.size = sizeof(tensor);
    if (ortc_tensor_find(program, name.c_str(), &tensor) == ORTC_OK && isKept(tensor))
      continue;
    unused.push_back("'" + name + "'");
    // State is named after the parameter that it belongs to, which may have dots of its own.
    size_t dot = name.rfind('.');
    hasState |= dot != std::string::npos && checkpoint.has(name.substr(0, dot));
  }
  if (!hasState)
    return "";
  return checkpoint.getPath() + ": the artifact has no use for " +
         formatCount(int64_t(unused.size()), "tensor") + " of it (" + joinNames(unused, 3) +
         "); optimizer state and gradients that wait for an update are dropped with " +
         (unused.size() == 1 ? "it" : "them");
}

Scalars readScalars(const ortc_program *program, ortc_session *session) {
  Scalars scalars;
  visitTensors(program, [&](const ortc_tensor_info &tensor) {
    double value = 0;
    if (tensor.role == ORTC_ROLE_SCALAR && std::string(tensor.name) != "lr" &&
        ortc_get_scalar(session, tensor.name, &value) == ORTC_OK)
      scalars[tensor.name] = value;
  });
  return scalars;
}

std::string describeChanges(const std::string &path, const Scalars &before, const Scalars &after) {
  std::vector<std::string> changes;
  for (const auto &[name, value] : after)
    if (auto found = before.find(name); found != before.end() && found->second != value)
      changes.push_back(name + " " + formatNumber(value) + " instead of " + formatNumber(found->second));
  return changes.empty() ? "" : path + ": its values replace those of the artifact: " + joinNames(changes, 8);
}

} // namespace ortc::host
