// One round on a device: loads what the server sent, trains on its own samples, and writes what has changed.
//   device MODEL.ortc BASE.safetensors|- SAMPLES EPOCHS float|int8 DELTA.safetensors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// SAMPLES: records of 64 floats (pixels) and an int64 (label). "-": the weights in the artifact.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ortc/delta.h"

enum { kPixels = 64 };

static int fail(const char *what, const char *text) {
  fprintf(stderr, "device: %s: %s\n", what, text);
  return 1;
}

static void *readFile(const char *path, size_t *bytes) {
  FILE *file = fopen(path, "rb");
  if (!file)
    return NULL;
  fseek(file, 0, SEEK_END);
  *bytes = (size_t)ftell(file);
  rewind(file);
  void *data = malloc(*bytes + 1);
  if (data && fread(data, 1, *bytes, file) != *bytes)
    *bytes = 0;
  fclose(file);
  return data;
}

/// In place of a connection to the server.
static int32_t sendPart(void *file, const void *data, size_t bytes) {
  return fwrite(data, 1, bytes, (FILE *)file) != bytes;
}

int main(int argc, char **argv) {
  if (argc != 7)
    return fail("usage", "device MODEL.ortc BASE|- SAMPLES EPOCHS float|int8 DELTA");
  ortc_program *program;
  ortc_session *session;
  ortc_message message;
  if (ortc_program_open_file(argv[1], NULL, &program, &message) != ORTC_OK)
    return fail(argv[1], message.text);
  if (ortc_session_create(program, NULL, &session, &message) != ORTC_OK)
    return fail("session", message.text);

  ortc_delta delta = ORTC_INIT(ortc_delta);
  delta.kind = strcmp(argv[5], "int8") ? ORTC_DELTA_FLOAT : ORTC_DELTA_INT8;
  size_t baseBytes = 0, sampleBytes = 0;
  void *base = strcmp(argv[2], "-") ? readFile(argv[2], &baseBytes) : NULL;
  if (base && ortc_checkpoint_read(session, base, baseBytes, NULL) != ORTC_OK)
    return fail(argv[2], ortc_session_message(session));
  delta.base = base;
  delta.base_bytes = baseBytes;

  const size_t record = kPixels * sizeof(float) + sizeof(int64_t);
  char *samples = readFile(argv[3], &sampleBytes);
  ortc_tensor_info label = ORTC_INIT(ortc_tensor_info);
  if (!samples || ortc_tensor_find(program, "label", &label) != ORTC_OK)
    return fail(argv[3], "cannot be read, or the model has no label");
  size_t batch = (size_t)label.dims[0], count = sampleBytes / record;
  float *pixels = malloc(batch * kPixels * sizeof(float));
  int64_t *labels = malloc(batch * sizeof(int64_t));
  if (!pixels || !labels ||
      ortc_bind(session, "pixels", pixels, batch * kPixels * sizeof(float)) != ORTC_OK ||
      ortc_bind(session, "label", labels, batch * sizeof(int64_t)) != ORTC_OK)
    return fail("inputs", ortc_session_message(session));

  // The last batch of an epoch is filled with the next one's first samples.
  size_t steps = (count * (size_t)atoi(argv[4]) + batch - 1) / batch, next = 0;
  for (size_t step = 0; step < steps; step++) {
    for (size_t i = 0; i < batch; i++, next = (next + 1) % count) {
      memcpy(pixels + i * kPixels, samples + next * record, kPixels * sizeof(float));
      memcpy(labels + i, samples + next * record + kPixels * sizeof(float), sizeof(int64_t));
    }
    if (ortc_train_step(session, NULL) != ORTC_OK)
      return fail("step", ortc_session_message(session));
  }

  FILE *out = fopen(argv[6], "wb");
  if (!out)
    return fail(argv[6], "cannot be written");
  ortc_status status = ortc_delta_write(&delta, program, session, sendPart, out, &message);
  if (fclose(out) || status != ORTC_OK)
    return fail("delta", message.text);
  free(base);
  free(samples);
  ortc_session_destroy(session);
  ortc_program_close(program);
  free(pixels);
  free(labels);
  return 0;
}
