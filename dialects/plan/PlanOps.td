//===- PlanOps.td - all operations of the plan dialect -----*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
include "dialects/plan/PlanKernelOps.td"
include "dialects/plan/PlanProgramOps.td"
