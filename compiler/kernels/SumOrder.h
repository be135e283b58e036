// The constants that decide in which order numbers are summed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bits depend on these, so they depend on shapes only. They are the same for every target, every machine and any
// number of workers, and none may move into a model of a machine. Some were chosen with caches in view, but another
// machine must not choose again. To change one is to change results.
#pragma once

#include <cstdint>

namespace ortc::kernels {

// Loops.

/// Lanes of a vector in reductions, whatever the target: the tree of a sum depends on it.
inline constexpr int64_t kReductionLanes = 16;
/// Vectors that a reduction along the lanes keeps apart.
inline constexpr int64_t kReductionVectors = 2;
/// Rows that the innermost loop of a reduction adds up before it joins their sum with the rest. The same for
/// all programs, since the order of sums must not depend on what was fused with them.
inline constexpr int64_t kReductionBlock = 16;

// Contractions and convolutions.

/// Lanes that run along k in scalar products, whatever the target.
inline constexpr int64_t kDotLanes = 16;
/// The depth of a block of k.
inline constexpr int64_t kContractionDepth = 512;
/// The depth of one block of many where rows are gathered too: long runs of the source, in a block that
/// leaves the other one its place in the cache. Sums that a block puts aside go on in the next one as if there were
/// no cut, so a machine may cut the innermost dimension of k more often (ContractionModel::gatheredDepth).
inline constexpr int64_t kGatheredContractionDepth = 384;
/// Products of a dense convolution's element that are summed in registers before the sum is put aside: with a panel of
/// two vectors, half of a first-level cache. As many as `kWholeConvDepth` are summed in one go.
inline constexpr int64_t kConvDepth = 256, kWholeConvDepth = 640;

/// Parts of 16 bits of a f32 number, where units of such numbers multiply it.
inline constexpr int64_t kWideParts = 3;

// The matrix unit, whose sums have other bits than fused multiply-adds: where it is used depends on shapes only, too.

/// Depth of a block: what a block of packed columns in the second-level cache allows.
inline constexpr int64_t kMatrixUnitDepth = 768;
/// Multiply-adds a cycle of the unit: of f32 numbers, which take six products, and of bf16 ones, which take one (an
/// estimate: no processor with the unit was at hand when they came).
inline constexpr double kUnitMacs = 46, kNarrowUnitMacs = 6 * 46;
/// The same of vectors of pairs of bf16: twice those of f32.
inline constexpr double kPairMacs = 48;
/// Multiply-adds a cycle of vectors, and where vectors are not packed.
inline constexpr double kVectorMacs = 24, kInPlaceMacs = 28;
/// Cycles to pack an element that lies as the unit wants it, and any other element.
inline constexpr double kUnitPackCycles = 0.8, kUnitTransposeCycles = 1.1;
/// Cycles to hand a sum to the epilogue.
inline constexpr double kUnitSumCycles = 1;

// Reductions that are cut before kernels are made.

/// Independent pieces that a large reduction should have, and elements that each should have at least.
inline constexpr int64_t kReducedPieces = 16, kReducedPieceElements = 4096;
/// Columns that one piece of a reduction over leading dimensions covers.
inline constexpr int64_t kReducedColumns = 64;
/// Parts of the batch that a filter gradient is cut in, positions of the gradient that a part has at least,
/// and elements of the filter at most: larger ones have results enough.
inline constexpr int64_t kFilterGradParts = 4, kFilterGradPartPositions = 1024, kSmallFilter = 10240;
/// Tensors of so many elements leave the caches between two readings: their moments are those of blocks.
inline constexpr int64_t kLargeMoments = 1 << 19;
/// Elements of a block of moments for each of its results, at most and at least.
inline constexpr int64_t kMomentsBlock = 256, kLeastMomentsBlock = 32;

// GPUs, with fast numerics or where no order is promised (decision 0025).

/// The machine for which products are cut, whatever the device: an H100, with constants that predict its measured times
/// of products, a layer normalisation and training steps to 10 %: 1.755 GHz; 2.45 TB/s; 2.2 us a launch; 80 % of the
/// cycles issue an instruction; and a step of a block's depth, which loads, stores, meets and multiplies, waits 1,300.
struct ReferenceGpu {
  static constexpr int64_t kProcessors = 132;
  static constexpr double kLaunchCycles = 3900, kBytesPerCycle = 1396, kIssueShare = 0.80,
                          kStepLatency = 1300;
  /// What a multiprocessor reads of the cache that all share: 5.6 TB/s in all (published measurements of an H100).
  static constexpr double kCachedBytesPerCycle = 24;
  /// Cycles that a thread which joins parts takes for each (an estimate: four loads at a time).
  static constexpr double kJoinLatency = 150;
  /// Of kernels that are no products: bytes that a thread has on their way at once, and how many cycles that takes.
  static constexpr double kClock = 1.755e9, kBytesOnTheWay = 64, kLoadLatency = 600;
  static constexpr int64_t kThreads = 2048; ///< of a multiprocessor
  /// Schedulers of a multiprocessor, and cycles that an instruction of a tensor core takes one: 62 % of the data
  /// sheet's rate, as mma.sync reaches on an H100 (arXiv 2402.13499).
  static constexpr double kSchedulers = 4, kProductCycles = 1.61;
};

/// Parts of a product's depth at most, products that a part has at least, and what the depth of a part is a multiple
/// of.
inline constexpr int64_t kMostDepthParts = 128, kLeastPartDepth = 256, kPartDepthUnit = 16;
/// Fewer parts are chosen where they take at most so much longer.
inline constexpr double kWorthwhileParts = 1.05;
/// Sums at one time that keep a device busy where a thread has each: where there are fewer, the depth is cut.
inline constexpr int64_t kPartSums = 128 << 10;
/// Reductions over leading dimensions, 32 points at a time: parts of the rows that all of these have together; rows
/// that a part has at least; parts that a block joins at most; rows up to which one block has all of them; and parts of
/// each block where there are several; and groups of 32 points from which on there are blocks enough, so that one has
/// all rows.
inline constexpr int64_t kColumnParts = 2048, kLeastColumnRows = 32, kMostColumnWarps = 32, kBlockRows = 2048,
                         kChunkWarps = 8, kBusyColumnGroups = ReferenceGpu::kProcessors / 2;
/// Elements of a row from which on a block sums it, not a warp; and the threads of that block.
inline constexpr int64_t kLongRow = 2048, kLongRowThreads = 256;

} // namespace ortc::kernels
