// Checkpoints: resuming, weights of others, metadata, atomic writing.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <unistd.h>

#include "test/runtime/TestArtifact.h"

namespace ortc::test {
namespace {

class CheckpointTest : public testing::Test {
protected:
  CheckpointTest() : opened(makeFile()), session(makeSession(opened.program.get())) {}
  ortc_session *s() { return session.get(); }
  std::string message() { return ortc_session_message(s()); }
  OpenProgram opened;
  SessionHandle session;
};

static Bytes save(ortc_session *session, std::vector<ortc_metadata> metadata = {}) {
  Bytes bytes;
  ortc_sink_fn sink = [](void *context, const void *data, size_t size) -> int32_t {
    auto *first = static_cast<const uint8_t *>(data);
    auto *target = static_cast<Bytes *>(context);
    target->insert(target->end(), first, first + size);
    return 0;
  };
  EXPECT_EQ(ortc_checkpoint_write(session, sink, &bytes, metadata.data(), metadata.size()), ORTC_OK)
      << ortc_session_message(session);
  return bytes;
}

static auto countEntries(const std::string &folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator{});
}

/// A safetensors file from a header and data.
static Bytes makeSafetensors(const std::string &header, const Bytes &data) {
  uint64_t size = header.size();
  Bytes file(8 + header.size() + data.size());
  std::memcpy(file.data(), &size, 8);
  std::copy(header.begin(), header.end(), file.begin() + 8);
  std::copy(data.begin(), data.end(), file.begin() + 8 + static_cast<std::ptrdiff_t>(header.size()));
  return file;
}

TEST_F(CheckpointTest, ResumingGivesTheBitsOfAnUninterruptedRun) {
  std::string path = makeFolder("resume") + "/ck.safetensors";
  SessionHandle straight = makeSession(opened.program.get()), resumed = makeSession(opened.program.get());
  for (unsigned i = 0; i < 20; ++i)
    trainOn(straight.get(), i);
  ASSERT_EQ(ortc_set_scalar(straight.get(), "lr", 0.25), ORTC_OK);
  for (unsigned i = 0; i < 10; ++i)
    trainOn(s(), i);
  ASSERT_EQ(ortc_checkpoint_save(s(), path.c_str(), nullptr, 0), ORTC_OK) << message();
  EXPECT_EQ(countEntries(std::filesystem::path(path).parent_path()), 1);
  ortc_load_info info{};
  info.size = sizeof info;
  ASSERT_EQ(ortc_checkpoint_load(resumed.get(), path.c_str(), &info), ORTC_OK)
      << ortc_session_message(resumed.get());
  EXPECT_EQ(info.fresh_state, 0u);
  EXPECT_EQ(info.loaded, 4u);
  EXPECT_EQ(info.ignored, 0u);
  for (unsigned i = 10; i < 20; ++i)
    trainOn(resumed.get(), i);
  EXPECT_EQ(stateOf(resumed.get()), stateOf(straight.get()));
}

TEST_F(CheckpointTest, IsAWellFormedSafetensorsFile) {
  Bytes file = save(s(), {{"seed", "7"}, {"quote", "a\"b\\c\n"}});
  uint64_t headerBytes = 0;
  std::memcpy(&headerBytes, file.data(), 8);
  EXPECT_EQ(headerBytes % 8, 0u);
  std::string header(file.begin() + 8, file.begin() + 8 + static_cast<std::ptrdiff_t>(headerBytes));
  EXPECT_EQ(header.find("{\"__metadata__\":{\"ortc.format\":\"1\",\"ortc.checksum\":\"1"), 0u);
  // The caller's strings, then what is no parameter.
  EXPECT_NE(header.find("\"seed\":\"7\",\"quote\":\"a\\\"b\\\\c\\u000a\","
                        "\"ortc.role.fc.weight.momentum\":\"state\",\"ortc.role.step\":\"state\","
                        "\"ortc.role.lr\":\"scalar\"},\"fc.weight\":"),
            std::string::npos)
      << header;
  EXPECT_NE(header.find("\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}"),
            std::string::npos);
  EXPECT_NE(header.find("\"step\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[48,56]}"),
            std::string::npos);
  EXPECT_EQ(file.size(), 8 + headerBytes + 60);
  float w[6]; // in the ONNX layout
  std::memcpy(w, file.data() + 8 + headerBytes, sizeof w);
  EXPECT_EQ(w[1], 1.0f);
  EXPECT_EQ(save(s(), {{"seed", "7"}, {"quote", "a\"b\\c\n"}}), file)
      << "the same state gives the same bytes";
}

TEST_F(CheckpointTest, CarriesMetadata) {
  Bytes file = save(s(), {{"seed", "7"}, {"position", "epoch 3 \"\\\t\xc3\xa9"}});
  std::map<std::string, std::string> seen;
  ortc_load_info info{};
  info.size = sizeof info;
  info.metadata = [](void *context, const char *key, const char *value) {
    (*static_cast<decltype(seen) *>(context))[key] = value;
  };
  info.metadata_context = &seen;
  ASSERT_EQ(ortc_checkpoint_read(s(), file.data(), file.size(), &info), ORTC_OK) << message();
  EXPECT_EQ(seen, (decltype(seen){{"seed", "7"}, {"position", "epoch 3 \"\\\t\xc3\xa9"}}));
}

TEST_F(CheckpointTest, MetadataThatCannotBeKeptIsRefused) {
  ortc_sink_fn sink = [](void *, const void *, size_t) -> int32_t { return 0; };
  ortc_metadata reserved = {"ortc.checksum", "x"};
  EXPECT_EQ(ortc_checkpoint_write(s(), sink, nullptr, &reserved, 1), ORTC_E_ARGUMENT);
  EXPECT_EQ(message(), "'ortc.checksum' is too long, or reserved");
  std::string longText(2000, 'x');
  ortc_metadata large = {"notes", longText.c_str()};
  EXPECT_EQ(ortc_checkpoint_write(s(), sink, nullptr, &large, 1), ORTC_E_ARGUMENT);
  EXPECT_EQ(message(), "'notes' is too long, or reserved");
}

/// As another tool writes them: parameters only, in any order, with names escaped, and with tensors nobody
/// knows.
TEST_F(CheckpointTest, WeightsAloneStartFresh) {
  for (unsigned i = 0; i < 5; ++i)
    trainOn(s(), i);
  Bytes data(24 + 16);
  float w[6] = {1, 2, 3, 4, 5, 6};
  std::memcpy(data.data() + 16, w, 24);
  Bytes file =
      makeSafetensors(" {\"__metadata__\": {\"format\": \"pt\"},\n \"fc\\u002eweight\" : {\"shape\":[2,3],"
                      "\"data_offsets\":[16,40],\"dtype\":\"F32\"}, \"head.bias\": {\"dtype\":\"F16\","
                      "\"shape\":[8],\"data_offsets\":[0,16]} }  ",
                      data);
  ortc_load_info info{};
  info.size = sizeof info;
  ASSERT_EQ(ortc_checkpoint_read(s(), file.data(), file.size(), &info), ORTC_OK) << message();
  EXPECT_EQ(info.fresh_state, 1u);
  EXPECT_EQ(info.loaded, 1u);
  EXPECT_EQ(info.ignored, 1u);
  float read[6], momentum[6];
  ortc_read(s(), "fc.weight", read, sizeof read);
  EXPECT_EQ(std::memcmp(read, w, sizeof w), 0);
  ortc_read(s(), "fc.weight.momentum", momentum, sizeof momentum);
  for (float m : momentum)
    EXPECT_EQ(m, 0.0f);
  double step = -1;
  ortc_get_scalar(s(), "step", &step);
  EXPECT_EQ(step, 0);
}

TEST_F(CheckpointTest, PassesBetweenArtifactsWithOtherLayouts) {
  trainOn(s(), 0);
  Bytes file = save(s());
  Artifact other = makeArtifact();
  other.tensors[kW].strides.clear(); // dense, elsewhere
  other.tensors[kW].offset = 256;
  other.persistentBytes = 320;
  OpenProgram second(makeFile(other));
  SessionHandle target = makeSession(second.program.get());
  ASSERT_EQ(ortc_checkpoint_read(target.get(), file.data(), file.size(), nullptr), ORTC_OK);
  EXPECT_EQ(stateOf(target.get()), stateOf(s()));
  EXPECT_EQ(save(target.get()), file);
  void *place = nullptr;
  EXPECT_EQ(ortc_data(target.get(), "fc.weight", &place), ORTC_OK);
}

TEST_F(CheckpointTest, LargeStridedTensorsGoThroughWhole) {
  Artifact a = makeArtifact();
  artifact::Tensor large;
  large.name = "large";
  large.role = ORTC_ROLE_STATE;
  large.dims = {3, 5, 7, 64};       // 26880 bytes
  large.strides = {4, 12, 60, 420}; // reversed
  large.offset = 256;
  a.tensors.insert(a.tensors.begin() + kShift, large);
  for (artifact::Entry &e : a.entries)
    for (auto *values : {&e.external, &e.internal})
      for (artifact::Value &v : *values)
        v.tensor += v.tensor >= kShift;
  a.persistentBytes = 256 + 26880;
  OpenProgram program(makeFile(a));
  ASSERT_EQ(program.status, ORTC_OK) << program.message.text;
  SessionHandle from = makeSession(program.program.get()), to = makeSession(program.program.get());
  std::vector<float> values(6720), read(6720);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i);
  ASSERT_EQ(ortc_write(from.get(), "large", values.data(), 26880), ORTC_OK);
  Bytes file = save(from.get());
  uint64_t headerBytes = 0;
  std::memcpy(&headerBytes, file.data(), 8);
  EXPECT_EQ(std::memcmp(file.data() + 8 + headerBytes + 60, values.data(), 26880), 0)
      << "after the other 60 bytes";
  ASSERT_EQ(ortc_checkpoint_read(to.get(), file.data(), file.size(), nullptr), ORTC_OK)
      << ortc_session_message(to.get());
  ASSERT_EQ(ortc_read(to.get(), "large", read.data(), 26880), ORTC_OK);
  EXPECT_EQ(read, values);
}

TEST_F(CheckpointTest, AFailedSaveLeavesTheOldFile) {
  std::string folder = makeFolder("save"), path = folder + "/ck.safetensors";
  ASSERT_EQ(ortc_checkpoint_save(s(), path.c_str(), nullptr, 0), ORTC_OK);
  Bytes old = readFile(path);
  trainOn(s(), 0);
  EXPECT_EQ(ortc_checkpoint_save(s(), (folder + "/none/ck").c_str(), nullptr, 0), ORTC_E_IO);
  EXPECT_EQ(message(), "cannot write " + folder + "/none/ck (errno " + std::to_string(ENOENT) + ")");
  EXPECT_EQ(ortc_checkpoint_save(s(), "", nullptr, 0), ORTC_E_IO);
  std::filesystem::create_directories(folder + "/taken/in");
  EXPECT_EQ(ortc_checkpoint_save(s(), (folder + "/taken").c_str(), nullptr, 0), ORTC_E_IO);
  EXPECT_EQ(readFile(path), old);
  EXPECT_EQ(countEntries(folder), 2) << "the checkpoint and the folder, nothing half-written";
}

// In a container every process may have the same number, and every session the same address.
TEST_F(CheckpointTest, WhatIsInTheWayStaysAndBlocksNothing) {
  std::string folder = makeFolder("remnants"), path = folder + "/ck.safetensors";
  std::set<std::string> wanted{path};
  auto put = [&](const std::string &name) {
    writeFile(path + name, {'x'});
    wanted.insert(path + name);
  };
  char session[64];
  std::snprintf(session, sizeof session, ".%d.%p.tmp", getpid(), static_cast<void *>(s()));
  put(session);
  put(".0.tmp");
  put(".1.tmp");
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(ortc_checkpoint_save(s(), path.c_str(), nullptr, 0), ORTC_OK) << message();
  std::filesystem::create_directories(folder + "/taken/in");
  EXPECT_EQ(ortc_checkpoint_save(s(), (folder + "/taken").c_str(), nullptr, 0), ORTC_E_IO);
  wanted.insert(folder + "/taken");
  std::set<std::string> found;
  for (const auto &item : std::filesystem::directory_iterator(folder))
    found.insert(item.path().string());
  EXPECT_EQ(found, wanted);
  EXPECT_EQ(ortc_checkpoint_save(s(), (folder + "/" + std::string(5000, 'a')).c_str(), nullptr, 0),
            ORTC_E_IO);
  EXPECT_EQ(message().substr(0, 13), "cannot write ");
}

TEST_F(CheckpointTest, WritersOfOnePathDoNotDisturbEachOther) {
  std::string folder = makeFolder("writers"), path = folder + "/ck.safetensors";
  std::vector<std::thread> writers;
  for (int k = 0; k < 4; ++k)
    writers.emplace_back([&, k] {
      SessionHandle mine = makeSession(opened.program.get()), other = makeSession(opened.program.get());
      for (int i = 0; i < 50; ++i) {
        trainOn(mine.get(), unsigned(k));
        EXPECT_EQ(ortc_checkpoint_save(mine.get(), path.c_str(), nullptr, 0), ORTC_OK)
            << ortc_session_message(mine.get());
        EXPECT_EQ(ortc_checkpoint_load(other.get(), path.c_str(), nullptr), ORTC_OK)
            << ortc_session_message(other.get());
      }
    });
  for (std::thread &writer : writers)
    writer.join();
  EXPECT_EQ(countEntries(folder), 1);
}

TEST_F(CheckpointTest, ASinkThatFailsIsReported) {
  int calls = 0;
  ortc_sink_fn sink = [](void *context, const void *, size_t) -> int32_t {
    return ++*static_cast<int *>(context) > 2;
  };
  EXPECT_EQ(ortc_checkpoint_write(s(), sink, &calls, nullptr, 0), ORTC_E_IO);
  EXPECT_EQ(message(), "sink failed");
  EXPECT_EQ(calls, 3) << "not called again";
}

// ---- Hostile checkpoints ----

static const char kWeight[] = "\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}";
static const char kState[] =
    ",\"fc.weight.momentum\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[24,48]},"
    "\"step\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[48,56]}";

struct Case {
  const char *name;
  std::string header; ///< of a file with `data` zero bytes
  size_t data;
  ortc_status status;
  const char *message;
};

static std::vector<Case> cases() {
  std::string weight = kWeight, state = kState;
  const char *atWeight = "malformed checkpoint";
  const char *malformed = "malformed checkpoint";
  auto with = [&](const std::string &fields) { return "{\"fc.weight\":{" + fields + "}}"; };
  return {
      {"empty_header", "", 24, ORTC_E_FORMAT, malformed},
      {"no_object", "[]", 24, ORTC_E_FORMAT, malformed},
      {"no_tensors", "{}", 24, ORTC_E_NOT_FOUND, "checkpoint has no 'fc.weight'"},
      {"open_object", "{" + weight, 24, ORTC_E_FORMAT, malformed},
      {"trailing_comma", "{" + weight + ",}", 24, ORTC_E_FORMAT, malformed},
      {"trailing_text", "{" + weight + "}x", 24, ORTC_E_FORMAT, malformed},
      {"single_quotes", "{'fc.weight':{}}", 24, ORTC_E_FORMAT, malformed},
      {"open_string", "{\"fc.wei", 24, ORTC_E_FORMAT, malformed},
      {"bad_escape", "{\"fc\\q\":{}}", 24, ORTC_E_FORMAT, malformed},
      {"bad_code_point", "{\"fc\\u12g4\":{}}", 24, ORTC_E_FORMAT, malformed},
      {"zero_code_point",
       "{\"fc.weight\\u0000\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}", 24,
       ORTC_E_FORMAT, malformed},
      {"control_character", "{\"fc\n.weight\":{}}", 24, ORTC_E_FORMAT, malformed},
      {"empty_tensor", with(""), 24, ORTC_E_FORMAT, atWeight},
      {"no_offsets", with("\"dtype\":\"F32\",\"shape\":[2,3]"), 24, ORTC_E_FORMAT,
       "checkpoint ends before 'fc.weight'"},
      {"no_shape", with("\"dtype\":\"F32\",\"data_offsets\":[0,24]"), 24, ORTC_E_SHAPE,
       "'fc.weight' has another shape or dtype"},
      {"no_dtype", with("\"shape\":[2,3],\"data_offsets\":[0,24]"), 24, ORTC_E_SHAPE,
       "'fc.weight' has another shape or dtype"},
      {"unknown_field", with("\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24],\"more\":[1]"), 24,
       ORTC_E_FORMAT, atWeight},
      {"one_offset", with("\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[24]"), 24, ORTC_E_FORMAT,
       atWeight},
      {"three_offsets", with("\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24,24]"), 24,
       ORTC_E_FORMAT, atWeight},
      {"negative_offset", with("\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[-1,24]"), 24,
       ORTC_E_FORMAT, atWeight},
      {"fractional_offset", with("\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0.5,24]"), 24,
       ORTC_E_FORMAT, atWeight},
      {"offset_of_20_digits",
       with("\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,99999999999999999999]"), 24, ORTC_E_FORMAT,
       atWeight},
      {"offsets_reversed", with("\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[24,0]"), 24,
       ORTC_E_FORMAT, "checkpoint ends before 'fc.weight'"},
      {"offset_past_the_end", with("\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[8,32]"), 24,
       ORTC_E_FORMAT, "checkpoint ends before 'fc.weight'"},
      {"wrong_size", with("\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,20]"), 24, ORTC_E_SHAPE,
       "'fc.weight' has another shape or dtype"},
      {"transposed", with("\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]"), 24, ORTC_E_SHAPE,
       "'fc.weight' has another shape or dtype"},
      {"wrong_dtype", with("\"dtype\":\"I32\",\"shape\":[2,3],\"data_offsets\":[0,24]"), 24, ORTC_E_SHAPE,
       "'fc.weight' has another shape or dtype"},
      {"long_dtype", with("\"dtype\":\"F32F32F32F32F32F32\",\"shape\":[2,3],\"data_offsets\":[0,24]"), 24,
       ORTC_E_SHAPE, "'fc.weight' has another shape or dtype"},
      {"rank_9", with("\"dtype\":\"F32\",\"shape\":[2,3,1,1,1,1,1,1,1],\"data_offsets\":[0,24]"), 24,
       ORTC_E_FORMAT, malformed},
      {"twice",
       "{\"lr\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},\"lr\":{\"dtype\":\"F32\",\"shape\":["
       "],"
       "\"data_offsets\":[4,8]}}",
       8, ORTC_E_FORMAT, "checkpoint has 'lr' twice"},
      {"overlapping_data",
       "{" + weight + ",\"other\":{\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[0,24]}}", 24,
       ORTC_E_FORMAT, "checkpoint ends before 'other'"},
      {"overlap_and_hole",
       "{" + weight + ",\"other\":{\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[12,36]}}", 48,
       ORTC_E_FORMAT, malformed},
      {"hole_at_the_beginning", // and an overlap behind it
       "{\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[4,28]},\"other\":{\"dtype\":"
       "\"F32\","
       "\"shape\":[],\"data_offsets\":[8,12]}}",
       28, ORTC_E_FORMAT, malformed},
      {"data_left_over", "{" + weight + "}", 32, ORTC_E_FORMAT, malformed},
      {"weights_missing", "{\"other\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4,
       ORTC_E_NOT_FOUND, "checkpoint has no 'fc.weight'"},
      {"half_the_state",
       "{" + weight + ",\"step\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[24,32]}}", 32,
       ORTC_E_NOT_FOUND, "checkpoint has no 'fc.weight.momentum'"},
      {"newer_format", "{\"__metadata__\":{\"ortc.format\":\"2\"}," + weight + state + "}", 56, ORTC_E_FORMAT,
       malformed},
      {"short_checksum", "{\"__metadata__\":{\"ortc.checksum\":\"12\"}," + weight + state + "}", 56,
       ORTC_E_HASH, "wrong checksum"},
      {"checksum_of_letters", "{\"__metadata__\":{\"ortc.checksum\":\"12ab\"}," + weight + state + "}", 56,
       ORTC_E_FORMAT, malformed},
      {"wrong_checksum",
       "{\"__metadata__\":{\"ortc.checksum\":\"1234567890123456789\"}," + weight + state + "}", 56,
       ORTC_E_HASH, "wrong checksum"},
      {"metadata_number", "{\"__metadata__\":{\"seed\":7}," + weight + "}", 24, ORTC_E_FORMAT, malformed},
  };
}

class HostileCheckpointTest : public testing::TestWithParam<Case> {};

TEST_P(HostileCheckpointTest, IsRefusedAndChangesNothing) {
  const Case &c = GetParam();
  OpenProgram opened(makeFile());
  SessionHandle session = makeSession(opened.program.get());
  trainOn(session.get(), 0);
  Bytes before = stateOf(session.get());
  Bytes file = makeSafetensors(c.header, Bytes(c.data));
  EXPECT_EQ(ortc_checkpoint_read(session.get(), file.data(), file.size(), nullptr), c.status);
  EXPECT_NE(std::string(ortc_session_message(session.get())).find(c.message), std::string::npos)
      << ortc_session_message(session.get());
  EXPECT_EQ(stateOf(session.get()), before);
}

INSTANTIATE_TEST_SUITE_P(Cases, HostileCheckpointTest, testing::ValuesIn(cases()),
                         [](const auto &info) { return info.param.name; });

/// A header may name tensors in another order than that of their data.
TEST_F(CheckpointTest, TensorsAreTakenInAnyOrder) {
  constexpr unsigned kOthers = 100;
  std::vector<std::string> entries{
      "\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[40,64]}"};
  for (unsigned i = 0; i < kOthers; ++i) {
    unsigned begin = i < 10 ? 4 * i : 4 * i + 24;
    entries.push_back("\"t" + std::to_string(i) + "\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[" +
                      std::to_string(begin) + "," + std::to_string(begin + 4) + "]}");
  }
  entries.push_back("\"empty\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[424,424]}");
  auto read = [&] {
    std::string header;
    for (const std::string &entry : entries)
      header += (header.empty() ? "{" : ",") + entry;
    Bytes file = makeSafetensors(header + "}", Bytes(24 + 4 * kOthers));
    return ortc_checkpoint_read(s(), file.data(), file.size(), nullptr);
  };
  EXPECT_EQ(read(), ORTC_OK) << message();
  std::reverse(entries.begin(), entries.end());
  EXPECT_EQ(read(), ORTC_OK) << message();
  std::shuffle(entries.begin(), entries.end(), std::mt19937(7));
  EXPECT_EQ(read(), ORTC_OK) << message();
  // Two of the others at one place: as many bytes, but four of them are nobody's.
  for (std::string &entry : entries)
    if (entry.starts_with("\"t99\""))
      entry = "\"t99\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[0,4]}";
  EXPECT_EQ(read(), ORTC_E_FORMAT);
}

/// Another order costs time, which has an end.
TEST_F(CheckpointTest, StepsBackInAHeaderAreLimited) {
  auto read = [&](unsigned others) {
    std::string header;
    for (unsigned i = others; i-- > 0;)
      header += (header.empty() ? "{\"t" : ",\"t") + std::to_string(i) +
                "\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[" + std::to_string(24 + 4 * i) + "," +
                std::to_string(28 + 4 * i) + "]}";
    header += ",\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}";
    Bytes file = makeSafetensors(header, Bytes(24 + 4 * others));
    return ortc_checkpoint_read(s(), file.data(), file.size(), nullptr);
  };
  EXPECT_EQ(read(1000), ORTC_OK) << message();
  EXPECT_EQ(read(1100), ORTC_E_FORMAT);
  EXPECT_EQ(message(), "malformed checkpoint");
}

TEST_F(CheckpointTest, HeaderLengthsAreChecked) {
  for (uint64_t length : {uint64_t(25), uint64_t(1) << 32, ~uint64_t(0), ~uint64_t(7)}) {
    Bytes file(32);
    std::memcpy(file.data(), &length, 8);
    EXPECT_EQ(ortc_checkpoint_read(s(), file.data(), file.size(), nullptr), ORTC_E_FORMAT);
    EXPECT_EQ(message(), "malformed checkpoint");
  }
  EXPECT_EQ(ortc_checkpoint_read(s(), "1234567", 7, nullptr), ORTC_E_FORMAT);
  EXPECT_EQ(message(), "malformed checkpoint");
  std::string folder = makeFolder("load");
  writeFile(folder + "/empty", {});
  EXPECT_EQ(ortc_checkpoint_load(s(), (folder + "/empty").c_str(), nullptr), ORTC_E_FORMAT);
  EXPECT_EQ(ortc_checkpoint_load(s(), (folder + "/none").c_str(), nullptr), ORTC_E_IO);
  EXPECT_EQ(ortc_checkpoint_load(s(), folder.c_str(), nullptr), ORTC_E_IO);
}

TEST_F(CheckpointTest, EveryTruncationIsRefused) {
  Bytes file = save(s(), {{"seed", "1"}});
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_NE(ortc_checkpoint_read(s(), file.data(), size, nullptr), ORTC_OK) << size;
}

TEST_F(CheckpointTest, EveryFlippedBitIsRefusedButInMetadataText) {
  trainOn(s(), 0);
  Bytes file = save(s(), {{"seed", "1"}}), before = stateOf(s());
  uint64_t headerBytes = 0;
  std::memcpy(&headerBytes, file.data(), 8);
  std::string header(file.begin() + 8, file.begin() + 8 + static_cast<std::ptrdiff_t>(headerBytes));
  size_t end = header.find('}'); // of the metadata
  for (size_t at = 0; at < file.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      file[at] ^= static_cast<uint8_t>(1 << bit);
      ortc_load_info info{};
      info.size = sizeof info;
      ortc_status status = ortc_checkpoint_read(s(), file.data(), file.size(), &info);
      bool isScalarName = header.find("\"lr\"") + 8 <= at && at < header.find("\"lr\"") + 12;
      if (status == ORTC_OK && !isScalarName) {
        EXPECT_LT(at, 8 + end) << "byte " << at << " bit " << bit << " was accepted";
      } else if (status != ORTC_OK) {
        ASSERT_EQ(stateOf(s()), before);
      }
      file[at] ^= static_cast<uint8_t>(1 << bit);
      ASSERT_EQ(ortc_checkpoint_read(s(), file.data(), file.size(), nullptr), ORTC_OK) << message();
    }
}

TEST_F(CheckpointTest, RandomDamageNeverCrashes) {
  Bytes good = save(s(), {{"seed", "1"}});
  uint32_t state = 99;
  auto next = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
  for (int round = 0; round < 20000; ++round) {
    Bytes file = good;
    for (uint32_t n = 1 + next() % 4; n; --n) {
      size_t at = next() % file.size();
      static const char kBytes[] = "{}[]\",:\\0129uF ";
      file[at] = static_cast<uint8_t>(next() % 2 ? kBytes[next() % 15] : next());
    }
    ortc_checkpoint_read(s(), file.data(), file.size(), nullptr);
  }
}

} // namespace
} // namespace ortc::test
