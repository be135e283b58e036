//===- Reports.cpp - what --dump-buffers and --report write ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/Reports.h"

#include "dialects/plan/PlanDialect.h"
#include "passes/memory/Passes.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace mlir;

namespace ortc::driver {

std::string makeBufferTable(ModuleOp module) {
  std::string table = "program,name,region,offset,bytes,first,last\n";
  for (auto program : module.getOps<plan::ProgramOp>()) {
    llvm::DenseMap<Operation *, int64_t> number;
    int64_t steps = 0;
    for (auto step : program.getBody().front().getOps<plan::StepOp>())
      number[step] = steps++;
    for (auto buffer : program.getBody().front().getOps<plan::BufferOp>()) {
      int64_t first = -1, last = -1;
      for (Operation *user : buffer->getUsers()) {
        auto found = number.find(user);
        if (found == number.end())
          continue;
        first = first < 0 ? found->second : std::min(first, found->second);
        last = std::max(last, found->second);
      }
      int64_t bytes = memory::storedBytes(cast<ShapedType>(buffer.getType()));
      table += program.getSymName().str() + ",\"" + buffer.getName().str() + "\"," +
               plan::stringifyRegion(buffer.getRegion()).str() + "," + std::to_string(buffer.getOffset()) + "," +
               std::to_string(bytes) + "," + std::to_string(first) + "," + std::to_string(last) + "\n";
    }
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
    report["entries"].push_back({{"name", entry.name}, {"steps", entry.steps}, {"flops", entry.flops},
                                 {"bound", entry.bound}, {"source_order", entry.sourceOrder}});
  for (const TargetCode &code : codes) {
    Json kernels = Json::array();
    for (const codegen::KernelInfo &kernel : code.kernels)
      kernels.push_back({{"name", kernel.name}, {"chunks", kernel.chunks}, {"workspace", kernel.workspaceBytesPerWorker},
                         {"flops", kernel.flops}, {"bytes_read", kernel.bytesRead}, {"bytes_written", kernel.bytesWritten}});
    report["targets"].push_back({{"name", code.target.name}, {"code_bytes", code.blob.bytes.size()}, {"kernels", kernels}});
  }
  return report.dump(1) + "\n";
}

bool writeFile(const std::string &path, const std::string &contents, std::string &error) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << contents;
  file.close();
  if (!file)
    error = "cannot write '" + path + "': " + std::strerror(errno);
  return bool(file);
}

} // namespace ortc::driver
