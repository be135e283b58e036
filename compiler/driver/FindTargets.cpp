// The targets that --target names.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/FindTargets.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace ortc::driver {

using Backends = std::vector<const backends::Backend *>;

/// Adds a target to those of its family, if it is not there; false when no family has the name.
static bool add(StringRef name, const CompileOptions &options, const Backends &known,
                std::vector<FamilyTargets> &families) {
  for (const backends::Backend *backend : known) {
    std::unique_ptr<backends::Target> target =
        backend->findTarget(name, {options.maxWorkers, options.numerics, options.forSize});
    if (!target)
      continue;
    auto family = find_if(families, [&](const FamilyTargets &each) { return each.backend == backend; });
    if (family == families.end())
      family = families.insert(families.end(), FamilyTargets{backend, {}});
    if (none_of(family->targets, [&](const auto &other) { return other->getName() == target->getName(); }))
      family->targets.push_back(std::move(target));
    return true;
  }
  return false;
}

static std::string listNames(const Backends &known) {
  std::string names = "host, all, native";
  for (const backends::Backend *backend : known)
    for (StringRef name : backend->targetNames())
      names += ", " + name.str();
  return names;
}

Expected<std::vector<FamilyTargets>> findTargets(const CompileOptions &options, bool measures,
                                                 const Backends &known) {
  std::vector<FamilyTargets> families;
  for (const std::string &name : options.targets) {
    if (name == "host" || name == "all") {
      for (const backends::Backend *backend : known)
        for (StringRef target : name == "host" ? backend->hostTargets() : backend->hostedTargets())
          add(target, options, known, families);
    } else if (!add(name, options, known, families)) {
      return Status::refusal("--target '" + name + "' is not known; known are " + listNames(known));
    }
  }
  // The loader takes the last section that a machine can run: most capable last, a whole machine behind all levels.
  for (FamilyTargets &family : families) {
    ArrayRef<StringRef> names = family.backend->targetNames();
    auto rank = [&](const auto &target) { return find(names, target->getName()) - names.begin(); };
    sort(family.targets, [&](const auto &a, const auto &b) { return rank(a) < rank(b); });
  }
  if (options.emit && (families.size() != 1 || families.front().targets.size() != 1))
    return Status::refusal(
        options.emit->kind == EmitSpec::Wasm
            ? "--emit wasm is for --target wasm32 alone"
            : "--emit static is for one --target: a program has code for the processor that it is built for; "
              "name one, such as cortex-m4, aarch64 or x86-64-v3");
  if (families.empty())
    return Status::refusal("--target names nothing; known are " + listNames(known));
  for (const FamilyTargets &family : families)
    for (const auto &target : family.targets)
      if (measures && !target->canRunHere())
        return Status::refusal("--tune measures on this machine, which cannot run code for " +
                               target->getName() + "; give --target native, or a level that it can run");
  for (const FamilyTargets &family : families)
    for (const auto &target : family.targets)
      if (options.precision == Precision::TF32 && !target->hasTf32())
        return Status::refusal(
            "--precision tf32 is for the tensor cores of NVIDIA's GPUs, and " + target->getName() +
            " has no products of TF32; name only targets such as --target sm_80, or give another "
            "--precision");
  auto usesAssembler = [](const auto &target) { return target->usesAssembler(); };
  if (!options.ptxas.empty() &&
      none_of(families, [&](const FamilyTargets &family) { return any_of(family.targets, usesAssembler); }))
    return Status::refusal("--ptxas assembles code for NVIDIA GPUs, and no --target names one");
  return families;
}

int64_t FamilyTargets::attentionParts(const CompileOptions &options) const {
  if (options.attention.isWhole())
    return 0;
  int64_t depth = INT64_MAX;
  for (const auto &target : targets)
    depth = std::min(depth, target->attentionParts(options.numerics));
  return depth;
}

bool FamilyTargets::hasAttention(const kernels::AttentionForm &form) const {
  return llvm::all_of(targets, [&](const auto &target) { return target->hasAttention(form); });
}

} // namespace ortc::driver
