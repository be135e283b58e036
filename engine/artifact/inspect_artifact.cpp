// What is in an artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/artifact/inspect_artifact.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "compiler/artifact/ArtifactReader.h"
#include "compiler/report/MemoryText.h"
#include "engine/artifact/artifact_path.h"
#include "engine/artifact/count_launches.h"
#include "engine/artifact/sign_artifact.h"
#include "support/FormatNames.h"
#include "support/Json.h"
#include "support/MappedFile.h"
#include "support/Plural.h"
#include "support/Printable.h"
#include "support/Text.h"

namespace ortc::engine {

using Json = nlohmann::ordered_json;

/// Messages about the file itself name it already.
static Status fail(const std::string &file, const Status &why) {
  const std::string &message = why.getMessage();
  std::string text = message.find(file) != std::string::npos ? message : file + ": " + message;
  return why.getCode() == ExitCode::Refused ? Status::refusal(text) : Status::failure(text);
}

static void printRow(const char *key, const std::string &text) {
  std::printf("%-10s %s\n", key, makePrintable(text).c_str());
}

static std::string getText(const Json &from, const char *key) {
  return from.is_object() && from.contains(key) && from[key].is_string() ? from[key].get<std::string>() : "";
}

/// "default (batch=64)": dimensions stand in the manifest only.
static std::string describeBinding(const Json &manifest, const std::string &name) {
  std::string text = name, dimensions;
  if (!manifest.is_object() || !manifest.contains("bindings"))
    return text;
  for (const Json &binding : manifest["bindings"])
    if (getText(binding, "name") == name && binding.contains("dimensions"))
      for (const auto &[dimension, size] : binding["dimensions"].items())
        dimensions += (dimensions.empty() ? "" : ", ") + dimension + "=" + size.dump();
  return dimensions.empty() ? text : text + " (" + dimensions + ")";
}

static void printTensor(const artifact::Tensor &tensor) {
  std::string shape = "[";
  int64_t count = 1;
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    shape += (i ? ", " : "") + std::to_string(tensor.dims[i]);
    count *= tensor.dims[i];
  }
  uint32_t element = artifact::elementBytes(tensor.dtype);
  bool isDense = tensor.strides.empty() || tensor.strides == artifact::denseStrides(tensor.dims, element);
  std::printf("  %-9s  %-40s %-8s %-22s %10s%s\n", getTensorRoleName(tensor.role),
              makePrintable(tensor.name).c_str(), artifact::dtypeName(tensor.dtype), (shape + "]").c_str(),
              formatBytes(uint64_t(count) * element).c_str(), isDense ? "" : "  permuted");
}

/// A value of the manifest in a row: elements with blanks between, members as `key=value`.
static std::string describe(const Json &value) {
  if (value.is_string())
    return value;
  if (!value.is_structured())
    return value.dump();
  std::string text;
  for (const auto &[key, each] : value.items())
    text += (text.empty()        ? ""
             : value.is_object() ? ","
                                 : " ") +
            (value.is_object() ? key + "=" : "") + describe(each);
  return text;
}

/// Prints the flags that belong to updates, as the manifest has them.
static void printUpdate(const Json &optimizer) {
  if (!optimizer.is_object())
    return;
  for (const char *key : {"groups", "no_decay", "accumulate", "accumulate_by", "schedule", "clip_norm",
                          "clip_value", "regularize", "masks", "ema", "swa", "step_outputs"})
    if (auto found = optimizer.find(key); found != optimizer.end())
      printRow(key, describe(*found));
}

/// Prints what only the manifest says: model, loss, optimizer, and what is not trained.
static void printManifest(const Json &manifest) {
  if (!manifest.is_object())
    return;
  if (std::string name = getText(manifest, "name"); !name.empty())
    printRow("name", name + "  (" + getText(manifest, "generator") + ")");
  if (manifest.contains("flags"))
    for (const char *flag : {"loss", "optimizer"})
      if (std::string text = getText(manifest["flags"], flag); !text.empty())
        printRow(flag, text);
  if (manifest.contains("optimizer"))
    printUpdate(manifest["optimizer"]);
  if (manifest.contains("trained"))
    printRow("trained", formatCount(int64_t(manifest["trained"].size()), "tensor"));
  if (manifest.contains("marks"))
    for (const auto &[mark, values] : manifest["marks"].items())
      printRow(mark.c_str(), values.dump());
  if (manifest.contains("frozen"))
    for (const Json &frozen : manifest["frozen"])
      printRow("frozen", getText(frozen, "name") + ": " + getText(frozen, "reason"));
}

/// What the manifest says of an entry's memory plan; null when it says nothing.
static const Json *findMemory(const Json &manifest, const std::string &entry) {
  if (manifest.is_object() && manifest.contains("entries"))
    for (const Json &each : manifest["entries"])
      if (getText(each, "name") == entry && each.contains("memory"))
        return &each["memory"];
  return nullptr;
}

/// ", 94 launches" on GPUs; their numbers where its codes differ.
static std::string describeLaunches(const artifact::Artifact &artifact, const artifact::Entry &entry) {
  std::set<uint64_t> counts;
  for (size_t i = 0; i < artifact.codes.size(); ++i)
    if (entry.target == ORTC_NONE || entry.target == i)
      if (auto count = countLaunches(artifact.codes[i], entry.role, entry.binding))
        counts.insert(*count);
  std::string text;
  for (uint64_t count : counts)
    text += (text.empty() ? ", " : " or ") + std::to_string(count);
  return text.empty() ? "" : text + (counts == std::set<uint64_t>{1} ? " launch" : " launches");
}

Status inspectArtifact(const std::string &path) {
  std::string file;
  ORTC_TRY(findArtifactFile(path, file));
  Expected<artifact::ArtifactFile> read = artifact::readArtifactFile(file);
  if (!read)
    return fail(file, read.getStatus());
  const artifact::Artifact &artifact = read->artifact;
  Json manifest = parseJson<Json>(artifact.manifest);
  printRow("file", file + ", " + formatBytes(read->bytes) + ", format " + std::to_string(read->major) + "." +
                       std::to_string(read->minor));
  printRow("artifact", read->digest);
  printRow("model", read->model);
  printManifest(manifest);
  for (const std::string &binding : artifact.bindings)
    printRow("binding", describeBinding(manifest, binding));
  printRow("memory", "persistent " + formatBytes(artifact.persistentBytes) + ", constants " +
                         formatBytes(artifact.constants.size()) + ", inputs and outputs " +
                         formatBytes(read->ioBytes) + ", at most " +
                         formatCount(artifact.maxWorkers, "worker"));
  for (const artifact::Code &code : artifact.codes)
    printRow("target", code.name + ", " + formatBytes(code.bytes.size()) + " of code" +
                           (code.architecture == ORTC_ARCH_PTX      ? " for GPUs of NVIDIA"
                            : code.architecture == ORTC_ARCH_AMDGPU ? " for GPUs of AMD"
                                                                    : ""));
  for (const artifact::Entry &entry : artifact.entries) {
    std::string target = entry.target == ORTC_NONE || entry.target >= artifact.codes.size()
                             ? "all targets"
                             : artifact.codes[entry.target].name;
    printRow("entry", entry.name + ", " + target + ": transient " +
                          formatBytes(entry.fixedBytes + artifact.maxWorkers * entry.workerBytes) +
                          describeLaunches(artifact, entry));
    std::fputs(report::describeStack(manifest, entry.name).c_str(), stdout);
    if (const Json *memory = findMemory(manifest, entry.name))
      std::fputs(report::describePlan(*memory).c_str(), stdout);
  }
  std::printf("tensors\n");
  for (const artifact::Tensor &tensor : artifact.tensors)
    if (tensor.role != ORTC_ROLE_GRADIENT && tensor.role != ORTC_ROLE_LOSS)
      printTensor(tensor);
  std::printf("sections\n");
  for (const artifact::SectionReport &section : read->sections)
    std::printf("  %-12s %-14s %10s  %s\n", section.kindName.c_str(), makePrintable(section.name).c_str(),
                formatBytes(section.bytes).c_str(), section.sha256.c_str());
  return Status();
}

/// Digests tell a damaged file from a whole one, not whose it is.
static std::string describeUnchecked(const artifact::Bytes &signature) {
  return signature.empty() ? "; it has no signature, so nothing says whose it is"
                           : "; its signature was not checked, which takes --public-key FILE";
}

Status verifyArtifact(const std::string &path, const std::string &publicKey, bool quiet) {
  PublicKey key{};
  if (!publicKey.empty())
    ORTC_TRY(readPublicKey(publicKey).moveTo(key));
  std::string file;
  ORTC_TRY(findArtifactFile(path, file));
  std::vector<artifact::SectionReport> sections;
  Expected<artifact::ArtifactFile> read = artifact::readArtifactFile(file, &sections);
  if (!quiet)
    for (const artifact::SectionReport &section : sections)
      std::printf("%s  %-12s %-14s %10s  %s\n", section.ok ? "ok " : "BAD", section.kindName.c_str(),
                  makePrintable(section.name).c_str(), formatBytes(section.bytes).c_str(),
                  section.sha256.c_str());
  if (!read)
    return fail(file, read.getStatus());
  // The manifest beside the artifact is a copy; a different one would mislead.
  std::filesystem::path beside = std::filesystem::path(file).parent_path() / "manifest.json";
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored) && std::filesystem::exists(beside, ignored)) {
    ORTC_TRY(checkRegularFile(beside.string()));
    std::ostringstream text;
    text << std::ifstream(beside, std::ios::binary).rdbuf();
    if (text.str() != read->artifact.manifest)
      return Status::failure(beside.string() + ": differs from the manifest in the artifact");
  }
  if (!publicKey.empty())
    if (Status status = checkSignature(*read, key); !status.isOk())
      return fail(file, status);
  if (!quiet)
    std::printf(
        "%s: %s, all digests are right%s\n", makePrintable(file).c_str(),
        formatCount(int64_t(read->sections.size()), "section").c_str(),
        (publicKey.empty() ? describeUnchecked(read->artifact.signature) : ", signed by " + formatKey(key))
            .c_str());
  return Status();
}

} // namespace ortc::engine
