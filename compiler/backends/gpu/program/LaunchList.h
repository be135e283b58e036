// A placed program as the launches of an entry.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/gpu/KernelBuilder.h"
#include "dialects/plan/PlanDialect.h"
#include "support/Expected.h"

#include "ortc/device.h"

#include <map>

namespace ortc::gpu {

/// What the launches of a section have in common.
struct KernelTable {
  std::map<std::string, GpuKernel> kernels; ///< by name in the plan
  std::map<std::string, uint32_t> numbers;  ///< of functions, by symbol
  std::vector<ortc_device_kernel> rows;     ///< of functions; `name` is set by the section
  static constexpr const char *guardName(bool isDouble) {
    return isDouble ? "ortc_guard_f64" : "ortc_guard_f32";
  }
};

/// What one entry launches.
struct LaunchList {
  std::vector<ortc_launch> launches;
  std::vector<ortc_launch_argument> arguments;
};

Expected<LaunchList> makeLaunchList(plan::ProgramOp program, const KernelTable &table);

/// The bytes of a section of code (ortc/device.h): the entries of `programs` with their lists, kernels, images.
struct SectionEntry {
  ortc_blob_entry head;
  LaunchList list;
};
struct SectionImage {
  ortc_image_kind kind;
  unsigned processor;
  std::vector<uint8_t> bytes;
};
std::vector<uint8_t> writeSection(const std::vector<SectionEntry> &entries, const KernelTable &table,
                                  const std::vector<SectionImage> &images);

} // namespace ortc::gpu
