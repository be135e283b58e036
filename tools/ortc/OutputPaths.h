// Where a compilation writes, checked before it works.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/artifact/OutputFolder.h"
#include "compiler/frontend/Model.h"
#include "compiler/options/CompileOptions.h"
#include "compiler/options/TuneOptions.h"
#include "support/OutputPaths.h"

namespace ortc::tool {

/// What is written besides the artifact, with the flags that ask for it; `page` is the file of --html. Paths
/// may be empty.
std::vector<NamedFile> listReports(const CompileOptions &options, const TuneOptions &tuning,
                                   const std::string &page);

/// Files are written at the end: what would keep them from being written is found before the work is done.
Status checkPaths(const CompileOptions &options, const std::vector<NamedFile> &reports,
                  const artifact::OutputFolder &folder);

/// What is written must not be what was read: the model, its external data, the tuning cache.
Status checkFiles(const CompileOptions &options, const TuneOptions &tuning,
                  const std::vector<NamedFile> &reports, const frontend::Model &model);

} // namespace ortc::tool
