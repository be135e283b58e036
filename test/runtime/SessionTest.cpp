// Opening, stepping, reading and writing, with the code of steps.c.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/runtime/TestArtifact.h"

#include <cmath>
#include <fstream>
#include <limits>

namespace ortc::test {
namespace {

class SessionTest : public testing::Test {
protected:
  SessionTest() : opened(makeFile()) {
    EXPECT_EQ(opened.status, ORTC_OK) << opened.message.text;
    session = makeSession(opened.program.get());
  }
  ortc_session *s() { return session.get(); }
  std::string message() { return ortc_session_message(s()); }
  OpenProgram opened;
  SessionHandle session;
};

TEST_F(SessionTest, DescribesTheProgram) {
  ortc_program_info info{};
  info.size = sizeof info;
  ASSERT_EQ(ortc_program_get_info(opened.program.get(), &info), ORTC_OK);
  EXPECT_EQ(info.tensor_count, 10u);
  EXPECT_EQ(info.binding_count, 2u);
  EXPECT_EQ(info.entry_count, 7u);
  EXPECT_EQ(info.max_workers, 4u);
  EXPECT_STREQ(info.target_name, "baseline");
  EXPECT_EQ(info.persistent_bytes, 256u);
  EXPECT_EQ(info.constant_bytes, 8u);
  EXPECT_EQ(info.io_bytes, 64u * 6); // x, label, y of two bindings
  EXPECT_STREQ(ortc_binding_name(opened.program.get(), 1), "single");
  EXPECT_EQ(ortc_binding_name(opened.program.get(), 2), nullptr);
  EXPECT_EQ(ortc_binding_find(opened.program.get(), "single"), 1u);
  EXPECT_EQ(ortc_binding_find(opened.program.get(), "none"), ORTC_NONE);
  EXPECT_STREQ(ortc_kernel_name(opened.program.get(), 0), "forward");
  EXPECT_EQ(ortc_kernel_name(opened.program.get(), 1), nullptr);

  ortc_tensor_info tensor{};
  tensor.size = sizeof tensor;
  ASSERT_EQ(ortc_tensor_find(opened.program.get(), "fc.weight", &tensor), ORTC_OK);
  EXPECT_EQ(tensor.role, ORTC_ROLE_PARAMETER);
  EXPECT_EQ(tensor.rank, 2);
  EXPECT_EQ(tensor.dims[1], 3);
  EXPECT_EQ(tensor.bytes, 24u);
  EXPECT_EQ(tensor.dense, 0u);
  ASSERT_EQ(ortc_tensor_get(opened.program.get(), kGradient, &tensor), ORTC_OK);
  EXPECT_EQ(tensor.owner, uint32_t(kW));
  EXPECT_EQ(ortc_tensor_get(opened.program.get(), 10, &tensor), ORTC_E_NOT_FOUND);
  EXPECT_EQ(ortc_tensor_find(opened.program.get(), "loss", &tensor), ORTC_E_NOT_FOUND);

  ortc_entry_info entry{};
  entry.size = sizeof entry;
  ASSERT_EQ(ortc_entry_get(opened.program.get(), 5, &entry), ORTC_OK);
  EXPECT_STREQ(entry.name, "predict/single");
  EXPECT_EQ(entry.binding, 1u);
  EXPECT_EQ(entry.has_loss, 0u);
  ASSERT_EQ(ortc_entry_value(opened.program.get(), 5, 0, &tensor), ORTC_OK);
  EXPECT_STREQ(tensor.name, "x");
  EXPECT_EQ(tensor.dims[0], 1);
  EXPECT_EQ(ortc_entry_value(opened.program.get(), 5, 2, &tensor), ORTC_E_NOT_FOUND);
  EXPECT_EQ(ortc_entry_get(opened.program.get(), 7, &entry), ORTC_E_NOT_FOUND);

  const void *manifest = nullptr;
  uint64_t bytes = 0;
  ASSERT_EQ(ortc_program_section(opened.program.get(), ORTC_SECTION_MANIFEST, &manifest, &bytes), ORTC_OK);
  EXPECT_EQ(std::string(static_cast<const char *>(manifest), bytes), "{\"model\": \"test\"}");
  EXPECT_EQ(ortc_program_section(opened.program.get(), 77, &manifest, &bytes), ORTC_E_NOT_FOUND);
}

TEST_F(SessionTest, StructuresWithoutTheirSizeAreRefused) {
  ortc_program_info info{};
  EXPECT_EQ(ortc_program_get_info(opened.program.get(), &info), ORTC_E_ARGUMENT);
  ortc_tensor_info tensor{};
  EXPECT_EQ(ortc_tensor_get(opened.program.get(), 0, &tensor), ORTC_E_ARGUMENT);
  ortc_entry_info entry{};
  EXPECT_EQ(ortc_entry_get(opened.program.get(), 0, &entry), ORTC_E_ARGUMENT);
}

TEST_F(SessionTest, ReadsAndWritesInTheOnnxLayout) {
  float w[2][3];
  ASSERT_EQ(ortc_read(s(), "fc.weight", w, sizeof w), ORTC_OK);
  // Stored as {0.5, -0.25, 1, 0.125, -0.75, 0.0625} in [3][2].
  const float expected[2][3] = {{0.5f, 1.0f, -0.75f}, {-0.25f, 0.125f, 0.0625f}};
  EXPECT_EQ(std::memcmp(w, expected, sizeof w), 0);
  float changed[2][3] = {{1, 2, 3}, {4, 5, 6}};
  ASSERT_EQ(ortc_write(s(), "fc.weight", changed, sizeof changed), ORTC_OK);
  ASSERT_EQ(ortc_read(s(), "fc.weight", w, sizeof w), ORTC_OK);
  EXPECT_EQ(std::memcmp(w, changed, sizeof w), 0);
  float shift[2];
  ASSERT_EQ(ortc_read(s(), "shift", shift, sizeof shift), ORTC_OK);
  EXPECT_EQ(shift[1], 20.0f);
  ASSERT_EQ(ortc_session_reset(s()), ORTC_OK);
  ASSERT_EQ(ortc_read(s(), "fc.weight", w, sizeof w), ORTC_OK);
  EXPECT_EQ(std::memcmp(w, expected, sizeof w), 0);
}

TEST_F(SessionTest, GivesPointersOnlyWhereLayoutsAreEqual) {
  void *place = nullptr;
  EXPECT_EQ(ortc_data(s(), "fc.weight", &place), ORTC_E_SHAPE);
  EXPECT_EQ(message(), "'fc.weight' has 24 bytes, not 0, or strides");
  ASSERT_EQ(ortc_data(s(), "lr", &place), ORTC_OK);
  EXPECT_EQ(*static_cast<float *>(place), 0.25f);
  EXPECT_EQ(ortc_data(s(), "shift", &place), ORTC_E_ARGUMENT);
  ASSERT_EQ(ortc_data(s(), "x", &place), ORTC_OK);
  std::memset(place, 0, 48);
  ASSERT_EQ(ortc_data(s(), "y", &place), ORTC_OK);
  EXPECT_EQ(ortc_predict_step(s()), ORTC_OK) << message();
  EXPECT_EQ(static_cast<float *>(place)[1], 20.0f);
}

TEST_F(SessionTest, TrainsAndCountsSteps) {
  double first = trainOn(s(), 1), last = 0;
  for (int i = 0; i < 50; ++i)
    last = trainOn(s(), 1);
  EXPECT_LT(last, first * 0.7);
  double step = 0;
  ASSERT_EQ(ortc_get_scalar(s(), "step", &step), ORTC_OK);
  EXPECT_EQ(step, 51);
}

TEST_F(SessionTest, EvalAndPredictChangeNothing) {
  writeBatch(s(), 3);
  Bytes before = stateOf(s());
  double loss = 0;
  ASSERT_EQ(ortc_eval_step(s(), &loss), ORTC_OK);
  ASSERT_EQ(ortc_predict_step(s()), ORTC_OK);
  EXPECT_GT(loss, 0);
  EXPECT_EQ(stateOf(s()), before);
  ASSERT_EQ(trainOn(s(), 3), loss) << "the loss before the update is that of eval";
}

TEST_F(SessionTest, GradientsThenUpdateEqualTheTrainStep) {
  SessionHandle other = makeSession(opened.program.get());
  for (unsigned i = 0; i < 5; ++i) {
    double fused = trainOn(s(), i), split = 0;
    writeBatch(other.get(), i);
    ASSERT_EQ(ortc_gradients_step(other.get(), &split), ORTC_OK);
    ASSERT_EQ(ortc_update_step(other.get()), ORTC_OK);
    EXPECT_EQ(fused, split);
  }
  EXPECT_EQ(stateOf(s()), stateOf(other.get()));
}

TEST_F(SessionTest, GradientsAreReadByParameterName) {
  float g[2][3], w[2][3], updated[2][3];
  EXPECT_EQ(ortc_read_gradient(s(), "fc.weight", g, sizeof g), ORTC_E_STATE);
  EXPECT_EQ(message(), "no gradients");
  writeBatch(s(), 2);
  Bytes before = stateOf(s());
  ASSERT_EQ(ortc_gradients_step(s(), nullptr), ORTC_OK);
  EXPECT_EQ(stateOf(s()), before);
  ASSERT_EQ(ortc_read_gradient(s(), "fc.weight", g, sizeof g), ORTC_OK) << message();
  EXPECT_EQ(ortc_read_gradient(s(), "fc.weight", g, 20), ORTC_E_SHAPE);
  EXPECT_EQ(ortc_read_gradient(s(), "lr", g, 4), ORTC_E_NOT_FOUND);
  EXPECT_EQ(message(), "'lr' has no gradient");
  ortc_read(s(), "fc.weight", w, sizeof w);
  for (auto &row : g)
    for (float &v : row)
      v *= 2;
  ASSERT_EQ(ortc_write_gradient(s(), "fc.weight", g, sizeof g), ORTC_OK);
  ASSERT_EQ(ortc_update_step(s()), ORTC_OK);
  ortc_read(s(), "fc.weight", updated, sizeof updated);
  for (int i = 0; i < 2; ++i)
    for (int k = 0; k < 3; ++k)
      EXPECT_EQ(updated[i][k], w[i][k] - 0.25f * g[i][k]);
  EXPECT_EQ(ortc_update_step(s()), ORTC_E_STATE);
  EXPECT_EQ(message(), "no gradients");
}

TEST_F(SessionTest, BindsInputsAndOutputsWithoutCopies) {
  Batch batch = makeBatch(7);
  float y[4][2] = {};
  ASSERT_EQ(ortc_bind(s(), "x", batch.x, sizeof batch.x), ORTC_OK);
  ASSERT_EQ(ortc_bind(s(), "y", y, sizeof y), ORTC_OK);
  ASSERT_EQ(ortc_predict_step(s()), ORTC_OK) << message();
  float first = y[0][0];
  batch.x[0][0] += 1.0f; // seen by the next step
  ASSERT_EQ(ortc_predict_step(s()), ORTC_OK);
  EXPECT_NEAR(y[0][0], first + 0.5f, 1e-5f);
  EXPECT_EQ(ortc_bind(s(), "x", batch.x, 4), ORTC_E_SHAPE);
  EXPECT_EQ(message(), "'x' has 48 bytes, not 4, or strides");
  EXPECT_EQ(ortc_bind(s(), "x", reinterpret_cast<char *>(batch.x) + 1, sizeof batch.x), ORTC_E_ARGUMENT);
  EXPECT_EQ(ortc_bind(s(), "fc.weight", y, 24), ORTC_E_NOT_FOUND);
  EXPECT_EQ(ortc_bind(s(), "nothing", y, 24), ORTC_E_NOT_FOUND);
  float read[4][2];
  ASSERT_EQ(ortc_read(s(), "y", read, sizeof read), ORTC_OK);
  EXPECT_EQ(std::memcmp(read, y, sizeof y), 0);
  ASSERT_EQ(ortc_bind(s(), "y", nullptr, 0), ORTC_OK);
  float kept = y[0][0];
  batch.x[0][0] += 1.0f;
  ASSERT_EQ(ortc_predict_step(s()), ORTC_OK);
  EXPECT_EQ(y[0][0], kept) << "no longer bound";
}

TEST_F(SessionTest, AnInputThatWasNeverGivenIsRefused) {
  EXPECT_EQ(ortc_train_step(s(), nullptr), ORTC_E_STATE);
  EXPECT_EQ(message(), "'x' is not bound or written");
  writeBatch(s(), 0);
  EXPECT_EQ(ortc_train_step(s(), nullptr), ORTC_OK);
}

TEST_F(SessionTest, BindingsKeepTheirValuesAndShareParameters) {
  writeBatch(s(), 0);
  ASSERT_EQ(ortc_session_use_binding(s(), 1), ORTC_OK);
  EXPECT_EQ(ortc_predict_step(s()), ORTC_E_STATE);
  float x[3] = {1, 0, 0}, y[2];
  ASSERT_EQ(ortc_write(s(), "x", x, sizeof x), ORTC_OK) << message();
  ASSERT_EQ(ortc_predict_step(s()), ORTC_OK) << message();
  ASSERT_EQ(ortc_read(s(), "y", y, sizeof y), ORTC_OK);
  EXPECT_EQ(y[0], 10.5f);
  EXPECT_EQ(y[1], 19.75f);
  EXPECT_EQ(ortc_train_step(s(), nullptr), ORTC_E_NOT_FOUND);
  EXPECT_EQ(message(), "binding 'single' has no such entry");
  EXPECT_EQ(ortc_session_use_binding(s(), 2), ORTC_E_NOT_FOUND);
  ASSERT_EQ(ortc_session_use_binding(s(), 0), ORTC_OK);
  EXPECT_EQ(ortc_train_step(s(), nullptr), ORTC_OK) << "the batch written before is still there";
}

TEST_F(SessionTest, ScalarsConvert) {
  double value = 0;
  ASSERT_EQ(ortc_set_scalar(s(), "lr", 0.125), ORTC_OK);
  ASSERT_EQ(ortc_get_scalar(s(), "lr", &value), ORTC_OK);
  EXPECT_EQ(value, 0.125);
  ASSERT_EQ(ortc_set_scalar(s(), "step", 7), ORTC_OK);
  ASSERT_EQ(ortc_get_scalar(s(), "step", &value), ORTC_OK);
  EXPECT_EQ(value, 7);
  EXPECT_EQ(ortc_set_scalar(s(), "step", std::nan("")), ORTC_E_SHAPE);
  EXPECT_EQ(ortc_set_scalar(s(), "fc.weight", 1), ORTC_E_SHAPE);
  EXPECT_EQ(message(), "'fc.weight' has 24 bytes, not 4, or strides");
  EXPECT_EQ(ortc_set_scalar(s(), "momentum", 1), ORTC_E_NOT_FOUND);
  EXPECT_EQ(message(), "no 'momentum' in binding 'batch'");
}

TEST_F(SessionTest, TheLearningRateIsSetBetweenSteps) {
  ASSERT_EQ(ortc_set_scalar(s(), "lr", 0.0), ORTC_OK);
  float before[6], after[6];
  ortc_read(s(), "fc.weight", before, sizeof before);
  trainOn(s(), 1);
  ortc_read(s(), "fc.weight", after, sizeof after);
  EXPECT_EQ(std::memcmp(before, after, sizeof before), 0);
}

TEST_F(SessionTest, WrongSizesAndRolesAreRefused) {
  float buffer[24] = {};
  EXPECT_EQ(ortc_read(s(), "fc.weight", buffer, 20), ORTC_E_SHAPE);
  EXPECT_EQ(message(), "'fc.weight' has 24 bytes, not 20, or strides");
  EXPECT_EQ(ortc_write(s(), "x", buffer, 96), ORTC_E_SHAPE);
  EXPECT_EQ(ortc_write(s(), "x", nullptr, 48), ORTC_E_ARGUMENT);
  EXPECT_EQ(ortc_write(s(), nullptr, buffer, 48), ORTC_E_ARGUMENT);
  EXPECT_EQ(ortc_write(s(), "shift", buffer, 8), ORTC_E_ARGUMENT);
  EXPECT_EQ(message(), "'shift' is read-only");
  EXPECT_EQ(ortc_write(s(), "y", buffer, 32), ORTC_E_ARGUMENT);
  EXPECT_EQ(message(), "'y' is read-only");
  EXPECT_EQ(ortc_read(nullptr, "x", buffer, 4), ORTC_E_ARGUMENT);
}

TEST_F(SessionTest, AnIndexOutOfRangeLeavesEverythingAsItWas) {
  for (int64_t bad : {int64_t(2), int64_t(-1), std::numeric_limits<int64_t>::max()}) {
    writeBatch(s(), 1);
    Batch batch = makeBatch(1);
    batch.label[2] = bad;
    ASSERT_EQ(ortc_write(s(), "label", batch.label, sizeof batch.label), ORTC_OK);
    Bytes before = stateOf(s());
    EXPECT_EQ(ortc_train_step(s(), nullptr), ORTC_E_RANGE);
    EXPECT_EQ(message(), "index " + std::to_string(bad) + " in 'label' is out of range [0, 2)");
    EXPECT_EQ(stateOf(s()), before);
    EXPECT_EQ(ortc_gradients_step(s(), nullptr), ORTC_E_RANGE);
    EXPECT_EQ(ortc_update_step(s()), ORTC_E_STATE) << "a failed gradients step leaves nothing to apply";
    EXPECT_EQ(stateOf(s()), before);
  }
}

TEST_F(SessionTest, ALossThatIsNotFiniteStopsOnlyWhenAskedTo) {
  ortc_session_options options{};
  options.size = sizeof options;
  options.flags = ORTC_SESSION_STOP_ON_NOT_FINITE;
  SessionHandle strict = makeSession(opened.program.get(), &options);
  for (ortc_session *each : {strict.get(), s()}) {
    writeBatch(each, 0);
    float x[12] = {std::numeric_limits<float>::infinity()};
    ASSERT_EQ(ortc_write(each, "x", x, sizeof x), ORTC_OK);
    Bytes before = stateOf(each);
    double loss = 0;
    ortc_status status = ortc_train_step(each, &loss);
    EXPECT_FALSE(std::isfinite(loss));
    if (each == strict.get()) {
      EXPECT_EQ(status, ORTC_E_NOT_FINITE);
      EXPECT_STREQ(ortc_session_message(each), "the loss is not finite");
      EXPECT_EQ(stateOf(each), before);
    } else {
      EXPECT_EQ(status, ORTC_OK);
      EXPECT_NE(stateOf(each), before);
    }
  }
}

TEST_F(SessionTest, RunsInTheCallersMemory) {
  ortc_session_options options{};
  options.size = sizeof options;
  options.workers = 3;
  options.flags = ORTC_SESSION_BIND_ALL;
  ortc_sizes sizes{};
  sizes.size = sizeof sizes;
  ASSERT_EQ(ortc_session_sizes(opened.program.get(), &options, &sizes), ORTC_OK);
  EXPECT_EQ(sizes.persistent, 256u);
  EXPECT_EQ(sizes.transient, 256u + 3 * 64);
  EXPECT_EQ(sizes.io, 0u);
  AlignedBytes persistent(Bytes(sizes.persistent, 0xaa)), transient(Bytes(sizes.transient, 0xaa));
  options.persistent = persistent.data();
  options.transient = transient.data();
  SessionHandle own = makeSession(opened.program.get(), &options);
  Batch batch = makeBatch(1);
  EXPECT_EQ(ortc_write(own.get(), "x", batch.x, sizeof batch.x), ORTC_E_STATE);
  EXPECT_STREQ(ortc_session_message(own.get()), "'x' is not bound or written");
  float y[4][2];
  ASSERT_EQ(ortc_bind(own.get(), "x", batch.x, sizeof batch.x), ORTC_OK);
  ASSERT_EQ(ortc_bind(own.get(), "label", batch.label, sizeof batch.label), ORTC_OK);
  EXPECT_EQ(ortc_train_step(own.get(), nullptr), ORTC_E_STATE);
  EXPECT_STREQ(ortc_session_message(own.get()), "'y' is not bound or written");
  ASSERT_EQ(ortc_bind(own.get(), "y", y, sizeof y), ORTC_OK);
  double loss = 0;
  ASSERT_EQ(ortc_train_step(own.get(), &loss), ORTC_OK);
  EXPECT_EQ(loss, trainOn(s(), 1));
  EXPECT_EQ(stateOf(own.get()), stateOf(s()));

  options.persistent = static_cast<char *>(persistent.data()) + 8;
  ortc_session *none = nullptr;
  ortc_message text{};
  EXPECT_EQ(ortc_session_create(opened.program.get(), &options, &none, &text), ORTC_E_ARGUMENT);
  EXPECT_STREQ(text.text, "misaligned memory");
}

TEST_F(SessionTest, TooManyWorkersAreRefused) {
  ortc_session_options options{};
  options.size = sizeof options;
  options.workers = 5;
  ortc_session *none = nullptr;
  ortc_message text{};
  EXPECT_EQ(ortc_session_create(opened.program.get(), &options, &none, &text), ORTC_E_ARGUMENT);
  EXPECT_STREQ(text.text, "5 workers, the limit is 4");
}

TEST_F(SessionTest, TracesKernels) {
  std::vector<std::pair<uint32_t, uint32_t>> calls;
  ortc_session_options options{};
  options.size = sizeof options;
  options.trace = [](void *context, uint32_t kernel, uint32_t phase) {
    static_cast<decltype(calls) *>(context)->push_back({kernel, phase});
  };
  options.trace_context = &calls;
  SessionHandle traced = makeSession(opened.program.get(), &options);
  trainOn(traced.get(), 0);
  EXPECT_EQ(calls, (decltype(calls){{0, ORTC_TRACE_BEGIN}, {0, ORTC_TRACE_END}}));
}

TEST(ProgramTest, PicksTheLastCodeThatThisMachineRuns) {
  Artifact a = makeArtifact();
  artifact::Code other = a.codes[0], level = a.codes[0], future = a.codes[0];
  other.name = "other";
  other.architecture = a.codes[0].architecture == ORTC_ARCH_AARCH64 ? ORTC_ARCH_X86_64 : ORTC_ARCH_AARCH64;
  level.name = "level";
  level.features = ortc_host_features() & -ortc_host_features(); // one that is there
  future.name = "future";
  future.features = level.features | uint64_t(1) << 62;
  a.codes = {a.codes[0], level, other, future};
  OpenProgram opened(makeFile(a));
  ASSERT_EQ(opened.status, ORTC_OK) << opened.message.text;
  ortc_program_info info{};
  info.size = sizeof info;
  ortc_program_get_info(opened.program.get(), &info);
  EXPECT_STREQ(info.target_name, "level");

  a.codes = {other, future};
  OpenProgram none(makeFile(a));
  EXPECT_EQ(none.status, ORTC_E_TARGET);
  EXPECT_STREQ(none.message.text, "no code for this processor");
}

TEST(ProgramTest, EntriesMayDifferByTarget) {
  Artifact a = makeArtifact();
  artifact::Code other = a.codes[0];
  other.name = "other";
  other.architecture = ORTC_ARCH_AARCH64;
  a.codes.insert(a.codes.begin(), other);
  std::vector<artifact::Entry> entries = a.entries;
  for (artifact::Entry &e : a.entries)
    e.target = 0;
  for (artifact::Entry &e : entries) {
    e.target = 1;
    e.workerBytes = 128;
    a.entries.push_back(e);
  }
  OpenProgram opened(makeFile(a));
  ASSERT_EQ(opened.status, ORTC_OK) << opened.message.text;
  ortc_program_info info{};
  info.size = sizeof info;
  ortc_program_get_info(opened.program.get(), &info);
  EXPECT_EQ(info.entry_count, 7u);
  ortc_sizes sizes{};
  sizes.size = sizeof sizes;
  ortc_session_sizes(opened.program.get(), nullptr, &sizes);
  EXPECT_EQ(sizes.transient, 256u + 128);
}

TEST(ProgramTest, OpensFiles) {
  std::string folder = makeFolder("open");
  writeFile(folder + "/model.ortc", makeFile());
  ortc_program *program = nullptr;
  ortc_message message{};
  ASSERT_EQ(ortc_program_open_file((folder + "/model.ortc").c_str(), nullptr, &program, &message), ORTC_OK)
      << message.text;
  ProgramHandle handle(program);
  SessionHandle session = makeSession(program);
  EXPECT_GT(trainOn(session.get(), 0), 0);
  EXPECT_EQ(ortc_program_open_file((folder + "/none").c_str(), nullptr, &program, &message), ORTC_E_IO);
  EXPECT_EQ(std::string(message.text), "cannot read " + folder + "/none (errno 2)");
  EXPECT_EQ(ortc_program_open_file(folder.c_str(), nullptr, &program, &message), ORTC_E_IO);
  EXPECT_EQ(program, nullptr);
}

/// KiB of a mapped file that are resident in this process; -1 when it is not mapped.
static long countResident(const std::string &path) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  while (std::getline(maps, line) && !line.ends_with(path)) {
  }
  while (std::getline(maps, line))
    if (line.starts_with("Rss:"))
      return std::stol(line.substr(4));
  return -1;
}

TEST(ProgramTest, InitialParametersDoNotStayResidentTwice) {
  std::string path = makeFolder("resident") + "/model.ortc";
  Artifact a = makeArtifact();
  a.persistentBytes = 1 << 20;
  Bytes persistent = a.persistent.toBytes();
  persistent.resize(1 << 20, 1); // all of it is in the file
  a.persistent = artifact::Image(std::move(persistent));
  writeFile(path, makeFile(a));
  ortc_program *program = nullptr;
  ortc_message message{};
  ASSERT_EQ(ortc_program_open_file(path.c_str(), nullptr, &program, &message), ORTC_OK) << message.text;
  ProgramHandle handle(program);
  EXPECT_GE(countResident(path), 0) << "mapped";
  SessionHandle session = makeSession(program);
  EXPECT_EQ(countResident(path), 0);
  EXPECT_EQ(ortc_session_reset(session.get()), ORTC_OK) << "pages come back";
}

TEST(ProgramTest, TheHostMayRefuseByDigestAndSignature) {
  Artifact a = makeArtifact();
  a.signature = {'s', 'i', 'g'};
  ortc_host host{};
  host.size = sizeof host;
  std::string seen;
  host.context = &seen;
  host.verify = [](void *context, const uint8_t *, const void *signature, size_t bytes) -> int32_t {
    static_cast<std::string *>(context)->assign(static_cast<const char *>(signature), bytes);
    return 1;
  };
  OpenProgram opened(makeFile(a), &host);
  EXPECT_EQ(opened.status, ORTC_E_HASH);
  EXPECT_STREQ(opened.message.text, "not trusted by host");
  EXPECT_EQ(seen, "sig");
}

TEST(ProgramTest, StatusNames) {
  EXPECT_STREQ(ortc_status_name(ORTC_OK), "ok");
  EXPECT_STREQ(ortc_status_name(ORTC_E_NOT_FINITE), "not finite");
  EXPECT_STREQ(ortc_status_name(ORTC_E_INTERNAL), "internal");
  EXPECT_STREQ(ortc_status_name(99), "unknown");
  EXPECT_STREQ(ortc_status_name(-1), "unknown");
  EXPECT_EQ(ortc_abi_version(), ORTC_ABI_VERSION);
}

} // namespace
} // namespace ortc::test
