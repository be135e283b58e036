// Plans of other tensors to train.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Choose.h"

#include "compiler/driver/Compile.h"
#include "compiler/legalize/ChannelAxes.h"
#include "compiler/report/MemoryReport.h"
#include "dialects/onnx/OnnxDialect.h"
#include "support/Plural.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace ortc::driver {

static std::vector<std::string> listTrained(const Compiled &placed) {
  std::vector<std::string> names;
  for (const legalize::InitializerReport &item : placed.facts.initializers)
    if (item.trained())
      names.push_back(item.name);
  return names;
}

/// The memory of a session of a placed program.
static report::SessionMemory describeMemory(Compiled &placed, uint32_t workers) {
  const report::SharedMemory shared = report::describeShared(placed.getIR().front(), workers);
  report::SessionMemory memory{shared.persistent, shared.constants, 0};
  for (const report::FamilyFacts &family : placed.facts.families)
    for (const report::EntryFacts &entry : family.entries)
      memory.transient = std::max(memory.transient, entry.memory.bytes);
  return memory;
}

std::vector<report::TrainChoice> planChoices(CompileOptions options, Compiled &asked) {
  auto describe = [&](const std::string &what, Compiled &placed) {
    return report::TrainChoice{describeMemory(placed, options.maxWorkers), what, listTrained(placed)};
  };
  std::vector<report::TrainChoice> planned{describe("as asked", asked)};
  options.freeze.clear();
  for (const report::TrainChoice &choice :
       report::listTrainChoices(asked.model->getProto().graph(), planned.front().tensors)) {
    options.train = {NamePattern::list(choice.tensors, choice.what)};
    if (Expected<Compiled> placed = compile(options))
      planned.push_back(describe(choice.what, *placed));
  }
  return planned;
}

/// The memory of a placed program, and the values that it trains.
static void describeSet(Compiled &placed, uint32_t workers, report::UpdateSet &set) {
  const std::map<std::string, int64_t> &parts = placed.facts.trainedInPart;
  for (const legalize::InitializerReport &item : placed.facts.initializers)
    if (item.trained()) {
      auto part = parts.find(item.name);
      set.values += part == parts.end() ? item.elements : part->second;
      ++set.tensors;
    }
  static_cast<report::SessionMemory &>(set) = describeMemory(placed, workers);
  const std::vector<report::EntryFacts> &entries = placed.facts.families.front().entries;
  set.flops = entries.empty() ? 0 : entries.front().flops;
}

/// Trains what these values of --train name.
static Status setTrained(const std::vector<std::string> &values, CompileOptions &options) {
  options.train.clear();
  options.channels.clear();
  for (const std::string &value : values) {
    TrainSpec spec;
    ORTC_TRY(parseTrain(value).moveTo(spec));
    options.train.push_back(std::move(spec.pattern));
    options.channels.push_back(spec.channels);
  }
  return Status();
}

std::vector<report::UpdateSet> planSets(CompileOptions options, Compiled &asked,
                                        const std::function<void(const std::string &)> &progress) {
  std::vector<report::UpdateSet> planned(1);
  planned.front().what = "as asked";
  describeSet(asked, options.maxWorkers, planned.front());
  std::map<std::string, bool> hasChannels;
  asked.source->walk([&](onnx::InitializerOp op) {
    hasChannels.try_emplace(op.getName().str(), bool(legalize::findChannelAxis(op)));
  });
  std::vector<report::UpdateSet> sets =
      report::listUpdateSets(asked.model->getProto().graph(), listTrained(asked),
                             [&](const std::string &name) { return hasChannels[name]; });
  for (report::UpdateSet &set : sets) {
    progress("planning " + std::to_string(&set - sets.data() + 1) + " of " +
             formatCount(int64_t(sets.size()), "set") + " of tensors: " + set.what);
    if (!setTrained(set.train, options).isOk())
      continue;
    Expected<Compiled> placed = compile(options);
    if (!placed)
      continue;
    describeSet(*placed, options.maxWorkers, set);
    planned.push_back(std::move(set));
  }
  return planned;
}

Status checkFit(const CompileOptions &options) {
  if (!hasLoss(options))
    return Status::refusal(
        "--fit chooses what is trained, and with --loss none nothing is; leave one of both out");
  if (!options.lora.empty())
    return Status::refusal(
        "--fit chooses what is trained, and --lora trains every adapter; leave one of both out");
  return Status();
}

} // namespace ortc::driver
