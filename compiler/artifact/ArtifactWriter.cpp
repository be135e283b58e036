// Writes model.ortc: tables first, then texts, then images and code. Tables and code are read back before anything is
// written, so a mistake of the compiler is an error here and not on somebody's device.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/artifact/ArtifactWriter.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <sys/mman.h>

#include "compiler/artifact/ArtifactReader.h"
#include "compiler/artifact/FileLayout.h"
#include "runtime/src/sha256.h"
#include "support/Hex.h"

namespace ortc::artifact {

uint32_t elementBytes(uint8_t dtype) {
  switch (dtype) {
  case 2:
  case 3:
  case 9:
  case 17:
  case 18:
  case 19:
  case 20: // u8, i8, bool, f8
    return 1;
  case 4:
  case 5:
  case 10:
  case 16: // u16, i16, f16, bf16
    return 2;
  case 1:
  case 6:
  case 12: // f32, i32, u32
    return 4;
  case 7:
  case 11:
  case 13: // i64, f64, u64
    return 8;
  default:
    return 0;
  }
}

std::vector<int64_t> denseStrides(const std::vector<int64_t> &dims, uint32_t elementBytes) {
  std::vector<int64_t> strides(dims.size());
  int64_t stride = elementBytes;
  for (size_t i = dims.size(); i-- > 0; stride *= dims[i] > 0 ? dims[i] : 1)
    strides[i] = stride;
  return strides;
}

std::string sha256Hex(const void *data, size_t bytes) {
  uint8_t digest[32];
  sha256(data, bytes, digest);
  return formatHex(digest, sizeof digest);
}

void modelDigest(const std::vector<Tensor> &tensors, uint8_t digest[32]) {
  Bytes covered;
  for (const Tensor &tensor : tensors) {
    if (tensor.role != ORTC_ROLE_PARAMETER && tensor.role != ORTC_ROLE_STATE &&
        tensor.role != ORTC_ROLE_SCALAR)
      continue;
    uint8_t head[3] = {static_cast<uint8_t>(tensor.role), tensor.dtype,
                       static_cast<uint8_t>(tensor.dims.size())};
    covered.insert(covered.end(), tensor.name.c_str(), tensor.name.c_str() + tensor.name.size() + 1);
    append(covered, head);
    for (int64_t dim : tensor.dims)
      append(covered, dim);
  }
  sha256(covered.data(), covered.size(), digest);
}

namespace {

/// Strings in order of first use.
struct StringTable {
  Bytes bytes;
  std::map<std::string, uint32_t> offsets;

  uint32_t add(const std::string &text) {
    auto [place, isNew] = offsets.try_emplace(text, static_cast<uint32_t>(bytes.size()));
    if (isNew)
      bytes.insert(bytes.end(), text.c_str(), text.c_str() + text.size() + 1);
    return place->second;
  }
};

/// Dense size in bytes; 0 when it overflows (the reader refuses the result).
uint64_t denseBytes(const std::vector<int64_t> &dims, uint32_t element) {
  uint64_t bytes = element;
  for (int64_t dim : dims)
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes))
      return 0;
  return bytes;
}

/// The first version that has what the artifact holds: code for devices came with 1.1.
uint16_t leastMinor(const Artifact &artifact) {
  for (const Code &code : artifact.codes)
    if (code.architecture == ORTC_ARCH_PTX || code.architecture == ORTC_ARCH_AMDGPU)
      return ORTC_FORMAT_MINOR;
  return 0;
}

class Writer {
public:
  explicit Writer(const Artifact &artifact) : artifact(artifact) {}
  /// Makes the sections. Until they are written, `artifact` keeps what they view.
  Status prepare();
  /// Reads tables and code back; images count as zeros.
  Status check();

  ortc_file_header header{};
  std::vector<Section> sections;

private:
  Status checkNames();
  Status addTensors();
  Status addEntries();
  Status fillView(const std::vector<int64_t> &dims, const std::vector<int64_t> &strides, uint8_t dtype,
                  const std::string &name, ortc_file_view &view);
  Status addValue(const Value &value, const Entry &entry, bool isExternal, Bytes &values);
  void addNames(ortc_section_kind kind, const std::vector<std::string> &names);
  Section &add(ortc_section_kind kind, uint32_t rowBytes = 0);
  void fillHeader();

  const Artifact &artifact;
  StringTable strings;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> ioPlaces; ///< (binding, tensor) -> offset
  uint64_t ioBytes = 0;
};

Section &Writer::add(ortc_section_kind kind, uint32_t rowBytes) {
  Section &section = sections.emplace_back();
  section.row.kind = kind;
  section.row.row_bytes = rowBytes;
  section.row.name = ORTC_NONE;
  return section;
}

/// Names with which a host finds tensors are unique; a gradient is found by its owner's.
Status Writer::checkNames() {
  std::set<std::string> names;
  for (const Tensor &tensor : artifact.tensors) {
    if (tensor.name.empty() && tensor.role != ORTC_ROLE_LOSS)
      return Status::refusal("a tensor has no name");
    if (tensor.name.size() > 1000)
      return Status::refusal("the name of tensor '" + tensor.name.substr(0, 40) +
                             "...' has more than 1000 bytes");
    if (tensor.name.find('\0') != std::string::npos)
      return Status::refusal("the name of tensor '" + std::string(tensor.name.c_str()) +
                             "' contains a zero byte");
    if (tensor.role != ORTC_ROLE_GRADIENT && tensor.role != ORTC_ROLE_LOSS &&
        !names.insert(tensor.name).second)
      return Status::refusal(
          "two tensors are called '" + tensor.name +
          "'; if the model has one of them, the loss or the optimizer adds the other: rename it there");
  }
  return Status();
}

/// Shape, size and strides; the caller adds the place.
Status Writer::fillView(const std::vector<int64_t> &dims, const std::vector<int64_t> &strides, uint8_t dtype,
                        const std::string &name, ortc_file_view &view) {
  if (dims.size() > ORTC_MAX_RANK)
    return Status::refusal("tensor '" + name + "' has rank " + std::to_string(dims.size()) +
                           " but the format ends at 8");
  if (!strides.empty() && strides.size() != dims.size())
    return Status::refusal("tensor '" + name + "' has " + std::to_string(strides.size()) +
                           " strides for rank " + std::to_string(dims.size()));
  if (!elementBytes(dtype))
    return Status::refusal("tensor '" + name + "' has dtype " + std::to_string(dtype) +
                           ", which cannot be stored");
  std::vector<int64_t> used = strides.empty() ? denseStrides(dims, elementBytes(dtype)) : strides;
  view.dtype = dtype;
  view.rank = static_cast<uint8_t>(dims.size());
  view.bytes = denseBytes(dims, elementBytes(dtype));
  std::copy(dims.begin(), dims.end(), view.dims);
  std::copy(used.begin(), used.end(), view.strides);
  return Status();
}

Status Writer::addTensors() {
  Bytes rows;
  for (const Tensor &tensor : artifact.tensors) {
    ortc_file_tensor row{};
    row.name = strings.add(tensor.name);
    row.role = tensor.role;
    row.owner = tensor.owner;
    row.flags = tensor.flags;
    ORTC_TRY(fillView(tensor.dims, tensor.strides, tensor.dtype, tensor.name, row.view));
    if (tensor.role <= ORTC_ROLE_SCALAR) {
      row.view.region = tensor.role == ORTC_ROLE_CONSTANT ? ORTC_REGION_CONSTANTS : ORTC_REGION_PERSISTENT;
      row.view.offset = tensor.offset;
    } else {
      std::memset(row.view.strides, 0, sizeof row.view.strides);
    }
    append(rows, row);
  }
  add(ORTC_SECTION_TENSORS, sizeof(ortc_file_tensor)).owned = std::move(rows);
  return Status();
}

Status Writer::addValue(const Value &value, const Entry &entry, bool isExternal, Bytes &values) {
  if (value.tensor >= artifact.tensors.size())
    return Status::refusal("a value of entry '" + entry.name + "' refers to tensor " +
                           std::to_string(value.tensor) + " of " + std::to_string(artifact.tensors.size()));
  const Tensor &tensor = artifact.tensors[value.tensor];
  if (value.dims.size() != tensor.dims.size())
    return Status::refusal("value '" + tensor.name + "' of entry '" + entry.name +
                           "' has another rank than its tensor");
  ortc_file_value row{};
  row.tensor = value.tensor;
  ORTC_TRY(fillView(value.dims, value.strides, tensor.dtype, tensor.name, row.view));
  row.view.region = static_cast<uint8_t>(isExternal ? ORTC_REGION_IO : value.region);
  row.view.offset = value.offset;
  if (isExternal) {
    auto [place, isNew] = ioPlaces.try_emplace({entry.binding, value.tensor}, ioBytes);
    if (isNew)
      ioBytes += alignTo(row.view.bytes, ORTC_ALIGNMENT);
    row.view.offset = place->second;
  }
  append(values, row);
  return Status();
}

Status Writer::addEntries() {
  Bytes bindings, entries, values;
  for (const std::string &name : artifact.bindings)
    append(bindings, ortc_file_binding{strings.add(name), 0});
  uint32_t first = 0;
  for (const Entry &entry : artifact.entries) {
    ortc_file_entry row{};
    row.role = entry.role;
    row.binding = entry.binding;
    row.segment = entry.segment;
    row.target = entry.target;
    row.first_value = first;
    row.ext_count = static_cast<uint32_t>(entry.external.size());
    row.value_count = static_cast<uint32_t>(entry.external.size() + entry.internal.size());
    row.loss = entry.loss;
    row.fixed_bytes = alignTo(entry.fixedBytes, ORTC_ALIGNMENT);
    row.worker_bytes = alignTo(entry.workerBytes, ORTC_ALIGNMENT);
    row.name = strings.add(entry.name);
    first += row.value_count;
    for (const Value &value : entry.external)
      ORTC_TRY(addValue(value, entry, /*isExternal=*/true, values));
    for (const Value &value : entry.internal)
      ORTC_TRY(addValue(value, entry, /*isExternal=*/false, values));
    append(entries, row);
  }
  add(ORTC_SECTION_BINDINGS, sizeof(ortc_file_binding)).owned = std::move(bindings);
  add(ORTC_SECTION_ENTRIES, sizeof(ortc_file_entry)).owned = std::move(entries);
  add(ORTC_SECTION_VALUES, sizeof(ortc_file_value)).owned = std::move(values);
  return Status();
}

void Writer::addNames(ortc_section_kind kind, const std::vector<std::string> &names) {
  Bytes rows;
  for (const std::string &name : names)
    append(rows, strings.add(name));
  if (!rows.empty())
    add(kind, sizeof(uint32_t)).owned = std::move(rows);
}

void Writer::fillHeader() {
  std::memcpy(header.magic, ORTC_MAGIC, sizeof header.magic);
  header.major = ORTC_FORMAT_MAJOR;
  header.minor = leastMinor(artifact);
  header.header_bytes = sizeof header;
  header.section_bytes = sizeof(ortc_file_section);
  header.persistent_bytes = alignTo(artifact.persistentBytes, ORTC_ALIGNMENT);
  header.io_bytes = ioBytes;
  header.max_workers = artifact.maxWorkers;
  modelDigest(artifact.tensors, header.model);
}

Status Writer::prepare() {
  ORTC_TRY(checkNames());
  ORTC_TRY(addTensors());
  ORTC_TRY(addEntries());
  addNames(ORTC_SECTION_CHECK_NAMES, artifact.checkNames);
  addNames(ORTC_SECTION_KERNEL_NAMES, artifact.kernelNames);
  if (!artifact.manifest.empty()) {
    Section &manifest = add(ORTC_SECTION_MANIFEST);
    manifest.owned.assign(artifact.manifest.begin(), artifact.manifest.end());
  }
  if (!artifact.source.empty())
    add(ORTC_SECTION_SOURCE).contents = artifact.source;
  auto addImage = [&](ortc_section_kind kind, const Image &image, uint64_t bytes) {
    if (bytes == 0)
      return;
    Section &section = add(kind);
    section.image = &image, section.imageBytes = bytes;
  };
  addImage(ORTC_SECTION_CONSTANTS, artifact.constants, artifact.constants.size());
  if (artifact.persistent.size() > artifact.persistentBytes)
    return Status::refusal("the persistent image has " + std::to_string(artifact.persistent.size()) +
                           " bytes but its region " + std::to_string(artifact.persistentBytes));
  addImage(ORTC_SECTION_PERSISTENT, artifact.persistent, artifact.persistent.findEnd());
  for (const Code &code : artifact.codes) {
    Section &section = add(ORTC_SECTION_CODE);
    section.row.architecture = code.architecture;
    section.row.features = code.features;
    section.row.name = strings.add(code.name);
    section.contents = code.bytes;
  }
  if (!artifact.signature.empty())
    add(ORTC_SECTION_SIGNATURE).contents = artifact.signature;
  Section texts = Section();
  texts.row.kind = ORTC_SECTION_STRINGS;
  texts.row.name = ORTC_NONE;
  strings.add(""); // never empty
  texts.owned = strings.bytes;
  sections.insert(sections.begin() + 1, std::move(texts)); // after the tensors, with the other tables

  fillHeader();
  return Status();
}

/// Memory that takes none until it is written.
class EmptyFile {
public:
  explicit EmptyFile(uint64_t bytes)
      : bytes(bytes), start(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~EmptyFile() {
    if (isThere())
      munmap(start, bytes);
  }
  EmptyFile(const EmptyFile &) = delete;
  EmptyFile &operator=(const EmptyFile &) = delete;

  bool isThere() const { return start != MAP_FAILED; }
  void put(uint64_t offset, std::span<const uint8_t> from) {
    std::copy(from.begin(), from.end(), static_cast<uint8_t *>(start) + offset);
  }
  std::span<const uint8_t> getBytes() const { return {static_cast<const uint8_t *>(start), bytes}; }

private:
  uint64_t bytes;
  void *start;
};

Status Writer::check() {
  placeSections(header, sections);
  EmptyFile file(header.file_bytes);
  if (!file.isThere())
    return Status::failure("there is no address space for an artifact of " +
                           std::to_string(header.file_bytes) + " bytes");
  for (Section &section : sections) {
    if (section.image)
      continue;
    file.put(section.row.offset, section.bytes());
    if (section.row.kind != ORTC_SECTION_SIGNATURE)
      sha256(section.bytes().data(), section.bytes().size(), section.row.sha256);
  }
  file.put(0, makeHead(header, sections));
  if (Expected<ArtifactFile> read = readTables(file.getBytes()); !read)
    return Status::refusal("the artifact does not hold together: " + read.getStatus().getMessage());
  return Status();
}

} // namespace

Status writeArtifact(const Artifact &artifact, ByteSink &sink) {
  Writer writer(artifact);
  ORTC_TRY(writer.prepare());
  ORTC_TRY(writer.check());
  return writeSections(writer.header, writer.sections, sink);
}

Expected<Bytes> writeArtifact(const Artifact &artifact) {
  Writer writer(artifact);
  ORTC_TRY(writer.prepare());
  ORTC_TRY(writer.check());
  return layOut(writer.header, writer.sections);
}

} // namespace ortc::artifact
