// IDX: MNIST's format, a pair of files with images and labels, plain or gzipped.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/data/data_source.h"
#include "engine/data/inflate.h"
#include "support/MappedFile.h"

namespace ortc::engine {
namespace {

/// A file whose header was read.
struct IdxFile {
  std::shared_ptr<const MappedFile> file;
  bool isZipped = false;
  size_t headBytes = 0;
};

class IdxSource final : public DataSource {
public:
  IdxSource(std::string images, std::string labels, std::string hint, const StopFlag *stop)
      : DataSource(std::move(images)), labels(std::move(labels)), hint(std::move(hint)), stop(stop) {
    names.push_back("image");
    if (!this->labels.empty())
      names.push_back("label");
  }
  Status describe(const std::string &name, Array &array) const override;
  Status load(const std::string &name, Array &array) const override;
  std::string getHint() const override { return hint; }
  std::vector<std::string> getFiles() const override { return {path, labels}; }

private:
  Status open(const std::string &name, Array &array, IdxFile &idx) const;

  std::string labels, hint;
  const StopFlag *stop;
};

} // namespace

static DataType parseTypeCode(uint8_t code) {
  switch (code) {
  case 0x08:
    return DataType::UInt8;
  case 0x09:
    return DataType::Int8;
  case 0x0b:
    return DataType::Int16;
  case 0x0c:
    return DataType::Int32;
  case 0x0d:
    return DataType::Float32;
  case 0x0e:
    return DataType::Float64;
  default:
    return DataType::None;
  }
}

/// Header: two zero bytes, type, rank, then a big-endian 32-bit size for each dimension; the elements are
/// big-endian. Fills all of `array` but the values.
static Status openIdxFile(const std::string &path, Array &array, IdxFile &idx) {
  auto bad = [&](const std::string &what) { return Status::failure(path + ": " + what); };
  ORTC_TRY(MappedFile::open(path, idx.file));
  const uint8_t *data = idx.file->getData();
  size_t bytes = idx.file->getBytes();
  idx.isZipped = bytes >= 2 && data[0] == 0x1f && data[1] == 0x8b;
  uint8_t head[4 + 4 * 255];
  auto readHead = [&](size_t count) -> std::string {
    if (idx.isZipped)
      return inflatePrefix(data, bytes, Compression::Gzip, head, count);
    if (bytes < count)
      return "is truncated in its header: " + std::to_string(bytes) + " bytes";
    std::memcpy(head, data, count);
    return "";
  };
  if (std::string problem = readHead(4); !problem.empty())
    return bad(problem);
  array.type = parseTypeCode(head[2]);
  if (head[0] != 0 || head[1] != 0 || array.type == DataType::None)
    return bad("is no IDX file: it does not begin with two zero bytes and a type");
  size_t rank = head[3], headBytes = idx.headBytes = 4 + 4 * rank;
  if (rank == 0 || rank > 8)
    return bad("has " + std::to_string(rank) + " dimensions but 1 to 8 are read");
  if (std::string problem = readHead(headBytes); !problem.empty())
    return bad(problem);
  array.shape.clear();
  for (size_t i = 0; i < rank; ++i)
    array.shape.push_back(loadBig32(head + 4 + 4 * i));
  if (!countBytes(array.shape, array.type, array.bytes) || array.bytes > SIZE_MAX - headBytes)
    return bad("has shape " + formatShape(array.shape) + ", whose size overflows");
  size_t total = headBytes + array.bytes;
  if (idx.isZipped && !canExpandTo(bytes, total))
    return bad("has shape " + formatShape(array.shape) + ", more than its " + std::to_string(bytes) +
               " compressed bytes can hold");
  if (!idx.isZipped && bytes != total)
    return bad("has shape " + formatShape(array.shape) + " of " + getTypeName(array.type) + ", which is " +
               std::to_string(array.bytes) + " bytes, but holds " + std::to_string(bytes - headBytes));
  return Status();
}

Status IdxSource::open(const std::string &name, Array &array, IdxFile &idx) const {
  if (name != "image" && (name != "label" || labels.empty()))
    return Status::failure(path + ": has no array '" + name + "'");
  array = Array();
  array.name = name;
  return openIdxFile(name == "image" ? path : labels, array, idx);
}

Status IdxSource::describe(const std::string &name, Array &array) const {
  IdxFile idx;
  return open(name, array, idx);
}

Status IdxSource::load(const std::string &name, Array &array) const {
  IdxFile idx;
  ORTC_TRY(open(name, array, idx));
  const uint8_t *data = idx.file->getData();
  if (idx.isZipped) {
    std::shared_ptr<uint8_t[]> inflated;
    size_t total = idx.headBytes + array.bytes;
    std::string problem = allocateInflated(total, inflated);
    if (problem.empty())
      problem = inflateExactly(data, idx.file->getBytes(), Compression::Gzip, inflated.get(), total, stop);
    if (!problem.empty())
      return Status::failure((name == "image" ? path : labels) + ": " + problem);
    array.data = inflated.get() + idx.headBytes;
    array.owner = inflated;
  } else {
    array.data = data + idx.headBytes;
    array.owner = array.file = idx.file;
  }
  size_t element = getElementBytes(array.type);
  if (element > 1 && array.bytes) {
    std::shared_ptr<uint8_t[]> copy(new uint8_t[array.bytes]);
    std::memcpy(copy.get(), array.data, array.bytes);
    swapBytes(copy.get(), array.bytes / element, element);
    array.data = copy.get();
    array.owner = copy;
    array.file.reset();
  }
  return Status();
}

/// MNIST's name of the labels that belong to a file of images; "" when the name does not follow the pattern.
static std::string nameLabels(const std::string &images) {
  size_t folder = images.rfind('/');
  size_t at = images.find("images", folder == std::string::npos ? 0 : folder + 1);
  if (at == std::string::npos)
    return "";
  std::string labels = images;
  labels.replace(at, 6, "labels");
  size_t rank = labels.find("idx", at);
  if (rank != std::string::npos && rank + 3 < labels.size() && labels[rank + 3] >= '1' &&
      labels[rank + 3] <= '9')
    labels[rank + 3] = '1';
  return labels;
}

Status openIdx(const std::string &images, const std::string &given, std::unique_ptr<DataSource> &source,
               const StopFlag *stop) {
  std::string labels = given, hint;
  if (labels.empty()) {
    std::string wanted = nameLabels(images);
    std::string other = wanted.ends_with(".gz") ? wanted.substr(0, wanted.size() - 3) : wanted + ".gz";
    for (const std::string &candidate : {wanted, other}) {
      std::shared_ptr<const MappedFile> file;
      if (!wanted.empty() && labels.empty() && MappedFile::open(candidate, file).isOk())
        labels = candidate;
    }
    if (labels.empty())
      hint = wanted.empty() ? "name the labels after a comma: --data IMAGES,LABELS"
                            : "labels were looked for in " + wanted + "; or name them: --data IMAGES,LABELS";
  }
  source = std::make_unique<IdxSource>(images, labels, hint, stop);
  Array array;
  for (const std::string &name : source->getNames())
    ORTC_TRY(source->describe(name, array));
  return Status();
}

} // namespace ortc::engine
