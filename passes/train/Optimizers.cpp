// The table of optimizers, and what formulas share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "passes/train/Optimizers.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

ArrayRef<const OptimizerDefinition *> listOptimizers() {
#define ORTC_OPTIMIZER(name) &k##name##Optimizer,
  static const OptimizerDefinition *const kTable[] = {
#include "passes/train/optimizers/Table.inc"
  };
#undef ORTC_OPTIMIZER
  return kTable;
}

static const OptimizerDefinition *findOptimizer(StringRef name) {
  auto found =
      llvm::find_if(listOptimizers(), [&](const OptimizerDefinition *each) { return name == each->name; });
  return found == listOptimizers().end() ? nullptr : *found;
}

const OptimizerDefinition &definitionOf(const OptimizerSpec &optimizer) {
  const OptimizerDefinition *definition = findOptimizer(optimizer.name);
  assert(definition && "a spec names an optimizer of the table");
  return *definition;
}

Settings settingsOf(const OptimizerSpec &optimizer) {
  return Settings(definitionOf(optimizer).keys, optimizer.given);
}

std::vector<Key> orderKeys(const OptimizerDefinition &definition) {
  std::vector<Key> first, others;
  for (const Key &key : definition.keys)
    (StringRef(key.name) == kLr || StringRef(key.name) == kWeightDecay ? first : others).push_back(key);
  first.insert(first.end(), others.begin(), others.end());
  return first;
}

Expected<OptimizerSpec> parseOptimizer(std::string_view text) {
  std::string_view word, rest;
  bool hasRest = false;
  splitSpec(text, word, rest, hasRest);
  OptimizerSpec parsed;
  parsed.name = std::string(word);
  parsed.text = std::string(text);
  parsed.isGiven = true;
  const std::string what = "optimizer " + quote(word);
  const OptimizerDefinition *definition = findOptimizer(word);
  if (!definition) {
    std::vector<std::string> words;
    for (const OptimizerDefinition *each : listOptimizers())
      words.push_back(each->name);
    return Status::refusal("there is no " + what + "; there are " + joinWords(words));
  }
  ORTC_TRY(parseSettings(hasRest, rest, what, definition->keys, definition->contradict).moveTo(parsed.given));
  return parsed;
}

std::string describeOptimizers() {
  std::vector<std::string> specs;
  for (const OptimizerDefinition *each : listOptimizers())
    specs.push_back(formatSpec(each->name, each->keys));
  return llvm::join(specs, ", ") + "; default: " + OptimizerSpec().name;
}

Key lrKey(double initial) { return {kLr, initial, kNotNegative, "learning rate"}; }
Key weightDecayKey(double initial, const char *meaning) {
  return {kWeightDecay, initial, kNotNegative, meaning, /*zeroIsAbsent=*/true};
}
Key momentumKey() {
  return {"momentum", 0.0, kNotNegative, "share of the last step's direction that is added",
          /*zeroIsAbsent=*/true};
}
Key betaKey(const char *name, double initial, const char *meaning) {
  return {name, initial, kFraction, meaning};
}
Key epsilonKey() { return {"epsilon", 1e-8, kNotNegative, "added to the divisor"}; }

Value spread(TensorBuilder &b, Value scalar, Value tensor) {
  return b.broadcast(b.cast(scalar, TensorBuilder::elementOf(tensor)), TensorBuilder::shapeOf(tensor), {});
}

Value UpdateStep::scale(Value tensor, Value scalar) { return b.mul(tensor, spread(b, scalar, tensor)); }

void UpdateStep::decayGradient() {
  if (Value decay = scalar(kWeightDecay))
    gradient = b.add(gradient, scale(parameter, decay));
}

Value oneMinus(TensorBuilder &b, Value scalar) { return b.sub(b.constantLike(scalar, 1), scalar); }

Value advanceCorrection(TensorBuilder &b, Value correction, Value beta) {
  return b.add(b.mul(beta, correction), oneMinus(b, beta));
}

} // namespace ortc::train
