// Compiles a model in this process and trains it for ten steps on made-up data: compile_and_step MODEL.onnx
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/artifact/ArtifactWriter.h"
#include "compiler/driver/Compile.h"
#include "ortc/ortc.h"
#include "compiler/passes/train/Optimizers.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

static int fail(const char *text) {
  std::fprintf(stderr, "compile_and_step: %s\n", text);
  return 1;
}

int main(int argc, char **argv) {
  ortc::CompileOptions options;
  options.model = argc > 1 ? argv[1] : "";
  options.targets = {"native"};
  ortc::Status status = ortc::addShapes("batch=64", options);
  if (status.isOk())
    status = ortc::train::parseOptimizer("sgd:lr=0.1").moveTo(options.optimizer);
  if (!status.isOk())
    return fail(status.getMessage().c_str());
  ortc::Expected<ortc::driver::Compiled> compiled = ortc::driver::compile(options);
  if (!compiled)
    return fail(compiled.getStatus().getMessage().c_str());

  // The runtime uses an aligned image in place.
  ortc::Expected<ortc::artifact::Bytes> file = ortc::artifact::writeArtifact(compiled->artifact);
  if (!file)
    return fail(file.getStatus().getMessage().c_str());
  size_t bytes = (file->size() + ORTC_ALIGNMENT - 1) / ORTC_ALIGNMENT * ORTC_ALIGNMENT;
  void *image = std::aligned_alloc(ORTC_ALIGNMENT, bytes);
  std::memcpy(image, file->data(), file->size());
  ortc_program *program = nullptr;
  ortc_session *session = nullptr;
  ortc_message message;
  if (ortc_program_open_memory(image, file->size(), nullptr, &program, &message) != ORTC_OK ||
      ortc_session_create(program, nullptr, &session, &message) != ORTC_OK)
    return fail(message.text);

  std::vector<float> pixels(64 * 64);
  std::vector<int64_t> labels(64);
  for (size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<float>(i % 17) / 17;
  for (size_t i = 0; i < labels.size(); ++i)
    labels[i] = static_cast<int64_t>(i % 10);
  ortc_bind(session, "pixels", pixels.data(), pixels.size() * sizeof pixels[0]);
  ortc_bind(session, "label", labels.data(), labels.size() * sizeof labels[0]);
  for (int step = 1; step <= 10; ++step) {
    double loss = 0;
    if (ortc_train_step(session, &loss) != ORTC_OK)
      return fail(ortc_session_message(session));
    std::printf("step %d loss %.6f\n", step, loss);
  }
  ortc_session_destroy(session);
  ortc_program_close(program);
  std::free(image);
}
