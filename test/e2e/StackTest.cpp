// The stack that an artifact says its code takes, against painted stacks on which the code of real models runs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "compiler/artifact/ArtifactReader.h"
#include "compiler/backends/cpu/object/BlobLoader.h"
#include "test/compiler/backends/cpu/PaintedStack.h"
#include "test/e2e/Session.h"

using namespace ortc;
using namespace ortc::test;
using cpu::test::measureStack;
using Json = nlohmann::json;

namespace {

/// Zeroed memory for one region or value.
class Memory {
public:
  explicit Memory(uint64_t bytes, const artifact::Bytes &image = {})
      : data(static_cast<uint8_t *>(std::aligned_alloc(64, (bytes + 127) / 64 * 64)), std::free) {
    std::memset(data.get(), 0, bytes);
    std::copy(image.begin(), image.end(), data.get());
  }
  void *get() const { return data.get(); }

private:
  std::unique_ptr<uint8_t, void (*)(void *)> data;
};

/// What the frames of the host's functions lie between: the step's part above them, and the most that a task takes.
struct PoolUse {
  uintptr_t top = 0;
  size_t above = 0, task = 0;
};

void runOnPool(void *pool, int64_t chunks, ortc_task_fn task, void *context) {
  auto &use = *static_cast<PoolUse *>(pool);
  // The frame begins below the saved frame pointer and the return address.
  uintptr_t caller = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) + 16;
  use.above = std::max<size_t>(use.above, use.top - caller);
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    use.task = std::max(use.task, measureStack(task, context, chunk, int64_t(0)));
}

/// A step as the runtime would call it, but for the frames of the runtime.
class DirectSteps {
public:
  DirectSteps(const artifact::Artifact &artifact, const artifact::Code &code)
      : artifact(artifact), blob(llvm::cantFail(cpu::LoadedBlob::load(wrap(code)))),
        constants(artifact.constants.size(), artifact.constants.toBytes()),
        persistent(artifact.persistentBytes, artifact.persistent.toBytes()),
        transient(transientBytes(artifact)), bases{constants.get(), persistent.get(), transient.get()} {
    call.size = sizeof call;
    call.bases = bases;
    call.workers = 1;
    call.detail = &detail;
  }

  /// Bytes that the step takes without a pool.
  size_t measureAlone(const artifact::Entry &entry) {
    bind(entry);
    call.parallel_for = nullptr;
    return measureStack(find(entry), static_cast<const ortc_call *>(&call));
  }

  PoolUse measureOnPool(const artifact::Entry &entry) {
    bind(entry);
    PoolUse use;
    call.parallel_for = runOnPool;
    call.pool = &use;
    runBelow(find(entry), call, use);
    return use;
  }

private:
  static cpu::CodeBlob wrap(const artifact::Code &code) {
    cpu::CodeBlob blob;
    blob.bytes = code.bytes;
    return blob;
  }

  static uint64_t transientBytes(const artifact::Artifact &artifact) {
    uint64_t bytes = 0;
    for (const artifact::Entry &entry : artifact.entries)
      bytes = std::max(bytes, entry.fixedBytes + entry.workerBytes);
    return bytes;
  }

  ortc_step_fn find(const artifact::Entry &entry) const {
    return blob.step(entry.role, entry.binding, entry.segment);
  }

  /// All inputs are zero: a label and a token, too, that are in range.
  void bind(const artifact::Entry &entry) {
    values.clear();
    pointers.clear();
    for (const artifact::Value &value : entry.external) {
      uint64_t bytes = artifact::elementBytes(artifact.tensors[value.tensor].dtype);
      for (int64_t size : value.dims)
        bytes *= uint64_t(size);
      pointers.push_back(values.emplace_back(bytes).get());
    }
    call.ext = pointers.data();
  }

  [[gnu::noinline]] static void runBelow(ortc_step_fn step, const ortc_call &call, PoolUse &use) {
#if defined(__x86_64__)
    __asm__ volatile("movq %%rsp, %0" : "=r"(use.top));
#endif
    EXPECT_EQ(step(&call), ORTC_STEP_OK);
  }

  const artifact::Artifact &artifact;
  cpu::LoadedBlob blob;
  Memory constants, persistent, transient;
  void *bases[ORTC_BASES];
  std::vector<Memory> values;
  std::vector<void *> pointers;
  ortc_detail detail{};
  ortc_call call{};
};

class StackTest : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    auto read = artifact::readArtifactFile(compiled() + "/model.ortc");
    ASSERT_TRUE(read) << read.getStatus().getMessage();
    artifact = std::move(read->artifact);
    ASSERT_FALSE(artifact.codes.empty() || artifact.entries.empty());
    targets = Json::parse(artifact.manifest)["targets"];
  }

  /// The folder of the entry's artifact, which all tests share.
  static const std::string &compiled() {
    static TemporaryFolder folder;
    static std::map<std::string, std::string> artifacts;
    std::string &artifact = artifacts[GetParam()];
    if (artifact.empty()) {
      artifact = folder / GetParam();
      ZooEntry entry(GetParam());
      std::vector<std::string> arguments{"train",       entry.model(), "-o",          artifact,
                                         "--optimizer", "adamw",       "--gradients", "--quiet"};
      arguments.insert(arguments.end(), entry.flags.begin(), entry.flags.end());
      mustRun(arguments);
    }
    return artifact;
  }

  artifact::Artifact artifact;
  Json targets;
};

/// The deepest frame ends with padding and slots that not every path writes: at most 24 bytes in the whole zoo.
constexpr size_t kUnwritten = 32;

} // namespace

TEST_P(StackTest, IsWhatEntriesTake) {
  for (size_t t = 0; t < artifact.codes.size(); ++t) {
    const artifact::Code &code = artifact.codes[t];
    if ((ortc_host_features() & code.features) != code.features)
      continue;
    DirectSteps steps(artifact, code);
    for (size_t i = 0; i < artifact.entries.size(); ++i) {
      const artifact::Entry &entry = artifact.entries[i];
      const Json &said = targets[t]["stack"][i];
      SCOPED_TRACE(code.name + " " + entry.name + " " + said.dump());
      ASSERT_EQ(said["name"], entry.name);
      size_t caller = said["caller"], worker = said["worker"];
      size_t alone = steps.measureAlone(entry);
      PoolUse pool = steps.measureOnPool(entry);
      size_t most = std::max(alone, pool.above + pool.task);
      EXPECT_GE(caller, most);
      EXPECT_LE(caller, most + kUnwritten);
      EXPECT_GE(worker, pool.task);
      EXPECT_LE(worker, pool.task + kUnwritten);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Stack, StackTest,
                         testing::Values("mlp-digits", "lenet", "mobilenetv2-tiny", "gpt2-tiny",
                                         "lstm-dynamo"),
                         [](const auto &info) { return caseName(info.param); });

namespace {

class RuntimeStackTest : public StackTest {};

} // namespace

// docs/runtime-api.md says how much at most; of libraries that are not optimised that is not true.
TEST_P(RuntimeStackTest, RuntimeAddsLittle) {
  ASSERT_FALSE(HasFailure());
  size_t code = 0;
  for (size_t t = 0; t < artifact.codes.size(); ++t)
    if ((ortc_host_features() & artifact.codes[t].features) == artifact.codes[t].features)
      code = targets[t]["stack"][0]["caller"];
  std::unique_ptr<engine::DataSource> data;
  ASSERT_TRUE(engine::openData(ZooEntry(GetParam()).data(), data).isOk());
  Session session(compiled());
  session.writeSlice(*data, 0);
  ASSERT_EQ(ortc_train_step(session.get(), nullptr), ORTC_OK) << session.message();
  size_t all = measureStack(ortc_train_step, session.get(), static_cast<double *>(nullptr));
  EXPECT_GT(all + kUnwritten, code);
#ifdef NDEBUG
  EXPECT_LE(all, code + 512);
#endif
}

INSTANTIATE_TEST_SUITE_P(Stack, RuntimeStackTest, testing::Values("lenet"),
                         [](const auto &info) { return caseName(info.param); });
