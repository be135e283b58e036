// How many launches a step is on a GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/artifact/count_launches.h"

#include "ortc/call.h"
#include "ortc/device.h"

#include <cstring>
#include <vector>

namespace ortc::engine {

/// The structure at `offset`; none where it ends behind the bytes.
template <typename Row> static std::optional<Row> readRow(const artifact::Bytes &bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(Row))
    return std::nullopt;
  Row row;
  std::memcpy(&row, bytes.data() + offset, sizeof row);
  return row;
}

static std::optional<ortc_launch_list> findList(const artifact::Bytes &bytes, uint32_t role,
                                                uint32_t binding) {
  auto blob = readRow<ortc_blob>(bytes, 0);
  if (!blob || blob->magic != ORTC_BLOB_MAGIC || blob->entry_bytes < sizeof(ortc_blob_entry))
    return std::nullopt;
  for (uint64_t i = 0; i < blob->count; ++i) {
    auto entry = readRow<ortc_blob_entry>(bytes, sizeof(ortc_blob) + i * blob->entry_bytes);
    if (!entry)
      return std::nullopt;
    if (entry->role == role && entry->binding == binding)
      return readRow<ortc_launch_list>(bytes, entry->offset);
  }
  return std::nullopt;
}

std::optional<uint64_t> countLaunches(const artifact::Code &code, uint32_t role, uint32_t binding) {
  if (code.architecture != ORTC_ARCH_PTX && code.architecture != ORTC_ARCH_AMDGPU)
    return std::nullopt;
  auto list = findList(code.bytes, role, binding);
  if (!list || list->launch_bytes < sizeof(ortc_launch) || list->launches > code.bytes.size())
    return std::nullopt;
  uint64_t count = 0;
  std::vector<uint64_t> times{1}; // of the loops around
  for (uint64_t i = 0; i < list->launch_count; ++i) {
    auto row = readRow<ortc_launch>(code.bytes, list->launches + i * list->launch_bytes);
    if (!row)
      return std::nullopt;
    if (row->kind == ORTC_LAUNCH_KERNEL)
      count += times.back();
    else if (row->kind == ORTC_LAUNCH_LOOP && row->count <= ORTC_MAX_LAUNCHES)
      times.push_back(times.back() * row->count);
    else if (row->kind == ORTC_LAUNCH_END && times.size() > 1)
      times.pop_back();
    else
      return std::nullopt;
    if (count > ORTC_MAX_LAUNCHES || times.back() > ORTC_MAX_LAUNCHES)
      return std::nullopt;
  }
  return count;
}

} // namespace ortc::engine
