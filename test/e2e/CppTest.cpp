// ortc.hpp beside ortc.h: the same artifact, data and calls give the same bits; what fails throws.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <array>
#include <cstring>
#include <gtest/gtest.h>

#include "ortc/ortc.hpp"
#include "test/e2e/Session.h"

namespace ortc::test {
namespace {

constexpr int kSteps = 20;

class CppTest : public testing::TestWithParam<const char *> {
protected:
  CppTest() : entry(GetParam()), artifact(folder / "artifact") {
    std::vector<std::string> arguments{
        "train",       entry.model(),   "-o", artifact,   "--optimizer", entry.optimizers["adamw"],
        "--gradients", "--max-workers", "2",  "--target", "native",      "--quiet"};
    arguments.insert(arguments.end(), entry.flags.begin(), entry.flags.end());
    mustRun(arguments);
    EXPECT_TRUE(engine::openData(entry.data(), data).isOk());
  }
  std::string file() const { return artifact + "/model.ortc"; }

  /// Gives the same slice of the data to both.
  void writeSlice(Session &c, const Program &program, ortc::Session &cpp, int step) {
    c.writeSlice(*data, step % entry.steps);
    for (const std::string &name : data->getNames()) {
      Bytes bytes(program.tensor(name).bytes);
      ASSERT_EQ(ortc_read(c.get(), name.c_str(), bytes.data(), bytes.size()), ORTC_OK) << c.message();
      cpp.write(name, bytes);
    }
  }
  void expectSameTensors(const Session &c, const Program &program, ortc::Session &cpp) {
    size_t count = 0;
    for (const auto &[name, bytes] : c.readPersistent()) {
      EXPECT_TRUE(bytes == cpp.read<uint8_t>(name)) << name;
      ++count;
    }
    for (const ortc_tensor_info &info : program.tensors())
      count -= info.region == ORTC_REGION_PERSISTENT;
    EXPECT_EQ(count, 0u);
  }

  TemporaryFolder folder;
  ZooEntry entry;
  std::string artifact;
  std::unique_ptr<engine::DataSource> data;
};

bool hasSameBits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

/// The status with which a call throws; ORTC_OK when it does not.
template <typename Call> ortc_status statusOf(Call call) {
  try {
    call();
  } catch (const Error &error) {
    EXPECT_NE(std::string(error.what()), "");
    return error.status();
  }
  return ORTC_OK;
}

} // namespace

/// One test a model: compiling is the expensive part.
TEST_P(CppTest, GivesTheBitsOfTheCInterface) {
  Session c(artifact);
  Pool pool(2);
  Program program(file());
  ortc::Session cpp(program, pool.options());
  for (int step = 0; step < kSteps; ++step) {
    double loss = 0;
    writeSlice(c, program, cpp, step);
    // Every other step in two halves.
    if (step % 2) {
      ASSERT_EQ(ortc_gradients_step(c.get(), &loss), ORTC_OK) << c.message();
      EXPECT_TRUE(hasSameBits(loss, cpp.gradientsStep())) << "step " << step;
      ASSERT_EQ(ortc_update_step(c.get()), ORTC_OK) << c.message();
      cpp.updateStep();
    } else {
      ASSERT_EQ(ortc_train_step(c.get(), &loss), ORTC_OK) << c.message();
      EXPECT_TRUE(hasSameBits(loss, cpp.trainStep())) << "step " << step;
    }
    EXPECT_NE(loss, 0);
  }
  expectSameTensors(c, program, cpp);
  double loss = 0;
  ASSERT_EQ(ortc_eval_step(c.get(), &loss), ORTC_OK) << c.message();
  EXPECT_TRUE(hasSameBits(loss, cpp.evalStep()));

  // A checkpoint by file and by sink: the bytes that C writes.
  const ortc_metadata rows[] = {{"epoch", "3"}, {"seed", "7"}};
  ASSERT_EQ(ortc_checkpoint_save(c.get(), (folder / "c").c_str(), rows, 2), ORTC_OK) << c.message();
  const Metadata metadata{{"seed", "7"}, {"epoch", "3"}};
  cpp.save(folder / "cpp", metadata);
  const std::string wanted = readFile(folder / "c");
  std::string written;
  cpp.writeCheckpoint([&](std::string_view part) { written += part; }, metadata);
  EXPECT_TRUE(wanted == readFile(folder / "cpp"));
  EXPECT_TRUE(wanted == written);

  // And back, into sessions that begin anew.
  for (bool isFile : {true, false}) {
    ortc::Session other(program);
    EXPECT_FALSE(c.readPersistent().at("step") == other.read<uint8_t>("step"));
    LoadInfo info = isFile ? other.load(folder / "c") : other.readCheckpoint(written);
    expectSameTensors(c, program, other);
    EXPECT_EQ(info.metadata, metadata);
    EXPECT_FALSE(info.hasFreshState);
    EXPECT_EQ(info.loaded, c.readPersistent().size());
    EXPECT_EQ(info.ignored, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, CppTest, testing::Values("mlp-digits", "lenet", "gru-forecast"),
                         [](const auto &info) { return caseName(info.param); });

using CppCallsTest = CppTest;

TEST_P(CppCallsTest, LooksThingsUp) {
  Program program(file());
  EXPECT_EQ(program.info().tensor_count, program.tensors().size());
  EXPECT_EQ(program.info().entry_count, program.entries().size());
  EXPECT_EQ(program.info().max_workers, 2u);
  EXPECT_EQ(program.bindings().size(), program.info().binding_count);
  EXPECT_EQ(program.section(ORTC_SECTION_MANIFEST).substr(0, 1), "{");
  EXPECT_EQ(program.sizes().persistent, program.info().persistent_bytes);
  for (uint32_t e = 0; e < program.entries().size(); ++e)
    EXPECT_EQ(program.entries()[e].value_count, program.values(e).size());
}

TEST_P(CppCallsTest, MovesTensorsInAndOut) {
  Program program(file());
  ortc::Session session(program);
  std::vector<float> pixels(64 * 64, 0.5f), outputs(64 * 10);
  std::array<int64_t, 64> labels{};
  session.bind("pixels", pixels);
  session.bind("label", labels);
  double loss = session.trainStep();
  EXPECT_EQ(session.getScalar("step"), 1);
  session.setScalar("step", 5);
  EXPECT_EQ(*session.data<int64_t>("step"), 5);
  session.reset();
  EXPECT_TRUE(hasSameBits(loss, session.trainStep()));
  std::string name;
  for (const ortc_tensor_info &info : program.tensors())
    if (info.role == ORTC_ROLE_PARAMETER)
      name = info.name;
  auto before = session.read<float>(name);
  session.gradientsStep();
  std::vector<float> gradient(before.size());
  session.readGradient(name, gradient);
  session.writeGradient(name, gradient);
  session.updateStep();
  EXPECT_NE(before, session.read<float>(name));
  session.write(name, before);
  EXPECT_EQ(before, session.read<float>(name));
  session.predictStep();
  session.read("output", outputs);
  EXPECT_EQ(outputs, session.read<float>("output"));
  session.useBinding(program.bindings().front());
  session.startTrainStep();
  session.unbind("label");
  // The own memory was never written to.
  session.write("label", labels);
  ortc::Session moved = std::move(session);
  session = ortc::Session(program);
  EXPECT_EQ(session.getScalar("step"), 0);
  EXPECT_GT(moved.getScalar("step"), 0);
}

TEST_P(CppCallsTest, ThrowsWhatFails) {
  EXPECT_EQ(statusOf([&] { Program(folder / "no-such-file"); }), ORTC_E_IO);
  alignas(ORTC_ALIGNMENT) const char text[64] = "no artifact";
  EXPECT_EQ(statusOf([&] { Program(text, sizeof text); }), ORTC_E_FORMAT);
  EXPECT_EQ(statusOf([&] { Pool(0); }), ORTC_E_ARGUMENT);
  EXPECT_EQ(statusOf([&] { Pool(ORTC_POOL_MAX_WORKERS + 1); }), ORTC_E_ARGUMENT);
  Program program(file());
  EXPECT_EQ(statusOf([&] { program.tensor("nothing"); }), ORTC_E_NOT_FOUND);
  EXPECT_EQ(statusOf([&] { program.section(99); }), ORTC_E_NOT_FOUND);
  Pool pool(3);
  EXPECT_EQ(statusOf([&] { ortc::Session(program, pool.options()); }), ORTC_E_ARGUMENT)
      << "more than --max-workers";
  EXPECT_EQ(statusOf([&] { program.sizes(pool.options()); }), ORTC_E_ARGUMENT);

  ortc::Session session(program);
  std::vector<float> few(3);
  EXPECT_EQ(statusOf([&] { session.trainStep(); }), ORTC_E_STATE) << "no inputs";
  EXPECT_EQ(statusOf([&] { session.accumulateStep(); }), ORTC_E_NOT_FOUND);
  EXPECT_EQ(statusOf([&] { session.startAccumulateStep(); }), ORTC_E_NOT_FOUND);
  EXPECT_EQ(statusOf([&] { session.updateStep(); }), ORTC_E_STATE);
  EXPECT_EQ(statusOf([&] { session.useBinding("nothing"); }), ORTC_E_NOT_FOUND);
  EXPECT_EQ(statusOf([&] { session.useBinding(7); }), ORTC_E_NOT_FOUND);
  EXPECT_EQ(statusOf([&] { session.write("pixels", few); }), ORTC_E_SHAPE);
  EXPECT_EQ(statusOf([&] { session.bind("pixels", few); }), ORTC_E_SHAPE);
  // As many bytes, and other numbers.
  std::vector<double> wide(64 * 32);
  std::vector<int32_t> halves(64 * 2);
  EXPECT_EQ(statusOf([&] { session.bind("pixels", wide); }), ORTC_E_SHAPE);
  EXPECT_EQ(statusOf([&] { session.write("pixels", wide); }), ORTC_E_SHAPE);
  EXPECT_EQ(statusOf([&] { session.bind("label", halves); }), ORTC_E_SHAPE);
  EXPECT_EQ(statusOf([&] { session.read<int32_t>("step"); }), ORTC_E_SHAPE);
  EXPECT_EQ(statusOf([&] { session.data<double>("step"); }), ORTC_E_SHAPE);
  std::vector<uint8_t> bytes(64 * 64 * 4);
  session.bind("pixels", bytes); // any number's
  EXPECT_EQ(statusOf([&] { session.read<float>("nothing"); }), ORTC_E_NOT_FOUND);
  EXPECT_EQ(statusOf([&] { session.getScalar("nothing"); }), ORTC_E_NOT_FOUND);
  EXPECT_EQ(statusOf([&] { session.setScalar("nothing", 1); }), ORTC_E_NOT_FOUND);
  EXPECT_EQ(statusOf([&] { session.data<float>("nothing"); }), ORTC_E_NOT_FOUND);
  EXPECT_EQ(statusOf([&] { session.save(folder / "no-such-folder/file"); }), ORTC_E_IO);
  EXPECT_EQ(statusOf([&] { session.load(folder / "no-such-file"); }), ORTC_E_IO);
  EXPECT_EQ(statusOf([&] { session.readCheckpoint(std::string("{}")); }), ORTC_E_FORMAT);
  EXPECT_EQ(statusOf([&] { session.save(folder / "file", {{"ortc.mine", ""}}); }), ORTC_E_ARGUMENT);
  // What a sink throws comes through.
  auto full = [](std::string_view) { throw std::length_error("full"); };
  EXPECT_THROW(session.writeCheckpoint(full), std::length_error);
}

INSTANTIATE_TEST_SUITE_P(Zoo, CppCallsTest, testing::Values("mlp-digits"),
                         [](const auto &info) { return caseName(info.param); });

} // namespace ortc::test
