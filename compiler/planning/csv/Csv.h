// Problems and plans as CSV, both ways.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/planning/Plan.h"

#include <string_view>

namespace ortc::planning {

/// A problem, one record per line, the first field its kind; fields with a comma, a quote or a line break
/// are quoted as in RFC 4180; lists are separated by spaces; ids count from 0 in the order of the lines.
///
///   problem,1
///   buffer,ID,NAME,BYTES,ALIGNMENT,ALIVE_AT_START,ALIVE_AT_END
///   view,BUFFER,BASE,OFFSET
///   step,ID,NAME,SEGMENT,READS,WRITES,AFTER,WORKSPACE
///   inplace,STEP,READ,WRITE
///   inner,STEP        the records up to the matching `end` are the body of the step
///   end
std::string writeProblem(const Problem &problem);

/// Refuses with "line N: ..."; the result has passed check().
Expected<Problem> readProblem(std::string_view text);

/// A plan, with the ids of its problem:
///
///   plan,1,ARENA_BYTES,ARENA_ALIGNMENT,MAX_LIVE,SOURCE_PEAK,ORDER_BOUND
///   step,POSITION,STEP,WORKSPACE_OFFSET,INNER_ARENA_OFFSET    an empty field: there is none
///   buffer,ID,STORAGE,OFFSET                                  an empty STORAGE: it takes no place
///   inplace,STEP,READ,WRITE
///   inner,STEP ... end
std::string writePlan(const Plan &plan);

/// Refuses with "line N: ...". The result has the sizes of `problem` but is not validated.
Expected<Plan> readPlan(const Problem &problem, std::string_view text);

} // namespace ortc::planning
