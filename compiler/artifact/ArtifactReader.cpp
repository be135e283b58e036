// Takes model.ortc apart and checks all of it: what the runtime reads, what it does not, and the space between.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/artifact/ArtifactReader.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "compiler/artifact/ArtifactWriter.h"
#include "compiler/artifact/FileLayout.h"
#include "runtime/src/sha256.h"
#include "support/FormatNames.h"
#include "support/Hex.h"

namespace ortc::artifact {

uint32_t findEntryRole(std::string_view name) {
  uint32_t role = 0;
  while (role + 1 < ORTC_ENTRY_ROLES && name != getEntryRoleName(role))
    ++role;
  return role;
}

const char *dtypeName(uint8_t dtype) {
  static const char *const kNames[] = {"none",   "float32", "uint8",     "int8",       "uint16",  "int16",
                                       "int32",  "int64",   "string",    "bool",       "float16", "float64",
                                       "uint32", "uint64",  "complex64", "complex128", "bfloat16"};
  return dtype < std::size(kNames) ? kNames[dtype] : "unknown";
}

const char *sectionKindName(uint32_t kind) {
  static const char *const kNames[] = {"unknown",      "tensors",   "strings",    "values",   "entries",
                                       "bindings",     "constants", "persistent", "code",     "check names",
                                       "kernel names", "manifest",  "source",     "signature"};
  return kind < std::size(kNames) ? kNames[kind] : "unknown";
}

namespace {

std::string number(uint64_t value) { return std::to_string(value); }

// Every table refers into others, so a small file could ask for work without end. What no compiler writes is refused.
constexpr size_t kMostEntries = 1 << 14, kMostCodes = 256, kMostNameBytes = size_t(256) << 20;

class Reader {
public:
  Reader(std::span<const uint8_t> file, bool readsImages, std::shared_ptr<const Bytes> owner = nullptr)
      : file(file), readsImages(readsImages), owner(std::move(owner)) {}
  Status read();
  ArtifactFile result;

private:
  Status readHeader();
  Status readSections();
  Status checkGaps();
  Status readTables();
  Status readTensor(const ortc_file_tensor &row);
  Status readValue(const ortc_file_value &row, uint32_t ordinal, const ortc_file_entry &entryRow,
                   Entry &entry);
  Status readEntry(const ortc_file_entry &row);
  Status checkCode(const Code &code, uint32_t ordinal);
  Status checkView(const std::string &what, const ortc_file_view &view, uint64_t regionBytes);
  Status readString(uint32_t offset, std::string &text);
  Status readNames(ortc_section_kind kind, std::vector<std::string> &names);
  /// Rows of a table, cut or filled to the size this version knows. A missing section has no rows.
  template <typename Row> Status rows(ortc_section_kind kind, std::vector<Row> &table);
  const ortc_file_section *find(uint32_t kind) const { return kinds[kind]; }
  Bytes contents(const ortc_file_section &section) const {
    std::span<const uint8_t> bytes = view(section);
    return Bytes(bytes.begin(), bytes.end());
  }
  std::span<const uint8_t> view(const ortc_file_section &section) const {
    return file.subspan(section.offset, section.bytes);
  }
  Image image(const ortc_file_section &section) const {
    Image image;
    image.setSize(section.bytes);
    image.addView(0, view(section), owner);
    return image;
  }
  /// Whether the section's bytes are there.
  bool isRead(const ortc_file_section &section) const {
    return readsImages || (section.kind != ORTC_SECTION_CONSTANTS && section.kind != ORTC_SECTION_PERSISTENT);
  }

  const std::span<const uint8_t> file;
  const bool readsImages;
  const std::shared_ptr<const Bytes> owner; ///< of the file, or null
  ortc_file_header header{};
  std::vector<ortc_file_section> table;
  const ortc_file_section *kinds[ORTC_SECTION_SIGNATURE + 1] = {}; ///< the first of each
  std::vector<ortc_file_value> values;
  uint64_t persistentLeft = 0; ///< of the region, by what the tensors so far have not taken
  uint32_t nextValue = 0;      ///< the first one that no entry has
  size_t nameBytes = 0;        ///< of the names that were read
  std::map<std::pair<uint32_t, uint32_t>, ortc_file_value> ioPlaces; ///< (binding, tensor)
};

Status Reader::readHeader() {
  if (file.size() < sizeof header)
    return Status::failure("the file has " + number(file.size()) + " bytes, too few for a header of " +
                           number(sizeof header));
  std::memcpy(&header, file.data(), sizeof header);
  if (std::memcmp(header.magic, ORTC_MAGIC, sizeof header.magic))
    return Status::failure("this is no ortc artifact (wrong magic)");
  if (header.major != ORTC_FORMAT_MAJOR)
    return Status::failure("the format has version " + number(header.major) + "." + number(header.minor) +
                           " but this tool reads version " + number(ORTC_FORMAT_MAJOR));
  if (header.file_bytes != file.size())
    return Status::failure("the file has " + number(file.size()) + " bytes but its header says " +
                           number(header.file_bytes));
  if (header.header_bytes != sizeof header || header.section_bytes != sizeof(ortc_file_section) ||
      header.section_count > (file.size() - sizeof header) / sizeof(ortc_file_section))
    return Status::failure("the section table does not fit in the file");
  if (!header.max_workers || header.persistent_bytes % ORTC_ALIGNMENT || header.io_bytes % ORTC_ALIGNMENT)
    return Status::failure("the header has sizes that are not aligned, or no workers");
  if ((header.persistent_bytes | header.io_bytes) >> ORTC_REGION_BITS)
    return Status::failure("the header has a persistent region of " + number(header.persistent_bytes) +
                           " bytes and one for inputs and outputs of " + number(header.io_bytes) +
                           "; the limit of each is 2^" + number(ORTC_REGION_BITS));
  persistentLeft = header.persistent_bytes;
  Bytes covered(file.begin(), file.begin() + offsetof(ortc_file_header, sha256));
  auto tableBegin = file.begin() + sizeof header;
  auto tableBytes = static_cast<std::ptrdiff_t>(header.section_count * sizeof(ortc_file_section));
  covered.insert(covered.end(), tableBegin, tableBegin + tableBytes);
  if (!hasDigest(covered.data(), covered.size(), header.sha256))
    return Status::failure("header and section table do not match their hash");
  for (uint32_t i = 0; i < header.section_count; ++i)
    std::memcpy(&table.emplace_back(), file.data() + header.header_bytes + size_t(i) * header.section_bytes,
                sizeof(ortc_file_section));
  result.bytes = file.size();
  result.ioBytes = header.io_bytes;
  result.major = header.major;
  result.minor = header.minor;
  std::memcpy(result.hash, header.sha256, sizeof result.hash);
  result.digest = formatHex(header.sha256, 32);
  result.model = formatHex(header.model, 32);
  result.artifact.maxWorkers = header.max_workers;
  result.artifact.persistentBytes = header.persistent_bytes;
  return Status();
}

/// Bounds and hash of every section; goes through all of them before it reports the first bad one.
Status Reader::readSections() {
  Status first;
  auto note = [&](const std::string &message) {
    if (first.isOk())
      first = Status::failure(message);
  };
  uint64_t total = 0; // within the size of the file, or the same bytes would be hashed again and again
  for (size_t i = 0; i < table.size(); ++i) {
    const ortc_file_section &row = table[i];
    SectionReport &report = result.sections.emplace_back();
    report.kind = row.kind;
    report.kindName = sectionKindName(row.kind);
    report.offset = row.offset;
    report.bytes = row.bytes;
    report.sha256 = formatHex(row.sha256, 32);
    bool isKnown = row.kind < std::size(kinds), isFirst = isKnown && !kinds[row.kind];
    if (isFirst)
      kinds[row.kind] = &row;
    std::string what = "section " + number(i) + " (" + report.kindName + ")";
    uint64_t alignment = alignmentOf(row);
    if (row.offset > file.size() || row.bytes > file.size() - row.offset || row.offset % alignment)
      note(what + " does not fit in the file or is not aligned");
    else if (row.bytes > file.size() - total)
      note(what + " overlaps another one: together they have more bytes than the file");
    else if (total += row.bytes; row.kind != ORTC_SECTION_SIGNATURE && isRead(row) &&
                                 !hasDigest(file.data() + row.offset, row.bytes, row.sha256))
      note(what + " does not match its hash");
    else if (row.kind != ORTC_SECTION_CODE && isKnown && !isFirst)
      note(what + " occurs twice");
    else if (!isKnown && row.flags & ORTC_SECTION_REQUIRED)
      note(what + " of kind " + number(row.kind) + " is required but not known to this tool");
    else
      report.ok = true;
  }
  return first;
}

Status Reader::checkGaps() {
  std::vector<std::pair<uint64_t, uint64_t>> ranges = {
      {0, header.header_bytes + uint64_t(header.section_count) * header.section_bytes}};
  for (const ortc_file_section &row : table)
    ranges.push_back({row.offset, row.offset + row.bytes});
  ranges.push_back({file.size(), file.size()});
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second)
      return Status::failure("two sections overlap at byte " + number(ranges[i].first));
    for (uint64_t at = ranges[i - 1].second; at < ranges[i].first; ++at)
      if (file[at])
        return Status::failure("byte " + number(at) + " between two sections is not zero");
  }
  return Status();
}

template <typename Row> Status Reader::rows(ortc_section_kind kind, std::vector<Row> &rows) {
  const ortc_file_section *section = find(kind);
  if (!section)
    return Status();
  if (section->row_bytes != sizeof(Row) || section->bytes % sizeof(Row))
    return Status::failure(std::string("the ") + sectionKindName(kind) + " table is no whole number of rows");
  for (uint64_t at = 0; at < section->bytes; at += section->row_bytes)
    std::memcpy(&rows.emplace_back(), file.data() + section->offset + at, sizeof(Row));
  return Status();
}

Status Reader::readString(uint32_t offset, std::string &text) {
  const ortc_file_section *strings = find(ORTC_SECTION_STRINGS);
  if (!strings || !strings->bytes || file[strings->offset + strings->bytes - 1])
    return Status::failure("the strings section is missing or not terminated");
  if (offset >= strings->bytes)
    return Status::failure("string offset " + number(offset) + " is past the " + number(strings->bytes) +
                           " bytes of strings");
  text = reinterpret_cast<const char *>(file.data() + strings->offset + offset);
  nameBytes += text.size();
  if (nameBytes > kMostNameBytes)
    return Status::failure("the names have more than " + number(kMostNameBytes) + " bytes in all");
  return Status();
}

Status Reader::readNames(ortc_section_kind kind, std::vector<std::string> &names) {
  std::vector<uint32_t> offsets;
  ORTC_TRY(rows(kind, offsets));
  for (uint32_t offset : offsets)
    ORTC_TRY(readString(offset, names.emplace_back()));
  return Status();
}

Status Reader::checkView(const std::string &what, const ortc_file_view &view, uint64_t regionBytes) {
  uint64_t element = elementBytes(view.dtype), dense = element, extent = element, room = element;
  if (!element)
    return Status::failure(what + " has dtype " + number(view.dtype) + ", which cannot be stored");
  if (view.rank > ORTC_MAX_RANK)
    return Status::failure(what + " has rank " + number(view.rank) + " but the format ends at 8");
  bool overflow = false;
  for (uint32_t i = 0; i < view.rank; ++i) {
    int64_t dim = view.dims[i], stride = view.strides[i];
    uint64_t step = 0;
    if (dim < 0 || stride < 0)
      return Status::failure(what + " has a negative dimension or stride");
    overflow |= __builtin_mul_overflow(dense, static_cast<uint64_t>(dim), &dense);
    // Also where another dimension is 0: strides are made of these.
    overflow |= __builtin_mul_overflow(room, static_cast<uint64_t>(std::max<int64_t>(dim, 1)), &room);
    if (dim > 0)
      overflow |=
          __builtin_mul_overflow(static_cast<uint64_t>(dim - 1), static_cast<uint64_t>(stride), &step) ||
          __builtin_add_overflow(extent, step, &extent);
  }
  if (overflow || room >> ORTC_REGION_BITS || dense != view.bytes)
    return Status::failure(what + " has " + number(view.bytes) + " bytes, which its shape does not give");
  if (view.offset % element)
    return Status::failure(what + " begins at byte " + number(view.offset) +
                           ", which is not aligned to its elements");
  if (dense == 0) // nothing is there, wherever the strides lead
    extent = 0;
  if (view.offset > regionBytes || extent > regionBytes - view.offset)
    return Status::failure(what + " reaches past its region of " + number(regionBytes) + " bytes");
  if (extent > dense)
    return Status::failure(what + " has strides that lead beyond its " + number(dense) + " bytes");
  return Status();
}

Status Reader::readTensor(const ortc_file_tensor &row) {
  Tensor &tensor = result.artifact.tensors.emplace_back();
  ORTC_TRY(readString(row.name, tensor.name));
  std::string what = "tensor '" + tensor.name + "'";
  if (row.role >= ORTC_ROLES)
    return Status::failure(what + " has unknown role " + number(row.role));
  const ortc_file_view &view = row.view;
  bool isStored = row.role <= ORTC_ROLE_SCALAR;
  uint32_t region = row.role == ORTC_ROLE_CONSTANT ? ORTC_REGION_CONSTANTS : ORTC_REGION_PERSISTENT;
  if (isStored && view.region != region)
    return Status::failure(what + " is in region " + number(view.region) + ", where a " +
                           getTensorRoleName(row.role) + " cannot be");
  uint64_t size = !isStored                         ? uint64_t(1) << ORTC_REGION_BITS
                  : region == ORTC_REGION_CONSTANTS ? result.artifact.constants.size()
                                                    : header.persistent_bytes;
  ORTC_TRY(checkView(what, view, size));
  if (region == ORTC_REGION_PERSISTENT && isStored &&
      __builtin_sub_overflow(persistentLeft, view.bytes, &persistentLeft))
    return Status::failure(what +
                           " shares its place: the tensors have more bytes than the persistent region of " +
                           number(header.persistent_bytes));
  tensor.role = static_cast<ortc_tensor_role>(row.role);
  tensor.dtype = view.dtype;
  tensor.dims.assign(view.dims, view.dims + view.rank);
  if (isStored)
    tensor.strides.assign(view.strides, view.strides + view.rank);
  tensor.offset = view.offset;
  tensor.owner = row.owner;
  tensor.flags = row.flags;
  return Status();
}

/// A parameter, also one in memory of the host.
static bool isTrained(const Tensor &tensor) {
  return tensor.role == ORTC_ROLE_PARAMETER ||
         (tensor.flags & ORTC_TENSOR_BOUND && tensor.flags & ORTC_TENSOR_TRAINED);
}

Status Reader::readValue(const ortc_file_value &row, uint32_t ordinal, const ortc_file_entry &entryRow,
                         Entry &entry) {
  if (row.tensor >= result.artifact.tensors.size())
    return Status::failure("a value of entry '" + entry.name + "' refers to a tensor that does not exist");
  const Tensor &tensor = result.artifact.tensors[row.tensor];
  std::string what = "value '" + tensor.name + "' of entry '" + entry.name + "'";
  const ortc_file_view &view = row.view;
  bool isExternal = ordinal < entryRow.ext_count;
  bool isIo = tensor.role == ORTC_ROLE_INPUT || tensor.role == ORTC_ROLE_OUTPUT;
  if (isExternal != (view.region == ORTC_REGION_IO) || isExternal != isIo ||
      (!isExternal && tensor.role != ORTC_ROLE_GRADIENT && tensor.role != ORTC_ROLE_LOSS))
    return Status::failure(what + " is a " + getTensorRoleName(tensor.role) + " in region " +
                           number(view.region) + ", where it cannot be");
  uint64_t size = view.region == ORTC_REGION_IO           ? header.io_bytes
                  : view.region == ORTC_REGION_TRANSIENT  ? entryRow.fixed_bytes
                  : view.region == ORTC_REGION_PERSISTENT ? header.persistent_bytes
                                                          : 0;
  if (view.dtype != tensor.dtype || view.rank != tensor.dims.size())
    return Status::failure(what + " has another dtype or rank than its tensor");
  ORTC_TRY(checkView(what, view, size));
  Value value;
  value.tensor = row.tensor;
  value.dims.assign(view.dims, view.dims + view.rank);
  value.region = static_cast<ortc_region>(view.region);
  value.offset = view.offset;
  value.strides.assign(view.strides, view.strides + view.rank);
  if (isExternal) {
    auto [place, isNew] = ioPlaces.try_emplace({entryRow.binding, row.tensor}, row);
    if (!isNew && std::memcmp(&place->second.view, &view, sizeof view))
      return Status::failure(what + " has another shape or place than in another entry of its binding");
  } else if (tensor.role == ORTC_ROLE_GRADIENT &&
             (tensor.owner >= result.artifact.tensors.size() ||
              !isTrained(result.artifact.tensors[tensor.owner]) ||
              result.artifact.tensors[tensor.owner].dims != value.dims)) {
    return Status::failure(what + " is not the gradient of a parameter of its shape");
  }
  (isExternal ? entry.external : entry.internal).push_back(std::move(value));
  return Status();
}

Status Reader::readEntry(const ortc_file_entry &row) {
  Entry &entry = result.artifact.entries.emplace_back();
  ORTC_TRY(readString(row.name, entry.name));
  std::string what = "entry '" + entry.name + "'";
  uint64_t workers = 0;
  if (row.role >= ORTC_ENTRY_ROLES || row.binding >= result.artifact.bindings.size())
    return Status::failure(what + " has an unknown role or binding");
  if (row.target != ORTC_NONE && row.target >= result.artifact.codes.size())
    return Status::failure(what + " is for code " + number(row.target) + ", which does not exist");
  if (row.first_value > values.size() || row.value_count > values.size() - row.first_value ||
      row.ext_count > row.value_count || (row.loss != ORTC_NONE && row.loss >= row.value_count))
    return Status::failure(what + " has values outside the values table");
  if (row.first_value < nextValue)
    return Status::failure(what + " has values of the entry before it");
  nextValue = row.first_value + row.value_count;
  if (row.fixed_bytes % ORTC_ALIGNMENT || row.worker_bytes % ORTC_ALIGNMENT ||
      __builtin_mul_overflow(row.worker_bytes, uint64_t(header.max_workers), &workers) ||
      (row.fixed_bytes | workers) >> ORTC_REGION_BITS)
    return Status::failure(what + " has a transient size that is not aligned or overflows");
  entry.role = static_cast<ortc_entry_role>(row.role);
  entry.binding = row.binding;
  entry.segment = row.segment;
  entry.target = row.target;
  entry.loss = row.loss;
  entry.fixedBytes = row.fixed_bytes;
  entry.workerBytes = row.worker_bytes;
  for (uint32_t i = 0; i < row.value_count; ++i)
    ORTC_TRY(readValue(values[row.first_value + i], i, row, entry));
  if (row.loss != ORTC_NONE) {
    const ortc_file_view &loss = values[row.first_value + row.loss].view;
    if (row.loss < row.ext_count || (loss.dtype != 1 && loss.dtype != 11) ||
        loss.bytes != elementBytes(loss.dtype))
      return Status::failure(what + " has a loss that is not one f32 or f64 of its own");
  }
  return Status();
}

/// The head of a blob, and that it has a step function for every entry that is for it.
Status Reader::checkCode(const Code &code, uint32_t ordinal) {
  std::string what = "code '" + code.name + "'";
  ortc_blob head{};
  if (code.bytes.size() < sizeof head)
    return Status::failure(what + " is too short for its head");
  std::memcpy(&head, code.bytes.data(), sizeof head);
  if (head.magic != ORTC_BLOB_MAGIC || head.abi != ORTC_CALL_ABI)
    return Status::failure(what + " has a wrong magic, or ABI " + number(head.abi));
  if (head.entry_bytes < sizeof(ortc_blob_entry) || head.entry_bytes % 4 ||
      head.count > (code.bytes.size() - sizeof head) / head.entry_bytes)
    return Status::failure(what + " has a head that does not fit");
  size_t headBytes = sizeof head + size_t(head.count) * head.entry_bytes;
  std::set<std::array<uint32_t, 3>> steps; // role, binding, segment
  for (uint32_t i = 0; i < head.count; ++i) {
    ortc_blob_entry step;
    std::memcpy(&step, code.bytes.data() + sizeof head + size_t(i) * head.entry_bytes, sizeof step);
    bool isCounted = code.architecture == ORTC_ARCH_WASM32 || code.features & ORTC_FEATURE_LINKED;
    if (isCounted ? step.offset < head.count : step.offset >= headBytes && step.offset < code.bytes.size())
      steps.insert({step.role, step.binding, step.segment});
  }
  for (const Entry &entry : result.artifact.entries)
    if ((entry.target == ORTC_NONE || entry.target == ordinal) &&
        !steps.contains({uint32_t(entry.role), entry.binding, entry.segment}))
      return Status::failure(what + " has no step function for entry '" + entry.name + "'");
  return Status();
}

Status Reader::readTables() {
  Artifact &artifact = result.artifact;
  if (const ortc_file_section *section = find(ORTC_SECTION_CONSTANTS))
    artifact.constants = image(*section);
  if (const ortc_file_section *section = find(ORTC_SECTION_PERSISTENT))
    artifact.persistent = image(*section);
  if (artifact.persistent.size() > header.persistent_bytes)
    return Status::failure("the persistent image has " + number(artifact.persistent.size()) +
                           " bytes but its region " + number(header.persistent_bytes));
  if (const ortc_file_section *section = find(ORTC_SECTION_SOURCE))
    artifact.source = contents(*section);
  if (const ortc_file_section *section = find(ORTC_SECTION_SIGNATURE))
    artifact.signature = contents(*section);
  if (const ortc_file_section *section = find(ORTC_SECTION_MANIFEST)) {
    Bytes text = contents(*section);
    artifact.manifest.assign(text.begin(), text.end());
  }
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].kind != ORTC_SECTION_CODE)
      continue;
    if (artifact.codes.size() == kMostCodes)
      return Status::failure("there are more than " + number(kMostCodes) + " code sections");
    Code &code = artifact.codes.emplace_back();
    ORTC_TRY(readString(table[i].name, code.name));
    code.architecture = table[i].architecture;
    code.features = table[i].features;
    code.bytes = contents(table[i]);
    result.sections[i].name = code.name;
  }
  std::vector<ortc_file_tensor> tensors;
  std::vector<ortc_file_binding> bindings;
  std::vector<ortc_file_entry> entries;
  ORTC_TRY(rows(ORTC_SECTION_TENSORS, tensors));
  ORTC_TRY(rows(ORTC_SECTION_BINDINGS, bindings));
  ORTC_TRY(rows(ORTC_SECTION_ENTRIES, entries));
  ORTC_TRY(rows(ORTC_SECTION_VALUES, values));
  if (entries.size() > kMostEntries)
    return Status::failure("there are " + number(entries.size()) + " entries; the limit is " +
                           number(kMostEntries));
  for (const ortc_file_binding &row : bindings)
    ORTC_TRY(readString(row.name, artifact.bindings.emplace_back()));
  for (const ortc_file_tensor &row : tensors) {
    ORTC_TRY(readTensor(row));
    if (row.owner != ORTC_NONE && row.owner >= tensors.size())
      return Status::failure("tensor '" + artifact.tensors.back().name +
                             "' belongs to a tensor that does not exist");
  }
  for (const ortc_file_entry &row : entries)
    ORTC_TRY(readEntry(row));
  for (uint32_t i = 0; i < artifact.codes.size(); ++i)
    ORTC_TRY(checkCode(artifact.codes[i], i));
  uint8_t digest[32];
  modelDigest(artifact.tensors, digest);
  if (!isSameDigest(digest, header.model))
    return Status::failure("the model's digest does not match the tensor table");
  ORTC_TRY(readNames(ORTC_SECTION_CHECK_NAMES, artifact.checkNames));
  return readNames(ORTC_SECTION_KERNEL_NAMES, artifact.kernelNames);
}

Status Reader::read() {
  ORTC_TRY(readHeader());
  ORTC_TRY(readSections());
  ORTC_TRY(checkGaps());
  return readTables();
}

} // namespace

static Expected<ArtifactFile> readAll(Reader &&reader, std::vector<SectionReport> *sections) {
  Status outcome = reader.read();
  if (sections)
    *sections = reader.result.sections;
  if (!outcome.isOk())
    return outcome;
  return std::move(reader.result);
}

Expected<ArtifactFile> readArtifact(std::span<const uint8_t> file, std::vector<SectionReport> *sections) {
  return readAll(Reader(file, /*readsImages=*/true), sections);
}

Expected<ArtifactFile> readTables(std::span<const uint8_t> file) {
  return readAll(Reader(file, /*readsImages=*/false), nullptr);
}

Expected<Bytes> readBytes(const std::string &path) {
  std::error_code unknown;
  auto kind = std::filesystem::status(path, unknown).type();
  if (kind != std::filesystem::file_type::regular && kind != std::filesystem::file_type::not_found)
    return Status::failure("cannot read " + path + ": it is not a file");
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  Bytes bytes;
  if (uintmax_t size = std::filesystem::file_size(path, unknown); !unknown)
    bytes.reserve(std::min<uintmax_t>(size, uintmax_t(4) << 30)); // it may change meanwhile, or be sparse
  uint8_t buffer[1 << 16];
  size_t count = 0;
  while (file && (count = std::fread(buffer, 1, sizeof buffer, file.get())))
    bytes.insert(bytes.end(), buffer, buffer + count);
  if (!file || std::ferror(file.get()))
    return Status::failure("cannot read " + path);
  return bytes;
}

Expected<ArtifactFile> readArtifactFile(const std::string &path, std::vector<SectionReport> *sections) {
  Expected<Bytes> bytes = readBytes(path);
  if (!bytes)
    return bytes.getStatus();
  auto contents = std::make_shared<const Bytes>(std::move(*bytes));
  return readAll(Reader(*contents, /*readsImages=*/true, contents), sections);
}

} // namespace ortc::artifact
