// An opened artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/artifact/artifact.h"

#include <algorithm>

#include "engine/artifact/artifact_path.h"
#include "engine/artifact/batch_table.h"
#include "engine/artifact/storage.h"
#include "support/FormatNames.h"
#include "support/Json.h"

namespace ortc::engine {

/// The name that the graph has for an output.
static std::string findGraphName(ortc_program *program, const std::string &name) {
  const std::string prefix = "output:";
  ortc_tensor_info other = ORTC_INIT(ortc_tensor_info);
  bool isRenamed = name.starts_with(prefix) &&
                   ortc_tensor_find(program, name.c_str() + prefix.size(), &other) == ORTC_OK &&
                   other.role != ORTC_ROLE_OUTPUT;
  return isRenamed ? name.substr(prefix.size()) : name;
}

/// Takes the values of an entry apart. A loss reads its label and inputs of its own, unless the graph computes it: then
/// a label is an input like any other.
static Status readEntry(ortc_program *program, uint32_t index, const std::vector<LossInfo> &losses,
                        const BatchTable &batches, Entry &entry) {
  auto isRead = [&](const std::string &name) {
    return std::any_of(losses.begin(), losses.end(), [&](const LossInfo &loss) { return loss.reads(name); });
  };
  auto findKind = [&](const std::string &name) {
    for (const LossInfo &loss : losses)
      if (loss.reads(name) && name == loss.label)
        return loss.kind;
    return std::string();
  };
  auto isWeight = [&](const std::string &name) {
    return std::any_of(losses.begin(), losses.end(),
                       [&](const LossInfo &loss) { return loss.findSampleWeight() == name; });
  };
  ortc_entry_info about = ORTC_INIT(ortc_entry_info);
  if (ortc_entry_get(program, index, &about) != ORTC_OK)
    return Status::failure("entry " + std::to_string(index) + " cannot be read");
  entry.role = about.role;
  entry.binding = about.binding;
  const char *binding = ortc_binding_name(program, about.binding);
  entry.bindingName = binding ? binding : "";
  entry.hasLoss = about.has_loss != 0;
  for (uint32_t i = 0; i < about.value_count; ++i) {
    ortc_tensor_info value = ORTC_INIT(ortc_tensor_info);
    if (ortc_entry_value(program, index, i, &value) != ORTC_OK)
      return Status::failure("value " + std::to_string(i) + " of entry " + std::to_string(index) +
                             " cannot be read");
    Shape shape(value.dims, value.dims + value.rank);
    std::string name = value.name ? value.name : "";
    auto type = static_cast<DataType>(value.dtype);
    std::optional<bool> isBatch =
        batches.find(entry.bindingName, name, /*isInput=*/value.role == ORTC_ROLE_INPUT);
    if (value.role == ORTC_ROLE_INPUT)
      entry.inputs.push_back({name, type, shape, isRead(name), isBatch, findKind(name), isWeight(name)});
    else if (value.role == ORTC_ROLE_OUTPUT)
      entry.outputs.push_back({name, findGraphName(program, name), type, shape, isBatch,
                               batches.findAxis(entry.bindingName, name)});
    else if (value.role == ORTC_ROLE_LOSS)
      entry.lossType = type;
  }
  return Status();
}

Status Artifact::open(const std::string &path, Artifact &artifact, const Device &device) {
  return openOn(path, artifact, device, /*mayStore=*/false);
}

Status Artifact::open(const std::string &path, Artifact &artifact) {
  return openOn(path, artifact, Device(), /*mayStore=*/true);
}

Status Artifact::openOn(const std::string &path, Artifact &artifact, const Device &device, bool mayStore) {
  ORTC_TRY(findArtifactFile(path, artifact.path));
  ortc_message message{};
  ortc_program *program = nullptr;
  ortc_host hooks = ORTC_INIT(ortc_host);
  hooks.device = device.get();
  auto openFile = [&] { return ortc_program_open_file(artifact.path.c_str(), &hooks, &program, &message); };
  ortc_status status = openFile();
  bool hasNoCode = status == ORTC_E_TARGET && message.text == std::string("no code for this processor");
  std::string explanation = hasNoCode ? explainTarget(artifact.path, device) : "";
  for (uint32_t architecture : {ORTC_ARCH_PTX, ORTC_ARCH_AMDGPU})
    if (hasNoCode && mayStore && status != ORTC_OK) {
      hooks.device = getStorage(architecture);
      status = openFile();
    }
  if (status != ORTC_OK && !explanation.empty())
    return Status::refusal(artifact.path + ": " + explanation);
  if (status != ORTC_OK)
    return Status::failure(artifact.path + ": " +
                           (message.text[0] ? message.text : ortc_status_name(status)));
  artifact.isDevice = hooks.device != nullptr;
  artifact.program.reset(program);
  return artifact.read();
}

Status Artifact::adopt(ortc_program *program, const std::string &path, bool isOnDevice, Artifact &artifact) {
  artifact = Artifact();
  artifact.path = path;
  artifact.isDevice = isOnDevice;
  artifact.program = {program, Close{true}};
  return artifact.read();
}

/// What the program says of itself.
Status Artifact::read() {
  info = ORTC_INIT(ortc_program_info);
  const void *section = nullptr;
  uint64_t bytes = 0;
  if (ortc_program_get_info(getProgram(), &info) != ORTC_OK ||
      ortc_program_section(getProgram(), ORTC_SECTION_MANIFEST, &section, &bytes) != ORTC_OK)
    return Status::failure(path + ": has no readable manifest; compile it again with ortc train");
  manifest = {static_cast<const char *>(section), bytes};
  const std::string text(manifest);
  ORTC_TRY(parseLosses(text, path, losses));
  ORTC_TRY(parseAdapters(text, path, adapters));
  auto json = parseJson<nlohmann::json>(text);
  hasWeights = !json.is_object() || !json.contains("flags") || !json["flags"].is_object() ||
               !json["flags"].contains("no_weights");
  if (auto bind = nlohmann::json::json_pointer("/flags/bind");
      json.is_object() && json.contains(bind) && json[bind].is_string())
    bound = json[bind];
  if (auto lr = nlohmann::json::json_pointer("/optimizer/schedule/lr");
      json.is_object() && json.contains(lr) && json[lr].is_string())
    ORTC_TRY(Schedule::parse(json[lr], schedule.emplace()));
  if (auto outputs = nlohmann::json::json_pointer("/optimizer/step_outputs");
      json.is_object() && json.contains(outputs) && json[outputs].is_array())
    for (const auto &name : json[outputs])
      if (name.is_string())
        stepOutputs.push_back(name);
  BatchTable batches = BatchTable::parse(text);
  entries.assign(info.entry_count, Entry());
  for (uint32_t i = 0; i < info.entry_count; ++i)
    if (Status read = readEntry(getProgram(), i, losses, batches, entries[i]); !read.isOk())
      return Status::failure(path + ": " + read.getMessage());
  return Status();
}

KernelTable Artifact::readKernels() const {
  KernelTable table = parseKernelTable(std::string(manifest));
  std::vector<KernelFacts> known = std::move(table.kernels);
  table.kernels.clear();
  for (uint32_t i = 0; const char *name = ortc_kernel_name(program.get(), i); ++i) {
    bool isKnown = i < known.size() && known[i].name == name;
    table.kernels.push_back(isKnown ? std::move(known[i]) : KernelFacts());
    table.kernels.back().name = name;
  }
  return table;
}

Status Artifact::findEntry(uint32_t role, const std::string &binding, const Entry *&entry) const {
  ORTC_TRY(checkBound(role == ORTC_ENTRY_GRADIENTS));
  if (!binding.empty() && ortc_binding_find(program.get(), binding.c_str()) == ORTC_NONE) {
    std::string names;
    for (uint32_t i = 0; const char *name = ortc_binding_name(program.get(), i); ++i)
      names += (i ? ", '" : "'") + std::string(name) + "'";
    return Status::refusal(path + ": has no binding '" + binding + "'; it has " + names);
  }
  for (const Entry &candidate : entries) {
    if (candidate.role == role && (binding.empty() || candidate.bindingName == binding)) {
      entry = &candidate;
      return Status();
    }
  }
  std::string what = path + ": has no " + getEntryRoleName(role) + " entry" +
                     (binding.empty() ? "" : " in binding '" + binding + "'");
  if (losses.front().isNone)
    return Status::refusal(what + ": it was compiled with " +
                           (std::any_of(entries.begin(), entries.end(),
                                        [](const Entry &entry) { return entry.role == ORTC_ENTRY_FORWARD; })
                                ? "--cotangents, for hosts with a loss of their own"
                                : "--loss none") +
                           "; compile it with a loss");
  if (role == ORTC_ENTRY_GRADIENTS || role == ORTC_ENTRY_UPDATE)
    return Status::refusal(what + "; compile it with --gradients");
  return Status::refusal(what + "; compile it again");
}

Status Artifact::checkWeights() const {
  return hasWeights
             ? Status()
             : Status::refusal(path + ": was compiled with --no-weights; give --load FILE, which has them");
}

Status Artifact::checkBound(bool givesGradients) const {
  const char *what = bound.find("parameters") != std::string::npos                    ? "parameters"
                     : givesGradients && bound.find("gradients") != std::string::npos ? "gradients"
                                                                                      : nullptr;
  return what ? Status::refusal(path + ": was compiled with --bind " + bound + ": its " + what +
                                " lie in memory of a program that binds them (C: ortc_bind, or Python), and "
                                "commands of ortc have none; compile it without --bind for them")
              : Status();
}

const Entry *Artifact::findEntry(uint32_t role, uint32_t binding) const {
  for (const Entry &candidate : entries)
    if (candidate.role == role && candidate.binding == binding)
      return &candidate;
  return nullptr;
}

const Entry *Artifact::findEntryBeside(uint32_t role, const Entry &beside) const {
  if (const Entry *found = findEntry(role, beside.binding))
    return found;
  auto other =
      std::find_if(entries.begin(), entries.end(), [&](const Entry &entry) { return entry.role == role; });
  return other == entries.end() ? nullptr : &*other;
}

} // namespace ortc::engine
