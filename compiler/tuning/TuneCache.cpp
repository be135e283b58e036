// The choices that measurements made.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/tuning/TuneCache.h"

#include "support/Expected.h"
#include "support/Json.h"
#include "support/ReadAll.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/stat.h>

namespace ortc::tuning {

using Json = nlohmann::json; // sorts keys

static constexpr int64_t kVersion = 1;
/// Of the file: some hundred thousand kernels.
static constexpr int64_t kMostBytes = 64 << 20;
static constexpr const char *kFormat = "ortc tuned kernels";

static bool readNumber(const Json &value, int64_t &result) {
  if (!value.is_number_integer() || value < 0 || value > INT64_MAX)
    return false;
  result = value.get<int64_t>();
  return true;
}

static bool readKernel(const Json &kernel, TunedKernel &result) {
  if (!kernel.is_object() || !kernel.contains("choice"))
    return false;
  const Json &choice = kernel["choice"];
  if (!choice.is_null()) {
    result.choice.emplace();
    if (!choice.is_object() || choice.empty())
      return false;
    for (const auto &[name, value] : choice.items())
      if (!readNumber(value, (*result.choice)[name]))
        return false;
  }
  return readNumber(kernel.value("table_ns", Json()), result.usualNanoseconds) &&
         readNumber(kernel.value("tuned_ns", Json()), result.tunedNanoseconds);
}

/// Parts of the file `source`, checked on the way.
static Expected<std::map<std::string, TuneCache::Kernels>> readPlaces(const Json &file,
                                                                      const std::string &source) {
  auto refuse = [&](const std::string &why) { return Status::refusal(source + ": " + why); };
  if (file.is_discarded())
    return refuse("it is not JSON");
  if (!file.is_object() || file.value("format", Json()) != kFormat || !file.contains("version"))
    return refuse("it is no file of --tune");
  if (file["version"] != kVersion)
    return refuse("it has version " + file["version"].dump() + ", and this ortc reads version " +
                  std::to_string(kVersion) + "; measure again into another file");
  if (!file.contains("kernels") || !file["kernels"].is_object())
    return refuse("it has no 'kernels'");
  std::map<std::string, TuneCache::Kernels> places;
  for (const auto &[place, kernels] : file["kernels"].items()) {
    if (!kernels.is_object())
      return refuse("'" + place + "' holds no kernels");
    for (const auto &[key, kernel] : kernels.items())
      if (!readKernel(kernel, places[place][key]))
        return refuse("'" + key + "' needs a 'choice' of whole numbers (or null), 'table_ns' and 'tuned_ns'");
  }
  return places;
}

Status TuneCache::read(const std::string &path, bool mayBeMissing) {
  source = "tuning cache '" + path + "'";
  struct stat about{};
  bool isThere = stat(path.c_str(), &about) == 0;
  if (!isThere && errno == ENOENT && mayBeMissing)
    return Status();
  auto refuse = [&](const std::string &reason) {
    return Status::refusal("cannot read " + source + ": " + reason);
  };
  if (isThere && !S_ISREG(about.st_mode)) // which may have no end
    return refuse(S_ISDIR(about.st_mode) ? "it is a folder" : "it is no regular file");
  if (isThere && about.st_size > kMostBytes)
    return refuse("it has " + std::to_string(about.st_size) + " bytes, and at most " +
                  std::to_string(kMostBytes) + " are read; measure again into another file");
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return refuse(std::strerror(errno));
  std::optional<std::string> text = readAll(file);
  if (!text)
    return refuse(std::strerror(errno));
  if (text->empty())
    return refuse("it is empty");
  auto others = readPlaces(parseJson<Json>(*text), source);
  if (!others)
    return others.getStatus();
  for (auto &[place, kernels] : *others)
    places[place].merge(kernels);
  return Status();
}

std::string TuneCache::write() const {
  Json kernels = Json::object();
  for (const auto &[place, ofPlace] : places)
    for (const auto &[key, kernel] : ofPlace)
      kernels[place][key] = {{"choice", kernel.choice ? Json(*kernel.choice) : Json()},
                             {"table_ns", kernel.usualNanoseconds},
                             {"tuned_ns", kernel.tunedNanoseconds}};
  Json file{{"format", kFormat}, {"version", kVersion}, {"kernels", kernels}};
  return formatJson(file);
}

const TuneCache::Kernels &TuneCache::at(const std::string &place) const {
  static const Kernels none;
  auto found = places.find(place);
  return found == places.end() ? none : found->second;
}

void TuneCache::set(const std::string &place, const std::string &key, TunedKernel kernel) {
  places[place][key] = std::move(kernel);
}

backends::KernelChoices TuneCache::choices(const std::string &place) const {
  backends::KernelChoices result;
  result.source = source;
  for (const auto &[key, kernel] : at(place))
    if (kernel.choice)
      result.byKey[key] = *kernel.choice;
  return result;
}

} // namespace ortc::tuning
