// Writing checkpoints: a safetensors file through one small buffer, without a JSON library.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two passes over the tensors: the header holds a checksum of the data.
#include "runtime/src/internal.h"

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
  size_t held;
  Error error; ///< of the device
  bool isBroken;
  char buffer[4096]; ///< a multiple of the checksum's word

  void flush() {
    if (sink && !isBroken && held)
      isBroken = sink(context, buffer, held) != 0;
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
  void number(uint64_t value) {
    char digits[24];
    text(putDigits(value, digits + sizeof digits - 1));
  }
  void list(const char *before, const int64_t *values, uint32_t count) {
    text(before);
    for (uint32_t i = 0; i < count; i++) {
      if (i)
        put(',');
      number((uint64_t)values[i]);
    }
  }
  void quoted(char before, const char *s) {
    put(before);
    put('"');
    for (; *s; s++) {
      uint8_t c = (uint8_t)*s;
      if (c < 0x20) {
        text("\\u00");
        put((char)('0' + (c >> 4)));
        c &= 15;
        put((char)(c + (c < 10 ? '0' : 'a' - 10)));
        continue;
      }
      if (c == '"' || c == '\\')
        put('\\');
      put(*s);
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

/// The whole file but the length in front. `sum`: 0 in the first pass, which makes it.
void writeFile(ortc_session *s, Output &out, uint64_t &sum, const ortc_metadata *metadata, size_t count) {
  const ortc_program *p = s->program;
  out.text("{\"__metadata__\":{\"ortc.format\":\"1\",\"ortc.checksum\":\"");
  out.number(checksumOf(sum));
  out.put('"');
  for (size_t i = 0; i < count; i++) {
    out.quoted(',', metadata[i].key);
    out.quoted(':', metadata[i].value);
  }
  out.put('}');
  int64_t offset = 0;
  for (bool isData = false;; isData = true) {
    for (uint32_t i = 0; i < p->tensorCount(); i++) {
      const ortc_file_tensor &t = p->tensor(i);
      if (!isCheckpointed(t))
        continue;
      const char *name = p->string(t.name);
      if (isData) {
        out.hash = hashName(kHashSeed, name, strlen(name));
        out.tensor(s, locate(s, t.view));
        if (!out.sink)
          sum += out.hash;
        continue;
      }
      out.quoted(',', name);
      out.text(":{\"dtype\"");
      out.quoted(':', safetensorsDtype(t.view.dtype));
      out.list(",\"shape\":[", t.view.dims, t.view.rank);
      int64_t offsets[] = {offset, offset + (int64_t)t.view.bytes};
      out.list("],\"data_offsets\":[", offsets, 2);
      out.text("]}");
      offset = offsets[1];
    }
    if (isData)
      return;
    out.put('}');
    while (out.total % 8)
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
  uint64_t sum = 0;
  Output out = {};
  writeFile(session, out, sum, metadata, count);
  uint64_t headerBytes = out.total;
  out.sink = sink;
  out.context = context;
  out.total = 0;
  memcpy(out.buffer, &headerBytes, 8);
  out.held = 8;
  writeFile(session, out, sum, metadata, count);
  return report(out.isBroken ? kSinkFailed : out.error, arguments);
}
}
