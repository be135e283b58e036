// Reads the code sections of an artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/e2e/DeviceImages.h"

#include <cstring>
#include <gtest/gtest.h>

#include "compiler/artifact/ArtifactReader.h"
#include "test/engine/data_files.h"

namespace ortc::test {

template <typename Row> static Row rowAt(const artifact::Bytes &bytes, uint64_t at) {
  Row row{};
  EXPECT_LE(at + sizeof row, bytes.size());
  std::memcpy(&row, bytes.data() + at, sizeof row);
  return row;
}

std::vector<Image> imagesOf(const std::string &file) {
  auto read = artifact::readArtifactFile(file);
  EXPECT_TRUE(read) << read.getStatus().getMessage();
  std::vector<Image> images;
  for (const artifact::Code &code : read ? read->artifact.codes : std::vector<artifact::Code>()) {
    if (code.architecture != ORTC_ARCH_PTX && code.architecture != ORTC_ARCH_AMDGPU)
      continue;
    auto head = rowAt<ortc_blob>(code.bytes, 0);
    auto device =
        rowAt<ortc_device_code>(code.bytes, (sizeof head + head.count * head.entry_bytes + 7) / 8 * 8);
    for (uint32_t number = 0; number < device.image_count; ++number) {
      auto row = rowAt<ortc_device_image>(code.bytes, device.images + number * device.image_bytes);
      Image image;
      image.target = code.name;
      image.kind = row.kind;
      image.bytes.assign(code.bytes.begin() + row.offset, code.bytes.begin() + row.offset + row.bytes);
      for (uint32_t i = 0; i < device.kernel_count; ++i) {
        image.rows.push_back(rowAt<ortc_device_kernel>(code.bytes, device.kernels + i * device.kernel_bytes));
        image.kernels.push_back(reinterpret_cast<const char *>(code.bytes.data() + image.rows.back().name));
      }
      images.push_back(std::move(image));
    }
  }
  return images;
}

} // namespace ortc::test
