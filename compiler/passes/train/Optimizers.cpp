// The table of optimizers, and what formulas share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Optimizers.h"

#include "compiler/passes/train/OnnxFunction.h"
#include "compiler/passes/train/OnnxOptimizer.h"
#include "support/EditDistance.h"
#include "support/Text.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;

namespace ortc::train {

using nn::TensorBuilder;

ArrayRef<const OptimizerDefinition *> listOptimizers() {
#define ORTC_OPTIMIZER(name) &k##name##Optimizer,
  static const OptimizerDefinition *const kTable[] = {
#include "compiler/passes/train/optimizers/Table.inc"
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
  const OptimizerDefinition *definition =
      optimizer.file ? &optimizer.file->definition : findOptimizer(optimizer.name);
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

/// Optimizers that are asked for and that no update of one step can be.
static const char *reasonAgainst(StringRef name) {
  if (name == "lbfgs")
    return "it computes the loss several times in a step, as its line search goes";
  if (name == "sam")
    return "it computes the gradient twice in a step, the second time at other weights";
  if (name == "galore")
    return "it decomposes gradients into singular vectors every few hundred steps; --lora trains few "
           "numbers, too";
  return nullptr;
}

static Status refuseName(std::string_view name) {
  if (const char *reason = reasonAgainst(name))
    return Status::refusal("optimizer " + quote(name) + " is none of a compiled step: " + reason);
  std::vector<std::string> words;
  for (const OptimizerDefinition *each : listOptimizers())
    words.push_back(each->name);
  words.push_back("onnx:FILE");
  return Status::refusal("there is no optimizer " + quote(name) + "; there are " + joinWords(words) +
                         suggestWord(name, words));
}

/// What has no default need not be given yet.
static Expected<OptimizerSpec> readOptimizer(std::string_view text) {
  std::string_view word, rest;
  bool hasRest = false;
  splitSpec(text, word, rest, hasRest);
  OptimizerSpec parsed;
  parsed.name = std::string(word);
  parsed.text = std::string(text);
  parsed.isGiven = true;
  if (word == "onnx" && hasRest) {
    std::string_view keys;
    ORTC_TRY(readOnnxOptimizer(rest, parsed.file, keys));
    parsed.name = parsed.file->name;
    rest = keys;
    hasRest = !keys.empty();
  } else if (!findOptimizer(word)) {
    return refuseName(word);
  }
  const OptimizerDefinition &definition = definitionOf(parsed);
  ORTC_TRY(
      parseSettings(hasRest, rest, "optimizer " + quote(parsed.name), definition.keys, definition.contradict)
          .moveTo(parsed.given));
  return parsed;
}

Expected<OptimizerSpec> parseOptimizer(std::string_view text) {
  Expected<OptimizerSpec> parsed = readOptimizer(text);
  if (parsed && parsed->file)
    ORTC_TRY(
        checkRequired(definitionOf(*parsed).keys, settingsOf(*parsed), "optimizer " + quote(parsed->name)));
  return parsed;
}

/// Takes `optimizer=NAME` out of the keys of a group.
static std::string takeName(std::string &keys) {
  constexpr StringRef kOptimizer = "optimizer=";
  for (size_t start = 0; start < keys.size();) {
    size_t end = std::min(keys.find(',', start), keys.size());
    if (StringRef item = StringRef(keys).slice(start, end); item.starts_with(kOptimizer)) {
      std::string name = item.drop_front(kOptimizer.size()).str();
      keys.erase(start == 0 ? 0 : start - 1, end - start + (start != 0 || end != keys.size()));
      return name;
    }
    start = end + 1;
  }
  return "";
}

Expected<OptimizerGroup> readGroup(const GroupSpec &group, const OptimizerSpec &base) {
  OptimizerGroup read;
  read.optimizer = base;
  std::string keys = group.keys, name = takeName(keys);
  std::string what = "group " + quote(group.pattern.getText());
  if (!name.empty()) {
    if (Status status = readOptimizer(name).moveTo(read.optimizer); !status.isOk())
      return Status::refusal(what + ": " + status.getMessage());
    read.isOther = true;
  }
  const OptimizerDefinition &definition = definitionOf(read.optimizer);
  const char *kScale = "lr_scale";
  std::vector<Key> known{{kScale, 1.0, kNotNegative, "factor of the learning rate"}};
  known.insert(known.end(), definition.keys.begin(), definition.keys.end());
  what += " of optimizer " + quote(definition.name);
  if (!keys.empty() || name.empty())
    ORTC_TRY(parseKeys(keys, what, known).moveTo(read.own));
  if (auto scale = read.own.find(kScale); scale != read.own.end()) {
    read.lrScale = std::get<double>(scale->second);
    read.own.erase(scale);
  }
  for (const auto &[key, value] : read.own)
    read.optimizer.given[key] = value;
  if (const char *reason =
          definition.contradict ? definition.contradict(settingsOf(read.optimizer)) : nullptr)
    return Status::refusal(what + ": " + reason);
  if (read.optimizer.file)
    ORTC_TRY(checkRequired(definition.keys, settingsOf(read.optimizer), what));
  return read;
}

Status checkGroups(const CompileOptions &options) {
  for (const GroupSpec &group : options.groups)
    if (Expected<OptimizerGroup> read = readGroup(group, options.optimizer); !read)
      return read.getStatus();
  return Status();
}

Key lrKey(double initial) { return {kLr, initial, kNotNegative, "learning rate"}; }
Key weightDecayKey(double initial, const char *meaning) {
  return {kWeightDecay, initial, kNotNegative, meaning, /*zeroIsAbsent=*/true};
}
Key gradientDecayKey() { return weightDecayKey(0, "added to the gradient, times the parameter"); }
Key ownDecayKey(double initial) {
  return weightDecayKey(initial, "share of the parameter that a step takes off, times lr");
}
Key momentumKey() {
  return {"momentum", 0.0, kNotNegative, "share of the last step's direction that is added",
          /*zeroIsAbsent=*/true};
}
Key betaKey(const char *name, double initial, const char *meaning) {
  return {name, initial, kFraction, meaning};
}
Key epsilonKey(double initial, const char *meaning) { return {"epsilon", initial, kNotNegative, meaning}; }
Key switchKey(const char *name, const char *meaning) {
  return {name, false, kSwitch, meaning, /*zeroIsAbsent=*/true, {}, /*isRare=*/true};
}
Key maximizeKey() { return switchKey(kMaximize, "the loss grows: gradients change their sign"); }

Value spread(TensorBuilder &b, Value scalar, Value tensor) {
  return b.broadcast(b.cast(scalar, TensorBuilder::elementOf(tensor)), TensorBuilder::shapeOf(tensor), {});
}

Value UpdateStep::scale(Value tensor, Value scalar) { return b.mul(tensor, spread(b, scalar, tensor)); }

void UpdateStep::decayGradient() {
  if (Value decay = scalar(kWeightDecay))
    gradient = b.add(gradient, scale(parameter, decay));
}

void UpdateStep::decayParameter() {
  if (Value decay = scalar(kWeightDecay))
    parameter = scale(parameter, oneMinus(b, b.mul(scalar(kLr), decay)));
}

Value oneMinus(TensorBuilder &b, Value scalar) { return b.sub(b.constantLike(scalar, 1), scalar); }

Value advanceCorrection(TensorBuilder &b, Value correction, Value beta) {
  return b.add(b.mul(beta, correction), oneMinus(b, beta));
}

SharedState correctionState(const char *name, const char *key) {
  return {name, {key}, [](ScalarStep &step, const SharedState &state, Value old) {
            return advanceCorrection(step.b, old, step.scalar(state.keys.front()));
          }};
}

SharedState countState(bool (*isNeeded)(const Settings &settings)) {
  return {kUpdates,
          {},
          [](ScalarStep &step, const SharedState &, Value old) { return step.b.addScalar(old, 1); },
          0,
          isNeeded};
}

Value power(TensorBuilder &b, double base, Value exponent) {
  return b.exp(b.mulScalar(exponent, std::log(base)));
}

Value normOf(TensorBuilder &b, Value tensor) {
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, TensorBuilder::rankOf(tensor)));
  return b.sqrt(b.cast(b.sum(b.mul(tensor, tensor), axes), b.getF64Type()));
}

} // namespace ortc::train
