// Opening an artifact: everything in the file is checked here, once, so that nothing later has to.
//
// Order: header, hash of header and section table (a copy of it), bounds of every section, choice of the
// code, hashes of what will be used, structure of every row. Tables of a mapped file are copied before they
// are hashed, because somebody may write to the file afterwards; constants are used where they are.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"
#include "runtime/src/sha256.h"

namespace ortc {
namespace {

constexpr uint64_t kMaxRegion = (uint64_t)1
                                << (sizeof(size_t) * 8 - 2); ///< so that sums of two sizes never overflow

/// Bytes of a dense tensor; false when a dimension is negative or the product overflows.
bool denseBytes(uint32_t element, uint32_t rank, const int64_t *dims, uint64_t &bytes) {
  bytes = element;
  for (uint32_t i = 0; i < rank; i++)
    if (dims[i] < 0 || __builtin_mul_overflow(bytes, (uint64_t)dims[i], &bytes))
      return false;
  return bytes <= kMaxRegion;
}

/// True when every element of the view lies within a region of `size` bytes.
bool isViewWithin(uint32_t element, uint32_t rank, const int64_t *dims, const int64_t *strides,
                  uint64_t offset, uint64_t size) {
  uint64_t extent = element;
  for (uint32_t i = 0; i < rank; i++) {
    uint64_t step;
    if (strides[i] < 0)
      return false;
    if (dims[i] > 1 && (__builtin_mul_overflow((uint64_t)(dims[i] - 1), (uint64_t)strides[i], &step) ||
                        __builtin_add_overflow(extent, step, &extent)))
      return false;
  }
  return isWithin(offset, extent, size);
}

bool isDenseView(uint32_t element, uint32_t rank, const int64_t *dims, const int64_t *strides) {
  uint64_t stride = element; // may wrap where another dimension is 0
  for (uint32_t i = rank; i-- > 0; stride *= (uint64_t)dims[i])
    if (dims[i] != 1 && (uint64_t)strides[i] != stride)
      return false;
  return true;
}

class Loader {
public:
  Loader(ortc_program *program, ortc_message *message) : p(program), message(message) {}
  ortc_status load(const void *image, size_t bytes, bool isMapped);

private:
  ortc_status readHeader();
  ortc_status readSectionTable();
  ortc_status chooseSections();
  ortc_status takeTables(bool isMapped);
  ortc_status checkTensors();
  ortc_status checkEntries();
  ortc_status checkEntry(const ortc_file_entry &entry);
  ortc_status checkValue(const ortc_file_entry &entry, uint32_t ordinal);
  ortc_status loadCode();
  ortc_status bad(const char *what, uint64_t i = 0) { return fail(message, ORTC_E_FORMAT, what, i); }
  ortc_status noMemory() { return fail(message, ORTC_E_MEMORY, "out of memory while opening the artifact"); }
  bool isString(uint32_t offset) const { return offset < p->stringBytes; }

  template <typename T> bool setTable(Table<T> &table, uint32_t kind) {
    const ortc_file_section *section = chosen[kind];
    if (!section)
      return true;
    if (section->row_bytes < sizeof(T) || section->row_bytes % alignof(T) ||
        section->bytes % section->row_bytes || section->bytes / section->row_bytes >= ORTC_NONE)
      return false;
    table.data = places[kind];
    table.rowBytes = section->row_bytes;
    table.count = (uint32_t)(section->bytes / section->row_bytes);
    return true;
  }

  ortc_program *p;
  ortc_message *message;
  const ortc_file_section *chosen[ORTC_SECTION_SIGNATURE + 1] = {};
  const uint8_t *places[ORTC_SECTION_SIGNATURE + 1] = {};
};

ortc_status Loader::readHeader() {
  ortc_file_header &h = p->header;
  if (p->imageBytes < sizeof h)
    return bad("the artifact has %u bytes, too few for a header", p->imageBytes);
  memcpy(&h, p->image, sizeof h);
  if (memcmp(h.magic, ORTC_MAGIC, sizeof h.magic))
    return bad("this is not an ortc artifact");
  if (h.major != ORTC_FORMAT_MAJOR)
    return fail(message, ORTC_E_VERSION,
                "the artifact has format version %u but this runtime reads version %u", (uint64_t)h.major,
                (uint64_t)ORTC_FORMAT_MAJOR);
  if (h.file_bytes != p->imageBytes)
    return fail(message, ORTC_E_FORMAT, "the artifact has %u bytes but its header says %u", p->imageBytes,
                h.file_bytes);
  if (h.header_bytes < sizeof h || h.header_bytes % 8 || h.header_bytes > p->imageBytes ||
      h.section_bytes < sizeof(ortc_file_section) || h.section_bytes % 8 ||
      h.section_count > (p->imageBytes - h.header_bytes) / h.section_bytes)
    return bad("the section table does not fit in the artifact");
  if (h.persistent_bytes > kMaxRegion || h.persistent_bytes % ORTC_ALIGNMENT || h.io_bytes > kMaxRegion ||
      h.io_bytes % ORTC_ALIGNMENT || !h.max_workers)
    return bad("the header has an impossible size");
  return ORTC_OK;
}

/// Copies the section table and checks the hash of the copy.
ortc_status Loader::readSectionTable() {
  const ortc_file_header &h = p->header;
  p->sections = (ortc_file_section *)allocate(p->host, h.section_count * sizeof(ortc_file_section));
  if (!p->sections)
    return noMemory();
  Sha256 hash;
  ortc_file_header zeroed = h;
  uint8_t digest[32];
  memset(zeroed.sha256, 0, sizeof zeroed.sha256);
  hash.update(&zeroed, sizeof zeroed);
  hash.update(p->image + sizeof zeroed, h.header_bytes - sizeof zeroed);
  for (uint32_t i = 0; i < h.section_count; i++) {
    const uint8_t *row = p->image + h.header_bytes + (uint64_t)i * h.section_bytes;
    memcpy(&p->sections[i], row, sizeof(ortc_file_section));
    hash.update(&p->sections[i], sizeof(ortc_file_section));
    hash.update(row + sizeof(ortc_file_section), h.section_bytes - sizeof(ortc_file_section));
  }
  hash.finish(digest);
  if (memcmp(digest, h.sha256, sizeof digest))
    return fail(message, ORTC_E_HASH, "header and section table do not match their hash");
  return ORTC_OK;
}

/// Bounds of every section; the one of each kind; the code with the most features that this machine has.
ortc_status Loader::chooseSections() {
  uint64_t features = ortc_host_features();
  uint32_t architecture = ortc_host_architecture(), ordinal = 0;
  for (uint32_t i = 0; i < p->header.section_count; i++) {
    const ortc_file_section &s = p->sections[i];
    bool isCode = s.kind == ORTC_SECTION_CODE;
    if (!isWithin(s.offset, s.bytes, p->imageBytes) ||
        s.offset % (isCode ? ORTC_CODE_ALIGNMENT : ORTC_ALIGNMENT))
      return bad("section %u does not fit in the artifact or is not aligned", i);
    if (!s.kind || s.kind > ORTC_SECTION_SIGNATURE) {
      if (s.flags & ORTC_SECTION_REQUIRED)
        return fail(message, ORTC_E_VERSION, "the artifact needs a newer runtime: section %u is of kind %u",
                    (uint64_t)i, (uint64_t)s.kind);
      continue;
    }
    const ortc_file_section *&slot = chosen[s.kind];
    if (!isCode) {
      if (slot)
        return bad("section %u repeats a kind that occurs once", i);
      slot = &s;
      continue;
    }
    if (s.architecture == architecture && !(s.features & ~features) &&
        (!slot || __builtin_popcountll(s.features) >= __builtin_popcountll(slot->features))) {
      slot = &s;
      p->codeOrdinal = ordinal;
    }
    ordinal++;
  }
  p->codeSection = chosen[ORTC_SECTION_CODE];
  if (!p->codeSection)
    return fail(message, ORTC_E_TARGET, "none of the %u code sections runs on this processor",
                (uint64_t)ordinal);
  return ORTC_OK;
}

/// Hashes of all sections in use but the code, tables of a mapped file from their copies.
ortc_status Loader::takeTables(bool isMapped) {
  static const uint8_t kTables[] = {
      ORTC_SECTION_TENSORS,      ORTC_SECTION_STRINGS,   ORTC_SECTION_BINDINGS,
      ORTC_SECTION_ENTRIES,      ORTC_SECTION_VALUES,    ORTC_SECTION_CHECK_NAMES,
      ORTC_SECTION_KERNEL_NAMES, ORTC_SECTION_CONSTANTS, ORTC_SECTION_PERSISTENT};
  constexpr unsigned kCopied = 7;
  auto align = [](uint64_t bytes) { return (bytes + ORTC_ALIGNMENT - 1) / ORTC_ALIGNMENT * ORTC_ALIGNMENT; };
  uint64_t total = 0;
  for (unsigned i = 0; isMapped && i < kCopied; i++)
    if (const ortc_file_section *s = chosen[kTables[i]])
      total += align(s->bytes); // each is within the file: seven of them do not overflow
  p->tableBytes = (size_t)total;
  if (total && !(p->tables = (uint8_t *)allocate(p->host, p->tableBytes)))
    return noMemory();
  uint8_t *next = p->tables;
  for (unsigned i = 0; i < sizeof kTables; i++) {
    const ortc_file_section *s = chosen[kTables[i]];
    if (!s)
      continue;
    const uint8_t *place = p->image + s->offset;
    if (isMapped && i < kCopied) {
      memcpy(next, place, s->bytes);
      place = next;
      next += align(s->bytes);
    }
    if (!hasDigest(place, s->bytes, s->sha256))
      return fail(message, ORTC_E_HASH, "section %u (kind %u) does not match its hash",
                  (uint64_t)(s - p->sections), (uint64_t)s->kind);
    places[kTables[i]] = place;
  }
  if (!setTable(p->tensors, ORTC_SECTION_TENSORS) || !setTable(p->bindings, ORTC_SECTION_BINDINGS) ||
      !setTable(p->entries, ORTC_SECTION_ENTRIES) || !setTable(p->values, ORTC_SECTION_VALUES) ||
      !setTable(p->checkNames, ORTC_SECTION_CHECK_NAMES) ||
      !setTable(p->kernelNames, ORTC_SECTION_KERNEL_NAMES))
    return bad("a table is not a whole number of rows");
  if (const ortc_file_section *s = chosen[ORTC_SECTION_STRINGS]) {
    p->strings = (const char *)places[ORTC_SECTION_STRINGS];
    p->stringBytes = s->bytes;
  }
  if (!p->stringBytes || p->strings[p->stringBytes - 1])
    return bad("the strings are missing or not terminated");
  if (const ortc_file_section *s = chosen[ORTC_SECTION_CONSTANTS]) {
    p->constants = places[ORTC_SECTION_CONSTANTS];
    p->constantBytes = s->bytes;
  }
  if (const ortc_file_section *s = chosen[ORTC_SECTION_PERSISTENT]) {
    p->persistent = places[ORTC_SECTION_PERSISTENT];
    p->persistentBytes = s->bytes;
  }
  if (p->persistentBytes > p->header.persistent_bytes)
    return bad("the persistent image is larger than its region");
  bool areNames = p->codeSection->name == ORTC_NONE || isString(p->codeSection->name);
  for (uint32_t i = 0; i < p->bindings.count; i++)
    areNames &= isString(p->bindings[i].name);
  for (uint32_t i = 0; i < p->checkNames.count; i++)
    areNames &= isString(p->checkNames[i]);
  for (uint32_t i = 0; i < p->kernelNames.count; i++)
    areNames &= isString(p->kernelNames[i]);
  return areNames && p->bindings.count ? ORTC_OK
                                       : bad("a name is not in the strings, or there is no binding");
}

ortc_status Loader::checkTensors() {
  for (uint32_t i = 0; i < p->tensors.count; i++) {
    const ortc_file_tensor &t = p->tensors[i];
    uint32_t element = elementSize(t.dtype);
    uint64_t bytes;
    if (!isString(t.name) || t.role >= ORTC_ROLES || !element || t.rank > ORTC_MAX_RANK ||
        (t.owner != ORTC_NONE && t.owner >= p->tensors.count) ||
        !denseBytes(element, t.rank, t.dims, bytes) || bytes != t.bytes)
      return bad("tensor %u of the artifact is malformed", i);
    if (t.role > ORTC_ROLE_SCALAR)
      continue;
    bool isConstant = t.role == ORTC_ROLE_CONSTANT;
    if (t.region != (isConstant ? ORTC_REGION_CONSTANTS : ORTC_REGION_PERSISTENT) ||
        !isViewWithin(element, t.rank, t.dims, t.strides, t.offset,
                      isConstant ? p->constantBytes : p->header.persistent_bytes) ||
        (!isConstant && !safetensorsDtype(t.dtype)))
      return bad("tensor %u of the artifact reaches out of its region", i);
  }
  return ORTC_OK;
}

ortc_status Loader::checkValue(const ortc_file_entry &entry, uint32_t ordinal) {
  uint32_t row = entry.first_value + ordinal;
  const ortc_file_value &v = p->values[row];
  if (v.tensor >= p->tensors.count)
    return bad("value %u refers to a tensor that does not exist", row);
  const ortc_file_tensor &t = p->tensors[v.tensor];
  uint32_t element = elementSize(t.dtype);
  uint64_t bytes, size;
  bool isExternal = ordinal < entry.ext_count;
  if (isExternal) {
    size = v.region == ORTC_REGION_IO && (t.role == ORTC_ROLE_INPUT || t.role == ORTC_ROLE_OUTPUT) &&
                   isDenseView(element, t.rank, v.dims, v.strides)
               ? p->header.io_bytes
               : 0;
  } else {
    bool isGradient = t.role == ORTC_ROLE_GRADIENT && t.owner != ORTC_NONE;
    size = !isGradient && t.role != ORTC_ROLE_LOSS ? 0
           : v.region == ORTC_REGION_TRANSIENT     ? entry.fixed_bytes
           : v.region == ORTC_REGION_PERSISTENT    ? p->header.persistent_bytes
                                                   : 0;
  }
  if (!denseBytes(element, t.rank, v.dims, bytes) || bytes != v.bytes ||
      !isViewWithin(element, t.rank, v.dims, v.strides, v.offset, size))
    return bad("value %u of the artifact is malformed or reaches out of its region", row);
  return ORTC_OK;
}

ortc_status Loader::checkEntry(const ortc_file_entry &e) {
  uint64_t workers, total;
  if (!isString(e.name) || e.role >= ORTC_ENTRY_ROLES || e.binding >= p->bindings.count ||
      !isWithin(e.first_value, e.value_count, p->values.count) || e.ext_count > e.value_count ||
      e.fixed_bytes % ORTC_ALIGNMENT || e.worker_bytes % ORTC_ALIGNMENT ||
      __builtin_mul_overflow(e.worker_bytes, (uint64_t)p->header.max_workers, &workers) ||
      __builtin_add_overflow(workers, e.fixed_bytes, &total) || total > kMaxRegion)
    return bad("entry %u of the artifact is malformed", (uint64_t)p->stepCount);
  for (uint32_t i = 0; i < e.value_count; i++)
    if (ortc_status status = checkValue(e, i))
      return status;
  if (e.loss == ORTC_NONE)
    return ORTC_OK;
  if (e.loss >= e.value_count)
    return bad("entry %u has no such loss", (uint64_t)p->stepCount);
  const ortc_file_value &loss = p->values[e.first_value + e.loss];
  uint8_t dtype = p->tensors[loss.tensor].dtype; // f32 or f64, one element
  if ((dtype != 1 && dtype != 11) || loss.bytes != elementSize(dtype))
    return bad("entry %u has a loss that is not one number", (uint64_t)p->stepCount);
  return ORTC_OK;
}

/// The entries that are for the chosen code, each with its step function.
ortc_status Loader::checkEntries() {
  p->steps = (Step *)allocate(p->host, p->entries.count * sizeof(Step));
  if (!p->steps)
    return noMemory();
  const uint8_t *code = (const uint8_t *)p->code;
  uint64_t codeBytes = p->codeSection->bytes;
  const ortc_blob *head = (const ortc_blob *)code;
  for (uint32_t i = 0; i < p->entries.count; i++) {
    const ortc_file_entry &e = p->entries[i];
    if (e.target != ORTC_NONE && e.target != p->codeOrdinal)
      continue;
    if (ortc_status status = checkEntry(e))
      return status;
    Step step = {&e, nullptr};
    for (uint32_t k = 0; k < head->count; k++) {
      const ortc_blob_entry *b =
          (const ortc_blob_entry *)(code + sizeof(ortc_blob) + (uint64_t)k * head->entry_bytes);
      if (b->role == e.role && b->binding == e.binding && b->segment == e.segment && b->offset < codeBytes)
        step.function = (ortc_step_fn)(uintptr_t)(code + b->offset);
    }
    if (!step.function)
      return fail(message, ORTC_E_FORMAT, "the code has no step function for entry '%s'", p->string(e.name));
    p->steps[p->stepCount++] = step;
  }
  return ORTC_OK;
}

ortc_status Loader::loadCode() {
  const ortc_file_section &s = *p->codeSection;
  if (s.bytes < sizeof(ortc_blob))
    return bad("the code has %u bytes, too few for its head", s.bytes);
  ortc_status status = makeExecutable(p->image + s.offset, s.bytes, s.sha256, &p->code);
  if (status)
    return fail(message, status,
                status == ORTC_E_HASH     ? "the code does not match its hash"
                : status == ORTC_E_MEMORY ? "out of memory for the code"
                                          : "this system does not allow code to be made executable");
  const ortc_blob *head = (const ortc_blob *)p->code;
  if (head->magic != ORTC_BLOB_MAGIC)
    return bad("the code has no head");
  if (head->abi != ORTC_CALL_ABI)
    return fail(message, ORTC_E_VERSION, "the code has call ABI %u but this runtime has %u",
                (uint64_t)head->abi, (uint64_t)ORTC_CALL_ABI);
  if (head->entry_bytes < sizeof(ortc_blob_entry) || head->entry_bytes % 4 ||
      head->count > (s.bytes - sizeof *head) / head->entry_bytes)
    return bad("the code's head does not fit");
  return ORTC_OK;
}

ortc_status Loader::load(const void *image, size_t bytes, bool isMapped) {
  p->image = (const uint8_t *)image;
  p->imageBytes = bytes;
  ortc_status status = readHeader();
  if (!status)
    status = readSectionTable();
  if (!status)
    status = chooseSections();
  if (!status)
    status = takeTables(isMapped);
  if (status)
    return status;
  if (p->host.verify) {
    const ortc_file_section *s = chosen[ORTC_SECTION_SIGNATURE];
    if (p->host.verify(p->host.context, p->header.sha256, s ? p->image + s->offset : nullptr,
                       s ? (size_t)s->bytes : 0))
      return fail(message, ORTC_E_HASH, "the host does not trust this artifact");
  }
  status = checkTensors();
  if (!status)
    status = loadCode();
  if (!status)
    status = checkEntries();
  return status;
}

ortc_status open(const void *image, size_t bytes, const MappedFile &file, const ortc_host *host,
                 ortc_program **program, ortc_message *message) {
  ortc_host hooks = {};
  if (host)
    memcpy(&hooks, host, host->size < sizeof hooks ? host->size : sizeof hooks);
  ortc_program *p = (ortc_program *)allocate(hooks, sizeof *p);
  if (!p) {
    unmapFile(file);
    return fail(message, ORTC_E_MEMORY, "out of memory while opening the artifact");
  }
  memset((void *)p, 0, sizeof *p);
  p->host = hooks;
  p->file = file;
  ortc_status status = Loader(p, message).load(image, bytes, file.data != nullptr);
  if (status)
    ortc_program_close(p);
  else
    *program = p;
  return status;
}

} // namespace

uint32_t findTensor(const ortc_program *program, const char *name) {
  for (uint32_t i = 0; i < program->tensors.count; i++) {
    const ortc_file_tensor &t = program->tensors[i];
    if (t.role != ORTC_ROLE_GRADIENT && t.role != ORTC_ROLE_LOSS && !strcmp(program->string(t.name), name))
      return i;
  }
  return ORTC_NONE;
}

/// `value` may be null; then the tensor's own shape counts.
static ortc_status describe(const ortc_program *program, uint32_t index, const ortc_file_value *value,
                            ortc_tensor_info *info) {
  const ortc_file_tensor &t = program->tensors[index];
  const int64_t *dims = value ? value->dims : t.dims;
  const int64_t *strides = value ? value->strides : t.strides;
  ortc_tensor_info out = {};
  out.index = index;
  out.name = program->string(t.name);
  out.role = t.role;
  out.dtype = t.dtype;
  out.rank = t.rank;
  out.region = value ? (uint8_t)value->region : t.region;
  out.owner = t.owner;
  out.flags = t.flags;
  out.dense =
      (!value && t.role > ORTC_ROLE_SCALAR) || isDenseView(elementSize(t.dtype), t.rank, dims, strides);
  out.bytes = value ? value->bytes : t.bytes;
  for (uint32_t i = 0; i < t.rank; i++)
    out.dims[i] = dims[i];
  return copyOut(info, out);
}

} // namespace ortc

using namespace ortc;

extern "C" {

ortc_status ortc_program_open_file(const char *path, const ortc_host *host, ortc_program **program,
                                   ortc_message *message) {
  if (!path || !program)
    return fail(message, ORTC_E_ARGUMENT, "no path, or no place for the program");
  *program = nullptr;
  MappedFile file;
  if (ortc_status status = mapFile(path, file, message))
    return status;
  return open(file.data, file.bytes, file, host, program, message);
}

ortc_status ortc_program_open_memory(const void *image, size_t bytes, const ortc_host *host,
                                     ortc_program **program, ortc_message *message) {
  if (!image || !program || (uintptr_t)image % ORTC_ALIGNMENT)
    return fail(message, ORTC_E_ARGUMENT,
                "no image, one that is not aligned to 64 bytes, or no place for the program");
  *program = nullptr;
  return open(image, bytes, MappedFile(), host, program, message);
}

void ortc_program_close(ortc_program *program) {
  if (!program)
    return;
  if (program->code)
    releaseExecutable(program->code, program->codeSection->bytes);
  const ortc_host host = program->host;
  release(host, program->steps, program->entries.count * sizeof(Step));
  release(host, program->tables, program->tableBytes);
  release(host, program->sections, program->header.section_count * sizeof(ortc_file_section));
  unmapFile(program->file);
  release(host, program, sizeof *program);
}

ortc_status ortc_program_get_info(const ortc_program *program, ortc_program_info *info) {
  if (!program)
    return ORTC_E_ARGUMENT;
  const ortc_file_section &code = *program->codeSection;
  ortc_program_info out = {};
  out.tensor_count = program->tensors.count;
  out.binding_count = program->bindings.count;
  out.entry_count = program->stepCount;
  out.max_workers = program->header.max_workers;
  out.architecture = code.architecture;
  out.features = code.features;
  out.target_name = code.name == ORTC_NONE ? "" : program->string(code.name);
  out.code_bytes = code.bytes;
  out.constant_bytes = program->constantBytes;
  out.persistent_bytes = program->header.persistent_bytes;
  out.io_bytes = program->header.io_bytes;
  memcpy(out.digest, program->header.sha256, sizeof out.digest);
  memcpy(out.model, program->header.model, sizeof out.model);
  return copyOut(info, out);
}

ortc_status ortc_program_section(const ortc_program *program, uint32_t kind, const void **data,
                                 uint64_t *bytes) {
  if (!program || !data || !bytes)
    return ORTC_E_ARGUMENT;
  for (uint32_t i = 0; i < program->header.section_count; i++) {
    const ortc_file_section &s = program->sections[i];
    if (s.kind != kind)
      continue;
    if (kind != ORTC_SECTION_SIGNATURE && !hasDigest(program->image + s.offset, s.bytes, s.sha256))
      return ORTC_E_HASH;
    *data = program->image + s.offset;
    *bytes = s.bytes;
    return ORTC_OK;
  }
  return ORTC_E_NOT_FOUND;
}

ortc_status ortc_tensor_get(const ortc_program *program, uint32_t index, ortc_tensor_info *info) {
  if (!program)
    return ORTC_E_ARGUMENT;
  return index < program->tensors.count ? describe(program, index, nullptr, info) : ORTC_E_NOT_FOUND;
}

ortc_status ortc_tensor_find(const ortc_program *program, const char *name, ortc_tensor_info *info) {
  if (!program || !name)
    return ORTC_E_ARGUMENT;
  return ortc_tensor_get(program, findTensor(program, name), info);
}

const char *ortc_binding_name(const ortc_program *program, uint32_t binding) {
  return program && binding < program->bindings.count ? program->string(program->bindings[binding].name)
                                                      : nullptr;
}

uint32_t ortc_binding_find(const ortc_program *program, const char *name) {
  for (uint32_t i = 0; program && name && i < program->bindings.count; i++)
    if (!strcmp(ortc_binding_name(program, i), name))
      return i;
  return ORTC_NONE;
}

ortc_status ortc_entry_get(const ortc_program *program, uint32_t entry, ortc_entry_info *info) {
  if (!program)
    return ORTC_E_ARGUMENT;
  if (entry >= program->stepCount)
    return ORTC_E_NOT_FOUND;
  const ortc_file_entry &e = *program->steps[entry].entry;
  ortc_entry_info out = {};
  out.role = e.role;
  out.binding = e.binding;
  out.segment = e.segment;
  out.value_count = e.value_count;
  out.has_loss = e.loss != ORTC_NONE;
  out.fixed_bytes = e.fixed_bytes;
  out.worker_bytes = e.worker_bytes;
  out.name = program->string(e.name);
  return copyOut(info, out);
}

ortc_status ortc_entry_value(const ortc_program *program, uint32_t entry, uint32_t n,
                             ortc_tensor_info *info) {
  if (!program)
    return ORTC_E_ARGUMENT;
  if (entry >= program->stepCount || n >= program->steps[entry].entry->value_count)
    return ORTC_E_NOT_FOUND;
  const ortc_file_value &v = program->values[program->steps[entry].entry->first_value + n];
  return describe(program, v.tensor, &v, info);
}

const char *ortc_kernel_name(const ortc_program *program, uint32_t kernel) {
  return program && kernel < program->kernelNames.count ? program->string(program->kernelNames[kernel])
                                                        : nullptr;
}
}
