// The commands that compile.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/Compiling.h"

#include "compiler/artifact/OutputFolder.h"
#include "compiler/driver/Choose.h"
#include "compiler/driver/Compile.h"
#include "compiler/driver/Phases.h"
#include "compiler/report/MemoryReport.h"
#include "compiler/report/MemoryText.h"
#include "compiler/report/TrainChoices.h"
#include "compiler/report/UpdateSets.h"
#include "support/AtomicFile.h"
#include "support/Json.h"
#include "support/Message.h"
#include "support/Plural.h"
#include "support/Text.h"
#include "tools/ortc/OutputPaths.h"
#include "tools/ortc/Progress.h"
#include "llvm/Support/raw_os_ostream.h"

#include <chrono>
#include <filesystem>
#include <iostream>

using namespace mlir;

namespace ortc::tool {

Status dumpIr(const std::string &folder, const char *phase, const std::string &family, ModuleOp ir) {
  if (folder.empty() || StringRef(phase) == "code") // which leaves the program as it was placed
    return Status();
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags;
  flags.elideLargeElementsAttrs(64).elideLargeResourceString(64);
  ir->print(stream, flags);
  return writeFile(folder + "/" + std::to_string(driver::findPhase(phase)) + "-" + phase +
                       (family.empty() ? "" : "-" + family) + ".mlir",
                   text);
}

void printNotes(const std::vector<std::string> &notes, const std::vector<std::string> &warnings) {
  for (const std::string &note : notes)
    printMessage("note", note);
  for (const std::string &warning : warnings)
    printMessage("warning", warning);
}

static std::vector<report::MemoryPlan> listPlans(const report::CompileFacts &facts) {
  std::vector<report::MemoryPlan> plans;
  for (const report::FamilyFacts &family : facts.families)
    for (const report::EntryFacts &entry : family.entries)
      plans.push_back(entry.memory);
  return plans;
}

/// What --dump-buffers and --report ask for, as far as the phases that ran know it.
static Status addReports(const CompileOptions &options, driver::Compiled &compiled, AtomicFiles &files) {
  if (!options.dumpBuffers.empty())
    ORTC_TRY(files.add(options.dumpBuffers, report::makeBufferTable(listPlans(compiled.facts))));
  if (options.report.empty())
    return Status();
  std::vector<report::KernelCosts> costs;
  for (driver::FamilyProgram &program : compiled.families)
    for (size_t i = 0; i < program.codes.size(); ++i) {
      Expected<report::KernelCosts> found = report::findCosts(
          *program.ir, program.kernels, *program.family.targets[i], *program.codes[i], options);
      if (!found)
        return Status::failure("--report: " + found.getStatus().getMessage());
      costs.push_back(std::move(*found));
    }
  return files.add(options.report, report::makeReport(compiled.facts, compiled.phases, costs));
}

/// What a command needs to know while it compiles; `reports` are the files that it is going to write.
static driver::CompileExtras makeExtras(const CompileOptions &options, const TuneOptions &tuning,
                                        const std::vector<NamedFile> &reports, Progress &progress) {
  driver::CompileExtras extras;
  extras.tuning = tuning;
  extras.progress = [&](const std::string &what) { progress.begin(what); };
  extras.afterReading = [&](const frontend::Model &model) {
    return checkFiles(options, tuning, reports, model);
  };
  extras.afterPhase = [&](const char *phase, const std::string &family, ModuleOp ir) {
    return dumpIr(options.dumpIr, phase, family, ir);
  };
  return extras;
}

Status train(const CompileOptions &options, const TuneOptions &tuning, const std::string &memoryUnit,
             const RecipeFile &recipe) {
  auto started = std::chrono::steady_clock::now();
  Progress progress(options.quiet);
  artifact::OutputFolder folder(options.output);
  std::vector<NamedFile> reports = listReports(options, tuning, "");
  reports.push_back({"--write-config", recipe.path});
  driver::CompileExtras extras = makeExtras(options, tuning, reports, progress);
  extras.memoryUnit = memoryUnit;
  ORTC_TRY(driver::checkRequest(options, extras));
  ORTC_TRY(checkPaths(options, reports, folder));
  Expected<driver::Compiled> compiled = driver::compile(options, extras);
  if (!compiled)
    return compiled.getStatus();
  const bool isWhole = options.compileTo.empty();
  if (isWhole) {
    progress.begin("writing " + options.output);
    ORTC_TRY(compiled->writeTo(folder));
  }
  AtomicFiles files;
  ORTC_TRY(addReports(options, *compiled, files));
  ORTC_TRY(files.add(recipe.path, recipe.text));
  if (isWhole)
    ORTC_TRY(folder.commit());
  ORTC_TRY(files.commit());
  progress.end();
  printNotes(compiled->notes, compiled->facts.warnings);
  if (!isWhole) {
    llvm::raw_os_ostream out(std::cout); // whose failure main() finds
    for (ModuleOp ir : compiled->getIR())
      ir.print(out);
  } else if (!options.quiet) {
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    std::cout << report::makeSummary(options, compiled->facts, compiled->artifact, took.count());
  }
  return Status();
}

Status plan(const CompileOptions &options, const PlanOptions &planning) {
  if (planning.fit)
    ORTC_TRY(driver::checkFit(options));
  CompileOptions placed = options;
  placed.compileTo = "place";
  Progress progress(options.quiet);
  artifact::OutputFolder none(options.output);
  const std::vector<NamedFile> reports = listReports(options, {}, planning.page);
  const TuneOptions tuning;
  driver::CompileExtras extras = makeExtras(placed, tuning, reports, progress);
  extras.budgetCurve = true;
  extras.memoryUnit = planning.memoryUnit;
  ORTC_TRY(driver::checkRequest(placed, extras));
  ORTC_TRY(checkPaths(placed, reports, none));
  Expected<driver::Compiled> compiled = driver::compile(placed, extras);
  if (!compiled)
    return compiled.getStatus();
  std::vector<report::MemoryPlan> plans = listPlans(compiled->facts);
  nlohmann::ordered_json report =
      report::makePlanReport(compiled->facts.modelFile,
                             report::describeShared(compiled->getIR().front(), options.maxWorkers), plans);
  std::vector<report::UpdateSet> sets;
  if (planning.fit) {
    sets = driver::planSets(placed, *compiled, extras.progress);
    report["fit"] = report::makeFitReport(sets, *planning.fit);
  }
  AtomicFiles files;
  ORTC_TRY(files.add(options.dumpBuffers, report::makeBufferTable(plans)));
  ORTC_TRY(files.add(options.report, formatJson(report)));
  ORTC_TRY(files.add(planning.page, planning.page.empty() ? "" : report::makePlanPage(report)));
  ORTC_TRY(files.commit());
  progress.end();
  printNotes(compiled->notes, compiled->facts.warnings);
  if (!options.quiet)
    std::cout << report::describePlanReport(report, planning.everyEntry);
  if (planning.trainChoices) {
    std::string table = report::describeTrainChoices(driver::planChoices(placed, *compiled));
    if (!options.quiet)
      std::cout << table;
  }
  if (!planning.fit)
    return Status();
  if (!options.quiet)
    std::cout << report::describeUpdateSets(sets, *planning.fit, planning.fitUnit);
  if (report::findBest(sets, *planning.fit))
    return Status();
  const report::UpdateSet &least = *std::min_element(
      sets.begin(), sets.end(), [](const auto &a, const auto &b) { return a.getBytes() < b.getBytes(); });
  return Status::refusal(options.model + ": nothing fits --fit " +
                         formatBytesIn(*planning.fit, planning.fitUnit) + ": the least is " +
                         formatBytesIn(least.getBytes(), planning.fitUnit) +
                         (planning.fitUnit.empty() ? " bytes" : "") + ", with " + least.what +
                         "; take a smaller --shape or --max-workers 1");
}

} // namespace ortc::tool
