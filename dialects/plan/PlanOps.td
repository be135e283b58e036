// All operations of the plan dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
include "dialects/plan/PlanKernelOps.td"
include "dialects/plan/PlanProgramOps.td"
