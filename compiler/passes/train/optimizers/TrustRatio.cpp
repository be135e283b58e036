// What optimizers with steps of the size of their parameter share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/optimizers/TrustRatio.h"

using namespace mlir;

namespace ortc::train {

static constexpr const char *kTrustClip = "trust_clip", *kAlwaysAdapt = "always_adapt";

Key trustClipKey() { return switchKey(kTrustClip, "the ratio of norms is at most 1"); }
Key alwaysAdaptKey() { return switchKey(kAlwaysAdapt, "parameters without weight decay have a ratio, too"); }

bool isClipped(const Settings &settings) { return settings.isOn(kTrustClip); }

bool adapts(const UpdateStep &step) { return step.scalar(kWeightDecay) || step.settings.isOn(kAlwaysAdapt); }

Value guardRatio(nn::TensorBuilder &b, Value ratio, Value one, Value other) {
  auto isPositive = [&](Value x) { return b.compare(arith::CmpFPredicate::OGT, x, b.zerosLike(x)); };
  return b.select(b.logicalAnd(isPositive(one), isPositive(other)), ratio, b.constantLike(ratio, 1));
}

} // namespace ortc::train
