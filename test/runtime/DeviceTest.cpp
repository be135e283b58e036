// Sessions on a device: the same results, texts and rules as on the processor, whatever the layout and the binding.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/runtime/DeviceArtifact.h"

#include <algorithm>
#include <cmath>
#include <dlfcn.h>
#include <limits>

namespace ortc::test {
namespace {

/// A session on the device of each maker, and one on the processor.
class DeviceTest : public testing::TestWithParam<Maker> {
protected:
  DeviceTest() : device(GetParam()), file(makeFile(makeDeviceArtifact(GetParam()))), reference(file) {
    EXPECT_EQ(device.open(), ORTC_OK) << device.message.text;
    opened = std::make_unique<OpenProgram>(file, &device.host);
    EXPECT_EQ(opened->status, ORTC_OK) << opened->message.text;
    makeSessions(0);
  }
  void makeSessions(uint32_t flags) {
    auto options = ORTC_INIT(ortc_session_options);
    options.flags = flags;
    session = makeSession(opened->program.get(), &options);
    expected = makeSession(reference.program.get(), &options);
    device.takeLog();
  }
  /// Both sessions do the same, and say the same.
  template <typename F> ortc_status both(F action) {
    ortc_status status = action(s()), other = action(cpu());
    EXPECT_EQ(status, other) << message();
    EXPECT_EQ(message(), ortc_session_message(cpu()));
    return status;
  }
  void bindAll(ortc_session *to, Batch &batch, float *y) {
    EXPECT_EQ(ortc_bind(to, "x", batch.x, sizeof batch.x), ORTC_OK);
    EXPECT_EQ(ortc_bind(to, "label", batch.label, sizeof batch.label), ORTC_OK);
    EXPECT_EQ(ortc_bind(to, "y", y, 32), ORTC_OK) << ortc_session_message(to);
  }
  static size_t count(const std::string &log, const std::string &line) {
    size_t found = 0;
    for (size_t at = log.find(line); at != std::string::npos; at = log.find(line, at + 1))
      ++found;
    return found;
  }
  ortc_session *s() { return session.get(); }
  ortc_session *cpu() { return expected.get(); }
  std::string message() { return ortc_session_message(s()); }

  FakeDevice device;
  Bytes file;
  OpenProgram reference;
  std::unique_ptr<OpenProgram> opened;
  SessionHandle session, expected;
};

TEST_P(DeviceTest, StepsAsTheProcessorDoes) {
  EXPECT_EQ(stateOf(s()), stateOf(cpu())) << "the initial values";
  for (unsigned i = 0; i < 20; ++i)
    ASSERT_EQ(trainOn(s(), i), trainOn(cpu(), i)) << i;
  EXPECT_EQ(stateOf(s()), stateOf(cpu()));
  auto info = ORTC_INIT(ortc_program_info);
  ASSERT_EQ(ortc_program_get_info(opened->program.get(), &info), ORTC_OK);
  bool isNvidia = GetParam() == Maker::Nvidia;
  EXPECT_EQ(info.architecture, uint32_t(isNvidia ? ORTC_ARCH_PTX : ORTC_ARCH_AMDGPU));
  EXPECT_STREQ(info.target_name, isNvidia ? "sm_80" : "gfx90a");
}

TEST_P(DeviceTest, EveryEntryGivesTheBitsOfTheProcessor) {
  float y[2][8], g[2][6];
  double loss[2] = {0, 0};
  for (int i = 0; i < 2; ++i) {
    ortc_session *each = i ? cpu() : s();
    writeBatch(each, 3);
    EXPECT_EQ(ortc_eval_step(each, &loss[i]), ORTC_OK);
    EXPECT_EQ(ortc_predict_step(each), ORTC_OK);
    EXPECT_EQ(ortc_read(each, "y", y[i], sizeof y[i]), ORTC_OK);
    EXPECT_EQ(ortc_gradients_step(each, nullptr), ORTC_OK);
    EXPECT_EQ(ortc_read_gradient(each, "fc.weight", g[i], sizeof g[i]), ORTC_OK);
    g[i][4] = 0.5f;
    EXPECT_EQ(ortc_write_gradient(each, "fc.weight", g[i], sizeof g[i]), ORTC_OK);
    EXPECT_EQ(ortc_update_step(each), ORTC_OK);
  }
  EXPECT_EQ(loss[0], loss[1]);
  EXPECT_EQ(std::memcmp(y[0], y[1], sizeof y[0]), 0);
  EXPECT_EQ(std::memcmp(g[0], g[1], sizeof g[0]), 0);
  EXPECT_EQ(stateOf(s()), stateOf(cpu()));
  for (ortc_session *each : {s(), cpu()}) {
    float x[3] = {1, 2, 3};
    ASSERT_EQ(ortc_session_use_binding(each, 1), ORTC_OK);
    ASSERT_EQ(ortc_write(each, "x", x, sizeof x), ORTC_OK);
    ASSERT_EQ(ortc_predict_step(each), ORTC_OK) << message();
    ASSERT_EQ(ortc_read(each, "y", y[each == cpu()], 8), ORTC_OK);
  }
  EXPECT_EQ(std::memcmp(y[0], y[1], 8), 0);
}

TEST_P(DeviceTest, RulesAndTextsAreThoseOfTheProcessor) {
  float numbers[8] = {};
  double value = 0;
  void *place = nullptr;
  EXPECT_EQ(both([&](auto *e) { return ortc_train_step(e, &value); }), ORTC_E_STATE);
  EXPECT_EQ(both([&](auto *e) { return ortc_update_step(e); }), ORTC_E_STATE);
  EXPECT_EQ(both([&](auto *e) { return ortc_accumulate_step(e, nullptr); }), ORTC_E_NOT_FOUND);
  EXPECT_EQ(both([&](auto *e) { return ortc_read_gradient(e, "fc.weight", numbers, 24); }), ORTC_E_STATE);
  EXPECT_EQ(both([&](auto *e) { return ortc_read(e, "fc.weight", numbers, 20); }), ORTC_E_SHAPE);
  EXPECT_EQ(both([&](auto *e) { return ortc_write(e, "shift", numbers, 8); }), ORTC_E_ARGUMENT);
  EXPECT_EQ(both([&](auto *e) { return ortc_write(e, "y", numbers, 32); }), ORTC_E_ARGUMENT);
  EXPECT_EQ(both([&](auto *e) { return ortc_read(e, "x", numbers, 48); }), ORTC_E_STATE);
  EXPECT_EQ(both([&](auto *e) { return ortc_bind(e, "x", reinterpret_cast<char *>(numbers) + 1, 48); }),
            ORTC_E_ARGUMENT);
  EXPECT_EQ(both([&](auto *e) { return ortc_get_scalar(e, "fc.weight", &value); }), ORTC_E_SHAPE);
  EXPECT_EQ(both([&](auto *e) { return ortc_set_scalar(e, "step", 1e30); }), ORTC_E_SHAPE);
  for (ortc_session *each : {s(), cpu()})
    writeBatch(each, 1);
  EXPECT_EQ(both([&](auto *e) { return ortc_gradients_step(e, nullptr); }), ORTC_OK);
  EXPECT_EQ(both([&](auto *e) { return ortc_eval_step(e, nullptr); }), ORTC_OK);
  EXPECT_EQ(both([&](auto *e) { return ortc_update_step(e); }), ORTC_E_STATE) << "the gradients are gone";
  EXPECT_EQ(ortc_data(s(), "lr", &place), ORTC_E_STATE);
  EXPECT_EQ(message(), "'lr' is on a device");
}

TEST_P(DeviceTest, ACheckThatFailsSaysWhatTheProcessorSays) {
  Bytes before = stateOf(s());
  Batch batch = makeBatch(1);
  batch.label[2] = 7;
  for (ortc_session *each : {s(), cpu()}) {
    writeBatch(each, 1);
    ASSERT_EQ(ortc_write(each, "label", batch.label, sizeof batch.label), ORTC_OK);
  }
  double loss = -1;
  EXPECT_EQ(both([&](auto *e) { return ortc_train_step(e, &loss); }), ORTC_E_RANGE);
  EXPECT_EQ(message(), "index 7 in 'label' is out of range [0, 2)");
  EXPECT_EQ(loss, -1);
  EXPECT_EQ(stateOf(s()), before);
  EXPECT_EQ(both([&](auto *e) { return ortc_gradients_step(e, nullptr); }), ORTC_E_RANGE);
  EXPECT_EQ(both([&](auto *e) { return ortc_update_step(e); }), ORTC_E_STATE);
  EXPECT_EQ(trainOn(s(), 2), trainOn(cpu(), 2)) << "the status is good again";
  EXPECT_EQ(stateOf(s()), stateOf(cpu()));
}

TEST_P(DeviceTest, AFailureThatNobodyWaitsForStopsWhatComesAfterAndIsToldOnce) {
  trainOn(s(), 1);
  Bytes before = stateOf(s());
  Batch good = makeBatch(2), bad = makeBatch(3);
  bad.label[0] = -5;
  float y[8];
  auto step = [&](Batch &batch, double *loss) {
    bindAll(s(), batch, y);
    EXPECT_EQ(ortc_bind(s(), "y", nullptr, 0), ORTC_OK); // stays on the device
    return ortc_train_step(s(), loss);
  };
  EXPECT_EQ(step(bad, nullptr), ORTC_OK);
  EXPECT_EQ(step(good, nullptr), ORTC_OK);
  double loss = 0;
  EXPECT_EQ(step(good, &loss), ORTC_E_RANGE);
  EXPECT_EQ(message(), "index -5 in 'label' is out of range [0, 2)");
  EXPECT_EQ(stateOf(s()), before);
  EXPECT_EQ(step(good, &loss), ORTC_OK) << message();
  EXPECT_NE(stateOf(s()), before);
}

TEST_P(DeviceTest, ALossThatIsNotFiniteStopsWhereAskedFor) {
  for (uint32_t flags : {0u, uint32_t(ORTC_SESSION_STOP_ON_NOT_FINITE)}) {
    makeSessions(flags);
    Batch batch = makeBatch(1);
    batch.x[0][0] = std::numeric_limits<float>::infinity();
    double loss[2] = {0, 0};
    for (ortc_session *each : {s(), cpu()}) {
      writeBatch(each, 1);
      ASSERT_EQ(ortc_write(each, "x", batch.x, sizeof batch.x), ORTC_OK);
    }
    EXPECT_EQ(both([&](auto *e) { return ortc_train_step(e, &loss[e == cpu()]); }),
              flags ? ORTC_E_NOT_FINITE : ORTC_OK);
    EXPECT_FALSE(std::isfinite(loss[0]));
    EXPECT_EQ(std::isnan(loss[0]), std::isnan(loss[1]));
    EXPECT_EQ(stateOf(s()), stateOf(cpu()));
  }
}

TEST_P(DeviceTest, ReadsAndWritesInTheOnnxLayout) {
  trainOn(s(), 1);
  float w[6], changed[6] = {1, 2, 3, 4, 5, 6}, shift[2];
  ASSERT_EQ(ortc_write(s(), "fc.weight", changed, sizeof changed), ORTC_OK);
  ASSERT_EQ(ortc_read(s(), "fc.weight", w, sizeof w), ORTC_OK);
  EXPECT_EQ(std::memcmp(w, changed, sizeof w), 0);
  ASSERT_EQ(ortc_read(s(), "shift", shift, sizeof shift), ORTC_OK);
  EXPECT_EQ(shift[1], 20.0f);
  double value = 0;
  ASSERT_EQ(ortc_set_scalar(s(), "lr", 0.125), ORTC_OK);
  ASSERT_EQ(ortc_get_scalar(s(), "lr", &value), ORTC_OK);
  EXPECT_EQ(value, 0.125);
  ASSERT_EQ(ortc_set_scalar(s(), "step", 1e12), ORTC_OK);
  ASSERT_EQ(ortc_get_scalar(s(), "step", &value), ORTC_OK);
  EXPECT_EQ(value, 1e12);
  ASSERT_EQ(ortc_session_reset(s()), ORTC_OK);
  EXPECT_EQ(stateOf(s()), stateOf(cpu()));
}

TEST_P(DeviceTest, NumbersAreSetWithoutWaiting) {
  device.takeLog();
  ASSERT_EQ(ortc_set_scalar(s(), "lr", 0.5), ORTC_OK);
  ASSERT_EQ(ortc_set_scalar(s(), "step", 3), ORTC_OK);
  std::string log = device.takeLog();
  EXPECT_EQ(count(log, "number"), 3u) << log;
  EXPECT_EQ(count(log, "wait"), 0u) << log;
}

TEST_P(DeviceTest, BoundMemoryOfTheHostIsCopiedInAndOut) {
  makeSessions(ORTC_SESSION_BIND_ALL);
  Batch batch = makeBatch(1);
  float y[2][8] = {};
  bindAll(s(), batch, y[0]);
  bindAll(cpu(), batch, y[1]);
  for (unsigned i = 0; i < 4; ++i) {
    batch = makeBatch(i);
    double loss[2];
    ASSERT_EQ(ortc_train_step(s(), &loss[0]), ORTC_OK) << message();
    ASSERT_EQ(ortc_train_step(cpu(), &loss[1]), ORTC_OK);
    EXPECT_EQ(loss[0], loss[1]);
    EXPECT_EQ(std::memcmp(y[0], y[1], sizeof y[0]), 0);
  }
  float read[8];
  ASSERT_EQ(ortc_read(s(), "y", read, sizeof read), ORTC_OK);
  EXPECT_EQ(std::memcmp(read, y[1], sizeof read), 0);
  EXPECT_EQ(stateOf(s()), stateOf(cpu()));
  // A step without a loss is waited for where outputs go to the host.
  device.takeLog();
  ASSERT_EQ(ortc_predict_step(s()), ORTC_OK);
  ASSERT_EQ(ortc_predict_step(cpu()), ORTC_OK);
  EXPECT_EQ(std::memcmp(y[0], y[1], sizeof y[0]), 0);
}

TEST_P(DeviceTest, StepsWithoutLossDoNotWaitAndInputsMayChangeAtOnce) {
  Batch batch = makeBatch(0);
  ASSERT_EQ(ortc_bind(s(), "x", batch.x, sizeof batch.x), ORTC_OK);
  ASSERT_EQ(ortc_bind(s(), "label", batch.label, sizeof batch.label), ORTC_OK);
  for (unsigned i = 0; i < 5; ++i) {
    batch = makeBatch(i);
    ASSERT_EQ(ortc_train_step(s(), nullptr), ORTC_OK);
    batch = makeBatch(99); // the device has its own by now
    trainOn(cpu(), i);
  }
  std::string log = device.takeLog();
  EXPECT_EQ(count(log, "\nwait"), 0u) << log;
  EXPECT_EQ(count(log, "await"), 4u) << "for the staging memory alone:\n" << log;
  EXPECT_EQ(count(log, "capture"), 1u) << "one graph for all of them";
  EXPECT_EQ(count(log, "graph"), 5u);
  EXPECT_EQ(stateOf(s()), stateOf(cpu()));
}

/// Memory of the device that is not the session's.
class OtherMemory {
public:
  explicit OtherMemory(size_t bytes) {
    void *library = dlopen(ORTC_FAKE_DRIVER, RTLD_NOW);
    allocate = reinterpret_cast<int (*)(uint64_t *, size_t)>(dlsym(library, "cuMemAlloc_v2"));
    release = reinterpret_cast<int (*)(uint64_t)>(dlsym(library, "cuMemFree_v2"));
    EXPECT_EQ(allocate(&address, bytes), 0);
  }
  ~OtherMemory() { release(address); }
  template <typename T> T *get(size_t offset = 0) const {
    return reinterpret_cast<T *>((address & ~kFakeBit) + offset);
  }
  void *pointer(size_t offset = 0) const { return reinterpret_cast<void *>(address + offset); }

private:
  int (*allocate)(uint64_t *, size_t);
  int (*release)(uint64_t);
  uint64_t address = 0;
};

TEST_P(DeviceTest, BoundMemoryOfTheDeviceIsUsedAsItIs) {
  OtherMemory memory(4096);
  Batch batch = makeBatch(4);
  std::memcpy(memory.get<char>(), batch.x, sizeof batch.x);
  std::memcpy(memory.get<char>(64), batch.label, sizeof batch.label);
  ASSERT_EQ(ortc_bind(s(), "x", memory.pointer(), sizeof batch.x), ORTC_OK);
  ASSERT_EQ(ortc_bind(s(), "label", memory.pointer(64), sizeof batch.label), ORTC_OK);
  ASSERT_EQ(ortc_bind(s(), "y", memory.pointer(128), 32), ORTC_OK);
  device.takeLog();
  double loss = 0;
  ASSERT_EQ(ortc_train_step(s(), &loss), ORTC_OK) << message();
  std::string log = device.takeLog();
  EXPECT_EQ(count(log, "in "), 0u) << log;
  EXPECT_EQ(count(log, "within"), 0u) << log;
  EXPECT_EQ(loss, trainOn(cpu(), 4));
  float y[2][8];
  ASSERT_EQ(ortc_read(cpu(), "y", y[1], 32), ORTC_OK);
  EXPECT_EQ(std::memcmp(memory.get<char>(128), y[1], 32), 0);
  ASSERT_EQ(ortc_read(s(), "y", y[0], 32), ORTC_OK);
  EXPECT_EQ(std::memcmp(y[0], y[1], 32), 0);
}

TEST_P(DeviceTest, BoundMemoryOfTheDeviceThatKernelsCannotUseIsCopiedThere) {
  OtherMemory memory(4096);
  Batch batch = makeBatch(4);
  std::memcpy(memory.get<char>(8), batch.x, sizeof batch.x);
  ASSERT_EQ(ortc_bind(s(), "x", memory.pointer(8), sizeof batch.x), ORTC_OK);
  ASSERT_EQ(ortc_write(s(), "label", batch.label, sizeof batch.label), ORTC_OK);
  ASSERT_EQ(ortc_bind(s(), "y", memory.pointer(136), 32), ORTC_OK);
  device.takeLog();
  double loss = 0;
  ASSERT_EQ(ortc_train_step(s(), &loss), ORTC_OK) << message();
  EXPECT_EQ(count(device.takeLog(), "within"), 2u);
  EXPECT_EQ(loss, trainOn(cpu(), 4));
  float y[8];
  ASSERT_EQ(ortc_read(cpu(), "y", y, 32), ORTC_OK);
  EXPECT_EQ(std::memcmp(memory.get<char>(136), y, 32), 0);
}

TEST_P(DeviceTest, GraphsAreMadeForEachSetOfBoundMemoryAndAFewAreKept) {
  OtherMemory memory(4096);
  Batch batch = makeBatch(4);
  ASSERT_EQ(ortc_write(s(), "label", batch.label, sizeof batch.label), ORTC_OK);
  for (size_t i = 0; i < 6; ++i)
    std::memcpy(memory.get<char>(64 * i), batch.x, sizeof batch.x);
  auto captures = [&](std::vector<size_t> order) {
    device.takeLog();
    for (size_t i : order) {
      EXPECT_EQ(ortc_bind(s(), "x", memory.pointer(64 * i), sizeof batch.x), ORTC_OK);
      double loss = 0, expectedLoss = trainOn(cpu(), 4);
      EXPECT_EQ(ortc_train_step(s(), &loss), ORTC_OK) << message();
      EXPECT_EQ(loss, expectedLoss);
    }
    return count(device.takeLog(), "capture");
  };
  EXPECT_EQ(captures({0, 1, 2, 3}), 4u);
  EXPECT_EQ(captures({0, 1, 2, 3, 3, 0}), 0u);
  EXPECT_EQ(captures({4}), 1u) << "instead of 1, the one used longest ago";
  EXPECT_EQ(captures({0, 2, 3, 4}), 0u);
  EXPECT_EQ(captures({1}), 1u);
}

TEST_P(DeviceTest, CheckpointsPassBetweenDeviceAndProcessor) {
  auto write = [](ortc_session *from) {
    Bytes bytes;
    auto sink = [](void *context, const void *data, size_t size) -> int32_t {
      auto *from = static_cast<const uint8_t *>(data);
      static_cast<Bytes *>(context)->insert(static_cast<Bytes *>(context)->end(), from, from + size);
      return 0;
    };
    EXPECT_EQ(ortc_checkpoint_write(from, sink, &bytes, nullptr, 0), ORTC_OK);
    return bytes;
  };
  for (unsigned i = 0; i < 3; ++i) {
    trainOn(s(), i);
    trainOn(cpu(), i);
  }
  Bytes saved = write(s());
  EXPECT_EQ(saved, write(cpu()));
  SessionHandle fresh = makeSession(opened->program.get()), freshCpu = makeSession(reference.program.get());
  ASSERT_EQ(ortc_checkpoint_read(fresh.get(), saved.data(), saved.size(), nullptr), ORTC_OK);
  ASSERT_EQ(ortc_checkpoint_read(freshCpu.get(), saved.data(), saved.size(), nullptr), ORTC_OK);
  EXPECT_EQ(stateOf(fresh.get()), stateOf(s()));
  EXPECT_EQ(stateOf(freshCpu.get()), stateOf(s()));
  EXPECT_EQ(trainOn(fresh.get(), 9), trainOn(freshCpu.get(), 9));
  // The device fails while a checkpoint is written or read.
  device.fake.failing = "copyOut";
  auto sink = [](void *, const void *, size_t) -> int32_t { return 0; };
  EXPECT_EQ(ortc_checkpoint_write(s(), sink, nullptr, nullptr, 0), ORTC_E_INTERNAL);
  EXPECT_EQ(message(), "Fake GPU 0 failed when the runtime copied to the host: unknown error (999)");
  device.fake.failing = "copyOut";
  EXPECT_EQ(ortc_checkpoint_read(s(), saved.data(), saved.size(), nullptr), ORTC_E_INTERNAL);
}

TEST_P(DeviceTest, ACheckpointOfWeightsAloneStartsTheRestAnew) {
  trainOn(s(), 1);
  std::string header = R"({"fc.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";
  while (header.size() % 8)
    header += ' ';
  uint64_t length = header.size();
  float w[6] = {1, 2, 3, 4, 5, 6}, read[6];
  Bytes checkpoint(8 + header.size() + sizeof w);
  std::memcpy(checkpoint.data(), &length, 8);
  std::memcpy(checkpoint.data() + 8, header.data(), header.size());
  std::memcpy(checkpoint.data() + 8 + header.size(), w, sizeof w);
  auto info = ORTC_INIT(ortc_load_info);
  ASSERT_EQ(ortc_checkpoint_read(s(), checkpoint.data(), checkpoint.size(), &info), ORTC_OK) << message();
  EXPECT_EQ(info.fresh_state, 1u);
  double step = -1;
  ASSERT_EQ(ortc_get_scalar(s(), "step", &step), ORTC_OK);
  EXPECT_EQ(step, 0);
  ASSERT_EQ(ortc_read(s(), "fc.weight", read, sizeof read), ORTC_OK);
  EXPECT_EQ(std::memcmp(read, w, sizeof w), 0);
}

TEST_P(DeviceTest, MemoryIsTheDevicesAlone) {
  auto options = ORTC_INIT(ortc_session_options);
  auto sizes = ORTC_INIT(ortc_sizes);
  ASSERT_EQ(ortc_session_sizes(opened->program.get(), nullptr, &sizes), ORTC_OK);
  EXPECT_EQ(sizes.persistent + sizes.transient + sizes.io, 0u);
  alignas(64) static uint8_t own[4096];
  for (void **place : {&options.persistent, &options.transient, &options.io}) {
    *place = own;
    ortc_session *made = nullptr;
    ortc_message text{};
    EXPECT_EQ(ortc_session_create(opened->program.get(), &options, &made, &text), ORTC_E_ARGUMENT);
    EXPECT_EQ(ortc_session_sizes(opened->program.get(), &options, &sizes), ORTC_E_ARGUMENT);
    *place = nullptr;
  }
}

TEST_P(DeviceTest, SessionsDoNotDisturbEachOther) {
  SessionHandle other = makeSession(opened->program.get());
  trainOn(s(), 1);
  trainOn(cpu(), 1);
  EXPECT_NE(stateOf(other.get()), stateOf(s()));
  trainOn(other.get(), 2);
  trainOn(s(), 3);
  trainOn(cpu(), 3);
  EXPECT_EQ(stateOf(s()), stateOf(cpu()));
}

TEST_P(DeviceTest, FilesAreOpenedToo) {
  std::string path = makeFolder("device") + "/model.ortc";
  writeFile(path, file);
  ortc_program *program = nullptr;
  ASSERT_EQ(ortc_program_open_file(path.c_str(), &device.host, &program, nullptr), ORTC_OK);
  ProgramHandle handle(program);
  SessionHandle other = makeSession(program);
  EXPECT_EQ(trainOn(other.get(), 1), trainOn(cpu(), 1));
}

INSTANTIATE_TEST_SUITE_P(Drivers, DeviceTest, testing::ValuesIn(kMakers),
                         [](const auto &info) { return nameOf(info.param); });

} // namespace
} // namespace ortc::test
