// Cuts data into the slices that steps take.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/order.h"
#include "engine/data/pieces.h"

namespace ortc::engine {

/// An input of a step.
struct InputSpec {
  std::string name;
  DataType type = DataType::None;
  Shape shape;
  bool isLabel = false; ///< the loss reads it: never matched to an array of another name
  /// Whether the leading dimension is the batch, by the model; nullopt where it does not say.
  std::optional<bool> isBatch = std::nullopt;
  std::string loss = {};       ///< the kind of the one whose label it is, or empty
  bool isSampleWeight = false; ///< of a loss: finite and not negative
};

/// What to do with samples that do not fill a slice.
enum class Remainder { Drop, Repeat };

/// The arrays of a data file matched to the inputs of a step. The leading axis of an array holds slices of
/// the input's own leading dimension. When these are equal for all inputs and the model has none of them for
/// another dimension (a batch), rows are samples and may be mixed freely; otherwise only whole slices can
/// change places.
class Batches {
public:
  /// Loads what `inputs` need from `source` (which may be closed afterwards) and checks types, shapes and
  /// counts, shapes before anything is loaded. `notes` receives what the log should say. `alsoUsed`: an array that
  /// somebody else reads.
  static Status create(const DataSource &source, const std::vector<InputSpec> &inputs, Remainder remainder,
                       Batches &batches, std::vector<std::string> &notes, const std::string &alsoUsed = "");

  /// Takes every `world`-th slice from the `rank`-th on, so that step k of all processes has what step k of one with a
  /// batch of all of theirs would have. Slices that some processes would not get are dropped. Not where slices repeat.
  Status setShare(int64_t rank, int64_t world);
  /// The order of an epoch: all items mixed, or of shards and streams (decision 0050) windows of them.
  Order makeOrder(uint64_t seed, int64_t epoch) const;

  const std::string &getPath() const { return path; } ///< of the data file
  bool isBatch() const { return batch > 0; }
  int64_t getBatch() const { return batch; }     ///< samples in a slice; 0 unless isBatch()
  int64_t getSamples() const { return samples; } ///< of the file; 0 unless isBatch()
  int64_t getSamples(size_t shard) const {
    return begins[shard + 1] - begins[shard];
  } ///< of one of its files
  int64_t getSlices() const { return slices / world; } ///< steps in an epoch, at least 1
  int64_t getDropped() const { return dropped; }       ///< samples (or rows) an epoch leaves out
  /// Says so. `of`: what they are at the end of.
  std::string describeDropped(const std::string &of) const;
  /// What should be said before slices are shuffled: that rows are mixed where nothing but equal numbers
  /// tells that they are samples, or that rows are not mixed though the numbers are equal. "" when there is
  /// nothing to say.
  std::string describeShuffling() const;
  /// Says how the last slice is filled up; "" when it is full.
  std::string describeFilling() const;
  /// How many rows of slice k are real; the others repeat the first rows of the slice.
  int64_t getRealRows(int64_t slice) const;
  /// How many things an order permutes: samples of a batch, else slices.
  int64_t getItems() const { return isBatch() ? samples : slices; }

  size_t getInputBytes(size_t input) const { return fields[input].sliceBytes; }
  /// Copies slice k of an input to `to`. `order` permutes the items; nullptr: as the file has them. Fails
  /// when the file has changed since it was opened.
  Status gather(size_t input, int64_t slice, const Order *order, uint8_t *to) const;
  /// The same for an input of `shape`, which is at most as large along every axis: rows are cut at their ends. Only
  /// where rows are samples, and the array of an input that is cut has that input's own shape (canCut).
  Status gather(size_t input, int64_t slice, const Order *order, const Shape &shape, uint8_t *to) const;
  /// Whether rows of an input are read as the file has them, and not grouped otherwise.
  bool canCut(size_t input) const;
  /// The item that row `row` of slice k is, in a batch.
  int64_t getItem(int64_t slice, int64_t row, const Order *order) const;
  /// Where an element of a slice of an input of `shape` comes from: "sample 3 of FILE, ..., at byte 12".
  std::string describeElement(size_t input, int64_t slice, int64_t element, const Shape &shape,
                              const Order *order) const;

private:
  struct Field {
    InputSpec spec;
    Column column;
    DataType type = DataType::None; ///< in the files
    Shape shape;                    ///< of the array in the first file
    std::vector<int64_t> shards;    ///< rows in each file
    bool isEmpty = false;           ///< the input has no elements, in any slice
    int64_t leading = 1;            ///< rows of a slice
    size_t sliceBytes = 0;
    int64_t rows() const { return std::accumulate(shards.begin(), shards.end(), int64_t(0)); }
  };
  /// Rows of a file that go to neighbouring places of a slice.
  struct Run {
    size_t shard;
    int64_t row, place, rows;
  };
  Status match(const DataSource &source, const std::vector<InputSpec> &inputs, Field &field,
               std::vector<std::string> &notes);
  Status open(const DataSource &source, Remainder remainder, std::vector<std::string> &notes);
  Status describe(const DataSource &source, Field &field, std::vector<std::string> &notes);
  Status count(Remainder remainder);
  Status countSamples(const Field &first, Remainder remainder);
  Status countSlices(const Field &first, Remainder remainder);
  Status refuseCounts(const Field &field, const Field &first, const char *what, int64_t ours,
                      int64_t theirs) const;
  Status countShards();
  int64_t place(int64_t slice) const { return slice * world + rank; }
  size_t findShard(int64_t item) const;
  std::vector<Run> listRuns(const Field &field, int64_t slice, const Order *order) const;

  std::vector<Field> fields;
  std::string path;
  std::vector<std::string> paths;    ///< of shards; empty: one file
  std::vector<int64_t> begins;       ///< the first item of each file; ends with all
  std::shared_ptr<PieceCache> cache; ///< what is open of the files
  int64_t rank = 0, world = 1;
  int64_t run = 0, window = 0; ///< items that change places together; items that are mixed
  int64_t batch = 0, samples = 0, slices = 0, dropped = 0;
  bool isAssumed = false; ///< the batch is: the model does not say that equal leading dimensions are one
  std::string
      otherInput; ///< whose leading dimension is no batch in the model, though all are equal; "" without one
};

} // namespace ortc::engine
