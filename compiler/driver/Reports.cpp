//===- Reports.cpp - what --dump-buffers and --report write ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Reports.h"

#include "dialects/plan/PlanDialect.h"
#include "passes/memory/Passes.h"
#include "runtime/host/data/atomic_file.h"

#include <nlohmann/json.hpp>

using namespace mlir;

namespace ortc::driver {

std::string entryName(plan::ProgramOp program, const CompileOptions &options) {
  return program.getRole().str() + "/" + options.bindings[program.getBinding()].name;
}

/// Text in quotation marks, its own doubled (RFC 4180).
static std::string quoteField(StringRef text) {
  std::string quoted = "\"";
  for (char letter : text)
    quoted += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return quoted + "\"";
}

std::string makeBufferTable(ModuleOp module, const CompileOptions &options) {
  std::string table = "entry,name,region,offset,bytes,first,last\n";
  for (auto program : module.getOps<plan::ProgramOp>()) {
    llvm::DenseMap<Operation *, int64_t> number;
    int64_t steps = 0;
    program.walk([&](plan::StepOp step) { number[step] = steps++; });
    // A tensor, input or output has a buffer for every shape that it is seen with.
    struct Row {
      std::string key;
      int64_t bytes, first, last;
    };
    std::vector<Row> rows;
    for (auto buffer : program.getBody().front().getOps<plan::BufferOp>()) {
      std::string key = quoteField(entryName(program, options)) + "," + quoteField(buffer.getName()) + "," +
                        plan::stringifyRegion(buffer.getRegion()).str() + "," +
                        std::to_string(buffer.getOffset());
      int64_t bytes = plan::storedBytes(cast<ShapedType>(buffer.getType()));
      bool isTransient = buffer.getRegion() == plan::Region::transient;
      auto row =
          isTransient ? rows.end() : llvm::find_if(rows, [&](const Row &other) { return other.key == key; });
      for (Operation *user : buffer->getUsers()) {
        auto found = number.find(user);
        if (found == number.end())
          continue;
        if (row == rows.end())
          row = rows.insert(rows.end(), {key, bytes, found->second, found->second});
        row->bytes = std::max(row->bytes, bytes);
        row->first = std::min(row->first, found->second);
        row->last = std::max(row->last, found->second);
      }
    }
    for (const Row &row : rows)
      table += row.key + "," + std::to_string(row.bytes) + "," + std::to_string(row.first) + "," +
               std::to_string(row.last) + "\n";
  }
  return table;
}

std::string makeReport(const CompileFacts &facts, const std::vector<PhaseTime> &phases,
                       const std::vector<TargetCode> &codes) {
  using Json = nlohmann::ordered_json;
  Json report{{"model", facts.modelFile}};
  for (const PhaseTime &phase : phases)
    report["phases"].push_back({{"name", phase.name}, {"seconds", phase.seconds}});
  for (const CompileFacts::EntryFacts &entry : facts.entries)
    report["entries"].push_back({{"name", entry.name},
                                 {"steps", entry.steps},
                                 {"flops", entry.flops},
                                 {"bytes_read", entry.bytesRead},
                                 {"bytes_written", entry.bytesWritten},
                                 {"bound", entry.bound},
                                 {"source_order", entry.sourceOrder}});
  for (const TargetCode &code : codes) {
    Json kernels = Json::array();
    for (const codegen::KernelInfo &kernel : code.kernels)
      kernels.push_back({{"name", kernel.name},
                         {"chunks", kernel.chunks},
                         {"workspace", kernel.workspaceBytesPerWorker},
                         {"flops", kernel.flops},
                         {"bytes_read", kernel.bytesRead},
                         {"bytes_written", kernel.bytesWritten}});
    report["targets"].push_back(
        {{"name", code.target.name}, {"code_bytes", code.blob.bytes.size()}, {"kernels", kernels}});
  }
  return report.dump(1) + "\n";
}

bool writeFile(const std::string &path, const std::string &contents, std::string &error) {
  host::AtomicFile file(path);
  auto write = [&]() -> host::Status {
    ORTC_TRY(file.open());
    ORTC_TRY(file.write(contents));
    return file.commit();
  };
  host::Status outcome = write();
  error = outcome.getMessage();
  return outcome.isOk();
}

} // namespace ortc::driver
