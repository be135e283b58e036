// Parameters as one buffer: order, layouts, conversions of every type, and what is refused.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ortc/parameters.h"

#include <cmath>
#include <limits>

#include "test/runtime/TestArtifact.h"

namespace ortc::test {
namespace {

constexpr uint8_t kFloat = 1, kInt64 = 7, kDouble = 11, kBfloat16 = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// fc.weight [2, 3] of float32, stored transposed; "half" [3] of bfloat16; a running mean [2] and a counter that the
/// model has; optimizer state; "wide" [2] of float64.
Artifact makeMixedArtifact() {
  Artifact a = makeArtifact();
  a.entries.clear();
  auto add = [&](const char *name, ortc_tensor_role role, uint8_t dtype, std::vector<int64_t> dims,
                 bool isOfModel) {
    artifact::Tensor tensor;
    tensor.name = name;
    tensor.role = role;
    tensor.dtype = dtype;
    tensor.dims = std::move(dims);
    tensor.offset = a.persistentBytes;
    tensor.flags = isOfModel ? ORTC_TENSOR_IN_MODEL : 0;
    a.persistentBytes += 64;
    a.tensors.push_back(tensor);
  };
  add("half", ORTC_ROLE_PARAMETER, kBfloat16, {3}, true);
  add("norm.running_mean", ORTC_ROLE_STATE, kFloat, {2}, true);
  add("norm.count", ORTC_ROLE_STATE, kInt64, {}, true);
  add("wide", ORTC_ROLE_PARAMETER, kDouble, {2}, true);
  return a;
}

class ParametersTest : public testing::Test {
protected:
  explicit ParametersTest(const Artifact &artifact = makeMixedArtifact())
      : opened(makeFile(artifact)), session(makeSession(opened.program.get())) {}
  /// With memory for them, which ends where it ends.
  void choose(uint32_t which) {
    parameters.which = which;
    ASSERT_EQ(ortc_parameters_size(opened.program.get(), &parameters), ORTC_OK);
    values.assign(parameters.count, -1);
    scratch.assign(parameters.scratch_bytes / 8, 0);
    parameters.values = values.data();
    parameters.scratch = scratch.data();
  }
  std::vector<float> read() {
    EXPECT_EQ(ortc_parameters_read(opened.program.get(), session.get(), &parameters, &message), ORTC_OK)
        << message.text;
    return values;
  }
  void write(std::vector<float> given) {
    values = std::move(given);
    parameters.values = values.data();
    std::vector<float> before = values;
    EXPECT_EQ(ortc_parameters_write(opened.program.get(), session.get(), &parameters, &message), ORTC_OK)
        << message.text;
    EXPECT_EQ(std::memcmp(before.data(), values.data(), 4 * values.size()), 0)
        << "the buffer is the caller's";
  }
  template <typename T> std::vector<T> tensor(const char *name, size_t count) {
    std::vector<T> result(count);
    EXPECT_EQ(ortc_read(session.get(), name, result.data(), count * sizeof(T)), ORTC_OK);
    return result;
  }
  template <typename T> void setTensor(const char *name, const std::vector<T> &given) {
    EXPECT_EQ(ortc_write(session.get(), name, given.data(), given.size() * sizeof(T)), ORTC_OK);
  }

  OpenProgram opened;
  SessionHandle session;
  ortc_parameters parameters = ORTC_INIT(ortc_parameters);
  std::vector<float> values;
  std::vector<uint64_t> scratch;
  ortc_message message{};
};

TEST_F(ParametersTest, SizesAreThoseOfTheTensors) {
  choose(ORTC_PARAMETERS_TRAINED);
  EXPECT_EQ(parameters.count, 6u + 3 + 2);
  EXPECT_EQ(parameters.scratch_bytes, 16u) << "two of float64";
  choose(ORTC_PARAMETERS_ALL);
  EXPECT_EQ(parameters.count, 6u + 3 + 2 + 2) << "the counter is an integer, the momentum the optimizer's";
}

TEST_F(ParametersTest, TensorsComeInTheOrderOfTheTableAndRowMajor) {
  setTensor<float>("fc.weight", {1, 2, 3, 4, 5, 6});
  setTensor<uint16_t>("half", {0x3f80, 0xc000, 0x3e80});
  setTensor<float>("norm.running_mean", {8, 9});
  setTensor<double>("wide", {0.1, -1e300});
  choose(ORTC_PARAMETERS_TRAINED);
  EXPECT_EQ(read(), (std::vector<float>{1, 2, 3, 4, 5, 6, 1, -2, 0.25f, 0.1f, -kInfinity}));
  choose(ORTC_PARAMETERS_ALL);
  EXPECT_EQ(read(), (std::vector<float>{1, 2, 3, 4, 5, 6, 1, -2, 0.25f, 8, 9, 0.1f, -kInfinity}));
}

TEST_F(ParametersTest, WritingChangesTheseTensorsAlone) {
  setTensor<float>("fc.weight.momentum", {1, 1, 1, 1, 1, 1});
  setTensor<float>("norm.running_mean", {8, 9});
  choose(ORTC_PARAMETERS_TRAINED);
  write({6, 5, 4, 3, 2, 1, 1, 2, 3, 0.1f, -7});
  EXPECT_EQ(tensor<float>("fc.weight", 6), (std::vector<float>{6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(tensor<double>("wide", 2), (std::vector<double>{double(0.1f), -7}));
  EXPECT_EQ(tensor<float>("fc.weight.momentum", 6), std::vector<float>(6, 1));
  EXPECT_EQ(tensor<float>("norm.running_mean", 2), (std::vector<float>{8, 9}));
  choose(ORTC_PARAMETERS_ALL);
  write({6, 5, 4, 3, 2, 1, 1, 2, 3, 10, 11, 0, 0});
  EXPECT_EQ(tensor<float>("norm.running_mean", 2), (std::vector<float>{10, 11}));
}

/// Halves of the last bit of bfloat16 (2^-7 at one) go to the even neighbour.
TEST_F(ParametersTest, NarrowNumbersAreRoundedToTheNearest) {
  choose(ORTC_PARAMETERS_TRAINED);
  auto rounded = [&](float a, float b, float c) {
    write({0, 0, 0, 0, 0, 0, a, b, c, 0, 0});
    return tensor<uint16_t>("half", 3);
  };
  using Bits = std::vector<uint16_t>;
  EXPECT_EQ(rounded(1.00390625f, 1.01171875f, 1.00390637f), (Bits{0x3f80, 0x3f82, 0x3f81}));
  EXPECT_EQ(rounded(kInfinity, std::numeric_limits<float>::max(), -0.0f), (Bits{0x7f80, 0x7f80, 0x8000}));
  uint32_t bits = 0x7f800001; // whose upper half is infinity's
  float quiet;
  std::memcpy(&quiet, &bits, 4);
  EXPECT_EQ(rounded(quiet, 0, 0)[0] & 0x7fff, 0x7fc0);
}

TEST_F(ParametersTest, EveryValueOfBfloat16ComesBack) {
  choose(ORTC_PARAMETERS_TRAINED);
  for (uint32_t bits = 0; bits < 0x10000; bits++) {
    if ((bits & 0x7f80) == 0x7f80 && bits & 0x7f)
      continue; // NaN become quiet
    setTensor<uint16_t>("half", {uint16_t(bits), 0, 0});
    write(read());
    ASSERT_EQ(tensor<uint16_t>("half", 3)[0], bits);
  }
}

TEST_F(ParametersTest, WrongSizesAreRefusedBeforeAnythingIsWritten) {
  choose(ORTC_PARAMETERS_TRAINED);
  Bytes before = stateOf(session.get());
  auto refusal = [&](auto change) {
    ortc_parameters kept = parameters;
    change(parameters);
    ortc_status read = ortc_parameters_read(opened.program.get(), session.get(), &parameters, &message);
    ortc_status status = ortc_parameters_write(opened.program.get(), session.get(), &parameters, &message);
    EXPECT_EQ(read, status);
    EXPECT_EQ(ortc_parameters_write(opened.program.get(), session.get(), &parameters, nullptr), status);
    parameters = kept;
    return std::to_string(status) + " " + message.text;
  };
  EXPECT_EQ(refusal([](auto &p) { p.count--; }),
            "9 the buffer has 10 numbers, but the parameters have 11 (ortc_parameters_size)");
  EXPECT_EQ(
      refusal([](auto &p) { p.count = uint64_t(1) << 60; }),
      "9 the buffer has 1152921504606846976 numbers, but the parameters have 11 (ortc_parameters_size)");
  EXPECT_EQ(refusal([](auto &p) { p.scratch_bytes = 8; }),
            "6 scratch memory of 8 bytes is too small: 16 are needed (ortc_parameters_size)");
  EXPECT_EQ(refusal([](auto &p) { p.scratch = nullptr; }),
            "6 scratch memory of 0 bytes is too small: 16 are needed (ortc_parameters_size)");
  for (auto change : {+[](ortc_parameters &p) { p.values = nullptr; }, +[](ortc_parameters &p) { p.size--; },
                      +[](ortc_parameters &p) { p.which = 2; }})
    EXPECT_EQ(refusal(change), "1 the size, `which` or the buffer is missing");
  EXPECT_EQ(stateOf(session.get()), before);
}

/// Models of float32 need no scratch memory, and the ones of a training step are those of the session.
TEST(FloatParametersTest, NeedNoScratchMemory) {
  OpenProgram opened(makeFile());
  SessionHandle session = makeSession(opened.program.get()), other = makeSession(opened.program.get());
  trainOn(session.get(), 1);
  ortc_parameters parameters = ORTC_INIT(ortc_parameters);
  ASSERT_EQ(ortc_parameters_size(opened.program.get(), &parameters), ORTC_OK);
  EXPECT_EQ(parameters.scratch_bytes, 0u);
  ASSERT_EQ(parameters.count, 6u);
  float values[6], expected[6], got[6];
  parameters.values = values;
  ASSERT_EQ(ortc_parameters_read(opened.program.get(), session.get(), &parameters, nullptr), ORTC_OK);
  ASSERT_EQ(ortc_parameters_write(opened.program.get(), other.get(), &parameters, nullptr), ORTC_OK);
  ASSERT_EQ(ortc_read(session.get(), "fc.weight", expected, sizeof expected), ORTC_OK);
  ASSERT_EQ(ortc_read(other.get(), "fc.weight", got, sizeof got), ORTC_OK);
  EXPECT_EQ(std::memcmp(expected, values, sizeof values), 0);
  EXPECT_EQ(std::memcmp(expected, got, sizeof got), 0);
}

} // namespace
} // namespace ortc::test
