// Parameters that an exporter merged or copied.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exporters store equal tensors once: fresh norms become one parameter. They also store a tied weight twice,
// when one of its uses is transposed. Both change what training does, so what can be told from the file is
// put right, and the rest is said.
#pragma once

#include "compiler/frontend/Model.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ortc::frontend {

struct SharingOptions {
  std::vector<std::string> untie; ///< initializers whose every reader gets its own
  std::vector<std::pair<std::string, std::string>>
      ties; ///< copy, original: the copy becomes the original again
};

struct SharingReport {
  std::vector<std::string> warnings, notes;
};

/// Replaces `model` by an edited copy where there is something to do:
///  - an Identity of an initializer whose output bears a parameter's name becomes an initializer of that name;
///  - a node that reads an initializer where the exported program took another parameter, which the file has
///  lost, reads a copy
///    under that name;
///  - ones and zeros of norms without weights are marked as constants (UnitNorms.h);
///  - an Identity with a made-up name that another module reads becomes an initializer, and made-up names of
///  one parameter that
///    was folded several times become that parameter again (CopiedInitializers.h);
///  - `untie`: all readers but the first get a copy, named NODE.NAME; copies of it, and it as a copy, are not tied;
///  - `ties`: readers of the copy read the original, through Transpose and Reshape where the copy is a view of it.
/// Reports initializers that norms share and that may have been merged, and copies of embeddings. Fails where
/// a name is no initializer or what is to be tied is not equal.
Status resolveSharedInitializers(std::shared_ptr<const Model> &model, const SharingOptions &options,
                                 SharingReport &report);

} // namespace ortc::frontend
