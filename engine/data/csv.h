// CSV: lines of numbers under a header with the names of their columns.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "engine/data/data_source.h"
#include "engine/data/data_spec.h"

namespace ortc::engine {

/// A column is an array of its name; columns `x[0]`, `x[1]`, ... are the array `x`, a row for each line. `options` say
/// which columns are an array instead: NAME=COLUMN[,COLUMN...], or NAME=* for all that no other array has; then no
/// other column is read. Arrays are int64 where all their numbers are whole, else float64.
Status openCsv(const std::string &path, const DataSpec::Options &options, std::unique_ptr<DataSource> &source,
               const StopFlag *stop = nullptr);

} // namespace ortc::engine
