// Tells the kinds of data files apart.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/data/data_source.h"

#include <algorithm>
#include <unistd.h>

#include "host/data/mapped_file.h"

namespace ortc::host {

bool DataSource::has(const std::string &name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status openData(const std::string &path, std::unique_ptr<DataSource> &source, const StopFlag *stop) {
  if (path.ends_with(".npz"))
    return openNpz(path, source, stop);
  if (path.ends_with(".safetensors"))
    return openSafetensors(path, source);
  size_t comma = path.find(',');
  if (comma != std::string::npos && access(path.c_str(), F_OK) != 0)
    return openIdx(path.substr(0, comma), path.substr(comma + 1), source, stop);
  std::shared_ptr<const MappedFile> file;
  ORTC_TRY(MappedFile::open(path, file));
  const uint8_t *data = file->getData();
  size_t bytes = file->getBytes();
  auto begins = [&](const char *magic, size_t count) {
    return bytes >= count && !std::memcmp(data, magic, count);
  };
  if (begins("PK", 2))
    return openNpz(path, source, stop);
  if (begins("\x1f\x8b", 2) || begins("\0\0", 2))
    return openIdx(path, "", source, stop);
  if (bytes > 8 && data[8] == '{')
    return openSafetensors(path, source);
  return Status::failure(path + ": is neither npz nor safetensors nor IDX");
}

} // namespace ortc::host
