// The command ortc update.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/artifact/OutputFolder.h"
#include "compiler/driver/Compile.h"
#include "compiler/passes/train/Optimizers.h"
#include "support/Plural.h"
#include "support/Text.h"
#include "tools/ortc/Commands.h"
#include "tools/ortc/Compiling.h"
#include "tools/ortc/OutputPaths.h"
#include "tools/ortc/Vocabularies.h"

#include <filesystem>
#include <iostream>

namespace ortc::tool {

/// "64x128": each size at least 1, and 2^31 elements at most.
static Expected<std::vector<int64_t>> parseShape(std::string_view text) {
  constexpr uint64_t kMost = uint64_t(1) << 31;
  std::vector<int64_t> shape;
  uint64_t elements = 1;
  for (std::string_view rest = text; !rest.empty() || shape.empty();) {
    const size_t end = std::min(rest.find('x'), rest.size());
    uint64_t size = 0;
    if (!parseUnsigned(rest.substr(0, end), size) || size < 1 || size > kMost / elements ||
        end + 1 == rest.size())
      return Status::refusal(quote(text) + " must be sizes from 1 with x between them, such as 64x128, of "
                                           "2147483648 elements at most");
    elements *= size;
    shape.push_back(static_cast<int64_t>(size));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return shape;
}

static Status update(const CompileOptions &options, const train::UpdateForm &form) {
  artifact::OutputFolder folder(options.output);
  driver::CompileExtras extras;
  extras.afterPhase = [&](const char *phase, const std::string &family, mlir::ModuleOp ir) {
    return dumpIr(options.dumpIr, phase, family, ir);
  };
  ORTC_TRY(driver::checkRequest(options, extras));
  ORTC_TRY(train::checkUpdateForm(options.optimizer, form));
  ORTC_TRY(checkPaths(options, {}, folder));
  Expected<driver::Compiled> compiled = driver::compileUpdate(options, form, extras);
  if (!compiled)
    return compiled.getStatus();
  ORTC_TRY(compiled->writeTo(folder));
  ORTC_TRY(folder.commit());
  printNotes(compiled->notes, compiled->facts.warnings);
  if (!options.quiet)
    std::cout << options.output << ": update of " << options.optimizer.text << " in "
              << formatCount(int64_t(compiled->artifact.bindings.size()), "binding") << ", "
              << formatCount(int64_t(std::filesystem::file_size(options.output + "/model.ortc")), "byte")
              << "\n";
  return Status();
}

void addUpdateCommand(Tool &tool) {
  struct State {
    CompileOptions options;
    train::UpdateForm form;
    bool isFirstTarget = true;
  };
  auto state = std::make_shared<State>();
  CompileOptions &options = state->options;
  CommandLine line(tool, "update");
  line.addText("output", options.output);
  line.addValue("optimizer", [&options](const std::string &value) {
    return train::parseOptimizer(value).moveTo(options.optimizer);
  });
  line.setVocabulary("optimizer", describeOptimizers());
  line.addValue("shape",
                [state](const std::string &value) { return parseShape(value).moveTo(state->form.shape); });
  line.addFlag("whole-states", state->form.hasBytes, false);
  line.addFlag("quiet", options.quiet);
  line.addValue("target", [state](const std::string &value) {
    return addTarget(value, state->options, state->isFirstTarget);
  });
  line.addValue("numerics", [&options](const std::string &value) {
    return parseNumerics(value).moveTo(options.numerics);
  });
  line.addValue("precision", [state](const std::string &value) {
    Expected<Precision> parsed = parsePrecision(value);
    if (!parsed)
      return parsed.getStatus();
    state->form.isDouble = *parsed == Precision::F64;
    return state->form.isDouble || *parsed == Precision::F32
               ? Status()
               : Status::refusal(quote(value) + " is none of an update, which computes in f32 or f64");
  });
  line.addWhole("max-workers", options.maxWorkers, 1, 256);
  addKernelCacheFlag(line, options);
  line.addText("dump-ir", options.dumpIr);
  line.setAction([state] {
    Status status = state->options.output.empty()
                        ? Status::refusal("-o DIR is missing: the folder of the artifact")
                        : update(state->options, state->form);
    return finish(status);
  });
}

} // namespace ortc::tool
