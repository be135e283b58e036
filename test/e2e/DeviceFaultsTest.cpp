// Faults are noticed: those that the emulator puts into kernels, and those of data, which leave a session as it was.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <gtest/gtest.h>
#include <random>
#include <set>

#include "test/e2e/Device.h"
#include "test/e2e/DeviceImages.h"
#include "test/e2e/Mutants.h"
#include "test/e2e/Session.h"

using namespace ortc;
using namespace ortc::test;

namespace {

struct Model {
  const char *name;
  size_t mostAccesses; ///< that are shifted and misaligned; where there are more, every second or third one
  size_t idleChecks;   ///< kernels that check constants, or what another one has made valid
};
void PrintTo(const Model &model, std::ostream *stream) { *stream << model.name; }

/// What a session shows, piece by piece.
class Record {
public:
  explicit Record(const Record *wanted) : wanted(wanted) {}
  /// False once a piece is not the one that is wanted.
  bool add(const void *data, size_t bytes) {
    pieces.emplace_back(static_cast<const char *>(data), bytes);
    size_t i = pieces.size() - 1;
    isSame = isSame && (!wanted || (i < wanted->pieces.size() && wanted->pieces[i] == pieces[i]));
    return isSame;
  }
  bool add(const std::string &text) { return add(text.data(), text.size()); }
  bool differs() const { return !isSame; }

  std::vector<std::string> pieces;

private:
  const Record *wanted;
  bool isSame = true;
};

/// In a tensor of indices, where one is spoilt: the first of both halves at each step of a tree, and of four columns.
constexpr size_t kPositions[] = {0, 1, 2, 3, 4, 8, 16, 32, 64, 128};

class DeviceFaultsTest : public testing::TestWithParam<Model> {
protected:
  DeviceFaultsTest() : entry(GetParam().name), artifact(folder / "artifact") {
    EXPECT_TRUE(engine::openData(entry.data(), data).isOk());
  }
  void compile(const std::vector<std::string> &targets) {
    std::vector<std::string> arguments{
        "train", entry.model(), "-o", artifact, "--optimizer", entry.optimizers["adamw"], "--quiet"};
    arguments.insert(arguments.end(), entry.flags.begin(), entry.flags.end());
    for (const std::string &target : targets)
      arguments.insert(arguments.end(), {"--target", target});
    mustRun(arguments);
  }

  bool isNoticed(const std::string &fault, const Record &wanted) {
    testing::internal::CaptureStderr();
    bool differs = play(fault, &wanted).differs();
    testing::internal::GetCapturedStderr();
    return differs;
  }
  /// What a session on the device shows with this fault, as far as it is what is wanted.
  Record play(const std::string &fault, const Record *wanted);
  bool train(Session &session, Record &record) {
    double loss = 0;
    ortc_status status = ortc_train_step(session.get(), &loss);
    return record.add(&loss, sizeof loss) && record.add(status ? session.message() : "trained");
  }
  /// A step that nobody waits for.
  bool begin(Session &session, Record &record) {
    return record.add(ortc_train_step(session.get(), nullptr) ? session.message() : "begun");
  }
  /// Adds the tensors that may change: persistent ones, or else outputs.
  bool addTensors(Session &session, Record &record, bool isPersistent);
  bool trainAndInfer(Session &session, Record &record);
  bool trainOnBadIndices(Session &session, Record &record);
  bool trainBehindFailures(Session &session, Record &record);
  bool trainOnInfinities(Session &session, Record &record);

  /// Indices of a slice of the data, and numbers without zeros and repetitions.
  void writeInputs(Session &session, size_t slice);
  /// The inputs of integers.
  std::vector<std::string> listIndices();
  void spoilIndex(Session &session, const std::string &name, size_t position, int64_t value);
  void spoilParameters(Session &session);
  std::string checkpointOf(Session &session) {
    EXPECT_EQ(ortc_checkpoint_save(session.get(), (folder / "checkpoint").c_str(), nullptr, 0), ORTC_OK);
    return readFile(folder / "checkpoint");
  }

  TemporaryFolder folder;
  ZooEntry entry;
  std::string artifact;
  std::unique_ptr<engine::DataSource> data;
};

} // namespace

bool DeviceFaultsTest::addTensors(Session &session, Record &record, bool isPersistent) {
  ortc_tensor_info info = ORTC_INIT(ortc_tensor_info);
  for (uint32_t i = 0; ortc_tensor_get(session.getProgram(), i, &info) == ORTC_OK; ++i) {
    if (isPersistent ? info.region != ORTC_REGION_PERSISTENT : info.role != ORTC_ROLE_OUTPUT)
      continue;
    Bytes bytes(info.bytes);
    ortc_status status = ortc_read(session.get(), info.name, bytes.data(), bytes.size());
    if (!(status ? record.add(session.message()) : record.add(bytes.data(), bytes.size())))
      return false;
  }
  return true;
}

void DeviceFaultsTest::writeInputs(Session &session, size_t slice) {
  session.writeSlice(*data, slice);
  std::mt19937 random(slice + 1);
  for (const std::string &name : data->getNames()) {
    ortc_tensor_info info = ORTC_INIT(ortc_tensor_info);
    ASSERT_EQ(ortc_tensor_find(session.getProgram(), name.c_str(), &info), ORTC_OK);
    if (info.dtype != int(DataType::Float32))
      continue;
    std::vector<float> values(info.bytes / sizeof(float));
    for (float &value : values)
      value = 0.25f + float(random() >> 8) / float(1 << 25);
    ASSERT_EQ(ortc_write(session.get(), info.name, values.data(), info.bytes), ORTC_OK) << session.message();
  }
}

std::vector<std::string> DeviceFaultsTest::listIndices() {
  std::vector<std::string> result;
  for (const std::string &name : data->getNames()) {
    Array array;
    EXPECT_TRUE(data->describe(name, array).isOk());
    if (array.type == DataType::Int64)
      result.push_back(name);
  }
  return result;
}

void DeviceFaultsTest::spoilIndex(Session &session, const std::string &name, size_t position, int64_t value) {
  ortc_tensor_info info = ORTC_INIT(ortc_tensor_info);
  ASSERT_EQ(ortc_tensor_find(session.getProgram(), name.c_str(), &info), ORTC_OK);
  std::vector<int64_t> values(info.bytes / sizeof(int64_t));
  ASSERT_EQ(ortc_read(session.get(), info.name, values.data(), info.bytes), ORTC_OK) << session.message();
  values[position % values.size()] = value;
  ASSERT_EQ(ortc_write(session.get(), info.name, values.data(), info.bytes), ORTC_OK) << session.message();
}

void DeviceFaultsTest::spoilParameters(Session &session) {
  ortc_tensor_info info = ORTC_INIT(ortc_tensor_info);
  for (uint32_t i = 0; ortc_tensor_get(session.getProgram(), i, &info) == ORTC_OK; ++i) {
    if (info.role != ORTC_ROLE_PARAMETER)
      continue;
    std::vector<float> values(info.bytes / sizeof(float), INFINITY);
    ASSERT_EQ(ortc_write(session.get(), info.name, values.data(), info.bytes), ORTC_OK) << session.message();
  }
}

/// Two steps: the state of the optimizer is zero before the first.
bool DeviceFaultsTest::trainAndInfer(Session &session, Record &record) {
  for (size_t step = 0; step < 2; ++step) {
    writeInputs(session, step);
    if (!train(session, record))
      return false;
  }
  if (!addTensors(session, record, /*isPersistent=*/true))
    return false;
  double loss = 0;
  ortc_status status = ortc_eval_step(session.get(), &loss);
  if (!record.add(&loss, sizeof loss) || !record.add(status ? session.message() : "evaluated"))
    return false;
  status = ortc_predict_step(session.get());
  return record.add(status ? session.message() : "predicted") &&
         addTensors(session, record, /*isPersistent=*/false);
}

/// The checks join their findings by halves: each has one that the other has not.
bool DeviceFaultsTest::trainOnBadIndices(Session &session, Record &record) {
  for (const std::string &name : listIndices())
    for (size_t position : kPositions) {
      writeInputs(session, 0);
      spoilIndex(session, name, position, (int64_t(3) << 40) + int64_t(position));
      if (!train(session, record) || (position == 0 && !addTensors(session, record, /*isPersistent=*/true)))
        return false;
    }
  return addTensors(session, record, /*isPersistent=*/true);
}

/// Nobody waits for steps that fail; the one that is waited for tells of the first.
bool DeviceFaultsTest::trainBehindFailures(Session &session, Record &record) {
  std::vector<std::string> indices = listIndices();
  if (indices.empty())
    return true;
  indices.push_back(indices.front());
  int64_t value = 1000000;
  for (const std::string &name : indices)
    for (size_t position : kPositions) {
      writeInputs(session, 0);
      spoilIndex(session, name, position, value++);
      if (!begin(session, record))
        return false;
    }
  writeInputs(session, 0);
  if (!begin(session, record) || !addTensors(session, record, /*isPersistent=*/true))
    return false;
  spoilParameters(session);
  return train(session, record);
}

bool DeviceFaultsTest::trainOnInfinities(Session &session, Record &record) {
  writeInputs(session, 0);
  spoilParameters(session);
  return train(session, record) && addTensors(session, record, /*isPersistent=*/true);
}

Record DeviceFaultsTest::play(const std::string &fault, const Record *wanted) {
  EnvironmentVariable mutation("ORTC_EMULATOR_MUTATE", fault);
  Device device;
  Session session(artifact, &device.host, ORTC_SESSION_STOP_ON_NOT_FINITE);
  Record record(wanted);
  if (trainAndInfer(session, record) && trainOnBadIndices(session, record) &&
      trainBehindFailures(session, record))
    trainOnInfinities(session, record);
  return record;
}

/// Reported, or seen in losses, tensors, predictions or messages. An access is shifted to the element behind; where
/// that has the same value (zeros beyond the edge of a tile, upper halves of small integers), out of all memory.
TEST_P(DeviceFaultsTest, EveryMutantIsNoticed) {
  compile({"sm_80"});
  EnvironmentVariable threads("ORTC_EMULATOR_THREADS", "1");
  std::vector<Image> images = imagesOf(artifact + "/model.ortc");
  ASSERT_EQ(images.size(), 1u);
  const Record wanted = play("", nullptr);
  ASSERT_FALSE(play("", &wanted).differs());
  std::vector<Mutant> mutants[Mutant::Kinds];
  for (Mutant &mutant : listMutants(images[0].bytes))
    mutants[mutant.kind].push_back(std::move(mutant));
  if (listIndices().empty()) // nothing fails before the guard
    std::erase_if(mutants[Mutant::StatusTest],
                  [](const Mutant &mutant) { return mutant.text.starts_with("ortc_guard"); });
  size_t tried[Mutant::Kinds] = {}, same = 0;
  std::set<std::string> idle;
  for (int kind = 0; kind < Mutant::Kinds; ++kind) {
    bool isAccess = kind == Mutant::Index || kind == Mutant::Alignment;
    size_t stride =
        isAccess ? (mutants[kind].size() + GetParam().mostAccesses - 1) / GetParam().mostAccesses : 1;
    for (size_t i = 0; i < mutants[kind].size(); i += stride, ++tried[kind]) {
      const Mutant &mutant = mutants[kind][i];
      if (isNoticed(mutant.text, wanted))
        continue;
      bool isReached = kind == Mutant::Barrier || isNoticed(mutant.outside, wanted);
      EXPECT_TRUE(kind == Mutant::Index || !isReached) << mutant.text << ": " << mutant.instruction;
      isReached ? void(++same) : void(idle.insert(mutant.text.substr(0, mutant.text.find(':'))));
    }
    EXPECT_GT(tried[kind], 0u);
  }
  EXPECT_LE(same, tried[Mutant::Index] / 4) << "the data are too much alike";
  EXPECT_LE(idle.size(), GetParam().idleChecks) << testing::PrintToString(idle) << " are not reached";
  std::printf(
      "%s: %zu barriers, %zu shifted accesses (%zu out of all memory), %zu misaligned ones, %zu tests "
      "of the status\n",
      GetParam().name, tried[Mutant::Barrier], tried[Mutant::Index], same, tried[Mutant::Alignment],
      tried[Mutant::StatusTest]);
}

/// Neither a step that is waited for nor those behind one that is not. Messages are the processor's.
TEST_P(DeviceFaultsTest, BadDataChangeNothing) {
  compile({"native", "sm_80"});
  Device device;
  Session session(artifact, &device.host, ORTC_SESSION_STOP_ON_NOT_FINITE),
      processor(artifact, nullptr, ORTC_SESSION_STOP_ON_NOT_FINITE);
  double loss = 0;
  for (Session *each : {&session, &processor}) {
    writeInputs(*each, 0);
    ASSERT_EQ(ortc_train_step(each->get(), &loss), ORTC_OK) << each->message();
  }
  std::string before = checkpointOf(session);
  for (const std::string &name : listIndices()) {
    for (Session *each : {&session, &processor}) {
      writeInputs(*each, 0);
      spoilIndex(*each, name, 3, -1000000);
      EXPECT_EQ(ortc_train_step(each->get(), &loss), ORTC_E_RANGE);
    }
    EXPECT_EQ(session.message(), processor.message());
    EXPECT_TRUE(checkpointOf(session) == before) << name;
    EXPECT_EQ(ortc_train_step(session.get(), nullptr), ORTC_OK);
    writeInputs(session, 0);
    EXPECT_EQ(ortc_train_step(session.get(), nullptr), ORTC_OK) << "nobody waits";
    EXPECT_TRUE(checkpointOf(session) == before) << name;
    EXPECT_EQ(ortc_train_step(session.get(), &loss), ORTC_E_RANGE);
    EXPECT_EQ(session.message(), processor.message());
    EXPECT_TRUE(checkpointOf(session) == before) << name;
  }
  writeInputs(session, 0);
  EXPECT_EQ(ortc_train_step(session.get(), &loss), ORTC_OK) << "the session goes on";
  EXPECT_FALSE(checkpointOf(session) == before);
  for (Session *each : {&session, &processor}) {
    writeInputs(*each, 0);
    spoilParameters(*each);
  }
  before = checkpointOf(session);
  for (Session *each : {&session, &processor})
    EXPECT_EQ(ortc_train_step(each->get(), &loss), ORTC_E_NOT_FINITE);
  EXPECT_EQ(session.message(), processor.message());
  EXPECT_TRUE(checkpointOf(session) == before);
}

INSTANTIATE_TEST_SUITE_P(Faults, DeviceFaultsTest,
                         testing::Values(Model{"mlp-digits", 150, 0}, Model{"autoencoder-conv", 20, 0},
                                         Model{"fasttext", 150, 0}, Model{"gcn", 150, 2},
                                         Model{"gru-forecast", 150, 0}, Model{"dlrm-tiny", 150, 1},
                                         Model{"loss-in-graph", 150, 0}, Model{"gpt2-tiny", 80, 0}),
                         [](const auto &info) { return caseName(info.param.name); });
