// What a checkpoint has and an artifact lacks, or the other way round.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/session/checkpoint_facts.h"

#include <algorithm>
#include <functional>
#include <set>
#include <vector>

#include "engine/session/tensor_roles.h"
#include "support/Json.h"
#include "support/Lists.h"
#include "support/Text.h"

namespace ortc::engine {

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
  ortc_tensor_info tensor = ORTC_INIT(ortc_tensor_info);
  for (uint32_t i = 0; ortc_tensor_get(program, i, &tensor) == ORTC_OK; ++i)
    visit(tensor);
}

/// States of the quantisers of --qat: ranges, and what is added to scales.
static std::set<std::string> listQuantizerStates(const Artifact &artifact) {
  std::set<std::string> states;
  nlohmann::json parsed = parseJson(artifact.getManifest());
  if (!parsed.is_object() || !parsed.contains("quantizers") || !parsed["quantizers"].is_array())
    return states;
  for (const nlohmann::json &item : parsed["quantizers"])
    for (const char *key : {"minimum", "maximum", "scale_offset"})
      if (item.is_object() && item.contains(key) && item[key].is_string())
        states.insert(item[key].get<std::string>());
  return states;
}

/// Whether the name is of a factor of an adapter, as --lora makes them.
static bool isFactor(const std::string &name) {
  return name.ends_with(".lora_A.weight") || name.ends_with(".lora_B.weight") ||
         name.ends_with(".lora_embedding_A") || name.ends_with(".lora_embedding_B");
}

/// What flag the checkpoint was saved without, or with, by what the artifact has and it has not.
static std::string explainMissing(const Artifact &artifact, const DataSource &checkpoint) {
  std::set<std::string> quantizers = listQuantizerStates(artifact);
  bool lacksFactor = false, lacksRange = false, lacksModel = false, lacksState = false;
  visitTensors(artifact.getProgram(), [&](const ortc_tensor_info &tensor) {
    if (!isKept(tensor) || tensor.role == ORTC_ROLE_SCALAR || checkpoint.has(tensor.name))
      return;
    const std::string name = tensor.name;
    lacksFactor |= isFactor(name);
    lacksRange |= quantizers.count(name) > 0;
    lacksModel |= !isOptimizerState(tensor);
    lacksState |= isOptimizerState(tensor) && !name.starts_with("loss_scale");
  });
  const std::vector<std::string> &names = checkpoint.getNames();
  bool hasFactors = std::any_of(names.begin(), names.end(), isFactor);
  if (lacksFactor && !artifact.getAdapters().empty())
    return hasFactors ? "; it has adapters of other weights: compile with the --lora that it was saved with"
                      : "; it was saved without --lora: export it, and compile the model that this writes";
  if (lacksModel && hasFactors && artifact.getAdapters().empty())
    return "; it has adapters: compile with the --lora that it was saved with";
  if (lacksRange)
    return "; it was saved without --qat, or with --qat of other weights: export it, and compile the model "
           "that this writes";
  if (lacksModel)
    return "; it was saved with another model, or with other tensors trained (--train, --freeze)";
  if (!lacksState)
    return "; it was saved without --loss-scale: compile without it, or load a file with weights alone";
  return "; it has the state of another optimizer: compile with the --optimizer and the "
         "--accumulate that it was saved with, or load a file with weights alone";
}

/// Why the runtime takes a file for no checkpoint that is a good safetensors file; "" where nothing is found.
static std::string explainMalformed(const DataSource &checkpoint) {
  for (const auto &[key, value] : checkpoint.getMetadata()) {
    if (key == "ortc.format" && value == "delta-1")
      return "it is a delta; ortc merge --base BASE makes a checkpoint of it and its base";
    if (key == "ortc.format" && value != "1")
      return "its metadata has 'ortc.format' = '" + value + "', and this version reads 1";
    if (key == "ortc.checksum" && value.find_first_not_of("0123456789") != std::string::npos)
      return "its metadata has 'ortc.checksum' = '" + value + "', which is no number";
  }
  for (const std::string &name : checkpoint.getNames())
    if (size_t at = name.find('\0'); at != std::string::npos)
      return "the name that begins with '" + name.substr(0, at) +
             "' has a zero byte, which no name of a tensor has";
  return "";
}

/// The first tensor that does not fit.
static std::string explainShape(const ortc_program *program, const DataSource &checkpoint) {
  for (const std::string &name : checkpoint.getNames()) {
    ortc_tensor_info tensor = ORTC_INIT(ortc_tensor_info);
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
           ((array.type == DataType::UInt8) != (type == DataType::UInt8)
                ? "; one of both is an optimizer's state in bytes: load it with the optimizer that it was "
                  "saved with, or "
                  "export it and compile the model that this writes"
            : array.shape != shape
                ? "; it was saved with another model"
                : "; compile with the --precision and --parameters that it was saved with, or "
                  "export it and compile the model that this writes");
  }
  return "";
}

std::string explainRefusal(const Artifact &artifact, const DataSource &checkpoint, ortc_status status,
                           const std::string &message) {
  if (status == ORTC_E_NOT_FOUND)
    return message + explainMissing(artifact, checkpoint);
  if (std::string reason = status == ORTC_E_FORMAT ? explainMalformed(checkpoint) : ""; !reason.empty())
    return message + ": " + reason;
  std::string shapes = status == ORTC_E_SHAPE ? explainShape(artifact.getProgram(), checkpoint) : "";
  return shapes.empty() ? message : shapes;
}

std::string describeUnused(const ortc_program *program, const DataSource &checkpoint) {
  TensorRoles roles;
  if (!readRoles(checkpoint, roles).isOk())
    return "";
  std::vector<std::string> unused;
  bool hasState = false;
  for (const std::string &name : checkpoint.getNames()) {
    ortc_tensor_info tensor = ORTC_INIT(ortc_tensor_info);
    if (ortc_tensor_find(program, name.c_str(), &tensor) == ORTC_OK && isKept(tensor))
      continue;
    unused.push_back("'" + name + "'");
    hasState |= roles.at(name) == TensorRole::State;
  }
  if (!hasState)
    return "";
  return checkpoint.getPath() + ": the artifact has no use for " +
         formatCount(int64_t(unused.size()), "tensor") + " of it (" + joinSome(unused, 3) +
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
  return changes.empty() ? "" : path + ": its values replace those of the artifact: " + joinSome(changes, 8);
}

} // namespace ortc::engine
