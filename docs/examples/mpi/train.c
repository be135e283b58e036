// Trains one model in several processes that add up their gradients with MPI:
//   mpirun -np 2 train MODEL.ortc SAMPLES STEPS OUT
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MODEL.ortc is compiled with --gradients --bind gradients, for the batch of one process. SAMPLES: records of 64 floats
// (pixels) and an int64 (label), of which every process takes its part. Rank R writes the checkpoint OUT.R.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "ortc/parameters.h"

enum { kPixels = 64, kRecord = kPixels * sizeof(float) + sizeof(int64_t), kFloat = 1 };

static void check(int isGood, const char *what, const char *text) {
  if (isGood)
    return;
  fprintf(stderr, "train: %s: %s\n", what, text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/// Gradients lie in `buffer`, one behind the other, where steps write and read them. Returns how many there are.
static uint64_t bindGradients(const ortc_program *program, ortc_session *session, float *buffer) {
  ortc_entry_info entry = ORTC_INIT(ortc_entry_info);
  ortc_tensor_info value = ORTC_INIT(ortc_tensor_info);
  uint32_t e = 0;
  while (ortc_entry_get(program, e, &entry) == ORTC_OK && entry.role != ORTC_ENTRY_GRADIENTS)
    e++;
  uint64_t count = 0;
  for (uint32_t n = 0; ortc_entry_value(program, e, n, &value) == ORTC_OK; n++) {
    if (value.role != ORTC_ROLE_OUTPUT || value.owner == ORTC_NONE)
      continue;
    check(value.dtype == kFloat, value.name, "is not float32");
    check(!ortc_bind(session, value.name, buffer + count, value.bytes), value.name, ortc_session_message(session));
    count += value.bytes / sizeof(float);
  }
  return count;
}

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check(argc == 5, "usage", "mpirun -np N train MODEL.ortc SAMPLES STEPS OUT");
  ortc_program *program = NULL;
  ortc_session *session = NULL;
  ortc_message message;
  check(!ortc_program_open_file(argv[1], NULL, &program, &message), argv[1], message.text);
  check(!ortc_session_create(program, NULL, &session, &message), "session", message.text);
  ortc_set_scalar(session, "random.seed", rank); // other masks than the others; models without dropout have none

  // All begin with the weights of the first one, whatever it has loaded.
  ortc_parameters weights = ORTC_INIT(ortc_parameters);
  weights.which = ORTC_PARAMETERS_ALL;
  ortc_parameters_size(program, &weights);
  weights.values = malloc(weights.count * sizeof(float));
  check(!ortc_parameters_read(program, session, &weights, &message), "parameters", message.text);
  MPI_Bcast(weights.values, (int)weights.count, MPI_FLOAT, 0, MPI_COMM_WORLD);
  check(!ortc_parameters_write(program, session, &weights, &message), "parameters", message.text);
  float *gradients = malloc(weights.count * sizeof(float));
  int count = (int)bindGradients(program, session, gradients);
  check(count > 0, argv[1], "has no gradients (ortc train --gradients --bind gradients)");

  ortc_tensor_info label = ORTC_INIT(ortc_tensor_info);
  FILE *file = fopen(argv[2], "rb");
  check(file && !ortc_tensor_find(program, "label", &label), argv[2], "cannot be read, or the model has no label");
  fseek(file, 0, SEEK_END);
  long batch = (long)label.dims[0], samples = ftell(file) / kRecord;
  float(*pixels)[kPixels] = malloc(batch * sizeof *pixels);
  int64_t *labels = malloc(batch * sizeof *labels);
  check(samples && !ortc_bind(session, "pixels", pixels, batch * sizeof *pixels) &&
            !ortc_bind(session, "label", labels, batch * sizeof *labels), "inputs", ortc_session_message(session));

  for (long step = 0; step < atol(argv[3]); step++) {
    for (long i = 0; i < batch; i++) {
      fseek(file, ((step * size + rank) * batch + i) % samples * kRecord, SEEK_SET);
      check(fread(pixels[i], sizeof *pixels, 1, file) && fread(labels + i, sizeof *labels, 1, file), argv[2], "is cut");
    }
    double loss = 0;
    check(!ortc_gradients_step(session, &loss), "step", ortc_session_message(session));
    MPI_Allreduce(MPI_IN_PLACE, gradients, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &loss, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++)
      gradients[i] /= (float)size; // the mean over all samples, where every process has as many
    check(!ortc_update_step(session), "update", ortc_session_message(session));
    if (!rank)
      printf("step %ld loss %.9g\n", step + 1, loss / size);
  }

  char path[4096];
  snprintf(path, sizeof path, "%s.%d", argv[4], rank);
  check(!ortc_checkpoint_save(session, path, NULL, 0), path, ortc_session_message(session));
  ortc_session_destroy(session);
  ortc_program_close(program);
  return MPI_Finalize();
}
