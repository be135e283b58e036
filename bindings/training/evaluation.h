// Metrics over an evaluation whose loop is a program's own: --metric of ortc eval, slice by slice.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/artifact/batch_table.h"
#include "engine/metrics/metric_set.h"

namespace ortc::bindings {

/// Somebody says what an artifact has, begins, and brings the tensors of every slice. Bindings go by their numbers.
class Evaluation {
public:
  /// `manifest`: the artifact's.
  Status open(const std::string &manifest);
  /// An input or output of an entry of role eval or predict; both may have it.
  Status addValue(size_t binding, bool isInput, const engine::TensorShape &value);
  /// Adds a metric as --metric has it, after all values. Refuses unknown names and keys, and what begin() refuses.
  Status add(const std::string &metric);

  /// Forgets all slices. Refuses metrics that do not fit what they compare.
  Status begin();
  /// All that a slice needs; known once there are metrics.
  const std::vector<std::string> &getTensors() const { return tensors; }
  /// A place for the bytes of a tensor in a slice of that binding, dense and row-major, until it is asked for again.
  /// Refuses a binding that has no such tensor.
  Status getPlace(size_t binding, size_t tensor, std::vector<uint8_t> *&place);
  /// Adds a slice whose tensors are in their places. `rows`: the samples of its batch that count, from the first one
  /// on; absent: all rows. Refuses rows that are no samples.
  Status addSlice(size_t binding, std::optional<int64_t> rows);
  /// Names, as they were given, and values; NaN where there is none.
  std::vector<std::pair<std::string, double>> compute() { return metrics.compute(); }

private:
  struct Binding {
    std::string name;
    std::vector<engine::TensorShape> inputs, outputs;
    /// Without a type where there is none.
    engine::TensorShape find(const std::string &tensor) const;
  };
  Status countBatch(const Binding &binding, int64_t rows, int64_t &batch) const;

  std::vector<engine::LossInfo> losses;
  engine::BatchTable batches;
  std::vector<Binding> bindings;
  engine::MetricSet metrics;
  std::vector<std::string> tensors;
  std::map<std::string, std::vector<uint8_t>> places; ///< by tensor
};

} // namespace ortc::bindings
