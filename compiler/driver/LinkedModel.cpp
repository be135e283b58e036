// What programs are linked with, beside an artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/LinkedModel.h"

#include "compiler/artifact/StaticModel.h"

namespace ortc::driver {

Status makeLinked(const CompileOptions &options, Compiled &compiled) {
  const backends::TargetCode &code = *compiled.families.front().codes.front();
  artifact::StaticModel model{options.emitStatic->name,
                              compiled.artifact,
                              artifact::nameSteps(options.emitStatic->name, compiled.artifact),
                              {}};
  for (size_t i = 0; i < model.steps.size(); ++i)
    model.stack.push_back(i < code.stack.size() ? code.stack[i].caller : std::nullopt);
  Expected<artifact::Bytes> archive = code.makeArchive(model.steps, options.objectFormat);
  if (!archive)
    return Status::refusal("code for " + compiled.artifact.codes.front().name + ": " +
                           archive.getStatus().getMessage());
  Expected<std::string> data = artifact::makeStaticData(model);
  if (!data)
    return data.getStatus();
  compiled.linked = {{"model.a", std::string(archive->begin(), archive->end())},
                     {"model.h", artifact::makeStaticHeader(model)},
                     {"model_data.c", std::move(*data)}};
  return Status();
}

} // namespace ortc::driver
