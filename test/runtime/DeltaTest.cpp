// Deltas of a session: their bytes against arithmetic of this test, from every kind of base, and what is refused.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ortc/delta.h"

#include <cmath>
#include <limits>

#include "test/runtime/TestArtifact.h"

namespace ortc::test {
namespace {

constexpr int64_t kRows = 2,
                  kColumns = 333; // two whole blocks and a part of one, in a layout that is not the model's
constexpr size_t kCount = kRows * kColumns, kBlocks = 3;

/// The artifact with a larger weight, stored transposed, which the file holds to the middle: the rest begins as zero.
Artifact makeLargeArtifact() {
  Artifact a = makeArtifact();
  constexpr uint64_t kBytes = kCount * 4, kRoom = (kBytes + 63) / 64 * 64;
  for (uint32_t i : {uint32_t(kW), uint32_t(kMomentum)}) {
    a.tensors[i].dims = {kRows, kColumns};
    a.tensors[i].strides = {4, 4 * kRows};
  }
  a.tensors[kMomentum].offset = kRoom;
  a.tensors[kStep].offset = 2 * kRoom;
  a.tensors[kRate].offset = 2 * kRoom + 64;
  a.tensors[kGradient].dims = a.tensors[kW].dims;
  a.persistentBytes = 2 * kRoom + 128;
  Bytes persistent(kBytes / 2);
  for (size_t i = 0; i < kBytes / 8; i++) {
    float value = std::sin(float(i)) * 3;
    std::memcpy(persistent.data() + 4 * i, &value, 4);
  }
  a.persistent = artifact::Image(std::move(persistent));
  a.entries.clear();
  return a;
}

using Floats = std::vector<float>;

Floats readFloats(ortc_session *session, const char *name, size_t count = kCount) {
  Floats values(count);
  EXPECT_EQ(ortc_read(session, name, values.data(), count * 4), ORTC_OK);
  return values;
}

void writeFloats(ortc_session *session, const char *name, const Floats &values) {
  EXPECT_EQ(ortc_write(session, name, values.data(), values.size() * 4), ORTC_OK);
}

int32_t append(void *context, const void *data, size_t bytes) {
  auto *to = static_cast<std::string *>(context);
  to->append(static_cast<const char *>(data), bytes);
  return 0;
}

class DeltaTest : public testing::Test {
protected:
  DeltaTest() : opened(makeFile(makeLargeArtifact())), session(makeSession(opened.program.get())) {
    initial = readFloats(session.get(), "fc.weight");
    changed = initial;
    for (size_t i = 0; i < kCount; i++)
      changed[i] += i < 256 ? std::cos(float(i * i)) * 0.01f : i < 512 ? 0 : float(i) * 1e-7f;
    delta.size = sizeof delta;
  }
  void train() { writeFloats(session.get(), "fc.weight", changed); }
  std::string checkpoint() {
    std::string file;
    EXPECT_EQ(ortc_checkpoint_write(session.get(), append, &file, nullptr, 0), ORTC_OK);
    return file;
  }
  std::string write(ortc_status expected = ORTC_OK) {
    std::string file;
    message = {};
    EXPECT_EQ(ortc_delta_write(&delta, opened.program.get(), session.get(), append, &file, &message),
              expected)
        << message.text;
    return file;
  }
  static std::string headerOf(const std::string &file) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, file.data(), 8);
    return file.substr(8, bytes);
  }
  static std::string dataOf(const std::string &file) { return file.substr(8 + headerOf(file).size()); }
  Floats differences() const {
    Floats result(kCount);
    for (size_t i = 0; i < kCount; i++)
      result[i] = float(double(changed[i]) - double(initial[i]));
    return result;
  }

  OpenProgram opened;
  SessionHandle session;
  Floats initial, changed;
  ortc_delta delta{};
  ortc_message message{};
};

TEST_F(DeltaTest, FloatsAreTheDifferencesFromTheInitialWeights) {
  train();
  std::string file = write();
  EXPECT_EQ(headerOf(file).size() % 8, 0u);
  EXPECT_NE(headerOf(file).find(R"("fc.weight":{"dtype":"F32","shape":[2,333],"data_offsets":[0,2664]}})"),
            std::string::npos)
      << headerOf(file);
  EXPECT_NE(headerOf(file).find(R"("ortc.format":"delta-1")"), std::string::npos);
  Floats expected = differences();
  EXPECT_EQ(dataOf(file), std::string(reinterpret_cast<const char *>(expected.data()), kCount * 4));
}

TEST_F(DeltaTest, IntegersAreTheNearestMultiplesOfAScaleForEachBlock) {
  train();
  delta.kind = ORTC_DELTA_INT8;
  std::string file = write(), data = dataOf(file);
  EXPECT_NE(
      headerOf(file).find(R"("fc.weight":{"dtype":"I8","shape":[2,333],"data_offsets":[0,666]},)"
                          R"("fc.weight:scales":{"dtype":"F32","shape":[3],"data_offsets":[666,678]}})"),
      std::string::npos)
      << headerOf(file);
  ASSERT_EQ(data.size(), kCount + 4 * kBlocks);
  Floats expected = differences();
  for (size_t block = 0; block < kBlocks; block++) {
    size_t first = block * 256, last = std::min(first + 256, kCount);
    double most = 0;
    for (size_t i = first; i < last; i++)
      most = std::max(most, std::abs(double(expected[i])));
    float scale = 0;
    std::memcpy(&scale, data.data() + kCount + 4 * block, 4);
    EXPECT_EQ(scale, float(most / 127)) << block;
    for (size_t i = first; i < last; i++) {
      int rounded = static_cast<signed char>(data[i]);
      EXPECT_LE(std::abs(rounded), 127);
      EXPECT_LE(std::abs(rounded * double(scale) - expected[i]), scale * 0.500001) << i;
    }
  }
  EXPECT_EQ(data.substr(256, 256), std::string(256, '\0')) << "what has not changed";
}

TEST_F(DeltaTest, EveryKindOfBaseGivesTheSameBytes) {
  std::string base = checkpoint();
  train();
  std::string file = write();
  delta.base = base.data();
  delta.base_bytes = base.size();
  EXPECT_EQ(write(), file);
  delta.base = nullptr;
  struct Flash {
    std::string bytes;
    bool isDead = false;
  } flash{base};
  delta.context = &flash;
  delta.read = [](void *context, uint64_t offset, void *data, size_t bytes) -> int32_t {
    auto *from = static_cast<Flash *>(context);
    EXPECT_LE(offset + bytes, from->bytes.size());
    std::memcpy(data, from->bytes.data() + offset, bytes);
    return from->isDead;
  };
  EXPECT_EQ(write(), file);
  flash.isDead = true;
  EXPECT_EQ(write(ORTC_E_FORMAT), "");
  delta.read = nullptr;
  EXPECT_EQ(write(ORTC_E_ARGUMENT), "");
}

TEST_F(DeltaTest, HeadersOfOtherWritersAreRead) {
  std::string base = checkpoint(), data = dataOf(base);
  train();
  std::string file = write();
  std::string header =
      "{ \"__metadata__\" : {\"a\\\"}\":\"{\\u007b[\"} ,\n \"fc.weight2\":{\"dtype\":\"F32\",\"shape\":[],"
      "\"data_offsets\":[0,4]}, \"fc\\u002eweight\" : { \"data_offsets\" : [ 4 , 2668 ],"
      "\"shape\":[2,333], \"dtype\" : \"F32\" } }";
  uint64_t bytes = header.size();
  std::string other(reinterpret_cast<const char *>(&bytes), 8);
  other += header + "1234" + std::string(reinterpret_cast<const char *>(initial.data()), kCount * 4);
  delta.base = other.data();
  delta.base_bytes = other.size();
  EXPECT_EQ(write(), file);
}

TEST_F(DeltaTest, NoPrefixOfABaseIsTakenForAWholeOne) {
  std::string base = checkpoint();
  size_t needed = base.find("fc.weight.momentum"), header = 8 + headerOf(base).size();
  ASSERT_NE(needed, std::string::npos);
  for (size_t bytes = 1; bytes < header + kCount * 4; bytes += bytes < header ? 1 : 97) {
    std::unique_ptr<char[]> exact(new char[bytes]); // its end is seen by the address sanitizer
    std::memcpy(exact.get(), base.data(), bytes);
    delta.base = exact.get();
    delta.base_bytes = bytes;
    std::string file;
    ortc_status status =
        ortc_delta_write(&delta, opened.program.get(), session.get(), append, &file, &message);
    EXPECT_TRUE(status == ORTC_E_FORMAT || status == ORTC_E_SHAPE || status == ORTC_E_IO) << bytes;
    EXPECT_EQ(file, "");
  }
}

/// Whatever a header says, nothing outside of the base is read: what is built with sanitizers would see it.
TEST_F(DeltaTest, NoDamageOfAHeaderIsFollowed) {
  const std::string base = checkpoint();
  std::unique_ptr<char[]> exact(new char[base.size()]);
  delta.base = exact.get();
  delta.base_bytes = base.size();
  int refused = 0;
  for (size_t at = 0; at < 8 + headerOf(base).size(); at++)
    for (char value : {'0', '9', '"', '\\', '{', '}', ']', ',', '\xff'}) {
      std::memcpy(exact.get(), base.data(), base.size());
      exact[at] = value;
      std::string file;
      ortc_status status =
          ortc_delta_write(&delta, opened.program.get(), session.get(), append, &file, &message);
      EXPECT_EQ(file.empty(), status != ORTC_OK);
      refused += status != ORTC_OK;
    }
  EXPECT_GT(refused, 500);
}

TEST_F(DeltaTest, BasesOfOtherModelsAreRefused) {
  std::string base = checkpoint();
  auto with = [&](const std::string &from, const std::string &to) {
    std::string other = base;
    other.replace(other.find(from), from.size(), to);
    delta.base = other.data();
    delta.base_bytes = other.size();
    std::string file;
    ortc_status status =
        ortc_delta_write(&delta, opened.program.get(), session.get(), append, &file, &message);
    EXPECT_EQ(file, "");
    return std::to_string(status) + " " + message.text;
  };
  EXPECT_EQ(with("\"fc.weight\":", "\"fc.height\":"), "8 the base has no 'fc.weight'");
  EXPECT_EQ(with("\"F32\"", "\"I32\""), "9 'fc.weight' has another size or type in the base");
  EXPECT_EQ(with("[0,2664]", "[0,2660]"), "9 'fc.weight' has another size or type in the base");
  EXPECT_EQ(with("{\"__m", "x\"__m"), "2 the base is no checkpoint");
}

TEST_F(DeltaTest, WhatIsNotFiniteIsNeverWritten) {
  for (float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    changed[kCount - 1] = bad;
    train();
    for (uint32_t kind : {ORTC_DELTA_FLOAT, ORTC_DELTA_INT8}) {
      delta.kind = kind;
      EXPECT_EQ(write(ORTC_E_NOT_FINITE), "");
      EXPECT_STREQ(message.text, "the change of 'fc.weight' is not finite");
    }
  }
}

TEST_F(DeltaTest, ASinkThatFailsEndsIt) {
  train();
  for (int allowed = 0; allowed < 6; allowed++) {
    int left = allowed;
    auto sink = [](void *context, const void *, size_t) -> int32_t {
      return (*static_cast<int *>(context))-- <= 0;
    };
    EXPECT_EQ(ortc_delta_write(&delta, opened.program.get(), session.get(), sink, &left, nullptr), ORTC_E_IO);
    EXPECT_EQ(left, -1) << "it was asked again";
  }
}

TEST_F(DeltaTest, ADeltaIsNoCheckpoint) {
  train();
  std::string file = write();
  EXPECT_EQ(ortc_checkpoint_read(session.get(), file.data(), file.size(), nullptr), ORTC_E_FORMAT);
  EXPECT_EQ(readFloats(session.get(), "fc.weight"), changed);
  delta.kind = 2;
  EXPECT_EQ(write(ORTC_E_ARGUMENT), "");
}

} // namespace
} // namespace ortc::test
