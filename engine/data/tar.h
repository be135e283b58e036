// tar: the members KEY.COLUMN.npy of a sample follow each other.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "engine/data/data_source.h"

namespace ortc::engine {

/// An array for each column, whose rows are the members' arrays in the order of the archive. KEY has the folder and
/// ends at the first dot of the name; KEY.npy is of a column "npy". Members of other kinds are left out.
Status openTar(const std::string &path, std::unique_ptr<DataSource> &source);

} // namespace ortc::engine
