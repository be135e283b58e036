// An update of tensors of any length by one program, in place.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/python/exchange.h"
#include "bindings/python/pool.h"
#include "bindings/python/program.h"

namespace ortc::python {

/// Programs of `ortc update` for pieces of tensors. Each binding has vectors of one length, a piece; they are powers of
/// two. A program has vectors, float64 scalars, outputs `VECTOR.new`, which are written over the vectors, and outputs
/// `SCALAR.new`, which are the same for all pieces. A tensor is updated in the largest pieces that fit, and what is
/// less than the smallest piece in a copy.
///
/// Vectors may be shorter, by the same factor in all bindings: each of their elements is of a block of the others'.
/// Such a program is no loop of elements: its results are copied to the vectors. The smallest piece is whole blocks.
///
/// The pieces of all tensors are one list, of which every thread takes a part: what an element becomes does not depend
/// on the piece that it is in, so results have the same bits for every number of threads.
class Update {
public:
  /// Raises ArgumentError where the program is none of these.
  explicit Update(std::shared_ptr<Program> program);
  ~Update();
  Update(const Update &) = delete;
  Update &operator=(const Update &) = delete;

  /// A vector: its name, its type ("float32") and how many elements of the first vector one of its own is of.
  using Form = std::tuple<std::string, std::string, int64_t>;
  /// Vectors, and names of scalars, in the order of the program.
  std::vector<Form> listVectors() const;
  std::vector<std::string> listScalars() const;
  /// The scalars that a step gives new values of.
  std::vector<std::string> listAdvanced() const;
  /// Lengths, from the largest to the smallest.
  std::vector<int64_t> listPieces() const;

  /// Where the vectors of one tensor of the caller are, and its length.
  struct Item {
    std::vector<char *> places;
    int64_t length;
    int64_t first; ///< of its units, of the smallest piece, among those of all items
  };
  /// Tensors of the caller.
  struct Batch {
    nanobind::tuple tensors; ///< which keep their memory
    std::vector<Item> items;
    int64_t units = 0;
  };
  /// `tensors`: for each vector a list of tensors of a framework with DLPack's C exchange (PyTorch 2.10 and newer), the
  /// same number of each; those at one place have one shape and one dense layout, the types of the program, and are on
  /// the processor. With vectors of blocks the layout is row-major, and theirs have a rank of 1. Raises ShapeError
  /// otherwise.
  std::unique_ptr<Batch> prepare(nanobind::tuple tensors) const;
  /// Updates a batch of this object's, and gives the new values of listAdvanced(). The GIL is free meanwhile.
  std::vector<double> step(Pool &pool, const Batch &batch, const std::vector<double> &scalars);

private:
  struct Vector {
    std::string name, result; ///< `result`: "" where it is read only
    uint8_t type = 0;         ///< TensorProto.DataType
    int shift = 0;            ///< each element is of 2^shift ones of the first vector
    size_t bytes = 0;         ///< of an element

    /// Of so many elements of the first vector, of which the last block may be a part.
    size_t bytesOf(int64_t elements) const { return size_t(blocksOf(elements)) * bytes; }
    int64_t blocksOf(int64_t elements) const { return (elements + (int64_t(1) << shift) - 1) >> shift; }
  };
  /// What one thread computes with.
  struct Worker {
    ortc_session *session = nullptr;
    size_t piece = SIZE_MAX;   ///< whose binding the session has
    std::vector<char> rest;    ///< a smallest piece of each vector
    std::vector<char> results; ///< a largest piece of each, where they are not made in place
    std::vector<double> advanced;
    std::string error;
  };
  struct Work;
  void readProgram();
  bool readVectors(const Binding &binding, int64_t &length);
  ortc_status bindScalars(Worker &worker);
  void addWorker();
  std::string refuse(size_t vector, const Tensor &tensor, const Tensor &first) const;
  size_t getPlace(size_t vector, int64_t elements) const;
  void copyRest(Worker &worker, const Item &item, int64_t from, int64_t count) const;
  static void ORTC_STEP_ABI runPart(void *work, int64_t part, int64_t worker);
  void run(Worker &worker, const Batch &batch, int64_t begin, int64_t end) const;
  bool runPiece(Worker &worker, size_t piece, const std::vector<char *> &places, int64_t offset) const;

  std::shared_ptr<Program> program;
  std::vector<Vector> vectors;
  std::vector<std::string> scalars, advanced;
  std::vector<std::pair<int64_t, uint32_t>> pieces; ///< lengths and bindings, the largest first
  bool hasBlocks = false;
  uint8_t type = 0;            ///< of the first vector, TensorProto.DataType: float or double
  std::vector<double> numbers; ///< the scalars
  std::vector<Worker> workers;
  std::mutex mutex; ///< of the numbers and the workers
};

/// Adds one to tensors of one float32 on the processor, and gives what they are then. Raises ShapeError, and changes
/// none, where one is something else.
std::vector<float> advance(nanobind::list counters);

} // namespace ortc::python
