// What the memory planner is asked: buffers of the transient arena and the steps that use them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ortc::planning {

using BufferId = uint32_t; ///< index into Problem::buffers
using StepId = uint32_t;   ///< index into Problem::steps

inline constexpr uint64_t kDefaultAlignment = 64;

/// A value that needs bytes in the transient arena. Tensors of the constants and persistent regions, and
/// inputs or outputs that the host binds, are not buffers of the problem: what orders their accesses is
/// said with Step::after.
///
/// A buffer is written by at most one step and is readable once every step has run that writes any of the
/// bytes it covers. One that no step writes must be aliveAtStart or a view of something that is written.
struct Buffer {
  std::string name;
  uint64_t bytes = 0; ///< 0 is allowed: the buffer takes no place, and its readers wait for
                      ///< nobody but the step that writes it
  uint64_t alignment = kDefaultAlignment; ///< of its arena offset; a power of two, at most 1 MiB
  bool aliveAtStart = false; ///< holds a value before the first step; no step may write it. One that no
                             ///< step reads stays alive to the end
  bool aliveAtEnd = false;   ///< read after the last step, or by the host at a segment cut: never reused
};

/// `view` is the bytes [offset, offset + bytes(view)) of `base`, without a copy: a reshape, a leading
/// slice, an operand of a concatenation written in place. Views need no step. `base` may be a view
/// itself. Reading or writing a view is reading or writing those bytes of the base; two writes to the
/// same bytes are refused. offset must keep the view's alignment.
struct View {
  BufferId view = 0;
  BufferId base = 0;
  uint64_t offset = 0;
};

/// The step computes correctly when `write` starts at the address of `read`. The planner uses it where
/// `read` is not needed after this step, `write` is equal or smaller, and neither starts inside another
/// buffer; a step may have several candidates, of which those are taken that save most.
struct InPlace {
  BufferId read = 0;
  BufferId write = 0;
};

struct Problem;

/// One step of the program: a kernel, a library call, a loop.
struct Step {
  std::string name;
  std::vector<BufferId> reads;
  std::vector<BufferId> writes;
  std::vector<InPlace> inPlace; ///< candidates; each pair is one of `reads` and one of `writes`
  std::vector<StepId> after;    ///< must run after these (earlier in the source order): write-after-read of
                                ///< persistent tensors, checks before updates
  uint64_t workspace = 0;       ///< scratch bytes of the step, aligned to kDefaultAlignment
  /// never decreases along the source order; all steps of a segment run before the next
  uint32_t segment = 0;
  /// The body of a loop: its steps and the buffers that exist inside one iteration. Buffers of the outer
  /// problem are no part of it (the step's reads and writes keep them alive for the whole loop). The
  /// arena of the body is one more workspace of the step.
  std::shared_ptr<const Problem> inner;
};

/// A planning problem. The order of `steps` is the source order and must itself be legal: whoever writes
/// comes before whoever reads, `after` and `segment` are respected.
struct Problem {
  std::vector<Buffer> buffers;
  std::vector<View> views; ///< at most one per buffer
  std::vector<Step> steps;
};

} // namespace ortc::planning
