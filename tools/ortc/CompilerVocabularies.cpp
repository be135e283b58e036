// Losses and optimizers as words.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/passes/train/Losses.h"
#include "compiler/passes/train/Optimizers.h"
#include "tools/ortc/Vocabularies.h"

#include "llvm/ADT/StringExtras.h"

namespace ortc::tool {

static std::vector<Word::Key> describeKeys(const std::vector<Key> &keys) {
  std::vector<Word::Key> described;
  for (const Key &key : keys)
    described.push_back(
        {key.name, formatValue(key.initial), key.meaning, key.range.text + llvm::join(key.words, ", ")});
  return described;
}

Vocabulary describeLosses() {
  Vocabulary vocabulary{.words = {},
                        .others = {"onnx:FILE (an ONNX function)",
                                   "output:NAME (the graph computes its loss)", "none",
                                   "Losses of the table also take reduction=mean|sum and sample_weight=1."},
                        .initial = LossSpec().name,
                        .columns = {"loss", "what it is", "keys with their defaults", "`ortc eval` shows"}};
  for (const train::LossDefinition *each : train::listLosses()) {
    std::string predictions;
    for (size_t i = 0; i < each->predictions.size() && each->predictions.size() > 1; ++i)
      predictions += (i ? "+" : "@") + std::string(each->predictions[i]);
    vocabulary.words.push_back(
        {.name = each->name,
         .suffix = predictions,
         .meaning = each->meaning,
         .keys = describeKeys(each->keys),
         .note = each->label == train::LabelKind::Classes ? "loss, accuracy" : "loss"});
  }
  return vocabulary;
}

Vocabulary describeOptimizers() {
  Vocabulary vocabulary{
      .words = {},
      .others = {"onnx:FILE (an ONNX function)"},
      .initial = OptimizerSpec().name,
      .columns = {"optimizer", "what it is", "keys with their defaults", "state of a parameter"}};
  for (const train::OptimizerDefinition *each : train::listOptimizers()) {
    std::string states;
    for (const train::StateDefinition &state : each->states)
      states +=
          (states.empty() ? "`" : ", `") + std::string(state.name) + (state.isNeeded ? "` if needed" : "`");
    vocabulary.words.push_back(
        {.name = each->name, .meaning = each->meaning, .keys = describeKeys(each->keys), .note = states});
  }
  return vocabulary;
}

} // namespace ortc::tool
