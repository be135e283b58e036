// A small artifact with real code, and RAII around the runtime's handles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/runtime/TestArtifact.h"

#include <filesystem>
#include <fstream>

namespace ortc::test {

using namespace ortc::artifact;

Bytes readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

void writeFile(const std::string &path, const Bytes &bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

void writeTestArtifact(const std::string &path) {
  Artifact artifact = makeArtifact();
  artifact.manifest = R"({"loss": {"kind": "nll", "output": "y", "axis": 1}})";
  writeFile(path, makeFile(artifact));
}

static Tensor tensor(const char *name, ortc_tensor_role role, uint8_t dtype, std::vector<int64_t> dims,
                     uint64_t offset = 0) {
  Tensor result;
  result.name = name;
  result.role = role;
  result.dtype = dtype;
  result.dims = std::move(dims);
  result.offset = offset;
  return result;
}

static Value value(uint32_t tensor, std::vector<int64_t> dims, uint64_t offset = 0,
                   std::vector<int64_t> strides = {}) {
  Value result;
  result.tensor = tensor;
  result.dims = std::move(dims);
  result.offset = offset;
  result.strides = std::move(strides);
  return result;
}

Artifact makeArtifact() {
  constexpr uint8_t f32 = 1, i64 = 7;
  Artifact a;
  a.tensors = {tensor("fc.weight", ORTC_ROLE_PARAMETER, f32, {2, 3}, 0),
               tensor("fc.weight.momentum", ORTC_ROLE_STATE, f32, {2, 3}, 64),
               tensor("step", ORTC_ROLE_STATE, i64, {}, 128),
               tensor("lr", ORTC_ROLE_SCALAR, f32, {}, 192),
               tensor("shift", ORTC_ROLE_CONSTANT, f32, {2}),
               tensor("x", ORTC_ROLE_INPUT, f32, {4, 3}),
               tensor("label", ORTC_ROLE_INPUT, i64, {4}),
               tensor("y", ORTC_ROLE_OUTPUT, f32, {4, 2}),
               tensor("fc.weight", ORTC_ROLE_GRADIENT, f32, {2, 3}),
               tensor("loss", ORTC_ROLE_LOSS, f32, {})};
  a.tensors[kW].strides = a.tensors[kMomentum].strides = {4, 8};
  a.tensors[kW].flags = ORTC_TENSOR_IN_MODEL;
  a.tensors[kMomentum].owner = a.tensors[kGradient].owner = kW;
  a.bindings = {"batch", "single"};
  a.maxWorkers = 4;

  Value x4 = value(kX, {4, 3}), label4 = value(kLabel, {4}), y4 = value(kY, {4, 2});
  Value x1 = value(kX, {1, 3}), label1 = value(kLabel, {1}), y1 = value(kY, {1, 2});
  Value loss = value(kLoss, {}, 0), gradient = value(kGradient, {2, 3}, 64, {4, 8});
  auto entry = [&](const char *name, ortc_entry_role role, uint32_t binding, std::vector<Value> external,
                   std::vector<Value> internal, uint32_t lossIndex) {
    Entry e;
    e.name = name;
    e.role = role;
    e.binding = binding;
    e.external = std::move(external);
    e.internal = std::move(internal);
    e.loss = lossIndex;
    e.fixedBytes = 256;
    e.workerBytes = 64;
    a.entries.push_back(std::move(e));
  };
  entry("train/batch", ORTC_ENTRY_TRAIN, 0, {x4, label4, y4}, {loss}, 3);
  entry("eval/batch", ORTC_ENTRY_EVAL, 0, {x4, label4, y4}, {loss}, 3);
  entry("predict/batch", ORTC_ENTRY_PREDICT, 0, {x4, y4}, {}, ORTC_NONE);
  entry("gradients/batch", ORTC_ENTRY_GRADIENTS, 0, {x4, label4}, {loss, gradient}, 2);
  entry("update/batch", ORTC_ENTRY_UPDATE, 0, {}, {}, ORTC_NONE);
  entry("predict/single", ORTC_ENTRY_PREDICT, 1, {x1, y1}, {}, ORTC_NONE);
  entry("eval/single", ORTC_ENTRY_EVAL, 1, {x1, label1, y1}, {loss}, 3);

  auto put = [](Bytes &bytes, size_t offset, std::vector<float> values) {
    bytes.resize(std::max(bytes.size(), offset + values.size() * sizeof(float)));
    std::memcpy(bytes.data() + offset, values.data(), values.size() * sizeof(float));
  };
  a.persistentBytes = 256;
  Bytes persistent, constants;
  put(persistent, 0, {0.5f, -0.25f, 1.0f, 0.125f, -0.75f, 0.0625f}); // w transposed
  put(persistent, 192, {0.25f});                                     // lr; momentum and step are zero
  persistent.resize(256);
  put(constants, 0, {10.0f, 20.0f});
  a.persistent = artifact::Image(std::move(persistent));
  a.constants = artifact::Image(std::move(constants));

  Code code;
  code.name = "baseline";
  code.architecture = ortc_host_architecture();
  code.bytes = readFile(ORTC_TEST_BLOB);
  a.codes = {code};
  a.checkNames = {"label"};
  a.kernelNames = {"forward"};
  a.manifest = "{\"model\": \"test\"}";
  a.source = {1, 2, 3};
  return a;
}

Bytes makeFile(const Artifact &artifact) {
  Expected<Bytes> file = writeArtifact(artifact);
  EXPECT_TRUE(file) << file.getStatus().getMessage();
  return file ? *file : Bytes();
}

OpenProgram::OpenProgram(const Bytes &file, const ortc_host *host) : image(file) {
  ortc_program *opened = nullptr;
  status = ortc_program_open_memory(image.data(), image.size, host, &opened, &message);
  program.reset(opened);
}

SessionHandle makeSession(const ortc_program *program, const ortc_session_options *options) {
  ortc_session *session = nullptr;
  ortc_message message{};
  EXPECT_EQ(ortc_session_create(program, options, &session, &message), ORTC_OK) << message.text;
  return SessionHandle(session);
}

Batch makeBatch(unsigned seed) {
  Batch batch;
  uint32_t state = seed * 2654435761u + 1;
  auto next = [&] { return (state = state * 1664525u + 1013904223u) >> 16; };
  for (auto &row : batch.x)
    for (float &v : row)
      v = static_cast<float>(next() % 2001) / 1000.0f - 1.0f;
  for (int64_t &label : batch.label)
    label = next() % 2;
  return batch;
}

void writeBatch(ortc_session *session, unsigned seed) {
  Batch batch = makeBatch(seed);
  EXPECT_EQ(ortc_write(session, "x", batch.x, sizeof batch.x), ORTC_OK) << ortc_session_message(session);
  EXPECT_EQ(ortc_write(session, "label", batch.label, sizeof batch.label), ORTC_OK)
      << ortc_session_message(session);
}

double trainOn(ortc_session *session, unsigned seed) {
  double loss = -1;
  writeBatch(session, seed);
  EXPECT_EQ(ortc_train_step(session, &loss), ORTC_OK) << ortc_session_message(session);
  return loss;
}

Bytes stateOf(ortc_session *session) {
  Bytes all;
  for (auto [name, bytes] :
       {std::pair("fc.weight", 24), {"fc.weight.momentum", 24}, {"step", 8}, {"lr", 4}}) {
    Bytes part(static_cast<size_t>(bytes));
    EXPECT_EQ(ortc_read(session, name, part.data(), part.size()), ORTC_OK) << ortc_session_message(session);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::string makeFolder(const std::string &name) {
  std::filesystem::path path = std::filesystem::path(testing::TempDir()) / ("ortc-runtime-" + name);
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path.string();
}

} // namespace ortc::test
