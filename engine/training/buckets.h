// Steps of the length that their samples need: bindings of an artifact that differ in one dimension.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include "engine/artifact/artifact.h"

namespace ortc::engine {

/// Chooses for every slice of the data the smallest binding that holds its longest sample. Data are as long as the
/// largest binding; for smaller ones they are cut (Batches::gather).
class Buckets {
public:
  /// Parses `length=ARRAY` of `--buckets`.
  static Status parse(const std::string &text, std::string &array);

  /// Finds the training entries of all bindings. Refuses bindings that differ in more than one dimension, or in the
  /// batch.
  static Status create(const Artifact &artifact, Buckets &buckets);
  /// Reads the length of every sample from an array of integers: one for each sample, or a mask with a row for each,
  /// whose length is the place behind the last element that is not zero. Refuses what the largest binding does not
  /// hold, or data that cannot be cut.
  Status readLengths(const DataSource &source, const std::string &array, const Batches &data);

  const Entry &getLargest() const { return *buckets.back().entry; }
  /// The training entry for slice k.
  const Entry &choose(const Batches &data, int64_t slice, const Order *order) const;

private:
  Status readLengths(const DataSource &source, const std::string &array, int64_t samples);
  struct Bucket {
    int64_t length;
    const Entry *entry;
  };
  std::vector<Bucket> buckets;  ///< by length
  std::string dimension;        ///< that differs
  std::vector<int64_t> lengths; ///< of samples
};

} // namespace ortc::engine
