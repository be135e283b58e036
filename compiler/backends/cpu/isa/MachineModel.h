// What generators and the driver take a machine to be: caches, arithmetic, and when work is worth handing out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each level of an architecture has one, made beside its Isa with the source of the figures. Nothing here may decide
// about the order of sums, or whether the matrix unit computes one: constants that do are in
// compiler/kernels/SumOrder.h.
#pragma once

#include "support/Machine.h"

#include <cstdint>
#include <limits>

namespace ortc::cpu {

/// How register tiles of contractions and convolutions are chosen.
struct TileModel {
  int64_t accumulators = 12; ///< independent sums that a kernel may have
  int64_t convVectors = 2;   ///< vectors of columns of a convolution's tile
  double macsPerCycle = 2;   ///< multiply-adds of whole vectors
  double loadsPerCycle = 2;  ///< of whole vectors
  double latencyCycles = 4;  ///< of a multiply-add
  double rowCycles = 0.15;   ///< that a row costs beside the arithmetic: it comes from the first-level cache
  /// The same of a vector of columns. The second is of packed columns beyond `nearElements`.
  double vectorCycles = 0.25, farVectorCycles = 0.35;
  int64_t nearElements = 8 << 10;
};

/// How a contraction is cut for caches.
struct ContractionModel {
  int64_t laneChunk = 512; ///< most columns of a chunk
  /// The part of the second-level cache that a packed block may take. What passes by needs room, and small pages fall
  /// on some of its sets more often than on others: all of it halves the speed wherever there are no huge pages.
  int64_t packedShare = 2;
  int64_t inPlaceElements = 32 << 10; ///< of a chunk of columns that are read in place
  /// Most rows along which columns are read in place, not packed: more read them often enough to pay for a copy. Of
  /// what the first-level cache holds (TileModel::nearElements) these are `nearRows`: a copy would only take memory.
  int64_t inPlaceRows = 48, nearRows = 192;
  /// The same where the columns of a k do not begin on a cache line: vectors then lie on two, and are loaded twice.
  int64_t unalignedRows = 48;
  int64_t inPlaceColumns =
      2048; ///< most that are read in place: a k further is a page further, and a TLB has few
  int64_t gatheredRows = 96;       ///< rows that are gathered at a time
  int64_t gatheredStride = 1024;   ///< bytes from one k to the next from which rows are gathered
  int64_t gatheredPanels = 2;      ///< least panels of packed columns that read them then
  int64_t gatheredLeastDepth = 64; ///< of a block whose rows are gathered
  int64_t gatheredDepth = 256;     ///< the most, where a block is one of many
  bool fetchesNext = true; ///< a tile asks for what the next ones read from beyond the caches of a core
  /// Bytes of a result that leaves all caches: its rows are written whole where they have at most `wholeColumns`.
  int64_t streamedBytes = std::numeric_limits<int64_t>::max(), wholeColumns = 1024;
  double macsPerCycle = 28; ///< of f32, in blocks
  double packCycles = 0.7;  ///< of an element
  double readCycles = 0.4;  ///< of an element from a cache that all cores share
};

/// How a product is cut for the matrix unit, in bytes.
struct MatrixUnitModel {
  int64_t lanes =
      1200 << 10; ///< most of packed columns, beside rows that pass by, when all of a chunk are one block
  int64_t laneBlock = 768 << 10; ///< a block of packed columns when there are several
  int64_t rows = 4 << 20;        ///< a chunk's packed rows
  int64_t sums = 4 << 20;        ///< a chunk's waiting sums
};

/// When work is worth handing to another thread.
struct ParallelModel {
  double serialSeconds = 10e-6;         ///< less is done by the calling thread: waking the pool costs as much
  double flopRate = 50e9;               ///< of one core, for that question
  double byteRate = 20e9;               ///< read and written by one core, for that question
  int64_t contractionFlops = 3'000'000; ///< of a chunk: about 20 microseconds
  int64_t convFlops = 2 << 20;          ///< of a chunk, as all that follow
  int64_t dotFlops = 1'000'000;         ///< of scalar products, which run at memory speed
  int64_t loopCost = 1 << 17;           ///< simple operations: about ten microseconds
  int64_t poolWork = 1 << 16;           ///< elements of windows: about ten microseconds
  double matrixUnitCycles = 60'000;     ///< of a chunk
};

struct MachineModel {
  int64_t l2Bytes = 512 << 10; ///< second-level cache of a core
  Machine core;                ///< rates of one core, in f32: how long work takes
  TileModel tiles;
  ContractionModel contraction;
  MatrixUnitModel matrixUnit;
  ParallelModel parallel;
};

} // namespace ortc::cpu
