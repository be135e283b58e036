// What programs are linked with, beside an artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/LinkedModel.h"

#include "compiler/artifact/StaticModel.h"
#include "llvm/Support/MemoryBuffer.h"

namespace ortc::driver {

static Status refuse(const Compiled &compiled, const Status &status) {
  return Status::refusal("code for " + compiled.artifact.codes.front().name + ": " + status.getMessage());
}

/// model.wasm.
static Status makeModule(const CompileOptions &options, const backends::TargetCode &code,
                         Compiled &compiled) {
  auto runtime = llvm::MemoryBuffer::getFile(options.wasmRuntime, /*IsText=*/false,
                                             /*RequiresNullTerminator=*/false);
  if (!runtime)
    return Status::refusal("--emit wasm: cannot read the runtime for WebAssembly '" + options.wasmRuntime +
                           "': " + runtime.getError().message());
  Expected<artifact::Bytes> image = artifact::makeStaticImage(compiled.artifact);
  if (!image)
    return image.getStatus();
  Expected<artifact::Bytes> module = code.makeModule(*image, (*runtime)->getBuffer());
  if (!module)
    return refuse(compiled, module.getStatus());
  compiled.linked = {{"model.wasm", std::string(module->begin(), module->end())}};
  return Status();
}

Status makeLinked(const CompileOptions &options, Compiled &compiled) {
  const backends::TargetCode &code = *compiled.families.front().codes.front();
  if (options.emit->kind == EmitSpec::Wasm)
    return makeModule(options, code, compiled);
  artifact::StaticModel model{
      options.emit->name, compiled.artifact, artifact::nameSteps(options.emit->name, compiled.artifact), {}};
  for (size_t i = 0; i < model.steps.size(); ++i)
    model.stack.push_back(i < code.stack.size() ? code.stack[i].caller : std::nullopt);
  Expected<artifact::Bytes> archive = code.makeArchive(model.steps, options.objectFormat);
  if (!archive)
    return refuse(compiled, archive.getStatus());
  Expected<std::string> data = artifact::makeStaticData(model);
  if (!data)
    return data.getStatus();
  compiled.linked = {{"model.a", std::string(archive->begin(), archive->end())},
                     {"model.h", artifact::makeStaticHeader(model)},
                     {"model_data.c", std::move(*data)}};
  return Status();
}

} // namespace ortc::driver
