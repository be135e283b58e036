// Parameters that an exporter merged or copied.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/SharedInitializers.h"

#include "compiler/frontend/MergedInitializers.h"
#include "compiler/frontend/SharingWarnings.h"
#include "compiler/frontend/TiedInitializers.h"
#include "compiler/frontend/UnitNorms.h"

namespace ortc::frontend {

Status resolveSharedInitializers(std::shared_ptr<const Model> &model, const SharingOptions &options,
                                 SharingReport &report) {
  ORTC_TRY(markUnitNorms(model, report.notes));
  ORTC_TRY(restoreMerged(model, options, report));
  ORTC_TRY(tieAndUntie(model, options, report));
  warnOfSharing(*model, report);
  return {};
}

} // namespace ortc::frontend
