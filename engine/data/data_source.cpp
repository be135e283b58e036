// Tells the kinds of data files apart.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/data/data_source.h"

#include <algorithm>

#include "engine/data/csv.h"
#include "engine/data/data_spec.h"
#include "engine/data/npy_files.h"
#include "engine/data/shards.h"
#include "engine/data/tar.h"
#include "engine/data/tokens.h"
#include "support/MappedFile.h"

namespace ortc::engine {
namespace {

constexpr const char *kEndings[] = {".npz", ".safetensors", ".npy", ".csv", ".tar"};

bool hasEnding(const std::string &path) {
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](const char *ending) { return path.ends_with(ending); });
}

/// Files of other programs, which nobody reads here: they would need libraries larger than ortc.
Status refuseForeign(const std::string &path, const char *kind) {
  return Status::failure(path + ": is " + kind +
                         ", which is read in Python alone; write its columns with numpy.savez, or train with "
                         "ortc.Trainer");
}

/// One file. `options` mean something for CSV alone.
Status openFile(const std::string &path, const DataSpec::Options &options,
                std::unique_ptr<DataSource> &source, const StopFlag *stop) {
  if (path.ends_with(".csv"))
    return openCsv(path, options, source, stop);
  if (!options.empty())
    return Status::refusal(path + ": '" + options[0].first + "=' means nothing for this kind of file");
  if (path.ends_with(".npz"))
    return openNpz(path, source, stop);
  if (path.ends_with(".safetensors"))
    return openSafetensors(path, source);
  if (path.ends_with(".tar"))
    return openTar(path, source);
  std::shared_ptr<const MappedFile> file;
  ORTC_TRY(MappedFile::open(path, file));
  const uint8_t *data = file->getData();
  size_t bytes = file->getBytes();
  auto begins = [&](const char *magic, size_t count) {
    return bytes >= count && !std::memcmp(data, magic, count);
  };
  if (begins("PAR1", 4))
    return refuseForeign(path, "Parquet");
  if (begins("ARROW1", 6))
    return refuseForeign(path, "Arrow");
  if (path.ends_with(".tar.gz") || path.ends_with(".tgz"))
    return Status::failure(path + ": is a compressed tar, which is not read; unpack it with gunzip");
  if (begins("PK", 2))
    return openNpz(path, source, stop);
  if (begins("\x1f\x8b", 2) || begins("\0\0", 2))
    return openIdx(path, "", source, stop);
  if (bytes > 8 && data[8] == '{')
    return openSafetensors(path, source);
  return Status::failure(path + ": is neither npz nor safetensors nor IDX, and no .npy, .csv or .tar");
}

} // namespace

bool DataSource::has(const std::string &name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// One file of each part makes a shard: parts are columns.
static Status zipParts(const std::string &text, const DataSpec &spec,
                       std::vector<std::vector<std::string>> &groups) {
  for (const DataSpec::Part &part : spec.parts)
    if (part.files.size() != spec.parts[0].files.size())
      return Status::refusal(text + ": " + part.text + " are " + std::to_string(part.files.size()) +
                             " files but " + spec.parts[0].text + " are " +
                             std::to_string(spec.parts[0].files.size()) + "; a shard has one of each");
  groups.resize(spec.parts[0].files.size());
  for (const DataSpec::Part &part : spec.parts)
    for (size_t i = 0; i < part.files.size(); ++i)
      groups[i].push_back(part.files[i]);
  return Status();
}

Status openData(const std::string &text, std::unique_ptr<DataSource> &source, const StopFlag *stop) {
  DataSpec spec;
  ORTC_TRY(DataSpec::parse(text, spec));
  const std::string &first = spec.parts[0].files[0];
  TokenOptions tokens;
  if (spec.isTokens)
    ORTC_TRY(TokenOptions::parse(spec.options, text, tokens));
  bool isNpy =
      !spec.isTokens && std::any_of(spec.parts.begin(), spec.parts.end(), [](const DataSpec::Part &part) {
        return !part.name.empty() || part.files[0].ends_with(".npy");
      });
  if (!spec.options.empty() && isNpy)
    return Status::refusal(text + ": '" + spec.options[0].first + "=' means nothing for this kind of file");
  auto shards = std::make_shared<Shards>();
  std::vector<std::string> files;
  bool isPair =
      !spec.isTokens && spec.parts.size() == 2 && !hasEnding(first) && !hasEnding(spec.parts[1].files[0]);
  if (isPair || isNpy) {
    std::vector<std::vector<std::string>> groups;
    ORTC_TRY(zipParts(text, spec, groups));
    for (const std::vector<std::string> &group : groups) {
      files.insert(files.end(), group.begin(), group.end());
      std::vector<NpyFile> columns;
      for (size_t i = 0; i < group.size(); ++i) {
        const DataSpec::Part &part = spec.parts[i];
        columns.push_back({part.name.empty() ? nameNpyFile(part.files[0]) : part.name, group[i]});
      }
      shards->add(group[0], [columns, isNpy, stop](std::unique_ptr<DataSource> &opened) {
        return isNpy ? openNpy(columns, opened) : openIdx(columns[0].path, columns[1].path, opened, stop);
      });
    }
  } else {
    for (const DataSpec::Part &part : spec.parts)
      for (const std::string &file : part.files) {
        files.push_back(file);
        shards->add(file, [file, stop, tokens, spec](std::unique_ptr<DataSource> &opened) {
          return spec.isTokens ? openTokens(file, tokens, opened)
                               : openFile(file, spec.options, opened, stop);
        });
      }
  }
  return shards->size() == 1 ? shards->open(0, source) : openShards(text, shards, files, source);
}

} // namespace ortc::engine
