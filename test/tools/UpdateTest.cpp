// ortc update: the artifact of an optimizer's update, and what is refused.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <filesystem>
#include <gtest/gtest.h>

#include "test/engine/data_files.h"
#include "test/tools/Process.h"

using namespace ortc::engine::test;
using ortc::test::Arguments;

namespace {

class UpdateTest : public testing::Test {
protected:
  ortc::test::Ended run(Arguments arguments, const std::string &output = "-o") {
    arguments.insert(arguments.begin(), "update");
    arguments.insert(arguments.end(), {output, folder / "update", "--target", "native"});
    return ortc::test::Process(ORTC_TOOL, arguments).wait();
  }
  std::string inspect() { return ortc::test::Process(ORTC_TOOL, {"inspect", folder / "update"}).wait().text; }

  TemporaryFolder folder;
};

TEST_F(UpdateTest, HasABindingForEachPiece) {
  ortc::test::Ended ended = run({"--optimizer", "rmsprop:momentum=0.5"});
  ASSERT_EQ(ended.status, 0) << ended.text;
  EXPECT_EQ(ended.text.substr(0, ended.text.rfind(", ")),
            folder / "update" + ": update of rmsprop:momentum=0.5 in 15 bindings");
  const std::string text = inspect();
  for (const char *line : {"\nbinding    n262144 (elements=262144)\n", "\nbinding    n16 (elements=16)\n",
                           "\n  input      parameter                                float32  [262144]",
                           "\n  input      momentum_buffer                          float32  [262144]",
                           "\n  input      gradient_scale                           float64  []",
                           "\n  output     square_avg.new                           float32  [262144]"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  EXPECT_EQ(text.find("weight_decay"), std::string::npos) << "a zero compiles nothing";
}

TEST_F(UpdateTest, TakesAWholeTensor) {
  ortc::test::Ended ended =
      run({"--optimizer", "adafactor", "--shape", "40x7", "--precision", "f64", "--quiet"});
  ASSERT_EQ(ended.status, 0) << ended.text;
  EXPECT_EQ(ended.text, "");
  EXPECT_NE(inspect().find("\n  input      row_var                                  float64  [40, 1]"),
            std::string::npos);
}

TEST_F(UpdateTest, RefusesWithReason) {
  auto refusal = [&](const Arguments &arguments) {
    ortc::test::Ended ended = run(arguments);
    EXPECT_EQ(ended.status, 2) << ended.text;
    EXPECT_FALSE(std::filesystem::exists(folder / "update"));
    return ended.text;
  };
  EXPECT_EQ(refusal({"--optimizer", "lars"}),
            "ortc: error: optimizer 'lars' needs the norm of the parameter; give its --shape\n");
  EXPECT_EQ(refusal({"--optimizer", "muon", "--shape", "4x4x4"}),
            "ortc: error: optimizer 'muon' updates tensors of 2 dimensions, and --shape has 3\n");
  EXPECT_EQ(refusal({"--precision", "bf16"}),
            "ortc: error: --precision: 'bf16' is none of an update, which computes in f32 or f64\n");
  for (const std::string shape : {"4x", "x4", "0", "4x-1", "65536x65536"})
    EXPECT_EQ(
        refusal({"--shape", shape}),
        "ortc: error: --shape: '" + shape +
            "' must be sizes from 1 with x between them, such as 64x128, of 2147483648 elements at most\n");
  ortc::test::Ended ended = run({}, "--dump-ir");
  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(ended.text, "ortc: error: -o DIR is missing: the folder of the artifact\n");
}

} // namespace
