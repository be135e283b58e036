// The optimizer lion8bit: lion with its average in bytes, as bitsandbytes.optim.Lion8bit has it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/optimizers/Moments.h"

namespace ortc::train {

const OptimizerDefinition kLion8bitOptimizer = {
    .name = "lion8bit",
    .meaning = "lion whose average is bytes where a tensor has 4,096 values or more and is of no norm",
    .keys = lionKeys(),
    .states = {{.name = kAverage, .storage = Storage::Bytes}},
    .update = updateLion,
    .spans = "the largest of 256 values"};

} // namespace ortc::train
