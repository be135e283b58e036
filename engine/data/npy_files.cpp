// Files of npy, each of one array.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/data/npy_files.h"
#include "support/MappedFile.h"
#include "support/Npy.h"

namespace ortc::engine {
namespace {

class NpySource final : public DataSource {
public:
  explicit NpySource(std::vector<NpyFile> files) : DataSource(files[0].path), files(std::move(files)) {}
  Status open();
  Status describe(const std::string &name, Array &array) const override;
  Status load(const std::string &name, Array &array) const override;
  std::vector<std::string> getFiles() const override;

private:
  Status find(const std::string &name, const NpyFile *&file, std::shared_ptr<const MappedFile> &mapped) const;

  std::vector<NpyFile> files;
};

} // namespace

std::string nameNpyFile(const std::string &path) {
  std::string name = path.substr(path.rfind('/') + 1);
  return name.ends_with(".npy") ? name.substr(0, name.size() - 4) : name;
}

std::vector<std::string> NpySource::getFiles() const {
  std::vector<std::string> paths;
  for (const NpyFile &file : files)
    paths.push_back(file.path);
  return paths;
}

Status NpySource::open() {
  for (const NpyFile &file : files) {
    if (has(file.name))
      return Status::refusal(file.path + ": is the second file of an array '" + file.name +
                             "'; name them: NAME=FILE.npy, and shards of an array by a pattern");
    names.push_back(file.name);
    Array array;
    ORTC_TRY(describe(file.name, array));
  }
  return Status();
}

Status NpySource::find(const std::string &name, const NpyFile *&found,
                       std::shared_ptr<const MappedFile> &mapped) const {
  for (const NpyFile &file : files)
    if (file.name == name) {
      found = &file;
      return MappedFile::open(file.path, mapped);
    }
  return Status::failure(path + ": has no array '" + name + "'");
}

Status NpySource::describe(const std::string &name, Array &array) const {
  const NpyFile *file = nullptr;
  std::shared_ptr<const MappedFile> mapped;
  ORTC_TRY(find(name, file, mapped));
  NpyHeader header;
  size_t needed = 0, bytes = mapped->getBytes();
  ORTC_TRY(parseNpyHeader(mapped->getData(), bytes, bytes, file->path, header, needed));
  array = describeNpy(name, header);
  return Status();
}

Status NpySource::load(const std::string &name, Array &array) const {
  const NpyFile *file = nullptr;
  std::shared_ptr<const MappedFile> mapped;
  ORTC_TRY(find(name, file, mapped));
  array = Array();
  array.name = name;
  ORTC_TRY(parseNpy(mapped->getData(), mapped->getBytes(), file->path, mapped, array));
  if (array.owner == mapped)
    array.file = mapped;
  return Status();
}

Status openNpy(std::vector<NpyFile> files, std::unique_ptr<DataSource> &source) {
  auto opened = std::make_unique<NpySource>(std::move(files));
  ORTC_TRY(opened->open());
  source = std::move(opened);
  return Status();
}

} // namespace ortc::engine
