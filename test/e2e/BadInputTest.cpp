// Bad input of recipes: one message each, with what is wrong, where, its limit and what to do; nothing is left behind.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>

#include "engine/data/writers.h"
#include "support/Npy.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;

namespace {

using Words = std::vector<std::string>;

template <typename T> std::vector<uint8_t> bytesOfAll(const std::vector<T> &values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

class BadInputTest : public testing::Test {
protected:
  /// One line that begins as errors do and has `message` in it, and no file `out`.
  void expectOneMessage(Words words, int status, const std::string &message) {
    words.push_back("--quiet");
    Outcome outcome = runTool(words);
    EXPECT_EQ(outcome.status, status) << message << "\n" << outcome.errors;
    EXPECT_TRUE(outcome.errors.starts_with("ortc: error: ")) << outcome.errors;
    EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
    EXPECT_NE(outcome.errors.find(message), std::string::npos) << message << "\n" << outcome.errors;
    EXPECT_EQ(outcome.text, "");
    EXPECT_FALSE(std::filesystem::exists(folder / "out")) << message;
  }
  Words train(const Words &more, const std::string &output) {
    Words words{"train", digits.model(), "--shape", "batch=4", "--target", "native", "-o", folder / output};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  void refuseTrain(const Words &more, const std::string &message) {
    expectOneMessage(train(more, "out"), 2, message);
  }
  void compile(const Words &more = {}) {
    Words words = train(more, "model");
    words.push_back("--quiet");
    mustRun(words);
  }
  Words run(const std::string &data, const Words &more) {
    Words words{"run", folder / "model", "--data", data, "--no-shuffle", "--save", folder / "out"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  void refuseRun(const std::string &data, const Words &more, int status, const std::string &message) {
    expectOneMessage(run(data, more), status, message);
  }
  std::string writeFactors(const std::string &name, const std::vector<double> &values) {
    std::string header = formatNpyHeader(DataType::Float64, {int64_t(values.size())});
    std::vector<uint8_t> bytes = bytesOfAll(values);
    return folder.write(name, header + std::string(bytes.begin(), bytes.end()));
  }
  /// Eight samples of digits.
  std::string writeDigits(const std::string &name, int64_t width = 64, const std::string &more = "",
                          float third = 1) {
    std::vector<float> pixels(size_t(8 * width), 0.5f), weights(8, 1);
    weights[2] = third;
    std::vector<engine::OutputArray> arrays = {
        {"pixels", DataType::Float32, {8, width}, bytesOfAll(pixels)},
        {"label", DataType::Int64, {8}, bytesOfAll(std::vector<int64_t>(8, 3))}};
    if (!more.empty())
      arrays.push_back({more, DataType::Float32, {8}, bytesOfAll(weights)});
    EXPECT_TRUE(engine::writeNpz(folder / name, arrays).isOk());
    return folder / name;
  }
  /// The same as text, with a field of the fourth line.
  std::string writeCsv(const std::string &field, const std::string &label) {
    std::string text = "label";
    for (int i = 0; i < 64; ++i)
      text += ",pixels[" + std::to_string(i) + "]";
    for (int row = 0; row < 4; ++row) {
      text += "\n" + (row == 2 ? label : "1") + "," + (row == 2 ? field : "0.5");
      for (int i = 1; i < 64; ++i)
        text += ",0.25";
    }
    return folder.write("digits.csv", text + "\n");
  }
  /// gpt2-tiny: 96 tokens.
  void compileText(const Words &more) {
    Words words{"train",   text.model(),          "-o",     folder / "model", "--target", "native",
                "--shape", "batch=4,sequence=16", "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    mustRun(words);
  }

  TemporaryFolder folder;
  ZooEntry digits{"mlp-digits"}, text{"gpt2-tiny"};
};

TEST_F(BadInputTest, UnknownNames) {
  refuseTrain({"--optimizer", "lyon"}, "there is no optimizer 'lyon'; there are sgd, adam, ");
  refuseTrain({"--optimizer", "lyon"}, "; did you mean 'lion'?");
  refuseTrain({"--optimizer", "adamw:decay=1"},
              "optimizer 'adamw' has no option 'decay'; it takes lr, beta1, ");
  refuseTrain({"--loss", "hubr"}, "; did you mean 'huber'?");
  refuseTrain({"--loss", "huber:dleta=2"}, "it takes delta, reduction, sample_weight; did you mean 'delta'?");
  refuseTrain({"--schedule", "lr=cosin:total=5"}, "inverse_sqrt and wsd; did you mean 'cosine'?");
  refuseTrain({"--schedule", "lr=cosine:totl=5"}, "it takes warmup, min and total; did you mean 'total'?");
  refuseTrain({"--ema", "decy=0.9"}, "it takes decay, warmup, gamma, power; did you mean 'decay'?");
  refuseTrain({"--step-outputs", "grad_nrm"},
              "there are grad_norm and param_norm; did you mean 'grad_norm'?");
  compile();
  const std::string data = digits.data();
  refuseRun(data, {"--eval-data", data, "--metric", "acuracy"}, 2,
            "mae, rmse and r2; did you mean 'accuracy'?");
  refuseRun(data, {"--eval-data", data, "--best", "los.a:min"}, 2, "there is no metric 'los.a'");
  refuseRun(data, {"--lr-schedule", "plateau:facto=0.5"}, 2, "did you mean 'factor'?");
}

TEST_F(BadInputTest, MuonOnVectors) {
  refuseTrain({"--optimizer", "muon"},
              "optimizer 'muon' updates tensors of 2 dimensions, and 2 are not: '0.bias', "
              "'2.bias'; give them a group with another optimizer: --group ");
}

TEST_F(BadInputTest, ClassWeights) {
  std::string few = writeFactors("few.npy", {1, 2}),
              bad = writeFactors("bad.npy", {1, 1, -2, 1, 1, 1, 1, 1, 1, 1});
  refuseTrain({"--loss", "cross_entropy:class_weight=" + few},
              few + " has shape [2] but there are 10 classes");
  refuseTrain({"--loss", "cross_entropy:class_weight=" + bad},
              bad + " has -2 at index 2 but factors must be finite and not negative");
  refuseTrain({"--loss", "cross_entropy:class_weight="},
              "class_weight is '' but must be an .npy file, or none");
}

/// Logits of four frames, sixteen samples.
TEST_F(BadInputTest, SequencesOfLabels) {
  compileText({"--loss", "ctc:labels=3,blank=5"});
  auto write = [&](int64_t first, int64_t frames) {
    std::vector<int64_t> tokens(4 * 16, 1), label(16 * 3, 2), inputs(16, 4), targets(16, 1);
    label[6] = first; // of the third sample
    inputs[1] = frames;
    targets[1] = 3;
    EXPECT_TRUE(
        engine::writeNpz(folder / "t.npz", {{"input_ids", DataType::Int64, {4, 16}, bytesOfAll(tokens)},
                                            {"label", DataType::Int64, {16, 3}, bytesOfAll(label)},
                                            {"input_lengths", DataType::Int64, {16}, bytesOfAll(inputs)},
                                            {"target_lengths", DataType::Int64, {16}, bytesOfAll(targets)}})
            .isOk());
    return folder / "t.npz";
  };
  refuseRun(write(5, 4), {}, 1, "element 6 of its 'label', at byte ");
  refuseRun(write(5, 4), {}, 1, "; 5 is the blank of the loss ctc, which no label is: leave it out");
  refuseRun(write(2, 2), {"--stop-on-nan"}, 1, "element 1 of its 'input_lengths', at byte ");
  refuseRun(write(2, 2), {"--stop-on-nan"}, 1,
            "is 2 frames, and its 3 labels, equal neighbours among them, need 5: leave such samples out");
}

/// The mean of nothing, as in PyTorch. A weight of samples or classes may be the reason, too.
TEST_F(BadInputTest, LabelsThatAreAllIgnored) {
  compile({"--loss", "cross_entropy:ignore_index=3"});
  const std::string data = writeDigits("d.npz"),
                    first = "the first is from sample 0 of " + data + ", element 0 of its 'label', at byte ";
  const Words stop{"--stop-on-nan"};
  refuseRun(data, stop, 1,
            "the loss is not finite (step 1, epoch 0, slice 0 of " + data +
                "); every label in 'label' is ignored (ignore_index 3), and the mean of none is nan; " +
                first);
  refuseRun(
      data, stop, 1,
      ": leave such samples out, or compile with cross_entropy:reduction=sum; no parameter was changed");
  mustRun(train({"--loss", "cross_entropy:ignore_index=3,reduction=sum", "--quiet"}, "model"));
  mustRun({"run", folder / "model", "--data", data, "--stop-on-nan", "--quiet"});
  // An accuracy of nothing is the best of none.
  mustRun({"run", folder / "model", "--data", data, "--eval-data", data, "--best", "accuracy:max",
           "--metrics", folder / "m.jsonl", "--quiet"});
  const std::string events = readFile(folder / "m.jsonl");
  EXPECT_NE(events.find("\"accuracy\":null"), std::string::npos) << events;
  EXPECT_EQ(events.find("\"event\":\"best\""), std::string::npos) << events;
  std::vector<double> factors(10, 1);
  factors[3] = 0;
  mustRun(
      train({"--loss", "cross_entropy:class_weight=" + writeFactors("w.npy", factors), "--quiet"}, "model"));
  refuseRun(data, stop, 1,
            "); no label in 'label' counts: each is ignored (ignore_index -100) or has the factor 0, and");
  mustRun(train({"--loss", "cross_entropy", "--accumulate", "2:by=tokens", "--quiet"}, "model"));
  std::vector<float> pixels(8 * 64, 0.5f);
  ASSERT_TRUE(engine::writeNpz(folder / "d.npz",
                               {{"pixels", DataType::Float32, {8, 64}, bytesOfAll(pixels)},
                                {"label", DataType::Int64, {8}, bytesOfAll(std::vector<int64_t>(8, -100))}})
                  .isOk());
  refuseRun(data, stop, 1, ": leave such samples out; no parameter was changed");
}

TEST_F(BadInputTest, TwoLossesOnOneLabel) {
  const std::string model = sourcePath("losses/model.onnx");
  Words words{"train",        model,    "--shape",     "batch=8", "-o",
              folder / "out", "--loss", "a=mse@boxes", "--loss",  "a=mse@left"};
  expectOneMessage(words, 2,
                   "two losses are called 'a', which would share the label 'label.a'; give each a name");
}

TEST_F(BadInputTest, TeachersOfOtherInputs) {
  const std::string teacher = sourcePath("losses/teacher.onnx");
  refuseTrain({"--loss", "cross_entropy@output", "--teacher", teacher + ":output=logits"},
              "the teacher has an input 'x', which the model has not; inputs of the model are 'pixels'");
  refuseTrain({"--loss", "cross_entropy@output", "--teacher", folder / "none.onnx:output=logits"},
              "error: --teacher " + (folder / "none.onnx") + ": cannot be opened: No such file or directory");
}

/// Clipping keeps all gradients until the last one is there.
TEST_F(BadInputTest, ABudgetThatClippingBreaks) {
  Words words{"plan",     digits.model(), "--shape",         "batch=1",
              "--target", "x86-64-v3",    "--memory-budget", "17000"};
  Words fine = words;
  fine.push_back("--quiet");
  mustRun(fine);
  words.insert(words.end(), {"--clip-norm", "1"});
  expectOneMessage(words, 2, "--memory-budget 17000: the smallest budget found to be enough is 17");
  expectOneMessage(
      words, 2,
      "; with --clip-norm the gradients of all 4 trained tensors, 19240 bytes, are kept until the last "
      "one is there, or some computed again; without, each is gone when its tensor is updated");
}

TEST_F(BadInputTest, ShardsOfOtherColumns) {
  compile();
  writeDigits("a0.npz");
  writeDigits("a1.npz", 32);
  refuseRun(folder / "a*.npz", {}, 1, (folder / "a1.npz") + ": array 'pixels' has shape [8, 32]");
  std::filesystem::remove(folder / "a1.npz");
  writeDigits("a1.npz", 64, "more");
  refuseRun(folder / "a*.npz", {}, 1, folder / "a1.npz");
}

TEST_F(BadInputTest, ATokenBeyondTheVocabulary) {
  compileText({"--loss", "cross_entropy:axis=-1"});
  std::string bytes(16 * 8 + 1, '\x07');
  bytes[37] = char(200); // of the third window
  folder.write("t.bin", bytes);
  refuseRun("tokens:" + (folder / "t.bin") + "?seq=16&dtype=uint8", {}, 1,
            "index 200 in 'input_ids' is out of range [-96, 96)");
  refuseRun("tokens:" + (folder / "t.bin") + "?seq=16&dtype=uint8", {}, 1,
            "it is from sample 2 of " + (folder / "t.bin") + ", element 5 of its 'tokens', at byte 37");
}

TEST_F(BadInputTest, ATarThatIsCut) {
  compile();
  std::string header(512, '\0');
  header.replace(0, 12, "0.pixels.npy");
  header.replace(124, 11, "00000001000"); // 512 bytes, in octal
  header.replace(148, 8, 8, ' ');
  header[156] = '0';
  header.replace(257, 6, std::string("ustar\0", 6));
  unsigned sum = 0;
  for (unsigned char byte : header)
    sum += byte;
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  header.replace(148, 7, std::string(digits, 7));
  folder.write("t.tar", header + std::string(100, 'x'));
  refuseRun(folder / "t.tar", {}, 1,
            (folder / "t.tar") + ": is truncated: '0.pixels.npy' at byte 0 needs 512 bytes but 100 follow");
}

TEST_F(BadInputTest, CsvWithTextInANumber) {
  compile();
  refuseRun(writeCsv("red", "1"), {}, 1, "digits.csv: line 4, column 'pixels[0]': 'red' is no number");
  refuseRun(writeCsv(std::string(9999, 'x'), "1"), {}, 1, "'" + std::string(40, 'x') + "...' is no number");
  refuseRun(writeCsv("0", "11"), {}, 1, "element 0 of its 'label', in line 4");
}

TEST_F(BadInputTest, ArtifactsWhoseMemoryIsBound) {
  const std::string model = folder / "model", out = folder / "out", data = digits.data();
  auto refuse = [&](Words words, const std::string &bound, const std::string &what) {
    if (words[0] != "export")
      words.insert(words.end(), {"--data", data});
    words.push_back(words[0] == "run" ? "--save" : "-o");
    words.push_back(out);
    if (words[0] == "eval")
      words.resize(words.size() - 2);
    expectOneMessage(words, 2,
                     model + "/model.ortc: was compiled with --bind " + bound + ": its " + what +
                         " lie in memory of a program that binds them (C: ortc_bind, or Python), and "
                         "commands of ortc have none; compile it without --bind for them");
  };
  compile({"--gradients", "--bind", "parameters,strided"});
  for (const char *command : {"run", "eval", "predict", "gradients", "export"})
    refuse({command, model}, "parameters,strided", "parameters");
  compile({"--gradients", "--bind", "gradients"});
  mustRun({"run", model, "--data", data, "--quiet"});
  refuse({"gradients", model}, "gradients", "gradients");
}

TEST_F(BadInputTest, PatienceWithoutEvaluations) {
  compile();
  for (const Words &flags : {Words{"--patience", "3"}, {"--best", "loss:min"}, {"--lr-schedule", "plateau"}})
    refuseRun(digits.data(), flags, 2, flags[0]);
  refuseRun(digits.data(), {"--patience", "3"}, 2, "--patience needs evaluations; give --eval-data FILE");
}

TEST_F(BadInputTest, AveragesWithoutTraining) {
  refuseTrain({"--loss", "none", "--ema", "decay=0.9"},
              "--ema needs a loss, and --loss none compiles the forward part only");
}

TEST_F(BadInputTest, FactorsOfSamplesThatAreNone) {
  compile({"--loss", "cross_entropy:sample_weight=1"});
  for (auto [value, word] : {std::pair(-1.0f, "-1"), {NAN, "nan"}, {HUGE_VALF, "inf"}}) {
    std::string data = writeDigits("w.npz", 64, "sample_weight", value);
    const std::string message =
        std::string("'sample_weight' is ") + word +
        ", but factors of samples must be finite and not negative; it is from sample 2 of " + data;
    refuseRun(data, {}, 1, message);
    expectOneMessage({"eval", folder / "model", "--data", data}, 1, message);
  }
}

} // namespace
