// The screen that `ortc train` ends with.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/report/Manifest.h"
#include "support/Lists.h"
#include "support/Plural.h"
#include "support/Printable.h"
#include "support/Text.h"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>

namespace ortc::report {

/// "1.38 M".
static std::string humanCount(double value) {
  const char *units[] = {" ", " k", " M", " G", " T"};
  int unit = 0;
  while (value >= 1000 && unit < 4) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f%s" : "%.2f%s", value, units[unit]);
  return text;
}

static int64_t elements(const artifact::Tensor &tensor) {
  int64_t count = 1;
  for (int64_t size : tensor.dims)
    count *= size;
  return count;
}

static std::string joinNames(const std::vector<std::string> &names, size_t most) {
  std::string list;
  for (size_t i = 0; i < names.size() && i < most; ++i)
    list += (i ? ", " : "") + names[i];
  return names.size() > most ? list + ", ... (" + std::to_string(names.size()) + " tensors)" : list;
}

/// How much is trained, and what makes the difference to the file: what is frozen for which reason, and what
/// was shared anew.
static void describeTrained(const CompileFacts &facts, const artifact::Artifact &artifact,
                            const std::function<void(const char *, const std::string &)> &line) {
  int64_t parameters = 0, trained = 0, frozen = 0;
  int64_t inPart = 0; // what stays of tensors that are trained
  std::vector<std::string> single, still;
  for (const artifact::Tensor &tensor : artifact.tensors)
    if (tensor.role == ORTC_ROLE_PARAMETER || tensor.flags & ORTC_TENSOR_TRAINED) {
      parameters += elements(tensor);
      ++trained;
      if (auto part = facts.trainedInPart.find(tensor.name); part != facts.trainedInPart.end()) {
        still.push_back(tensor.name);
        inPart += elements(tensor) - part->second;
      }
      if (elements(tensor) == 1)
        single.push_back(tensor.name);
    }
  struct Group {
    std::vector<std::string> names;
    int64_t values = 0;
  };
  std::map<std::string, Group> reasons;
  for (const legalize::InitializerReport &item : facts.initializers)
    if (!item.trained()) {
      Group &group = reasons[item.reason];
      group.names.push_back(item.name);
      group.values += item.elements;
      frozen += item.elements;
    }
  // The file has some of them once that are several tensors here.
  line("trained", formatCount(trained, "tensor") + ", " +
                      (parameters - inPart > facts.floatValues
                           ? formatCount(parameters - inPart, "value") + ", made of the "
                           : std::to_string(parameters - inPart) + " of the ") +
                      formatCount(facts.floatValues, "value") + " in the file's float initializers" +
                      (facts.adapters.empty() ? "" : " and the adapters"));
  if (!single.empty())
    line("", "of one element: " + joinNames(single, single.size()));
  if (inPart > 0)
    line("frozen", "channels of " + joinNames(still, 4) + ": " + formatCount(inPart, "value"));
  for (const auto &[reason, group] : reasons)
    line("frozen", joinNames(group.names, 4) + ": " + formatCount(group.values, "value") + ", " + reason);
  if (int64_t shared = facts.floatValues + facts.teacherValues - parameters - frozen; shared > 0)
    line("tied", formatCount(shared, "value") + " of the file are copies of others");
  else if (shared < 0)
    line("copied", formatCount(-shared, "value") +
                       " were merged with others in the file, or are read by several nodes");
}

/// The most that one thread needs in any entry.
static std::string describeStack(const backends::TargetCode &code) {
  uint64_t most = 0;
  for (const backends::StackUse &use : code.stack) {
    if (!use.caller || !use.worker)
      return "stack not known";
    most = std::max({most, *use.caller, *use.worker});
  }
  return formatBytes(most) + " of stack";
}

std::string makeSummary(const CompileOptions &options, const CompileFacts &facts,
                        const artifact::Artifact &artifact, double seconds) {
  std::string text;
  auto line = [&](const char *key, const std::string &value) {
    char head[24];
    std::snprintf(head, sizeof head, "%-10s ", key);
    text += head + makePrintable(value) + "\n";
  };
  line("model", facts.modelName + " (opset " + std::to_string(facts.opset) + ", " +
                    formatCount(int64_t(facts.nodes), "node") + ")");
  if (!trains(options)) {
    line("loss", "none: for prediction only");
    line("trained", "nothing: the weights are constants");
  } else if (!hasLoss(options)) {
    std::string names;
    for (const std::string &name : options.cotangents)
      names += (names.empty() ? "'" : ", '") + name + "'";
    line("loss", "the host's, which gives cotangents of " + names +
                     (updates(options) ? ", " + options.optimizer.text : ""));
    describeTrained(facts, artifact, line);
  } else {
    std::string losses;
    for (const LossFacts &loss : facts.losses)
      losses += (losses.empty() ? "" : " + ") + loss.text;
    line("loss", losses + ", " + options.optimizer.text);
    describeTrained(facts, artifact, line);
  }
  line("persistent",
       formatBytes(artifact.persistentBytes) + ", constants " + formatBytes(artifact.constants.size()));
  const char *key = "transient";
  for (const FamilyFacts &family : facts.families)
    for (const EntryFacts &entry : family.entries) {
      line(key, entry.name + ": " + formatBytes(entry.memory.bytes) + " (max-live " +
                    formatBytes(entry.memory.maxLive) + "), " + formatCount(int64_t(entry.steps), "step") +
                    ", " + humanCount(static_cast<double>(entry.flops)) + "FLOP");
      key = "";
    }
  key = "code";
  for (const FamilyFacts &family : facts.families)
    for (const backends::TargetCode *code : family.codes) {
      line(key, code->section.name + ": " + formatBytes(code->section.bytes.size()) + ", " +
                    formatCount(int64_t(code->kernels.size()), "kernel") +
                    (code->stack.empty() ? "" : ", " + describeStack(*code)));
      key = "";
    }
  for (size_t i = 0; i < facts.tuned.size(); ++i)
    line(i == 0 ? "tuned" : "", facts.tuned[i]);
  char took[32];
  std::snprintf(took, sizeof took, "%.2f s", seconds);
  line("written", options.output + "/model.ortc in " + took);
  return text;
}

} // namespace ortc::report
