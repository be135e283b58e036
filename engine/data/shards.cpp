// Files whose rows follow each other.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/data/shards.h"

#include <algorithm>
#include <sys/stat.h>

namespace ortc::engine {
namespace {

class ShardSource final : public DataSource {
public:
  ShardSource(std::string path, std::shared_ptr<const Shards> shards, std::vector<std::string> files,
              std::unique_ptr<DataSource> first)
      : DataSource(std::move(path)), shards(std::move(shards)), files(std::move(files)),
        first(std::move(first)) {
    names = this->first->getNames();
  }
  std::vector<std::string> getFiles() const override { return files; }
  std::shared_ptr<const Shards> getShards() const override { return shards; }
  int64_t getRun() const override { return first->getRun(); }
  std::string getHint() const override { return first->getHint(); }
  Status load(const std::string &name, Array &array) const override { return first->load(name, array); }

private:
  std::shared_ptr<const Shards> shards;
  std::vector<std::string> files;
  std::unique_ptr<DataSource> first;
};

} // namespace

/// What changes when a file is written.
static std::string stampOf(const DataSource &source) {
  std::string stamp;
  for (const std::string &file : source.getFiles()) {
    struct stat about{};
    if (!file.empty() && stat(file.c_str(), &about) == 0)
      stamp += std::to_string(about.st_size) + " " + std::to_string(about.st_mtim.tv_sec) + " " +
               std::to_string(about.st_mtim.tv_nsec) + ",";
  }
  return stamp;
}

Status Shards::open(size_t number, std::unique_ptr<DataSource> &source) const {
  Shard &shard = shards[number];
  ORTC_TRY(shard.openFile(source));
  std::string stamp = stampOf(*source);
  if (shard.stamp.empty())
    shard.stamp = stamp;
  return shard.stamp == stamp
             ? Status()
             : Status::failure(shard.path +
                               ": has changed since it was opened first; while a file is in use, "
                               "write a new one and rename it after the end of the run");
}

Status checkSameNames(const DataSource &first, const std::string &path, const DataSource &other) {
  static const char kEnd[] = "; all shards need the same arrays";
  for (const std::string &name : first.getNames())
    if (!other.has(name))
      return Status::failure(other.getPath() + ": has no array '" + name + "', which " + path + " has" +
                             kEnd);
  for (const std::string &name : other.getNames())
    if (!first.has(name))
      return Status::failure(other.getPath() + ": has an array '" + name + "', which " + path + " has not" +
                             kEnd);
  return Status();
}

Status openShards(const std::string &path, std::shared_ptr<Shards> shards, std::vector<std::string> files,
                  std::unique_ptr<DataSource> &source) {
  std::unique_ptr<DataSource> first;
  ORTC_TRY(shards->open(0, first));
  source = std::make_unique<ShardSource>(path, std::move(shards), std::move(files), std::move(first));
  return Status();
}

} // namespace ortc::engine
