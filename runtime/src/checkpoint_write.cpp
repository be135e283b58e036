// Writing checkpoints: a safetensors file made in two passes over the tensors (the header holds a checksum of
// the data), through one small buffer, without a JSON library. SPDX-License-Identifier: Apache-2.0 WITH
// LLVM-exception
#include "runtime/src/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

namespace ortc {

uint64_t hashName(uint64_t hash, const char *text, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3u; // FNV-1a
  return hash;
}

uint64_t hashData(uint64_t hash, const uint8_t *data, size_t bytes) {
  while (bytes) {
    uint64_t word = 0;
    size_t n = bytes < sizeof word ? bytes : sizeof word;
    memcpy(&word, data, n);
    hash ^= word;
    hash = (hash << 29 | hash >> 35) * 0x9e3779b97f4a7c15u;
    data += n;
    bytes -= n;
  }
  return hash;
}

namespace {

/// Text and data on their way to the sink; without a sink it only counts.
struct Output {
  ortc_sink_fn sink = nullptr;
  void *context = nullptr;
  uint64_t total = 0;
  size_t held = 0;
  bool isBroken = false;
  char buffer[512];

  void write(const void *data, size_t bytes) {
    if (sink && !isBroken && bytes)
      isBroken = sink(context, data, bytes) != 0;
  }
  void flush() {
    write(buffer, held);
    held = 0;
  }
  void put(char c) {
    if (held == sizeof buffer)
      flush();
    buffer[held++] = c;
    total++;
  }
  void text(const char *s) {
    while (*s)
      put(*s++);
  }
  void number(uint64_t value) {
    char digits[20];
    int count = 0;
    do
      digits[count++] = (char)('0' + value % 10);
    while (value /= 10);
    while (count)
      put(digits[--count]);
  }
  void hex(const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < 2 * count; i++)
      put("0123456789abcdef"[i % 2 ? bytes[i / 2] & 15 : bytes[i / 2] >> 4]);
  }
  void quoted(const char *s) {
    put('"');
    for (; *s; s++) {
      uint8_t c = (uint8_t)*s;
      if (c < 0x20) {
        text("\\u00");
        hex(&c, 1);
        continue;
      }
      if (c == '"' || c == '\\')
        put('\\');
      put(*s);
    }
    put('"');
  }
};

constexpr size_t kChunk = 4096; ///< bytes gathered at a time; a multiple of the checksum's word

/// Hands the dense bytes of a view to `take`, in pieces of whole words but for the last.
template <typename Take> void forEachPiece(const View &view, Take take) {
  if (view.isDense()) {
    take(view.data, view.count * view.element);
    return;
  }
  uint8_t piece[kChunk];
  for (uint64_t first = 0, step = kChunk / view.element; first < view.count; first += step) {
    uint64_t count = view.count - first < step ? view.count - first : step;
    transfer(view, first, count, piece, true);
    take(piece, count * view.element);
  }
}

uint64_t checksum(const ortc_session *s) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < s->program->tensors.count; i++) {
    const ortc_file_tensor &t = s->program->tensors[i];
    if (!isCheckpointed(t))
      continue;
    const char *name = s->program->string(t.name);
    uint64_t hash = hashName(kHashSeed, name, strlen(name));
    forEachPiece(storedView(s, t),
                 [&](const uint8_t *data, size_t bytes) { hash = hashData(hash, data, bytes); });
    sum += hash;
  }
  return sum;
}

void writeHeader(const ortc_session *s, Output &out, uint64_t sum, const ortc_metadata *metadata,
                 size_t count) {
  const ortc_program *p = s->program;
  uint8_t bytes[8];
  for (int i = 0; i < 8; i++)
    bytes[i] = (uint8_t)(sum >> (56 - 8 * i));
  out.text("{\"__metadata__\":{\"ortc.format\":\"1\",\"ortc.model\":\"");
  out.hex(p->header.model, sizeof p->header.model);
  out.text("\",\"ortc.checksum\":\"");
  out.hex(bytes, sizeof bytes);
  out.put('"');
  for (size_t i = 0; i < count; i++) {
    out.put(',');
    out.quoted(metadata[i].key);
    out.put(':');
    out.quoted(metadata[i].value);
  }
  out.put('}');
  uint64_t offset = 0;
  for (uint32_t i = 0; i < p->tensors.count; i++) {
    const ortc_file_tensor &t = p->tensors[i];
    if (!isCheckpointed(t))
      continue;
    out.put(',');
    out.quoted(p->string(t.name));
    out.text(":{\"dtype\":\"");
    out.text(safetensorsDtype(t.dtype));
    out.text("\",\"shape\":[");
    for (uint32_t d = 0; d < t.rank; d++) {
      if (d)
        out.put(',');
      out.number((uint64_t)t.dims[d]);
    }
    out.text("],\"data_offsets\":[");
    out.number(offset);
    out.put(',');
    out.number(offset += t.bytes);
    out.text("]}");
  }
  out.put('}');
  while (out.total % 8)
    out.put(' ');
  out.flush();
}

int32_t fileSink(void *context, const void *data, size_t bytes) {
  const char *p = (const char *)data;
  while (bytes) {
    ssize_t written = write(*(int *)context, p, bytes);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return 1;
    p += written;
    bytes -= (size_t)written;
  }
  return 0;
}

/// Makes a rename survive a power failure. Best effort: not every file system can.
void syncFolder(char *path) {
  char *slash = strrchr(path, '/');
  if (slash)
    slash[slash == path] = 0;
  int folder = ::open(slash ? path : ".", O_RDONLY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
}

} // namespace
} // namespace ortc

using namespace ortc;

extern "C" {

ortc_status ortc_checkpoint_write(ortc_session *session, ortc_sink_fn sink, void *context,
                                  const ortc_metadata *metadata, size_t count) {
  if (!session)
    return ORTC_E_ARGUMENT;
  ortc_message *message = &session->message;
  if (!sink || (count && !metadata))
    return fail(message, ORTC_E_ARGUMENT, "no sink, or no metadata");
  for (size_t i = 0; i < count; i++) {
    const char *key = metadata[i].key, *value = metadata[i].value;
    if (!key || !value || !strncmp(key, "ortc.", 5))
      return fail(message, ORTC_E_ARGUMENT, "metadata '%s' has no value, or a key that is the runtime's",
                  key ? key : "");
    if (strlen(key) >= kTextLimit || strlen(value) >= kTextLimit)
      return fail(message, ORTC_E_ARGUMENT, "metadata '%s' has %u bytes or more", key, (uint64_t)kTextLimit);
  }
  uint64_t sum = checksum(session);
  Output measure, out;
  writeHeader(session, measure, sum, metadata, count);
  out.sink = sink;
  out.context = context;
  for (int i = 0; i < 8; i++)
    out.put((char)(measure.total >> (8 * i)));
  writeHeader(session, out, sum, metadata, count);
  for (uint32_t i = 0; i < session->program->tensors.count; i++) {
    const ortc_file_tensor &t = session->program->tensors[i];
    if (isCheckpointed(t))
      forEachPiece(storedView(session, t),
                   [&](const uint8_t *data, size_t bytes) { out.write(data, bytes); });
  }
  return out.isBroken ? fail(message, ORTC_E_IO, "the checkpoint could not be written") : ORTC_OK;
}

ortc_status ortc_checkpoint_save(ortc_session *session, const char *path, const ortc_metadata *metadata,
                                 size_t count) {
  if (!session)
    return ORTC_E_ARGUMENT;
  ortc_message *message = &session->message;
  char temporary[4096];
  size_t length = path ? strlen(path) : 0;
  if (!length || length + sizeof ".tmp" > sizeof temporary)
    return fail(message, ORTC_E_ARGUMENT, "no path, or one that is too long");
  memcpy(temporary, path, length);
  memcpy(temporary + length, ".tmp", sizeof ".tmp");
  unlink(temporary); // of a run that was killed; O_EXCL below follows no link that somebody put there
  int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0)
    return fail(message, ORTC_E_IO, "cannot create %s (errno %u)", temporary, (uint64_t)errno);
  ortc_status status = ortc_checkpoint_write(session, fileSink, &file, metadata, count);
  bool isSafe = !status && !fsync(file);
  isSafe = !close(file) && isSafe;
  if (isSafe && !rename(temporary, path)) {
    syncFolder(temporary);
    return ORTC_OK;
  }
  uint64_t reason = (uint64_t)errno;
  unlink(temporary);
  if (status == ORTC_E_ARGUMENT)
    return status;
  return fail(message, ORTC_E_IO, "cannot save %s (errno %u); what was there before is as it was", path,
              reason);
}
}
