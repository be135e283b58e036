//===- Reports.h - what --dump-buffers and --report write -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/driver/Manifest.h"
#include "mlir/IR/BuiltinOps.h"

namespace ortc::driver {

/// A phase and how long it took.
struct PhaseTime {
  std::string name;
  double seconds;
};

/// One line per buffer of every program: program, name, region, offset, bytes, and the first and last step that use it.
std::string makeBufferTable(mlir::ModuleOp module);

/// Times of the phases, figures of the entries, and every kernel with its work.
std::string makeReport(const CompileFacts &facts, const std::vector<PhaseTime> &phases,
                       const std::vector<TargetCode> &codes);

/// Writes a file; false with `error` when that fails.
bool writeFile(const std::string &path, const std::string &contents, std::string &error);

} // namespace ortc::driver
