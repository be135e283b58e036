// Writing checkpoints: a safetensors file through one small buffer, without a JSON library.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two passes over the tensors: the header holds a checksum of the data.
#include "runtime/src/internal.h"
#include "runtime/src/role_names.h"

namespace ortc {

uint64_t hashName(uint64_t hash, const char *text, size_t bytes) {
  for (; bytes; bytes--)
    hash = (hash ^ (uint8_t)*text++) * 0x100000001b3u; // FNV-1a
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

/// Text and data on their way to the sink. Without a sink text is counted and data is hashed.
struct Output {
  ortc_sink_fn sink;
  void *context;
  uint64_t total, hash;
  uint64_t sum; ///< of hashes, which the first pass makes
  size_t held;
  Error error;       ///< after it nothing is sent
  char buffer[4096]; ///< a multiple of the checksum's word

  void flush() {
    if (sink && !error && held && sink(context, buffer, held))
      error = kSinkFailed;
    held = 0;
  }
  __attribute__((noinline)) void put(char c) {
    buffer[held++] = c;
    total++;
    if (held == sizeof buffer)
      flush();
  }
  void text(const char *s) {
    while (*s)
      put(*s++);
  }
  void list(const char *before, const int64_t *values, uint32_t count) {
    text(before);
    for (uint32_t i = 0; i < count; i++) {
      char digits[24], *first = putDigits((uint64_t)values[i], digits + sizeof digits - 1);
      if (i)
        *--first = ',';
      text(first);
    }
  }
  void quoted(const char *before, const char *s) {
    text(before);
    for (; *s; s++) {
      char c = *s;
      if ((uint8_t)c < 0x20) {
        text("\\u00");
        put((char)('0' + (c >> 4)));
        c &= 15;
        c = (char)(c + (c < 10 ? '0' : 'a' - 10));
      }
      if (c == '"' || c == '\\')
        put('\\');
      put(c);
    }
    put('"');
  }
  void tensor(ortc_session *s, const View &view) {
    for (uint64_t first = 0, step = sizeof buffer / view.element; first < view.count; first += step) {
      uint64_t count = view.count - first < step ? view.count - first : step;
      if (Error failed = move(s, view, first, count, (uint8_t *)buffer, true))
        error = failed;
      held = count * view.element;
      if (!sink)
        hash = hashData(hash, (uint8_t *)buffer, held);
      flush();
    }
  }
};

/// Written for all tensors, one part after the other.
enum class TensorPart { Roles, Entries, Data };

/// The whole file but the length in front.
__attribute__((noinline)) void writeFile(ortc_session *s, Output &out, const ortc_metadata *metadata,
                                         size_t count) {
  char digits[24];
  out.quoted("{\"__metadata__\":{\"ortc.format\":\"1\",\"ortc.checksum\":\"",
             putDigits(checksumOf(out.sum), digits + sizeof digits - 1));
  for (; count; count--, metadata++) {
    out.quoted(",\"", metadata->key);
    out.quoted(":\"", metadata->value);
  }
  int64_t offsets[2] = {};
  for (TensorPart part = TensorPart::Roles;; part = (TensorPart)((int)part + 1)) {
    for (uint32_t i = 0; i < s->program->tensorCount(); i++) {
      const ortc_file_tensor &t = s->program->tensor(i);
      if (!isCheckpointed(t))
        continue;
      const char *name = s->program->string(t.name);
      if (part == TensorPart::Roles) {
        if (t.role == ORTC_ROLE_PARAMETER)
          continue;
        out.quoted(",\"ortc.role.", name);
        out.quoted(":\"", findText(ORTC_SAVED_ROLES, findSavedRole(t.role, t.flags)));
        continue;
      }
      if (part == TensorPart::Data) {
        out.hash = hashName(kHashSeed, name, strlen(name));
        out.tensor(s, locate(s, t.view));
        out.sum += out.hash;
        continue;
      }
      out.quoted(",\"", name);
      out.quoted(":{\"dtype\":\"", safetensorsDtype(t.view.dtype));
      out.list(",\"shape\":[", t.view.dims, t.view.rank);
      offsets[0] = offsets[1];
      offsets[1] += (int64_t)t.view.bytes;
      out.list("],\"data_offsets\":[", offsets, 2);
      out.text("]}");
    }
    if (part == TensorPart::Data)
      return;
    out.put('}');
    if (part == TensorPart::Roles)
      continue;
    while (out.held % 8)
      out.put(' ');
    out.flush();
  }
}

} // namespace
} // namespace ortc

using namespace ortc;

extern "C" {

ortc_status ortc_checkpoint_write(ortc_session *session, ortc_sink_fn sink, void *context,
                                  const ortc_metadata *metadata, size_t count) {
  Arguments &arguments = session->arguments;
  for (size_t i = 0; i < count; i++) {
    const char *key = metadata[i].key, *value = metadata[i].value;
    if (!strncmp(key, "ortc.", 5) || strlen(key) + strlen(value) >= kTextLimit)
      return arguments.set(0, key), report(kTooLong, arguments);
  }
  Output out = {};
  for (bool isLast = false;; isLast = true) {
    writeFile(session, out, metadata, count);
    if (isLast)
      break;
    out.sink = sink;
    out.context = context;
    out.held = sizeof out.total;
    memcpy(out.buffer, &out.total, out.held);
  }
  return report(out.error, arguments);
}
}
