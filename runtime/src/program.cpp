// Opening an artifact: everything in the file is checked here, once, so that nothing later has to.
//
// Order: header, hash of header and section table (a copy of it), bounds of every section, choice of the
// code, hashes of what will be used, structure of every row. Tables of a mapped file are copied before they
// are hashed, because somebody may write to the file afterwards; constants are used where they are. String
// offsets are checked when they are used. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"
#include "runtime/src/sha256.h"

namespace ortc {
namespace {

constexpr uint64_t kMaxRegion = (uint64_t)1
                                << (sizeof(size_t) * 8 - 2); ///< so that sums of two sizes never overflow
constexpr uint32_t kLastTable = ORTC_SECTION_KERNEL_NAMES;
/// Least bytes of a row, by section kind; 1: no rows, 0: no table.
constexpr uint8_t kRowBytes[kLastTable + 1] = {0,
                                               sizeof(ortc_file_tensor),
                                               1,
                                               sizeof(ortc_file_binding),
                                               sizeof(ortc_file_entry),
                                               sizeof(ortc_file_value),
                                               1,
                                               1,
                                               0,
                                               sizeof(uint32_t),
                                               sizeof(uint32_t)};

bool isWithin(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}
/// Whether a table is copied from a mapped file: all but the two images.
bool isCopied(uint32_t kind) { return kind != ORTC_SECTION_CONSTANTS && kind != ORTC_SECTION_PERSISTENT; }

/// A tensor or value as the file has it.
struct Shape {
  uint8_t dtype, rank;
  const int64_t *dims, *strides;
  uint64_t bytes, offset;
};

/// True when the shape gives its size and every element of the view lies within a region of `size` bytes.
bool isGood(const Shape &s, uint64_t size) {
  uint64_t dense = elementSize(s.dtype), extent = dense, step;
  bool isBad = !dense || s.rank > ORTC_MAX_RANK;
  for (uint32_t i = 0; !isBad && i < s.rank; i++) {
    uint64_t dim = (uint64_t)s.dims[i], stride = (uint64_t)s.strides[i];
    isBad = (int64_t)(dim | stride) < 0 || __builtin_mul_overflow(dense, dim, &dense) ||
            (dim > 1 && (__builtin_mul_overflow(dim - 1, stride, &step) ||
                         __builtin_add_overflow(extent, step, &extent)));
  }
  return !isBad && dense == s.bytes && dense <= kMaxRegion && isWithin(s.offset, extent, size);
}

ortc_status malformed(ortc_message *m, const char *what, uint64_t i) {
  return fail(m, E_FORMAT "%s %u of the artifact is malformed", what, i);
}

ortc_status noMemory(ortc_message *m) { return fail(m, E_MEMORY "out of memory while opening the artifact"); }

/// Checks the header and copies it with the section table; the copy is what is hashed.
ortc_status readHead(ortc_program *p, ortc_message *m) {
  ortc_file_header &h = p->header;
  if (p->imageBytes < sizeof h)
    return fail(m, E_FORMAT "the artifact has %u bytes, too few for a header", p->imageBytes);
  memcpy(&h, p->image, sizeof h);
  if (memcmp(h.magic, ORTC_MAGIC, sizeof h.magic))
    return fail(m, E_FORMAT "this is not an ortc artifact");
  if (h.major != ORTC_FORMAT_MAJOR)
    return fail(m, E_VERSION "the artifact has format version %u but this runtime reads version %u",
                (uint64_t)h.major, (uint64_t)ORTC_FORMAT_MAJOR);
  if (h.file_bytes != p->imageBytes)
    return fail(m, E_FORMAT "the artifact has %u bytes but its header says %u", p->imageBytes, h.file_bytes);
  uint64_t tableBytes = (uint64_t)h.section_count * h.section_bytes;
  if (h.header_bytes < sizeof h || h.section_bytes < sizeof(ortc_file_section) ||
      (h.header_bytes | h.section_bytes) % 8 || !isWithin(h.header_bytes, tableBytes, p->imageBytes) ||
      h.persistent_bytes > kMaxRegion || h.io_bytes > kMaxRegion ||
      (h.persistent_bytes | h.io_bytes) % ORTC_ALIGNMENT || !h.max_workers)
    return malformed(m, "header", 0);
  size_t bytes = h.header_bytes + tableBytes;
  p->headBytes = bytes;
  p->head = (uint8_t *)allocate(p->host, bytes);
  if (!p->head)
    return noMemory(m);
  memcpy(p->head, p->image, bytes);
  memcpy(p->head, &h, sizeof h);
  memset(p->head + offsetof(ortc_file_header, sha256), 0, sizeof h.sha256);
  return hasDigest(p->head, bytes, h.sha256)
             ? ORTC_OK
             : fail(m, E_HASH "header and section table do not match their hash");
}

/// Bounds of every section; the one of each kind; the code with the most features that this machine has.
ortc_status chooseSections(ortc_program *p, const ortc_file_section **chosen, ortc_message *m) {
  uint64_t features = ortc_host_features();
  uint32_t ordinal = 0;
  int best = -1;
  for (uint32_t i = 0; i < p->header.section_count; i++) {
    const ortc_file_section &s = p->section(i);
    bool isCode = s.kind == ORTC_SECTION_CODE;
    if (!isWithin(s.offset, s.bytes, p->imageBytes) ||
        s.offset % (isCode ? ORTC_CODE_ALIGNMENT : ORTC_ALIGNMENT))
      return malformed(m, "section", i);
    if (isCode) {
      int count = 0;
      for (uint64_t rest = s.features; rest; rest &= rest - 1)
        count++;
      if (s.architecture == ortc_host_architecture() && !(s.features & ~features) && count >= best) {
        best = count;
        p->codeSection = &s;
        p->codeOrdinal = ordinal;
      }
      ordinal++;
    } else if (s.kind > ORTC_SECTION_SIGNATURE) {
      if (s.flags & ORTC_SECTION_REQUIRED)
        return fail(m, E_VERSION "section %u needs a newer runtime", (uint64_t)i);
    } else if (chosen[s.kind]) {
      return malformed(m, "section", i);
    } else {
      chosen[s.kind] = &s;
    }
  }
  return p->codeSection
             ? ORTC_OK
             : fail(m, E_TARGET "none of the %u code sections runs on this processor", (uint64_t)ordinal);
}

/// Copies the tables of a mapped file, checks the hashes and that there are whole rows.
ortc_status takeTables(ortc_program *p, const ortc_file_section *const *chosen, ortc_message *m) {
  for (uint32_t kind = 1; kind <= kLastTable; kind++) {
    const ortc_file_section *s = chosen[kind];
    uint64_t least = kRowBytes[kind];
    if (!s || !least)
      continue;
    Table &table = p->tables[kind];
    table.rowBytes = least == 1 ? 1 : s->row_bytes;
    if (table.rowBytes < least || table.rowBytes % (least < 8 ? least : 8) || s->bytes % table.rowBytes ||
        (least > 1 && s->bytes / table.rowBytes >= ORTC_NONE))
      return malformed(m, "section kind", kind);
    const uint8_t *data = p->image + s->offset;
    if (p->file.data && isCopied(kind)) {
      uint8_t *copy = (uint8_t *)allocate(p->host, s->bytes);
      if (!copy)
        return noMemory(m);
      data = (const uint8_t *)memcpy(copy, data, s->bytes);
    }
    table.data = data;
    table.bytes = s->bytes;
    table.count = s->bytes / table.rowBytes;
    if (!hasDigest(data, s->bytes, s->sha256))
      return fail(m, E_HASH "section kind %u does not match its hash", (uint64_t)kind);
  }
  const Table &strings = p->tables[ORTC_SECTION_STRINGS];
  if (!strings.bytes || strings.data[strings.bytes - 1])
    return malformed(m, "section kind", ORTC_SECTION_STRINGS);
  if (p->tables[ORTC_SECTION_PERSISTENT].bytes > p->header.persistent_bytes)
    return malformed(m, "section kind", ORTC_SECTION_PERSISTENT);
  return ORTC_OK;
}

ortc_status checkTensors(const ortc_program *p, ortc_message *m) {
  for (uint32_t i = 0; i < p->tensorCount(); i++) {
    const ortc_file_tensor &t = p->tensor(i);
    bool isConstant = t.role == ORTC_ROLE_CONSTANT;
    uint64_t size = isConstant ? p->tables[ORTC_SECTION_CONSTANTS].bytes : p->header.persistent_bytes;
    if (t.role > ORTC_ROLE_SCALAR)
      size = UINT64_MAX; // has no place of its own
    else if (t.region != !isConstant || (!isConstant && !safetensorsDtype(t.dtype)))
      size = 0;
    if (t.role >= ORTC_ROLES || (t.owner != ORTC_NONE && t.owner >= p->tensorCount()) ||
        !isGood({t.dtype, t.rank, t.dims, t.strides, t.bytes, t.offset}, size))
      return malformed(m, "tensor", i);
  }
  return ORTC_OK;
}
static_assert(ORTC_REGION_CONSTANTS == 0 && ORTC_REGION_PERSISTENT == 1, "checkTensors counts on it");

ortc_status checkValue(const ortc_program *p, const ortc_file_entry &e, uint32_t row, ortc_message *m) {
  const ortc_file_value &v = p->value(row);
  if (v.tensor >= p->tensorCount())
    return malformed(m, "value", row);
  const ortc_file_tensor &t = p->tensor(v.tensor);
  bool isExternal = row - e.first_value < e.ext_count;
  bool isRoleGood = isExternal
                        ? t.role == ORTC_ROLE_INPUT || t.role == ORTC_ROLE_OUTPUT
                        : t.role == ORTC_ROLE_LOSS || (t.role == ORTC_ROLE_GRADIENT && t.owner != ORTC_NONE);
  uint64_t size = v.region == ORTC_REGION_IO           ? p->header.io_bytes
                  : v.region == ORTC_REGION_TRANSIENT  ? e.fixed_bytes
                  : v.region == ORTC_REGION_PERSISTENT ? p->header.persistent_bytes
                                                       : 0;
  if (!isRoleGood || isExternal != (v.region == ORTC_REGION_IO) ||
      !isGood({t.dtype, t.rank, v.dims, v.strides, v.bytes, v.offset}, size) ||
      (isExternal && !makeView(nullptr, t.dtype, t.rank, v.dims, v.strides).isDense()))
    return malformed(m, "value", row);
  return ORTC_OK;
}

ortc_status checkEntry(const ortc_program *p, const ortc_file_entry &e, uint32_t row, ortc_message *m) {
  uint64_t workers;
  if (e.role >= ORTC_ENTRY_ROLES || e.binding >= p->tables[ORTC_SECTION_BINDINGS].count ||
      !isWithin(e.first_value, e.value_count, p->tables[ORTC_SECTION_VALUES].count) ||
      e.ext_count > e.value_count || (e.fixed_bytes | e.worker_bytes) % ORTC_ALIGNMENT ||
      e.fixed_bytes > kMaxRegion ||
      __builtin_mul_overflow(e.worker_bytes, (uint64_t)p->header.max_workers, &workers) ||
      workers > kMaxRegion)
    return malformed(m, "entry", row);
  for (uint32_t i = 0; i < e.value_count; i++)
    if (ortc_status status = checkValue(p, e, e.first_value + i, m))
      return status;
  if (e.loss == ORTC_NONE)
    return ORTC_OK;
  uint64_t bytes = 0; // f32 or f64, one element
  if (e.loss < e.value_count) {
    const ortc_file_value &loss = p->value(e.first_value + e.loss);
    uint8_t dtype = p->tensor(loss.tensor).dtype;
    bytes = dtype == 1 || dtype == 11 ? loss.bytes : 0;
    bytes = bytes == elementSize(dtype) ? bytes : 0;
  }
  return bytes ? ORTC_OK : malformed(m, "loss of entry", row);
}

/// The entries that are for the chosen code, each with its step function.
ortc_status findSteps(ortc_program *p, ortc_message *m) {
  const Table &entries = p->tables[ORTC_SECTION_ENTRIES];
  const uint8_t *code = (const uint8_t *)p->code;
  const ortc_blob *head = (const ortc_blob *)code;
  uint64_t codeBytes = p->codeSection->bytes;
  if (head->magic != ORTC_BLOB_MAGIC || head->entry_bytes < sizeof(ortc_blob_entry) ||
      head->entry_bytes % 4 || !isWithin(sizeof *head, (uint64_t)head->count * head->entry_bytes, codeBytes))
    return malformed(m, "code", p->codeOrdinal);
  if (head->abi != ORTC_CALL_ABI)
    return fail(m, E_VERSION "the code has call ABI %u but this runtime has %u", (uint64_t)head->abi,
                (uint64_t)ORTC_CALL_ABI);
  p->steps = (Step *)allocate(p->host, entries.count * sizeof(Step));
  if (!p->steps)
    return noMemory(m);
  for (uint32_t i = 0; i < entries.count; i++) {
    const ortc_file_entry &e = p->row<ortc_file_entry>(ORTC_SECTION_ENTRIES, i);
    if (e.target != ORTC_NONE && e.target != p->codeOrdinal)
      continue;
    if (ortc_status status = checkEntry(p, e, i, m))
      return status;
    Step &step = p->steps[p->stepCount++];
    step = {&e, nullptr};
    for (uint32_t k = 0; k < head->count; k++) {
      const uint8_t *row = code + sizeof *head + (uint64_t)k * head->entry_bytes;
      uint32_t offset = ((const ortc_blob_entry *)row)->offset;
      if (!memcmp(row, &e, offsetof(ortc_blob_entry, offset)) && offset < codeBytes)
        step.function = (ortc_step_fn)(uintptr_t)(code + offset);
    }
    if (!step.function)
      return fail(m, E_FORMAT "the code has no step function for entry '%s'", p->string(e.name));
  }
  return ORTC_OK;
}
static_assert(offsetof(ortc_file_entry, segment) == offsetof(ortc_blob_entry, segment) &&
                  offsetof(ortc_blob_entry, offset) == 12,
              "role, binding and segment are compared at once");

ortc_status load(ortc_program *p, ortc_message *m) {
  const ortc_file_section *chosen[ORTC_SECTION_SIGNATURE + 1] = {};
  ortc_status status = readHead(p, m);
  if (!status)
    status = chooseSections(p, chosen, m);
  if (!status)
    status = takeTables(p, chosen, m);
  if (status)
    return status;
  if (p->host.verify) {
    const ortc_file_section *s = chosen[ORTC_SECTION_SIGNATURE];
    if (p->host.verify(p->host.context, p->header.sha256, s ? p->image + s->offset : nullptr,
                       s ? (size_t)s->bytes : 0))
      return fail(m, E_HASH "the host does not trust this artifact");
  }
  status = checkTensors(p, m);
  const ortc_file_section &code = *p->codeSection;
  if (!status && code.bytes < sizeof(ortc_blob))
    status = malformed(m, "code", p->codeOrdinal);
  if (!status)
    status = makeExecutable(p->image + code.offset, code.bytes, code.sha256, &p->code, m);
  return status ? status : findSteps(p, m);
}

/// Takes `file` over, whatever happens.
ortc_status open(const void *image, size_t bytes, MappedFile file, const ortc_host *host,
                 ortc_program **program, ortc_message *m) {
  ortc_host hooks = copyIn(host);
  ortc_program *p = (ortc_program *)allocate(hooks, sizeof *p);
  if (!p) {
    unmapFile(file);
    return noMemory(m);
  }
  memset((void *)p, 0, sizeof *p);
  p->host = hooks;
  p->file = file;
  p->image = (const uint8_t *)image;
  p->imageBytes = bytes;
  ortc_status status = load(p, m);
  if (status)
    ortc_program_close(p);
  else
    *program = p;
  return status;
}

/// `value` may be null; then the tensor's own shape counts.
ortc_status describe(const ortc_program *p, uint32_t index, const ortc_file_value *value,
                     ortc_tensor_info *info) {
  const ortc_file_tensor &t = p->tensor(index);
  const int64_t *dims = value ? value->dims : t.dims;
  View view = makeView(nullptr, t.dtype, t.rank, dims, value ? value->strides : t.strides);
  ortc_tensor_info out = {};
  out.index = index;
  out.name = p->name(t);
  out.role = t.role;
  out.dtype = t.dtype;
  out.rank = t.rank;
  out.region = value ? (uint8_t)value->region : t.region;
  out.owner = t.owner;
  out.flags = t.flags;
  out.dense = (!value && t.role > ORTC_ROLE_SCALAR) || view.isDense();
  out.bytes = view.bytes();
  memcpy(out.dims, dims, t.rank * sizeof *dims);
  return copyOut(info, out);
}

} // namespace

uint32_t findTensor(const ortc_program *program, const char *name) {
  for (uint32_t i = 0; i < program->tensorCount(); i++) {
    const ortc_file_tensor &t = program->tensor(i);
    if (t.role <= ORTC_ROLE_OUTPUT && !strcmp(program->name(t), name))
      return i;
  }
  return ORTC_NONE;
}

} // namespace ortc

using namespace ortc;

const char *ortc_program::string(uint32_t offset) const {
  const Table &strings = tables[ORTC_SECTION_STRINGS];
  return offset < strings.bytes ? (const char *)strings.data + offset : "";
}

extern "C" {

ortc_status ortc_program_open_file(const char *path, const ortc_host *host, ortc_program **program,
                                   ortc_message *message) {
  MappedFile file;
  *program = nullptr;
  ortc_status status = mapFile(path, file, message);
  return status ? status : open(file.data, file.bytes, file, host, program, message);
}

ortc_status ortc_program_open_memory(const void *image, size_t bytes, const ortc_host *host,
                                     ortc_program **program, ortc_message *message) {
  *program = nullptr;
  if ((uintptr_t)image % ORTC_ALIGNMENT)
    return fail(message, E_ARGUMENT "the image is not aligned to 64 bytes");
  return open(image, bytes, MappedFile(), host, program, message);
}

void ortc_program_close(ortc_program *program) {
  if (!program)
    return;
  ortc_host host = program->host;
  if (program->code)
    releaseExecutable(program->code, program->codeSection->bytes);
  release(host, program->steps, program->tables[ORTC_SECTION_ENTRIES].count * sizeof(Step));
  for (uint32_t kind = 1; program->file.data && kind <= kLastTable; kind++)
    if (isCopied(kind))
      release(host, (void *)program->tables[kind].data, program->tables[kind].bytes);
  release(host, program->head, program->headBytes);
  unmapFile(program->file);
  release(host, program, sizeof *program);
}

ortc_status ortc_program_get_info(const ortc_program *program, ortc_program_info *info) {
  const ortc_file_section &code = *program->codeSection;
  const ortc_file_header &header = program->header;
  ortc_program_info out = {};
  out.tensor_count = program->tensorCount();
  out.binding_count = (uint32_t)program->tables[ORTC_SECTION_BINDINGS].count;
  out.entry_count = program->stepCount;
  out.max_workers = header.max_workers;
  out.architecture = code.architecture;
  out.features = code.features;
  out.target_name = program->string(code.name);
  out.code_bytes = code.bytes;
  out.constant_bytes = program->tables[ORTC_SECTION_CONSTANTS].bytes;
  out.persistent_bytes = header.persistent_bytes;
  out.io_bytes = header.io_bytes;
  memcpy(out.digest, header.sha256, sizeof out.digest);
  memcpy(out.model, header.model, sizeof out.model);
  return copyOut(info, out);
}

ortc_status ortc_program_section(const ortc_program *program, uint32_t kind, const void **data,
                                 uint64_t *bytes) {
  for (uint32_t i = 0; i < program->header.section_count; i++) {
    const ortc_file_section &s = program->section(i);
    if (s.kind != kind)
      continue;
    *data = program->image + s.offset;
    *bytes = s.bytes;
    return kind == ORTC_SECTION_SIGNATURE || hasDigest(*data, s.bytes, s.sha256) ? ORTC_OK : ORTC_E_HASH;
  }
  return ORTC_E_NOT_FOUND;
}

ortc_status ortc_tensor_get(const ortc_program *program, uint32_t index, ortc_tensor_info *info) {
  return index < program->tensorCount() ? describe(program, index, nullptr, info) : ORTC_E_NOT_FOUND;
}

ortc_status ortc_tensor_find(const ortc_program *program, const char *name, ortc_tensor_info *info) {
  return ortc_tensor_get(program, findTensor(program, name), info);
}

const char *ortc_binding_name(const ortc_program *program, uint32_t binding) {
  return binding < program->tables[ORTC_SECTION_BINDINGS].count
             ? program->string(program->row<ortc_file_binding>(ORTC_SECTION_BINDINGS, binding).name)
             : nullptr;
}

uint32_t ortc_binding_find(const ortc_program *program, const char *name) {
  for (uint32_t i = 0; const char *other = ortc_binding_name(program, i); i++)
    if (!strcmp(other, name))
      return i;
  return ORTC_NONE;
}

ortc_status ortc_entry_get(const ortc_program *program, uint32_t entry, ortc_entry_info *info) {
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
  if (entry >= program->stepCount || n >= program->steps[entry].entry->value_count)
    return ORTC_E_NOT_FOUND;
  const ortc_file_value &v = program->value(program->steps[entry].entry->first_value + n);
  return describe(program, v.tensor, &v, info);
}

const char *ortc_kernel_name(const ortc_program *program, uint32_t kernel) {
  return kernel < program->tables[ORTC_SECTION_KERNEL_NAMES].count
             ? program->string(program->row<uint32_t>(ORTC_SECTION_KERNEL_NAMES, kernel))
             : nullptr;
}
}
