// Schedules and metrics as words.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/Vocabularies.h"

#include "host/metrics/metric.h"
#include "host/plateau.h"
#include "host/schedule_forms.h"

namespace ortc::tool {

Vocabulary describeSchedules(bool hasPlateau) {
  Vocabulary vocabulary;
  for (const host::ScheduleForm &form : host::listScheduleForms()) {
    Word word{.name = form.name};
    for (const std::string &key : form.keys)
      word.keys.push_back({.name = key});
    vocabulary.words.push_back(std::move(word));
  }
  if (hasPlateau)
    vocabulary.words.push_back({.name = host::Plateau::kName});
  return vocabulary;
}

Vocabulary describeMetrics() {
  Vocabulary vocabulary;
  for (const host::MetricKind &kind : host::listMetrics())
    vocabulary.words.push_back({.name = kind.name});
  return vocabulary;
}

} // namespace ortc::tool
