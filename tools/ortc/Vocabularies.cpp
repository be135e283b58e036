// Schedules and metrics as words.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/Vocabularies.h"

#include "engine/metrics/metric.h"
#include "engine/training/plateau.h"
#include "support/ScheduleForms.h"

namespace ortc::tool {

Vocabulary describeSchedules(bool hasPlateau) {
  Vocabulary vocabulary;
  for (const ScheduleForm &form : listScheduleForms()) {
    Word word{.name = form.name};
    for (const std::string &key : form.keys)
      word.keys.push_back({.name = key});
    vocabulary.words.push_back(std::move(word));
  }
  if (hasPlateau)
    vocabulary.words.push_back({.name = engine::Plateau::kName});
  return vocabulary;
}

Vocabulary describeMetrics() {
  Vocabulary vocabulary;
  for (const engine::MetricKind &kind : engine::listMetrics())
    vocabulary.words.push_back({.name = kind.name});
  return vocabulary;
}

} // namespace ortc::tool
