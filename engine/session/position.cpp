// Where a training stands, and the metadata that carries it from run to run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/session/position.h"

#include <cfloat>
#include <charconv>

#include "support/Text.h"

namespace ortc::engine {

std::map<std::string, std::string> formatPosition(const Position &position) {
  std::map<std::string, std::string> metadata = {
      {"run.seed", std::to_string(position.seed)},   {"run.shuffle", position.shuffle ? "1" : "0"},
      {"run.step", std::to_string(position.step)},   {"run.epoch", std::to_string(position.epoch)},
      {"run.slice", std::to_string(position.slice)}, {"run.items", std::to_string(position.items)},
      {"run.lr", formatExact(position.lr)},          {"run.schedule", position.schedule.format()}};
  if (position.world > 1)
    metadata["run.world"] = std::to_string(position.world);
  return metadata;
}

template <typename T> static bool parseWhole(const std::string &text, T &value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

Status parsePosition(const std::map<std::string, std::string> &metadata, const std::string &path,
                     std::optional<Position> &position) {
  position.reset();
  auto first = metadata.lower_bound("run.");
  if (first == metadata.end() || !first->first.starts_with("run."))
    return Status();
  Position parsed;
  auto read = [&](const char *key, auto &value, auto isGood) {
    auto found = metadata.find(key);
    if (found == metadata.end())
      return Status::failure(path + ": its metadata has no '" + key +
                             "': it is not a checkpoint of ortc run");
    if (!parseWhole(found->second, value) || !isGood(value))
      return Status::failure(path + ": its metadata has '" + key + "' = '" + found->second +
                             "', which is no position");
    return Status();
  };
  auto isCount = [](int64_t value) { return value >= 0 && value <= kMostSteps; };
  int64_t shuffles = 1;
  ORTC_TRY(read("run.seed", parsed.seed, [](uint64_t) { return true; }));
  ORTC_TRY(read("run.shuffle", shuffles, [](int64_t value) { return value == 0 || value == 1; }));
  ORTC_TRY(read("run.step", parsed.step, isCount));
  ORTC_TRY(read("run.epoch", parsed.epoch, isCount));
  ORTC_TRY(read("run.slice", parsed.slice, isCount));
  ORTC_TRY(read("run.items", parsed.items, isCount));
  ORTC_TRY(read("run.lr", parsed.lr, [](double value) { return value >= 0 && value <= double(FLT_MAX); }));
  if (metadata.contains("run.world"))
    ORTC_TRY(
        read("run.world", parsed.world, [](int64_t value) { return value >= 1 && value <= kMostSteps; }));
  if (parsed.slice > parsed.items) // a slice has at least one item
    return Status::failure(path + ": its metadata has 'run.slice' = '" + std::to_string(parsed.slice) +
                           "', which is no position in 'run.items' = '" + std::to_string(parsed.items) + "'");
  parsed.shuffle = shuffles == 1;
  auto schedule = metadata.find("run.schedule");
  if (schedule == metadata.end() || !Schedule::parse(schedule->second, parsed.schedule).isOk())
    return Status::failure(path + ": its metadata has no readable 'run.schedule'");
  position = parsed;
  return Status();
}

} // namespace ortc::engine
