// What is AMD's own: the processors that there is code for, names in messages, and how its driver wants to be asked.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/runtime/DeviceArtifact.h"

namespace ortc::test {
namespace {

DeviceCode withImage(const DeviceCode::Image &image) {
  DeviceCode code = makeDeviceCode(Maker::Amd);
  code.images = {image};
  return code;
}

/// Code for each processor, and for one of NVIDIA's.
Artifact makeAll() {
  Artifact artifact = makeDeviceArtifact();
  artifact.codes.push_back(makeSection(ORTC_AMDGPU_GFX90A, "gfx90a", withImage(makeHsaco("gfx90a"))));
  artifact.codes.push_back(makeSection(ORTC_AMDGPU_GFX942, "gfx942", withImage(makeHsaco("gfx942"))));
  artifact.codes.push_back(makeSection(ORTC_AMDGPU_GFX1100, "gfx1100", withImage(makeHsaco("gfx1100"))));
  return artifact;
}

TEST(HipTest, EachProcessorTakesItsOwnCodeInAnyMode) {
  const Bytes file = makeFile(makeAll());
  for (auto [model, name] : {std::pair("gfx90a", "gfx90a"),
                             {"gfx90a:sramecc+:xnack-", "gfx90a"},
                             {"gfx90a:sramecc-:xnack+", "gfx90a"},
                             {"gfx942:sramecc+:xnack-", "gfx942"},
                             {"gfx1100", "gfx1100"}}) {
    FakeDevice device(Maker::Amd);
    device.fake.model = model;
    ASSERT_EQ(device.open(), ORTC_OK) << device.message.text;
    OpenProgram program(file, &device.host);
    ASSERT_EQ(program.status, ORTC_OK) << program.message.text;
    auto info = ORTC_INIT(ortc_program_info);
    EXPECT_EQ(ortc_program_get_info(program.program.get(), &info), ORTC_OK);
    EXPECT_STREQ(info.target_name, name);
    EXPECT_EQ(device.takeLog(), std::string("load // hsaco ") + name + "\n");
  }
}

TEST(HipTest, OtherProcessorsAreRefusedByName) {
  for (auto [model, article] : {std::pair("gfx906:sramecc+:xnack-", "a gfx906"),
                                {"gfx1101", "a gfx1101"},
                                {"gfx90", "a gfx90"},
                                {"gfx90a0", "a gfx90a0"},
                                {"gfx11000", "a gfx11000"},
                                {"", "a "}}) {
    FakeDevice device(Maker::Amd);
    device.fake.model = model;
    EXPECT_EQ(device.open(), ORTC_E_TARGET);
    EXPECT_EQ(device.message.text, "device 0 (Fake GPU 0) is " + std::string(article) +
                                       ", but a gfx90a, gfx942 or gfx1100 is needed");
    EXPECT_EQ(device.host.device, nullptr);
  }
}

TEST(HipTest, CodeOfOthersIsRefused) {
  FakeDevice device(Maker::Amd);
  device.fake.model = "gfx942";
  ASSERT_EQ(device.open(), ORTC_OK);
  EXPECT_EQ(OpenProgram(makeFile(makeDeviceArtifact()), &device.host).status, ORTC_E_TARGET) << "NVIDIA's";
  EXPECT_EQ(OpenProgram(makeFile(makeDeviceArtifact(Maker::Amd)), &device.host).status, ORTC_E_TARGET)
      << "a gfx90a's";
  auto open = [&](const DeviceCode::Image &image) {
    Artifact artifact = makeArtifact();
    artifact.codes.push_back(makeSection(ORTC_AMDGPU_GFX942, "gfx942", withImage(image)));
    OpenProgram program(makeFile(artifact), &device.host);
    EXPECT_EQ(program.status, ORTC_E_TARGET);
    return std::string(program.message.text);
  };
  EXPECT_EQ(open(makePtx()), "Fake GPU 0 is a gfx942, but the artifact's code is an unknown kind of code");
  device.fake.failing = "loadImage";
  device.fake.result = 209;
  EXPECT_EQ(open(makeHsaco()),
            "the driver of Fake GPU 0 refuses the artifact's machine code: no binary for the GPU");
}

TEST(HipTest, MessagesNameAmd) {
  struct Case {
    void (*change)(FakeDriver &);
    ortc_status status;
    const char *message;
  };
  for (const Case &c :
       {Case{[](FakeDriver &f) { f.devices = -1; }, ORTC_E_TARGET,
             "there is no GPU of AMD here, though there is its driver"},
        Case{[](FakeDriver &f) { f.failing = "initialise"; }, ORTC_E_INTERNAL,
             "the driver of AMD failed when the runtime started it: unknown error (999)"},
        Case{[](FakeDriver &f) { f.failing = "getProperties"; }, ORTC_E_INTERNAL,
             "Fake GPU 0 failed when the runtime asked for its processor: unknown error (999)"},
        Case{[](FakeDriver &f) { f.failing = "useDevice"; }, ORTC_E_INTERNAL,
             "Fake GPU 0 failed when the runtime chose it: unknown error (999)"}}) {
    FakeDevice device(Maker::Amd);
    c.change(device.fake);
    EXPECT_EQ(device.open(), c.status);
    EXPECT_STREQ(device.message.text, c.message);
  }
  FakeDevice device(Maker::Amd);
  setenv("ORTC_HIP_DRIVER", "/nowhere/libamdhip64.so", 1);
  EXPECT_EQ(device.open(), ORTC_E_TARGET);
  EXPECT_EQ(std::string(device.message.text).find("there is no driver of AMD here, which a device needs: "),
            0u)
      << device.message.text;
  setenv("ORTC_HIP_DRIVER", "libm.so.6", 1);
  EXPECT_EQ(device.open(), ORTC_E_TARGET);
  EXPECT_STREQ(device.message.text,
               "the driver libm.so.6 is too old: it has no hipInit; install a newer one");
}

TEST(HipTest, SharedMemoryNeedsNoLeave) {
  FakeDevice device(Maker::Amd);
  ASSERT_EQ(device.open(), ORTC_OK);
  DeviceCode code = makeDeviceCode(Maker::Amd);
  code.kernels[0].shared = 65536;
  auto open = [&] {
    Artifact artifact = makeArtifact();
    artifact.codes.push_back(makeSection(ORTC_AMDGPU_GFX90A, "gfx90a", code));
    return OpenProgram(makeFile(artifact), &device.host);
  };
  EXPECT_EQ(open().status, ORTC_OK);
  EXPECT_EQ(device.takeLog(), "load // hsaco gfx90a\n");
  code.kernels[0].shared = 65537;
  OpenProgram program = open();
  EXPECT_EQ(program.status, ORTC_E_TARGET);
  EXPECT_STREQ(program.message.text,
               "kernel 'forward' needs 65537 bytes of shared memory; a block of Fake GPU 0 can have 65536");
}

/// What follows in a thread goes to the device that it used last: each has to choose its own again.
TEST(HipTest, EachCallGoesToItsDevice) {
  for (Maker maker : kMakers) {
    FakeDevice first(maker), second(maker);
    second.fake.devices = 2;
    ASSERT_EQ(first.open(0), ORTC_OK);
    ASSERT_EQ(second.open(1), ORTC_OK) << second.message.text;
    const Bytes file = makeFile(makeDeviceArtifact(maker));
    OpenProgram one(file, &first.host), two(file, &second.host);
    SessionHandle a = makeSession(one.program.get()), b = makeSession(two.program.get());
    for (int round = 0; round < 2; ++round) {
      trainOn(a.get(), 1);
      EXPECT_EQ(first.fake.current, 0) << nameOf(maker);
      trainOn(b.get(), 1);
      EXPECT_EQ(first.fake.current, 1) << nameOf(maker);
    }
    a.reset();
    b.reset();
    one.program.reset();
    two.program.reset();
    ortc_cuda_close(nullptr);
    ortc_hip_close(nullptr);
    (maker == Maker::Nvidia ? ortc_cuda_close : ortc_hip_close)(second.host.device);
    second.host.device = nullptr;
    (maker == Maker::Nvidia ? ortc_cuda_close : ortc_hip_close)(first.host.device);
    first.host.device = nullptr;
  }
}

} // namespace
} // namespace ortc::test
