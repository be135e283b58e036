// Training, evaluation, prediction and gradients on a device, which is the stand-in of test/runtime.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <csignal>
#include <cstring>
#include <gtest/gtest.h>

#include "compiler/artifact/StaticModel.h"
#include "engine/artifact/device.h"
#include "engine/artifact/device_name.h"
#include "engine/data/writers.h"
#include "engine/session/session.h"
#include "engine/training/apply.h"
#include "engine/training/run.h"
#include "test/engine/data_files.h"
#include "test/runtime/DeviceArtifact.h"

using namespace ortc;
using namespace ortc::engine;
using namespace ortc::engine::test;

namespace {

class HostDeviceTest : public testing::Test {
protected:
  HostDeviceTest() {
    artifactPath = folder / "model.ortc";
    write(ortc::test::makeDeviceArtifact());
    std::vector<float> x(22 * 3);
    std::vector<int64_t> labels(22);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = float((i * 7) % 11) / 8 - 0.5f;
    for (size_t i = 0; i < labels.size(); ++i)
      labels[i] = i % 3 == 0;
    dataPath = writeData("data.npz", x, labels);
    labels[6] = 5;
    badPath = writeData("bad.npz", x, labels);
  }
  void write(ortc::test::Artifact artifact) {
    artifact.manifest = R"({"loss": {"kind": "nll", "output": "y", "axis": 1}})";
    ortc::test::writeFile(artifactPath, ortc::test::makeFile(artifact));
  }
  std::string writeData(const std::string &name, const std::vector<float> &x,
                        const std::vector<int64_t> &labels) {
    auto bytesOf = [](const auto &values) {
      auto from = reinterpret_cast<const uint8_t *>(values.data());
      return std::vector<uint8_t>(from, from + values.size() * sizeof(values[0]));
    };
    EXPECT_TRUE(writeNpz(folder / name, {{"x", DataType::Float32, {22, 3}, bytesOf(x)},
                                         {"label", DataType::Int64, {22}, bytesOf(labels)}})
                    .isOk());
    return folder / name;
  }
  Status trainOn(const std::string &device, const std::string &data, const std::string &save) {
    TrainOptions options;
    options.artifact = artifactPath;
    options.data = data;
    options.evalData = dataPath;
    options.device = device;
    options.epochs = 3;
    options.lr = 0.3;
    options.save = save.empty() ? "" : folder / save;
    options.quiet = true;
    return engine::train(options, interrupted);
  }
  ApplyOptions makeApply(const std::string &device, const std::string &output) {
    ApplyOptions options;
    options.artifact = artifactPath;
    options.data = dataPath;
    options.device = device;
    options.output = folder / output;
    options.quiet = true;
    return options;
  }
  static void expectOk(const Status &status) { EXPECT_TRUE(status.isOk()) << status.getMessage(); }

  TemporaryFolder folder;
  std::string artifactPath, dataPath, badPath;
  ortc::test::FakeDevice fake; ///< its settings; the device is opened by what is tested
  std::sig_atomic_t interrupted = 0;
};

TEST_F(HostDeviceTest, TrainsToTheBitsOfTheProcessor) {
  expectOk(trainOn("cpu", dataPath, "cpu.safetensors"));
  expectOk(trainOn("cuda", dataPath, "cuda.safetensors"));
  EXPECT_EQ(readFile(folder / "cuda.safetensors"), readFile(folder / "cpu.safetensors"));
  EXPECT_NE(fake.takeLog().find("launch update"), std::string::npos);
  expectOk(trainOn("cuda:0", dataPath, ""));
}

TEST_F(HostDeviceTest, TrainsOnAmdToTheBitsOfTheProcessor) {
  write(ortc::test::makeDeviceArtifact(ortc::test::Maker::Amd));
  expectOk(trainOn("cpu", dataPath, "cpu.safetensors"));
  expectOk(trainOn("hip", dataPath, "hip.safetensors"));
  EXPECT_EQ(readFile(folder / "hip.safetensors"), readFile(folder / "cpu.safetensors"));
  EXPECT_NE(fake.takeLog().find("launch update"), std::string::npos);
  fake.fake.devices = 2;
  expectOk(trainOn("hip:1", dataPath, ""));
  EXPECT_EQ(fake.fake.current, 1);
}

TEST_F(HostDeviceTest, AppliesAsTheProcessorDoes) {
  for (auto command : {predictData, computeGradients}) {
    const char *suffix = command == predictData ? ".npz" : ".safetensors";
    expectOk(command(makeApply("cpu", std::string("cpu") + suffix)));
    expectOk(command(makeApply("cuda", std::string("cuda") + suffix)));
    EXPECT_EQ(readFile(folder / (std::string("cuda") + suffix)),
              readFile(folder / (std::string("cpu") + suffix)));
  }
  testing::internal::CaptureStdout();
  expectOk(evaluateData(makeApply("cpu", "")));
  std::string expected = testing::internal::GetCapturedStdout();
  testing::internal::CaptureStdout();
  expectOk(evaluateData(makeApply("cuda", "")));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), expected);
}

TEST_F(HostDeviceTest, FailsWithTheWordsOfTheProcessor) {
  Status cpu = trainOn("cpu", badPath, ""), cuda = trainOn("cuda", badPath, "");
  EXPECT_FALSE(cpu.isOk());
  EXPECT_EQ(cuda.getMessage(), cpu.getMessage());
}

TEST_F(HostDeviceTest, SaysWhatTheArtifactHasCodeFor) {
  write(ortc::test::makeArtifact());
  Status status = trainOn("cuda", dataPath, "");
  EXPECT_EQ(status.getCode(), ExitCode::Refused);
  EXPECT_EQ(status.getMessage(),
            artifactPath +
                ": the artifact has code for baseline, not for cuda; compile it with --target sm_90");
  ortc::test::Artifact newer = ortc::test::makeDeviceArtifact();
  newer.codes[1].name = "sm_120";
  newer.codes[1].features = 1u << ORTC_PTX_SM_120;
  write(newer);
  EXPECT_EQ(trainOn("cuda", dataPath, "").getMessage(),
            artifactPath + ": the artifact has code for baseline, sm_120, not for cuda (sm_90); compile it "
                           "with --target sm_90");
  newer.codes[1].name = "sm_90a";
  newer.codes[1].features = 1u << ORTC_PTX_SM_90A;
  write(newer);
  EXPECT_TRUE(trainOn("cuda", dataPath, "").isOk());
  ortc::test::Artifact other = ortc::test::makeDeviceArtifact();
  other.codes.erase(other.codes.begin());
  write(other);
  // What this processor is, in parentheses, is what the artifact is to be compiled for.
  std::string message = trainOn("cpu", dataPath, "").getMessage();
  size_t open = message.find('('), close = message.find(')');
  ASSERT_LT(open, close) << message;
  std::string here = message.substr(open + 1, close - open - 1);
  EXPECT_EQ(message, artifactPath + ": the artifact has code for sm_80, not for this processor (" + here +
                         "); run it with --device cuda, or compile it with --target " + here + " or all");
  expectOk(trainOn("cuda", dataPath, "gpu.safetensors"));
  ortc::test::Artifact foreign = ortc::test::makeDeviceArtifact();
  foreign.codes.erase(foreign.codes.begin() + 1);
  foreign.codes[0].architecture = ORTC_ARCH_ARMV7;
  foreign.codes[0].name = "armv7";
  write(foreign);
  EXPECT_EQ(trainOn("cpu", dataPath, "").getMessage(),
            artifactPath + ": the artifact has code for armv7, not for this processor (" + here +
                "); compile it with --target " + here + " or all");
  ortc::test::writeFile(artifactPath, *artifact::makeStaticImage(ortc::test::makeArtifact()));
  for (const char *device : {"cpu", "cuda"})
    EXPECT_EQ(trainOn(device, dataPath, "").getMessage(),
              artifactPath +
                  ": is the image of a linked model: its code for baseline is in model.a of ortc train "
                  "--emit static, and in the programs that are linked with it; model.ortc beside "
                  "model.a has both");

  ortc::test::Artifact amd = ortc::test::makeDeviceArtifact(ortc::test::Maker::Amd);
  other.codes.push_back(amd.codes[1]);
  write(other);
  EXPECT_EQ(trainOn("cpu", dataPath, "").getMessage(),
            artifactPath + ": the artifact has code for sm_80, gfx90a, not for this processor (" + here +
                "); run it with --device cuda or --device hip, or compile it with --target " + here +
                " or all");
  fake.fake.model = "gfx1100";
  EXPECT_EQ(trainOn("hip", dataPath, "").getMessage(),
            artifactPath +
                ": the artifact has code for sm_80, gfx90a, not for hip (gfx1100); compile it with "
                "--target gfx1100");
  other.codes.pop_back();
  write(other);
  EXPECT_EQ(trainOn("hip", dataPath, "").getMessage(),
            artifactPath +
                ": the artifact has code for sm_80, not for hip; compile it with --target gfx1100");

  // Its tensors are there without any device, and steps are not.
  Artifact stored;
  expectOk(Artifact::open(artifactPath, stored));
  Session session;
  expectOk(Session::create(stored, {}, session));
  LoadResult loaded;
  expectOk(session.load(folder / "gpu.safetensors", loaded));
  expectOk(session.save(folder / "again.safetensors", loaded.metadata));
  EXPECT_EQ(readFile(folder / "again.safetensors"), readFile(folder / "gpu.safetensors"));
  const Entry *entry = nullptr;
  expectOk(stored.findEntry(ORTC_ENTRY_PREDICT, "", entry));
  double none = 0;
  EXPECT_EQ(session.step(*entry, none).getMessage(), "the predict step failed: no code for this processor");
}

TEST_F(HostDeviceTest, SaysWhyThereIsNoDevice) {
  fake.fake.devices = 0;
  EXPECT_EQ(trainOn("cuda:1", dataPath, "").getMessage(),
            "--device cuda:1: there is no GPU of NVIDIA here, though there is its driver");
  EXPECT_EQ(trainOn("hip", dataPath, "").getMessage(),
            "--device hip: there is no GPU of AMD here, though there is its driver");
}

TEST(DeviceNameTest, TakesNamesApart) {
  DeviceKind kind = DeviceKind::Hip;
  uint32_t ordinal = 7;
  EXPECT_TRUE(parseDevice("cpu", kind, ordinal).isOk());
  EXPECT_EQ(kind, DeviceKind::Cpu);
  for (auto [name, expected] : {std::pair("cuda", DeviceKind::Cuda), {"hip", DeviceKind::Hip}}) {
    ordinal = 7;
    EXPECT_TRUE(parseDevice(name, kind, ordinal).isOk());
    EXPECT_EQ(kind, expected);
    EXPECT_EQ(ordinal, 0u);
    EXPECT_TRUE(parseDevice(name + std::string(":12"), kind, ordinal).isOk());
    EXPECT_EQ(kind, expected);
    EXPECT_EQ(ordinal, 12u);
  }
  for (const char *name : {"", "gpu", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda: 1", "cuda:99999999999",
                           "cudax", "cpu:0", "hip:", "hipx", "hip:x", "hip1", "cuda1", ":1"})
    EXPECT_FALSE(parseDevice(name, kind, ordinal).isOk()) << name;
}

} // namespace
