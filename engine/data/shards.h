// Files whose rows follow each other.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/data/data_source.h"

namespace ortc::engine {

/// The files of one data set. They are opened when they are read, and again when they are read again: whoever has them
/// open says which, so that a data set may have more files than a process, and more bytes than the machine.
class Shards {
public:
  using Open = std::function<Status(std::unique_ptr<DataSource> &)>;

  void add(std::string path, Open open) { shards.push_back({std::move(path), std::move(open), {}}); }
  size_t size() const { return shards.size(); }
  const std::string &getPath(size_t shard) const { return shards[shard].path; }
  /// Fails when a file has been changed since it was opened first. Not for several threads at once.
  Status open(size_t shard, std::unique_ptr<DataSource> &source) const;

private:
  struct Shard {
    std::string path;
    Open openFile;
    std::string stamp; ///< sizes and times of change, of all files
  };
  mutable std::vector<Shard> shards;
};

/// Refuses a shard that has other arrays than `first`, which is the shard of this path.
Status checkSameNames(const DataSource &first, const std::string &path, const DataSource &other);

/// All of them, with the names of the first.
Status openShards(const std::string &path, std::shared_ptr<Shards> shards, std::vector<std::string> files,
                  std::unique_ptr<DataSource> &source);

} // namespace ortc::engine
