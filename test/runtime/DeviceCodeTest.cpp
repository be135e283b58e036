// What is done with device code and with the driver: sections, images, launches, damage, and everything that may fail.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/sha256.h"
#include "test/runtime/DeviceArtifact.h"

#include <functional>

namespace ortc::test {
namespace {

class DeviceCodeTest : public testing::Test {
protected:
  /// Opens the device and an artifact with these sections behind the one for the processor.
  ortc_status open(const std::vector<artifact::Code> &codes) {
    if (!device.host.device && device.open() != ORTC_OK)
      return ORTC_E_INTERNAL;
    device.takeLog();
    Artifact artifact = makeArtifact();
    artifact.codes.insert(artifact.codes.end(), codes.begin(), codes.end());
    opened = std::make_unique<OpenProgram>(makeFile(artifact), &device.host);
    return opened->status;
  }
  ortc_status open(const DeviceCode &code) { return open({makeSection(ORTC_PTX_SM_80, "sm_80", code)}); }
  std::string message() { return opened->message.text; }
  std::string target() {
    auto info = ORTC_INIT(ortc_program_info);
    EXPECT_EQ(ortc_program_get_info(opened->program.get(), &info), ORTC_OK);
    return info.target_name;
  }

  FakeDevice device;
  std::unique_ptr<OpenProgram> opened;
};

/// The test artifact's code with other images.
DeviceCode withImages(std::vector<DeviceCode::Image> images) {
  DeviceCode code = makeDeviceCode();
  code.images = std::move(images);
  return code;
}
DeviceCode::Image makeCubin(uint32_t processor) {
  DeviceCode::Image image = makePtx(processor);
  image.kind = ORTC_IMAGE_CUBIN;
  image.text.replace(0, 6, "// bin");
  return image;
}

// ---- Which code ----

TEST_F(DeviceCodeTest, TheLastSectionThatTheDeviceCanRunIsTaken) {
  std::vector<artifact::Code> codes = {makeSection(ORTC_PTX_SM_80, "sm_80", makeDeviceCode()),
                                       makeSection(ORTC_PTX_SM_90, "sm_90", withImages({makePtx(90)})),
                                       makeSection(ORTC_PTX_SM_90A, "sm_90a", withImages({makePtx(90)})),
                                       makeSection(ORTC_PTX_SM_100, "sm_100", withImages({makePtx(100)}))};
  for (auto [processor, name] : {std::pair(80, "sm_80"), {89, "sm_80"}, {90, "sm_90a"}, {120, "sm_100"}}) {
    FakeDevice other;
    other.fake.processor = processor;
    ASSERT_EQ(other.open(), ORTC_OK) << other.message.text;
    Artifact artifact = makeArtifact();
    artifact.codes.insert(artifact.codes.end(), codes.begin(), codes.end());
    OpenProgram program(makeFile(artifact), &other.host);
    ASSERT_EQ(program.status, ORTC_OK) << program.message.text;
    auto info = ORTC_INIT(ortc_program_info);
    EXPECT_EQ(ortc_program_get_info(program.program.get(), &info), ORTC_OK);
    EXPECT_STREQ(info.target_name, name) << processor;
  }
}

TEST_F(DeviceCodeTest, CodeOfOneProcessorIsForNoNewerOne) {
  DeviceCode code = withImages({makePtx(90)});
  for (auto [processor, status] : {std::pair(89, ORTC_E_TARGET), {90, ORTC_OK}, {100, ORTC_E_TARGET}}) {
    FakeDevice other;
    other.fake.processor = processor;
    ASSERT_EQ(other.open(), ORTC_OK) << other.message.text;
    Artifact artifact = makeArtifact();
    artifact.codes.push_back(makeSection(ORTC_PTX_SM_90A, "sm_90a", code));
    EXPECT_EQ(OpenProgram(makeFile(artifact), &other.host).status, status) << processor;
  }
}

TEST_F(DeviceCodeTest, WithoutCodeForItTheArtifactIsRefused) {
  EXPECT_EQ(open(std::vector<artifact::Code>()), ORTC_E_TARGET);
  EXPECT_EQ(message(), "no code for this processor");
  EXPECT_EQ(open({makeSection(ORTC_PTX_SM_120, "sm_120", makeDeviceCode())}), ORTC_E_TARGET);
}

TEST_F(DeviceCodeTest, TheProcessorTakesNoCodeOfDevices) {
  OpenProgram program(makeFile(makeDeviceArtifact()));
  ASSERT_EQ(program.status, ORTC_OK);
  auto info = ORTC_INIT(ortc_program_info);
  EXPECT_EQ(ortc_program_get_info(program.program.get(), &info), ORTC_OK);
  EXPECT_STREQ(info.target_name, "baseline");
}

TEST_F(DeviceCodeTest, MachineCodeOfTheSameMajorVersionComesBeforePtx) {
  struct Case {
    int processor;
    std::vector<DeviceCode::Image> images;
    const char *log;
  };
  std::vector<DeviceCode::Image> all = {makePtx(80), makeCubin(80), makeCubin(86), makeCubin(90),
                                        makePtx(90)};
  for (const Case &c :
       {Case{80, all, "load // bin 80\n"}, Case{86, all, "load // bin 86\n"},
        Case{89, all, "load // bin 86\n"}, Case{90, all, "load // bin 90\n"},
        Case{100, all, "load // ptx 90\n"}, Case{86, {makePtx(80), makeCubin(89)}, "load // ptx 80\n"}}) {
    FakeDevice other;
    other.fake.processor = c.processor;
    ASSERT_EQ(other.open(), ORTC_OK);
    OpenProgram program(makeFile(makeDeviceArtifact(withImages(c.images))), &other.host);
    EXPECT_EQ(program.status, ORTC_OK) << program.message.text;
    EXPECT_EQ(other.takeLog(), c.log);
  }
}

TEST_F(DeviceCodeTest, TheNextImageIsTriedWhereTheDriverRefusesOne) {
  ASSERT_EQ(device.open(), ORTC_OK);
  device.fake.failing = "loadImage";
  device.fake.result = 218;
  EXPECT_EQ(open(withImages({makePtx(80), makePtx(90), makeCubin(90)})), ORTC_OK) << message();
  EXPECT_EQ(device.takeLog(), "load // bin 90\nload // ptx 90\n");
}

TEST_F(DeviceCodeTest, SaysWhyNoImageCanBeUsed) {
  ASSERT_EQ(device.open(), ORTC_OK);
  EXPECT_EQ(open(withImages({makePtx(100)})), ORTC_E_TARGET);
  EXPECT_EQ(message(), "Fake GPU 0 is an sm_90, but the artifact's code is PTX for sm_100");
  EXPECT_EQ(open(withImages({makeCubin(80)})), ORTC_E_TARGET);
  EXPECT_EQ(message(), "Fake GPU 0 is an sm_90, but the artifact's code is machine code for sm_80");

  device.fake.failing = "loadImage";
  device.fake.result = 222;
  EXPECT_EQ(open(withImages({makePtx(80, "9.0")})), ORTC_E_TARGET);
  EXPECT_EQ(
      message(),
      "the driver of Fake GPU 0 (CUDA 12.4) is too old for the artifact, whose code is PTX 9.0; install a "
      "newer one");
  device.fake.failing = "loadImage";
  device.fake.result = 218;
  device.fake.jitLog = "ptxas application ptx input, line 9; fatal\nsecond line";
  EXPECT_EQ(open(makeDeviceCode()), ORTC_E_TARGET);
  EXPECT_EQ(
      message(),
      "the driver of Fake GPU 0 refuses the artifact's PTX for sm_80: ptxas application ptx input, line 9; "
      "fatal second line");
  device.fake.failing = "loadImage";
  device.fake.result = 2;
  EXPECT_EQ(open(makeDeviceCode()), ORTC_E_MEMORY);
}

TEST_F(DeviceCodeTest, KernelsAreLookedUpOnceAndGetTheirSharedMemory) {
  DeviceCode code = makeDeviceCode();
  code.kernels[0].shared = 48 << 10;
  code.kernels[1].shared = 100000;
  code.kernels[1].threads = 256;
  ASSERT_EQ(open(code), ORTC_OK) << message();
  EXPECT_EQ(device.takeLog(), "load // ptx 80\nattribute check_label 8 100000\n");
  SessionHandle session = makeSession(opened->program.get());
  writeBatch(session.get(), 1);
  EXPECT_EQ(ortc_train_step(session.get(), nullptr), ORTC_OK);
  EXPECT_NE(device.takeLog().find("launch check_label 4 256 100000:"), std::string::npos);
  session.reset();

  code.kernels[1].shared = 300000;
  EXPECT_EQ(open(code), ORTC_E_TARGET);
  EXPECT_EQ(
      message(),
      "kernel 'check_label' needs 300000 bytes of shared memory; a block of Fake GPU 0 can have 232448");
  code = makeDeviceCode();
  code.kernels[2].name = "nowhere";
  EXPECT_EQ(open(code), ORTC_E_FORMAT);
  EXPECT_EQ(message(), "code 1 has no kernel 'nowhere'");
}

// ---- Launches ----

/// Code whose training step is what `fill` adds; everything else does nothing.
DeviceCode makeCode(const std::function<void(DeviceCode &)> &fill) {
  DeviceCode code = makeDeviceCode();
  for (DeviceCode::List &list : code.lists) {
    list.launches.clear();
    list.arguments.clear();
  }
  std::swap(code.lists.front(), code.lists.back());
  fill(code);
  std::swap(code.lists.front(), code.lists.back());
  return code;
}

TEST_F(DeviceCodeTest, LoopsMovePointersOn) {
  // Regions of the test artifact on the device: constants at 0, persistent at 256, transient at 512, io at 1024.
  DeviceCode code = makeCode([](DeviceCode &c) {
    auto from = argument(ORTC_ARGUMENT_PERSISTENT, 0, 8, {100, 8}),
         to = argument(ORTC_ARGUMENT_TRANSIENT, 200, 4, {-50, 4});
    c.launch("nothing0", 1, {});
    c.loop(2);
    c.launch("nothing2", 3, {from, to});
    c.loop(3, /*isReverse=*/true);
    c.launch("nothing2", 5, {from, argument(ORTC_ARGUMENT_EXTERNAL, 0, 4, {0, 16})});
    c.end();
    c.end();
    c.launch("nothing2", 7, {argument(ORTC_ARGUMENT_STATUS, 0, 56), argument(ORTC_ARGUMENT_CONSTANTS, 4, 4)});
  });
  ASSERT_EQ(open(code), ORTC_OK) << message();
  SessionHandle session = makeSession(opened->program.get());
  writeBatch(session.get(), 1);
  device.takeLog();
  ASSERT_EQ(ortc_train_step(session.get(), nullptr), ORTC_OK);
  EXPECT_EQ(device.takeLog(), "capture\n"
                              "launch nothing0 1 32 0:\n"
                              "launch nothing2 3 32 0: 256 712\n"
                              "launch nothing2 5 32 0: 272 1056\n"
                              "launch nothing2 5 32 0: 264 1040\n"
                              "launch nothing2 5 32 0: 256 1024\n"
                              "launch nothing2 3 32 0: 356 662\n"
                              "launch nothing2 5 32 0: 372 1056\n"
                              "launch nothing2 5 32 0: 364 1040\n"
                              "launch nothing2 5 32 0: 356 1024\n"
                              "launch nothing2 7 32 0: 1536 4\n"
                              "graph\n");
  ASSERT_EQ(ortc_train_step(session.get(), nullptr), ORTC_OK);
  EXPECT_EQ(device.takeLog(), "graph\n");
}

TEST_F(DeviceCodeTest, AStepThatLaunchesNothingIsFine) {
  ASSERT_EQ(open(makeCode([](DeviceCode &) {})), ORTC_OK) << message();
  SessionHandle session = makeSession(opened->program.get());
  writeBatch(session.get(), 1);
  double loss = 1;
  EXPECT_EQ(ortc_train_step(session.get(), &loss), ORTC_OK);
  EXPECT_EQ(loss, 0) << "as the memory is";
}

// ---- Damage ----

struct Damage {
  const char *name;
  const char *message; ///< behind "code 1 is malformed: "
  std::function<void(DeviceCode &)> fill;
};

TEST_F(DeviceCodeTest, LaunchesThatLeaveTheirRegionAreRefused) {
  auto p = [](uint64_t offset, uint64_t bytes, std::vector<int64_t> strides = {}) {
    return argument(ORTC_ARGUMENT_PERSISTENT, offset, bytes, std::move(strides));
  };
  auto one = [&](ortc_launch_argument argument) {
    return [=](DeviceCode &c) { c.launch("nothing2", 1, {argument, argument}); };
  };
  auto inLoop = [&](uint32_t count, ortc_launch_argument argument) {
    return [=](DeviceCode &c) {
      c.loop(count);
      c.launch("nothing2", 1, {argument, argument});
      c.end();
    };
  };
  constexpr uint64_t kHuge = ~uint64_t(0);
  const char *bad = "arguments of launch 0", *badInLoop = "arguments of launch 1";
  const Damage cases[] = {
      {"exactly", nullptr, one(p(0, 256))},
      {"empty at the end", nullptr, one(p(256, 0))},
      {"a byte too many", bad, one(p(1, 256))},
      {"offset behind", bad, one(p(257, 0))},
      {"offset overflows", bad, one(p(kHuge - 7, 8))},
      {"bytes overflow", bad, one(p(8, kHuge))},
      {"constants", bad, one(argument(ORTC_ARGUMENT_CONSTANTS, 0, 9))},
      {"transient of the entry", bad, one(argument(ORTC_ARGUMENT_TRANSIENT, 0, 321))},
      {"transient", nullptr, one(argument(ORTC_ARGUMENT_TRANSIENT, 0, 320))},
      {"status", bad, one(argument(ORTC_ARGUMENT_STATUS, 0, 57))},
      {"external value", bad, one(argument(ORTC_ARGUMENT_EXTERNAL, 0, 49))},
      {"last external value", nullptr, one(argument(ORTC_ARGUMENT_EXTERNAL, 2, 32))},
      {"no external value", bad, one(argument(ORTC_ARGUMENT_EXTERNAL, 3, 0))},
      {"far external value", bad, one(argument(ORTC_ARGUMENT_EXTERNAL, uint64_t(1) << 32, 0))},
      {"kind", bad, one(argument(ortc_argument_kind(5), 0, 0))},
      {"stride outside of loops", nullptr, one(p(0, 8, {INT64_MAX}))},
      {"strides", nullptr, inLoop(32, p(0, 8, {8}))},
      {"strides too far", badInLoop, inLoop(33, p(0, 8, {8}))},
      {"strides back", nullptr, inLoop(32, p(248, 8, {-8}))},
      {"strides too far back", badInLoop, inLoop(33, p(248, 8, {-8}))},
      {"stride overflows", badInLoop, inLoop(3, p(0, 8, {INT64_MAX}))},
      {"stride overflows back", badInLoop, inLoop(3, p(0, 8, {INT64_MIN}))},
      {"stride adds up to an overflow", badInLoop, inLoop(2, p(0, 8, {INT64_MAX}))},
      {"external strides", badInLoop, inLoop(4, argument(ORTC_ARGUMENT_EXTERNAL, 0, 12, {13}))},
  };
  for (const Damage &c : cases) {
    ortc_status status = open(makeCode(c.fill));
    EXPECT_EQ(status, c.message ? ORTC_E_FORMAT : ORTC_OK) << c.name << ": " << message();
    if (c.message) {
      EXPECT_EQ(message(), std::string("code 1 is malformed: ") + c.message) << c.name;
    }
  }
}

TEST_F(DeviceCodeTest, ListsThatAreNoneAreRefused) {
  const Damage cases[] = {
      {"end without loop", "launch 0", [](DeviceCode &c) { c.end(); }},
      {"loop without end", "launch list 0", [](DeviceCode &c) { c.loop(2); }},
      {"loop of nothing", "launch 0",
       [](DeviceCode &c) {
         c.loop(0);
         c.end();
       }},
      {"eight loops", nullptr,
       [](DeviceCode &c) {
         for (int i = 0; i < 8; ++i)
           c.loop(2);
         c.launch("nothing0", 1, {});
         for (int i = 0; i < 8; ++i)
           c.end();
       }},
      {"nine loops", "launch 8",
       [](DeviceCode &c) {
         for (int i = 0; i < 9; ++i)
           c.loop(2);
         for (int i = 0; i < 9; ++i)
           c.end();
       }},
      {"loops without end", "launch 0",
       [](DeviceCode &c) {
         c.loop(INT32_MAX);
         c.loop(INT32_MAX);
         c.loop(INT32_MAX);
         for (int i = 0; i < 3; ++i)
           c.end();
       }},
      {"no blocks", "launch 0", [](DeviceCode &c) { c.launch("nothing0", 0, {}); }},
      {"too many blocks", "launch 0", [](DeviceCode &c) { c.launch("nothing0", 0x80000000u, {}); }},
      {"unknown kind", "launch 0",
       [](DeviceCode &c) {
         c.launch("nothing0", 1, {});
         c.lists.back().launches[0].kind = 3;
       }},
      {"unknown kernel", "launch 0",
       [](DeviceCode &c) {
         c.launch("nothing0", 1, {});
         c.lists.back().launches[0].kernel = 100;
       }},
      {"arguments behind the table", "launch 0",
       [](DeviceCode &c) {
         c.launch("nothing2", 1, {});
         c.lists.back().launches[0].first_argument = 0xffffffffu;
       }},
      {"kernel without threads", "kernel 0", [](DeviceCode &c) { c.kernels[0].threads = 0; }},
      {"kernel with too many threads", "kernel 1", [](DeviceCode &c) { c.kernels[1].threads = 1025; }},
      {"kernel with too many arguments", "kernel 0", [](DeviceCode &c) { c.kernels[0].arguments = 513; }},
      {"kernel with too much memory", "kernel 0", [](DeviceCode &c) { c.kernels[0].shared = 1u << 31; }},
      {"no image", "table of images 0", [](DeviceCode &c) { c.images.clear(); }},
  };
  for (const Damage &c : cases) {
    ortc_status status = open(makeCode(c.fill));
    EXPECT_EQ(status, c.message ? ORTC_E_FORMAT : ORTC_OK) << c.name << ": " << message();
    if (c.message) {
      EXPECT_EQ(message(), std::string("code 1 is malformed: ") + c.message) << c.name;
    }
  }
}

/// The device's load() on a section of any bytes, with the artifact of the test around it. Steps where it is loaded.
class RawCode {
public:
  explicit RawCode(FakeDevice &device) : device(device), whole(makeFile(makeDeviceArtifact())) {}
  /// Opens the artifact with these bytes as the code section, whose hash is right.
  ortc_status open(const Bytes &bytes) {
    // The writer reads what it wrote and would refuse some.
    Bytes file = whole;
    auto *header = reinterpret_cast<ortc_file_header *>(file.data());
    auto *sections = reinterpret_cast<ortc_file_section *>(file.data() + sizeof(ortc_file_header));
    for (uint32_t i = 0; i < header->section_count; ++i) {
      if (sections[i].kind != ORTC_SECTION_CODE || sections[i].architecture != ORTC_ARCH_PTX)
        continue;
      EXPECT_EQ(sections[i].bytes, bytes.size());
      std::memcpy(file.data() + sections[i].offset, bytes.data(), bytes.size());
      sha256(file.data() + sections[i].offset, bytes.size(), sections[i].sha256);
    }
    Bytes covered(file.begin(), file.begin() + offsetof(ortc_file_header, sha256));
    covered.insert(covered.end(), file.begin() + sizeof(ortc_file_header),
                   file.begin() + std::ptrdiff_t(sizeof(ortc_file_header) +
                                                 header->section_count * sizeof(ortc_file_section)));
    sha256(covered.data(), covered.size(), header->sha256);
    program = std::make_unique<OpenProgram>(file, &device.host);
    return program->status;
  }
  /// Every step that the artifact has; what comes out is anything.
  void step() {
    ortc_session *session = nullptr;
    if (ortc_session_create(program->program.get(), nullptr, &session, nullptr) != ORTC_OK)
      return;
    SessionHandle handle(session);
    Batch batch = makeBatch(1);
    (void)ortc_write(session, "x", batch.x, sizeof batch.x);
    (void)ortc_write(session, "label", batch.label, sizeof batch.label);
    (void)ortc_train_step(session, nullptr);
    (void)ortc_eval_step(session, nullptr);
    (void)ortc_predict_step(session);
    (void)ortc_gradients_step(session, nullptr);
    (void)ortc_update_step(session);
  }
  std::unique_ptr<OpenProgram> program;

private:
  FakeDevice &device;
  Bytes whole;
};

TEST_F(DeviceCodeTest, EveryFieldOfTheTablesIsChecked) {
  ASSERT_EQ(device.open(), ORTC_OK);
  device.fake.runsKernels = false;
  RawCode raw(device);
  Bytes good = makeDeviceCode().make();
  ASSERT_EQ(raw.open(good), ORTC_OK) << raw.program->message.text;
  ortc_blob head;
  std::memcpy(&head, good.data(), sizeof head);
  size_t codeAt = (sizeof head + head.count * head.entry_bytes + 7) / 8 * 8;
  ortc_device_code code;
  std::memcpy(&code, good.data() + codeAt, sizeof code);
  ortc_blob_entry entry;
  std::memcpy(&entry, good.data() + sizeof head, sizeof entry);

  struct Field {
    const char *name;
    size_t at, bytes;
  };
  std::vector<Field> fields = {
      {"magic", 0, 4}, {"count", 8, 4}, {"entry_bytes", 12, 4}, {"offset", 16 + 12, 4}};
#define FIELD(at, type, name)                                                                                \
  {                                                                                                          \
    #type "." #name, (at) + offsetof(type, name), sizeof(type{}.name)                                        \
  }
  for (Field field :
       {Field FIELD(codeAt, ortc_device_code, image_count), FIELD(codeAt, ortc_device_code, image_bytes),
        FIELD(codeAt, ortc_device_code, images), FIELD(codeAt, ortc_device_code, kernel_count),
        FIELD(codeAt, ortc_device_code, kernel_bytes), FIELD(codeAt, ortc_device_code, kernels),
        FIELD(code.images, ortc_device_image, offset), FIELD(code.images, ortc_device_image, bytes),
        FIELD(code.kernels, ortc_device_kernel, name), FIELD(code.kernels, ortc_device_kernel, threads),
        FIELD(code.kernels, ortc_device_kernel, shared), FIELD(code.kernels, ortc_device_kernel, arguments),
        FIELD(entry.offset, ortc_launch_list, launch_count),
        FIELD(entry.offset, ortc_launch_list, launch_bytes), FIELD(entry.offset, ortc_launch_list, launches),
        FIELD(entry.offset, ortc_launch_list, argument_count),
        FIELD(entry.offset, ortc_launch_list, argument_bytes),
        FIELD(entry.offset, ortc_launch_list, arguments)})
    fields.push_back(field);
#undef FIELD
  for (const Field &field : fields)
    for (uint64_t value : {~uint64_t(0), uint64_t(1) << (8 * field.bytes - 1), ~uint64_t(0) - 63}) {
      Bytes bad = good;
      std::memcpy(bad.data() + field.at, &value, field.bytes);
      EXPECT_NE(raw.open(bad), ORTC_OK) << field.name << " " << value;
      EXPECT_NE(raw.program->message.text[0], 0) << field.name;
    }
}

TEST_F(DeviceCodeTest, RandomChangesNeverLeaveTheMemoryOfASession) {
  ASSERT_EQ(device.open(), ORTC_OK);
  // with other arguments they may do anything; the stand-in looks at each address
  device.fake.runsKernels = false;
  RawCode raw(device);
  const Bytes good = makeDeviceCode().make();
  uint32_t state = 12345;
  auto next = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
  int opened = 0;
  for (int round = 0; round < 10000; ++round) {
    Bytes bad = good;
    for (uint32_t changes = 1 + next() % 3; changes; --changes)
      bad[next() % bad.size()] = uint8_t(next() % 4 ? next() : 0xff * (next() % 2));
    if (raw.open(bad) != ORTC_OK)
      continue;
    ++opened;
    raw.step();
  }
  EXPECT_GT(opened, 500) << "of 10000; the others were refused";
  EXPECT_LT(opened, 9500);
}

// ---- Failures ----

TEST(DeviceFailureTest, SaysWhatIsThereAndWhatIsNeeded) {
  struct Case {
    std::function<void(FakeDriver &)> change;
    uint32_t ordinal;
    ortc_status status;
    const char *message;
  };
  const Case cases[] = {
      {[](FakeDriver &f) { f.devices = 0; }, 0, ORTC_E_TARGET,
       "there is no GPU of NVIDIA here, though there is its driver"},
      {[](FakeDriver &f) { f.devices = -1; }, 0, ORTC_E_TARGET,
       "there is no GPU of NVIDIA here, though there is its driver"},
      {[](FakeDriver &f) { f.devices = 2; }, 2, ORTC_E_NOT_FOUND,
       "there is no device 2: this machine has 2, counted from 0"},
      {[](FakeDriver &f) { f.processor = 75; }, 0, ORTC_E_TARGET,
       "device 0 (Fake GPU 0) is an sm_75, but at least an sm_80 is needed"},
      {[](FakeDriver &f) { f.failing = "initialise"; }, 0, ORTC_E_INTERNAL,
       "the driver of NVIDIA failed when the runtime started it: unknown error (999)"},
      {[](FakeDriver &f) { f.failing = "retainContext", f.result = 2; }, 0, ORTC_E_MEMORY,
       "Fake GPU 0 failed when the runtime made its context: out of memory (2)"},
  };
  for (const Case &c : cases) {
    FakeDevice device;
    c.change(device.fake);
    EXPECT_EQ(device.open(c.ordinal), c.status);
    EXPECT_STREQ(device.message.text, c.message);
    EXPECT_EQ(device.host.device, nullptr);
  }
}

TEST(DeviceFailureTest, ADriverThatIsNotThereOrLacksSomethingIsSaid) {
  FakeDevice device;
  setenv("ORTC_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  EXPECT_EQ(device.open(), ORTC_E_TARGET);
  EXPECT_EQ(
      std::string(device.message.text).find("there is no driver of NVIDIA here, which a device needs: "), 0u)
      << device.message.text;
  setenv("ORTC_CUDA_DRIVER", "libm.so.6", 1);
  EXPECT_EQ(device.open(), ORTC_E_TARGET);
  EXPECT_STREQ(device.message.text, "the driver libm.so.6 is too old: it has no cuInit; install a newer one");
  const ortc_device *none = nullptr;
  EXPECT_EQ(ortc_cuda_open(0, &none, nullptr), ORTC_E_TARGET) << "without a message";
  ortc_cuda_close(nullptr);
}

TEST(DeviceFailureTest, MemoryThatIsMissingIsSaidInBytes) {
  FakeDevice device;
  ASSERT_EQ(device.open(), ORTC_OK);
  OpenProgram program(makeFile(makeDeviceArtifact()), &device.host);
  device.fake.freeBytes = 1000;
  ortc_session *session = nullptr;
  ortc_message message{};
  EXPECT_EQ(ortc_session_create(program.program.get(), nullptr, &session, &message), ORTC_E_MEMORY);
  EXPECT_STREQ(message.text, "out of memory: 1792 bytes are needed, and Fake GPU 0 has 1000 of 2000 free");
}

/// Everything that uses the driver, each call of which fails once.
class DriverFailureTest : public testing::TestWithParam<Maker> {};

TEST_P(DriverFailureTest, NoFailureIsLostAndNothingIsLeft) {
  std::vector<const char *> functions{
      "initialise",     "getVersion",  "countDevices", "getDevice",   "getAttribute", "allocate",
      "allocatePinned", "copyIn",      "copyOut",      "fillBytes",   "fillWords",    "loadImage",
      "getFunction",    "launch",      "createStream", "awaitStream", "beginCapture", "endCapture",
      "instantiate",    "launchGraph", "createEvent",  "recordEvent", "awaitEvent"};
  if (GetParam() == Maker::Nvidia)
    functions.insert(functions.end(), {"retainContext", "useContext"});
  else
    functions.insert(functions.end(), {"useDevice", "getProperties"});
  const Bytes file = makeFile(makeDeviceArtifact(GetParam()));
  for (const char *function : functions)
    for (int good = 0;; ++good) {
      FakeDevice device(GetParam());
      device.fake.failing = function;
      device.fake.goodCalls = good;
      ortc_message message{};
      ortc_status failed = ORTC_OK;
      bool hasFailed = false;
      auto note = [&](ortc_status status, const char *text) {
        if (status && !failed)
          EXPECT_NE(text[0], 0) << function << " " << good;
        failed = failed ? failed : status;
      };
      note(device.open(), device.message.text);
      if (device.host.device) {
        OpenProgram program(file, &device.host);
        note(program.status, program.message.text);
        ortc_session *session = nullptr;
        if (program.program)
          note(ortc_session_create(program.program.get(), nullptr, &session, &message), message.text);
        if (session) {
          SessionHandle handle(session);
          Batch batch = makeBatch(1);
          float y[8];
          double loss = 0;
          auto say = [&](ortc_status status) { note(status, ortc_session_message(session)); };
          say(ortc_bind(session, "x", batch.x, sizeof batch.x));
          say(ortc_bind(session, "y", y, sizeof y));
          say(ortc_write(session, "label", batch.label, sizeof batch.label));
          say(ortc_set_scalar(session, "lr", 0.5));
          say(ortc_train_step(session, &loss));
          say(ortc_bind(session, "y", nullptr, 0));
          say(ortc_train_step(session, nullptr));
          say(ortc_train_step(session, nullptr));
          say(ortc_read(session, "fc.weight", y, 24));
          say(ortc_session_reset(session));
          hasFailed = device.fake.failing.empty(); // giving back what there is may fail, and nobody is told
          device.fake.failing.clear();
        }
      }
      hasFailed |= device.fake.failing.empty() && failed;
      EXPECT_EQ(failed != ORTC_OK, hasFailed) << function << " " << good;
      if (!hasFailed) { // there are no more calls
        EXPECT_GT(good, 0) << function << " is never called";
        break;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Drivers, DriverFailureTest, testing::ValuesIn(kMakers),
                         [](const auto &info) { return nameOf(info.param); });

} // namespace
} // namespace ortc::test
