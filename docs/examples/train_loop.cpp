// train_loop.c in C++: trains an artifact for a few steps on made-up data and saves a checkpoint.
// train_loop_cpp model.ortc out.safetensors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cstdio>
#include <vector>

#include "ortc/ortc.hpp"

static void train(const char *artifact, const char *checkpoint) {
  ortc::Program program(artifact);
  ortc::Pool pool(std::min(2u, program.info().max_workers)); // any number gives the same bits
  ortc::Session session(program, pool.options());

  // Bind an array to every input of the training entry. A real program would fill them with data.
  std::vector<ortc_entry_info> entries = program.entries();
  uint32_t e = 0;
  while (entries.at(e).role != ORTC_ENTRY_TRAIN)
    e++;
  std::vector<std::vector<float>> numbers;
  std::vector<std::vector<unsigned char>> others; // zeros of any type
  for (const ortc_tensor_info &value : program.values(e)) {
    if (value.role != ORTC_ROLE_INPUT)
      continue;
    if (value.dtype != 1) { // TensorProto.FLOAT
      session.bind(value.name, others.emplace_back(value.bytes));
      continue;
    }
    std::vector<float> &array = numbers.emplace_back(value.bytes / sizeof(float));
    for (size_t k = 0; k < array.size(); k++)
      array[k] = static_cast<float>(k % 17) / 17.0f;
    session.bind(value.name, array);
  }

  for (int step = 1; step <= 10; step++)
    std::printf("step %d loss %.6f\n", step, session.trainStep());
  session.save(checkpoint);
}

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "train_loop: usage: train_loop MODEL.ortc OUT.safetensors\n");
    return 1;
  }
  try {
    train(argv[1], argv[2]);
  } catch (const ortc::Error &error) {
    std::fprintf(stderr, "train_loop: %s (%s)\n", error.what(), ortc_status_name(error.status()));
    return 1;
  }
  return 0;
}
