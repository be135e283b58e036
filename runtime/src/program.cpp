// Opening an artifact: everything in the file is checked here, once, so that nothing later has to.
//
// Order: header and section table (a copy of them), bounds of every section, choice of the code, the host's verdict,
// hashes of tables and code, structure of every row. Tables of a mapped file are copied before they are hashed,
// because somebody may write to the file afterwards. The images are hashed by sessions. String offsets are
// checked when they are used.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"
#include "runtime/src/sha256.h"

namespace ortc {
namespace {

constexpr uint32_t kLastTable = ORTC_SECTION_KERNEL_NAMES;
/// Bytes of a row, by section kind; 1: no rows, 0: no table.
constexpr uint8_t kRowBytes[kLastTable + 1] = {0,
                                               sizeof(ortc_file_tensor),
                                               1,
                                               sizeof(ortc_file_value),
                                               sizeof(ortc_file_entry),
                                               sizeof(ortc_file_binding),
                                               1,
                                               1,
                                               0,
                                               sizeof(uint32_t),
                                               sizeof(uint32_t)};

bool isWithin(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}
/// Whether a section is hashed now, and copied from a mapped file: all but the two images, which sessions take over.
bool isTable(uint32_t kind) { return kind != ORTC_SECTION_CONSTANTS && kind != ORTC_SECTION_PERSISTENT; }

/// True when the shape gives its size and every element of the view, if there is any, lies in so many bytes, within a
/// region of `size` bytes, aligned. Dimensions times strides then are no overflow either.
bool isGood(const ortc_file_view &v, uint64_t size) {
  uint64_t dense = elementSize(v.dtype), extent = dense, step;
  bool isBad = !dense || v.rank > ORTC_MAX_RANK || v.offset & (dense - 1);
  for (uint32_t i = 0; !isBad && i < v.rank; i++) {
    uint64_t dim = (uint64_t)v.dims[i], stride = (uint64_t)v.strides[i];
    isBad = (int64_t)(dim | stride) < 0 || multiplyOverflows(dense, dim, &dense) ||
            (dim > 1 &&
             (multiplyOverflows(dim - 1, stride, &step) || __builtin_add_overflow(extent, step, &extent)));
  }
  return !isBad && dense == v.bytes && !(dense >> ORTC_REGION_BITS) && (!dense || extent <= dense) &&
         isWithin(v.offset, dense, size);
}

/// Also names the part that the texts above speak of.
__attribute__((noinline)) Error malformed(ortc_program *p, Part part, uint64_t i) {
  p->arguments.set(0, part);
  p->arguments.set(1, i);
  return kMalformed;
}

/// Copies header and section table, then checks the copy.
__attribute__((noinline)) Error readHead(ortc_program *p) {
  const ortc_file_header *seen = (const ortc_file_header *)p->image;
  if (p->imageBytes < sizeof *seen || memcmp(seen->magic, ORTC_MAGIC, sizeof seen->magic))
    return kNoArtifact;
  uint64_t tableBytes = seen->section_count * (uint64_t)sizeof(ortc_file_section);
  Error error = malformed(p, kPartHeader, 0);
  if (tableBytes > p->imageBytes - sizeof *seen)
    return error;
  p->headBytes = sizeof *seen + tableBytes;
  p->head = (ortc_file_header *)allocate(p->host, p->headBytes);
  if (!p->head)
    return kNoMemory;
  const ortc_file_header &h = *(ortc_file_header *)memcpy((void *)p->head, p->image, p->headBytes);
  if (h.major != ORTC_FORMAT_MAJOR)
    return malformed(p, kPartFormat, h.major), kNewer;
  if (h.file_bytes != p->imageBytes)
    return kCutShort;
  if (h.header_bytes != sizeof h || h.section_bytes != sizeof(ortc_file_section) ||
      h.section_count * (uint64_t)sizeof(ortc_file_section) != tableBytes ||
      (h.persistent_bytes | h.io_bytes) >> ORTC_REGION_BITS ||
      (h.persistent_bytes | h.io_bytes) % ORTC_ALIGNMENT || !h.max_workers)
    return error;
  // The hash covers the header before it, and the table: they are put together, and then apart again.
  uint8_t digest[sizeof h.sha256], *covered = (uint8_t *)p->head + sizeof digest;
  memcpy(digest, h.sha256, sizeof digest);
  memmove(covered, p->head, offsetof(ortc_file_header, sha256));
  if (!hasDigest(covered, p->headBytes - sizeof digest, digest))
    return kDamaged;
  memmove((void *)p->head, covered, offsetof(ortc_file_header, sha256));
  memcpy(p->head->sha256, digest, sizeof digest);
  return kNoError;
}
static_assert(offsetof(ortc_file_header, sha256) + sizeof(ortc_file_header::sha256) ==
              sizeof(ortc_file_header));

/// Bounds of every section; the one of each kind; the last code that this machine can run.
Error chooseSections(ortc_program *p) {
  const ortc_device *device = p->host.device;
  uint32_t ordinal = 0, architecture = device ? device->architecture : ortc_host_architecture();
  uint64_t features = device ? device->features : ortc_host_features();
  if (p->functions)
    features |= ORTC_FEATURE_LINKED;
  for (uint32_t i = 0; i < p->head->section_count; i++) {
    const ortc_file_section &s = p->section(i);
    Error error = malformed(p, kPartSection, i);
    if (!isWithin(s.offset, s.bytes, p->imageBytes) || s.offset % ORTC_ALIGNMENT)
      return error;
    if (s.kind == ORTC_SECTION_CODE) {
      if (s.architecture == architecture && !(s.features & ~features)) {
        p->codeSection = &s;
        p->ordinal = ordinal;
      }
      ordinal++;
    } else if (s.kind > ORTC_SECTION_SIGNATURE) {
      if (s.flags & ORTC_SECTION_REQUIRED)
        return kNewer;
    } else if (p->chosen[s.kind]) {
      return error;
    } else {
      p->chosen[s.kind] = &s;
    }
  }
  return p->codeSection ? kNoError : kNoCode;
}

/// Copies the tables of a mapped file, checks the hashes and that there are whole rows.
Error takeTables(ortc_program *p) {
  for (uint32_t kind = 1; kind <= kLastTable; kind++) {
    const ortc_file_section *s = p->chosen[kind];
    if (!s)
      continue;
    Error error = malformed(p, kPartSectionKind, kind);
    uint32_t row = kRowBytes[kind];
    Table table = {p->image + s->offset, s->bytes / row};
    if (row > 1 && (s->row_bytes != row || s->bytes % row || table.count >= ORTC_NONE))
      return error;
    if (p->file.data && isTable(kind)) {
      void *copy = allocate(p->host, s->bytes);
      if (!copy)
        return kNoMemory;
      table.data = (const uint8_t *)memcpy(copy, table.data, s->bytes);
    }
    p->tables[kind] = table; // from here on closing the program releases the copy
    if (isTable(kind) && !hasDigest(table.data, s->bytes, s->sha256))
      return kDamaged;
  }
  const Table &strings = p->tables[ORTC_SECTION_STRINGS];
  p->sizes[ORTC_REGION_CONSTANTS] = p->tables[ORTC_SECTION_CONSTANTS].count;
  p->sizes[ORTC_REGION_PERSISTENT] = p->head->persistent_bytes;
  p->sizes[ORTC_REGION_IO] = p->head->io_bytes;
  Error error = malformed(p, kPartSectionKind, ORTC_SECTION_STRINGS);
  if (!strings.count || strings.data[strings.count - 1])
    return error;
  return p->tables[ORTC_SECTION_PERSISTENT].count > p->head->persistent_bytes
             ? malformed(p, kPartSectionKind, ORTC_SECTION_PERSISTENT)
             : kNoError;
}

Error checkTensors(ortc_program *p) {
  uint64_t free = p->head->persistent_bytes; // what is stored has a place of its own
  for (uint32_t i = 0; i < p->tensorCount(); i++) {
    const ortc_file_tensor &t = p->tensor(i);
    Error error = malformed(p, kPartTensor, i);
    uint64_t size = (uint64_t)1 << ORTC_REGION_BITS; // for those that have no place of their own
    if (t.role <= ORTC_ROLE_SCALAR) {
      uint32_t region = t.role == ORTC_ROLE_CONSTANT ? ORTC_REGION_CONSTANTS : ORTC_REGION_PERSISTENT;
      if (t.view.region != region || (region && !safetensorsDtype(t.view.dtype)))
        return error;
      size = p->sizes[region];
      if (region && __builtin_sub_overflow(free, t.view.bytes, &free))
        return error;
    }
    if (t.role >= ORTC_ROLES || (t.owner != ORTC_NONE && t.owner >= p->tensorCount()) ||
        !isGood(t.view, size))
      return error;
  }
  return kNoError;
}
static_assert(ORTC_REGION_CONSTANTS == 0, "checkTensors counts on it");

/// The values of an entry.
Error checkValues(ortc_program *p, const ortc_file_entry &e) {
  p->sizes[ORTC_REGION_TRANSIENT] = e.fixed_bytes; // of this entry
  for (uint32_t i = 0; i < e.value_count; i++) {
    const ortc_file_value &value = p->value(e.first_value + i);
    const ortc_file_view &v = value.view;
    Error error = malformed(p, kPartValue, e.first_value + i);
    if (value.tensor >= p->tensorCount() || v.region > ORTC_REGION_IO || !v.region ||
        !isGood(v, p->sizes[v.region]))
      return error;
    const ortc_file_tensor &t = p->tensor(value.tensor);
    if (v.dtype != t.view.dtype || v.rank != t.view.rank)
      return error;
    bool isIo = t.role == ORTC_ROLE_INPUT || t.role == ORTC_ROLE_OUTPUT;
    if (isIo != (i < e.ext_count) || isIo != (v.region == ORTC_REGION_IO) || t.role < ORTC_ROLE_INPUT)
      return error;
    if (i == e.loss &&
        (isIo || v.bytes != elementSize(v.dtype) || (v.dtype != 1 && v.dtype != 11))) // one f32 or f64
      return error;
  }
  return kNoError;
}

/// The entries that are for the chosen code, each with its step function.
__attribute__((noinline)) Error findSteps(ortc_program *p) {
  const Table &entries = p->tables[ORTC_SECTION_ENTRIES];
  const uint8_t *code = (const uint8_t *)p->code;
  const ortc_blob *head = (const ortc_blob *)code;
  Error error = kMalformed;
  if (head->magic != ORTC_BLOB_MAGIC || head->entry_bytes < sizeof(ortc_blob_entry) ||
      head->entry_bytes % 4 ||
      !isWithin(sizeof *head, (uint64_t)head->count * head->entry_bytes, p->code_bytes))
    return error;
  malformed(p, kPartCallAbi, head->abi);
  if (head->abi != ORTC_CALL_ABI)
    return kNewer;
  Step *steps = (Step *)allocate(p->host, entries.count * sizeof(Step));
  p->steps = steps;
  if (!steps)
    return kNoMemory;
  uint32_t nextValue = 0;
  for (uint32_t i = 0; i < entries.count; i++) {
    const ortc_file_entry &e = p->row<ortc_file_entry>(ORTC_SECTION_ENTRIES, i);
    if (e.target != ORTC_NONE && e.target != p->ordinal)
      continue;
    uint64_t workers;
    malformed(p, kPartEntry, i);
    if (e.role >= ORTC_ENTRY_ROLES || e.binding >= p->tables[ORTC_SECTION_BINDINGS].count ||
        !isWithin(e.first_value, e.value_count, p->tables[ORTC_SECTION_VALUES].count) ||
        e.first_value < nextValue || e.ext_count > e.value_count ||
        (e.loss != ORTC_NONE && e.loss >= e.value_count) ||
        (e.fixed_bytes | e.worker_bytes) % ORTC_ALIGNMENT ||
        multiplyOverflows(e.worker_bytes, (uint64_t)p->head->max_workers, &workers) ||
        (e.fixed_bytes | workers) >> ORTC_REGION_BITS)
      return error;
    nextValue = e.first_value + e.value_count;
    Step &step = steps[p->step_count++];
    step = {&e, nullptr};
    for (uint32_t k = 0; k < head->count; k++) {
      const uint8_t *row = code + sizeof *head + (uint64_t)k * head->entry_bytes;
      uint32_t offset = ((const ortc_blob_entry *)row)->offset;
      if (!memcmp(row, &e, offsetof(ortc_blob_entry, offset)) && offset < p->code_bytes)
        step.list = p->functions ? (const void *)(uintptr_t)p->functions[offset] : code + offset;
    }
    if (!step.list)
      return error;
    if (Error badValue = checkValues(p, e))
      return badValue;
  }
  return kNoError;
}
static_assert(offsetof(ortc_file_entry, segment) == offsetof(ortc_blob_entry, segment) &&
                  offsetof(ortc_blob_entry, offset) == 12,
              "role, binding and segment are compared at once");

Error load(ortc_program *p) {
  Error error = readHead(p);
  if (!error)
    error = chooseSections(p);
  // The host is asked before anything but header and section table is looked at.
  if (!error && p->host.verify) {
    const ortc_file_section *s = p->chosen[ORTC_SECTION_SIGNATURE];
    if (p->host.verify(p->host.context, p->head->sha256, s ? p->image + s->offset : nullptr,
                       s ? (size_t)s->bytes : 0))
      error = kNotTrusted;
  }
  if (!error)
    error = takeTables(p);
  if (!error)
    error = checkTensors(p);
  if (error)
    return error;
  const ortc_file_section &code = *p->codeSection;
  error = malformed(p, kPartCode, p->ordinal);
  if (code.bytes >= sizeof(ortc_blob))
    error = loadCode(p, p->image + code.offset, code);
  if (!error)
    error = findSteps(p);
  if (const ortc_device *device = p->host.device; device && !error)
    error = tell(device->load(device->context, p, &p->module, &p->arguments.message), p->arguments);
  return error;
}

ortc_status describe(const ortc_program *p, uint32_t index, const ortc_file_view &v, ortc_tensor_info *info) {
  const ortc_file_tensor &t = p->tensor(index);
  if (info->size < sizeof *info)
    return ORTC_E_ARGUMENT;
  info->index = index;
  info->name = p->string(t.name);
  info->role = (uint8_t)t.role;
  info->dtype = v.dtype;
  info->rank = v.rank;
  info->region = v.region;
  info->owner = t.owner;
  info->flags = t.flags;
  info->dense = makeView(nullptr, v).isDense();
  info->bytes = v.bytes;
  memcpy(info->dims, v.dims, sizeof info->dims + sizeof info->strides);
  return ORTC_OK;
}

static_assert(offsetof(ortc_tensor_info, strides) - offsetof(ortc_tensor_info, dims) ==
                  offsetof(ortc_file_view, strides) - offsetof(ortc_file_view, dims),
              "copied at once");

} // namespace

ortc_status openImage(FileMapping image, const ortc_host *host, ortc_program **program, ortc_message *m,
                      const ortc_step_fn *functions) {
  bool isMapped = functions == kOwnFile;
  ortc_host hooks = copyIn(host);
  ortc_program *p = (ortc_program *)allocate(hooks, sizeof *p);
  if (!p) {
    if (isMapped)
      unmapFile(image);
    return report(m, kNoMemory);
  }
  memset((void *)p, 0, sizeof *p);
  p->host = hooks;
  if (isMapped)
    p->file = image;
  else
    p->functions = functions;
  p->areImagesGood = hooks.flags & ORTC_HOST_VERIFIED;
  p->image = image.data;
  p->imageBytes = image.bytes;
  ortc_status status = report(m, load(p), &p->arguments);
  if (status)
    ortc_program_close(p);
  else
    *program = p;
  return status;
}

uint32_t findTensor(const ortc_program *program, const char *name) {
  for (uint32_t i = 0; i < program->tensorCount(); i++) {
    const ortc_file_tensor &t = program->tensor(i);
    if (t.role <= ORTC_ROLE_OUTPUT && !strcmp(program->string(t.name), name))
      return i;
  }
  return ORTC_NONE;
}

} // namespace ortc

using namespace ortc;

__attribute__((noinline)) const char *ortc_program::string(uint32_t offset) const {
  const Table &strings = tables[ORTC_SECTION_STRINGS];
  return offset < strings.count ? (const char *)strings.data + offset : "";
}

const char *ortc_program::listed(uint32_t kind, uint32_t i) const {
  const Table &table = tables[kind];
  return i < table.count ? string(*(const uint32_t *)(table.data + (size_t)i * kRowBytes[kind])) : nullptr;
}

extern "C" {

ortc_status ortc_program_open_memory(const void *image, size_t bytes, const ortc_host *host,
                                     ortc_program **program, ortc_message *message) {
  *program = nullptr;
  if ((uintptr_t)image % ORTC_ALIGNMENT)
    return report(message, kMisaligned);
  return openImage({(const uint8_t *)image, bytes}, host, program, message, nullptr);
}

void ortc_program_close(ortc_program *program) {
  if (!program)
    return;
  const ortc_host &host = program->host;
  if (program->module)
    host.device->unload(program->module);
  if (program->code)
    releasePages((void *)program->code, program->code_bytes);
  release(host, (void *)program->steps, program->tables[ORTC_SECTION_ENTRIES].count * sizeof(Step));
  for (uint32_t kind = 1; program->file.data && kind <= kLastTable; kind++)
    if (isTable(kind))
      release(host, (void *)program->tables[kind].data, program->tables[kind].count * kRowBytes[kind]);
  release(host, program->head, program->headBytes);
  unmapFile(program->file);
  release(host, program, sizeof *program);
}

ortc_status ortc_program_get_info(const ortc_program *program, ortc_program_info *info) {
  const ortc_file_section &code = *program->codeSection;
  const ortc_file_header &header = *program->head;
  if (info->size < sizeof *info)
    return ORTC_E_ARGUMENT;
  info->tensor_count = program->tensorCount();
  info->binding_count = (uint32_t)program->tables[ORTC_SECTION_BINDINGS].count;
  info->entry_count = program->step_count;
  info->max_workers = header.max_workers;
  info->architecture = code.architecture;
  info->features = code.features;
  info->target_name = program->string(code.name);
  info->code_bytes = code.bytes;
  info->constant_bytes = program->tables[ORTC_SECTION_CONSTANTS].count;
  info->persistent_bytes = header.persistent_bytes;
  info->io_bytes = header.io_bytes;
  memcpy(info->digest, header.sha256, sizeof info->digest);
  memcpy(info->model, header.model, sizeof info->model);
  return ORTC_OK;
}

ortc_status ortc_program_section(const ortc_program *program, uint32_t kind, const void **data,
                                 uint64_t *bytes) {
  for (uint32_t i = 0; i < program->head->section_count; i++) {
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
  return index < program->tensorCount() ? describe(program, index, program->tensor(index).view, info)
                                        : ORTC_E_NOT_FOUND;
}

ortc_status ortc_tensor_find(const ortc_program *program, const char *name, ortc_tensor_info *info) {
  return ortc_tensor_get(program, findTensor(program, name), info);
}

const char *ortc_binding_name(const ortc_program *program, uint32_t binding) {
  return program->listed(ORTC_SECTION_BINDINGS, binding);
}

uint32_t ortc_binding_find(const ortc_program *program, const char *name) {
  for (uint32_t i = 0; const char *other = ortc_binding_name(program, i); i++)
    if (!strcmp(other, name))
      return i;
  return ORTC_NONE;
}

ortc_status ortc_entry_get(const ortc_program *program, uint32_t entry, ortc_entry_info *info) {
  if (entry >= program->step_count)
    return ORTC_E_NOT_FOUND;
  const ortc_file_entry &e = *program->steps[entry].entry;
  if (info->size < sizeof *info)
    return ORTC_E_ARGUMENT;
  info->role = e.role;
  info->binding = e.binding;
  info->segment = e.segment;
  info->value_count = e.value_count;
  info->has_loss = e.loss != ORTC_NONE;
  info->fixed_bytes = e.fixed_bytes;
  info->worker_bytes = e.worker_bytes;
  info->name = program->string(e.name);
  return ORTC_OK;
}

ortc_status ortc_entry_value(const ortc_program *program, uint32_t entry, uint32_t n,
                             ortc_tensor_info *info) {
  if (entry >= program->step_count || n >= program->steps[entry].entry->value_count)
    return ORTC_E_NOT_FOUND;
  const ortc_file_value &v = program->value(program->steps[entry].entry->first_value + n);
  return describe(program, v.tensor, v.view, info);
}

const char *ortc_kernel_name(const ortc_program *program, uint32_t kernel) {
  return program->listed(ORTC_SECTION_KERNEL_NAMES, kernel);
}
}
