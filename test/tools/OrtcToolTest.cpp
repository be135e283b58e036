// The tool as a process: exit statuses, messages, signals, and the commands on the runtime's small artifact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <gtest/gtest.h>
#include <set>
#include <sstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compiler/frontend/onnx.pb.h"
#include "engine/data/writers.h"
#include "test/engine/data_files.h"
#include "test/runtime/TestArtifact.h"

using namespace ortc;
using namespace ortc::engine;
using namespace ortc::engine::test;

namespace {

struct Outcome {
  int status;       ///< of exit
  std::string text; ///< stdout and stderr
};

/// Runs the tool through a shell.
Outcome run(const std::string &arguments, const std::string &redirection = "2>&1",
            const std::string &before = "") {
  std::FILE *pipe = popen((before + ORTC_TOOL + " " + arguments + " " + redirection).c_str(), "r");
  Outcome outcome;
  char buffer[4096];
  for (size_t count; (count = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    outcome.text.append(buffer, count);
  int status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

/// The model that the test artifact would have been made from: y = x w^T.
ortc::proto::ModelProto makeModel() {
  ortc::proto::ModelProto model;
  model.set_ir_version(8);
  auto *graph = model.mutable_graph();
  graph->set_name("test");
  auto *weight = graph->add_initializer();
  weight->set_name("fc.weight");
  weight->set_data_type(1);
  weight->add_dims(2);
  weight->add_dims(3);
  auto *other = graph->add_initializer();
  other->set_name("shape");
  other->set_data_type(7);
  other->add_dims(1);
  other->add_int64_data(5);
  auto *node = graph->add_node();
  node->set_op_type("Gemm");
  return model;
}

class OrtcToolTest : public testing::Test {
protected:
  OrtcToolTest() {
    std::vector<float> x(36);
    std::vector<int64_t> labels(12);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = float(i * 7 % 11) / 8 - 0.5f;
    auto bytesOfVector = [](const auto &values) {
      auto first = reinterpret_cast<const uint8_t *>(values.data());
      return std::vector<uint8_t>(first, first + values.size() * sizeof(values[0]));
    };
    data = folder / "data.npz";
    EXPECT_TRUE(writeNpz(data, {{"x", DataType::Float32, {12, 3}, bytesOfVector(x)},
                                {"label", DataType::Int64, {12}, bytesOfVector(labels)}})
                    .isOk());
    writeArtifact(makeModel());
  }

  void writeArtifact(const ortc::proto::ModelProto &model) {
    ortc::artifact::Artifact artifact = ortc::test::makeArtifact();
    artifact.manifest =
        R"({"name": "test", "generator": "ortc", "loss": {"kind": "nll", "output": "y", "axis": 1},)"
        R"( "bindings": [{"name": "batch", "dimensions": {"n": 4}}], "targets": [1, {"name": "baseline",)"
        R"( "stack": [{"name": "train/batch", "caller": 120, "worker": 40}, {"name": "eval/batch"}, 2]}]})";
    std::string source = model.SerializeAsString();
    artifact.source.assign(source.begin(), source.end());
    ortc::test::Bytes bytes = ortc::test::makeFile(artifact);
    file = std::string(bytes.begin(), bytes.end());
    path = folder.write("model.ortc", file);
  }

  /// Runs until a signal ends it, in a folder of its own.
  void interrupt(int signal);

  TemporaryFolder folder;
  std::string data, path, file;
};

} // namespace

TEST_F(OrtcToolTest, RefusesBadCommandLinesWithStatus2) {
  const std::pair<const char *, const char *> cases[] = {
      {"frobnicate", "ortc: error: unknown command 'frobnicate'; ortc --help lists what there is\n"},
      {"run", "ortc: error: DIR is required\n"},
      {"run --frobnicate", "ortc: error: unknown flag '--frobnicate'; ortc run --help lists what there is\n"},
      {"runn", "ortc: error: unknown command 'runn'; did you mean 'run'?\n"},
      {"help trian", "ortc: error: unknown command 'trian'; did you mean 'train'?\n"},
      {"run a --data b --epoch=5", "ortc: error: unknown flag '--epoch'; did you mean '--epochs'?\n"},
      {"run a --data b -lr 5", "ortc: error: unknown flag '-lr'; did you mean '--lr'?\n"},
      {"run a b", "ortc: error: unexpected argument 'b'; ortc run --help lists what there is\n"},
      {"run a --quiet b", "ortc: error: unexpected argument 'b'; ortc run --help lists what there is\n"},
      {"run a --data b c", "ortc: error: unexpected argument 'c': --data takes one value; quotes keep a "
                           "shell from making several of a "
                           "pattern: --data '*.npz'\n"},
      {"run --data b.npz c.npz d.npz a --quiet", "ortc: error: unexpected argument 'd.npz': --data takes one "
                                                 "value; quotes keep a shell from making several of a "
                                                 "pattern: --data '*.npz'\n"},
      {"run a --data", "ortc: error: --data needs a value\n"},
      {"run a --data b --lr -1", "ortc: error: --lr: '-1' must be a number from 0 to 3.4e38\n"},
      {"run a --data b --lr 1e39", "ortc: error: --lr: '1e39' must be a number from 0 to 3.4e38\n"},
      {"run a --data b --steps 1 --epochs 1",
       "ortc: error: --epochs and --steps are both given; one of them says how long to train\n"},
      {"run a --data b --quiet=false", "ortc: error: --quiet takes no value\n"},
      {"train a -o b --tune=3", "ortc: error: --tune takes no value\n"},
      {"run a --data b --lr-schedule constant:total=5",
       "ortc: error: --lr-schedule: learning-rate schedule 'constant:total=5': total 5 has no effect on a "
       "constant rate; linear, polynomial, cosine, one_cycle and wsd take it\n"},
      {"run a --data b --lr-schedule cosine:warmup=9,total=5",
       "ortc: error: --lr-schedule: learning-rate schedule 'cosine:warmup=9,total=5': total 5 must be more "
       "than the 9 steps of warmup, after which the rate falls\n"},
      {"run a --data b --save-every 1", "ortc: error: --save-every needs --save FILE\n"},
      {"run a --data b --patience 3", "ortc: error: --patience needs evaluations; give --eval-data FILE\n"},
      {"run a --data b --lr-schedule plateau",
       "ortc: error: --lr-schedule plateau needs evaluations; give --eval-data FILE\n"},
      {"run a --data b --save c --keep 3",
       "ortc: error: --keep is for the checkpoints of --save-every N, which is not given\n"},
      {"run a --data b --eval-data c --best accuracy", "ortc: error: --best: 'accuracy' must be METRIC:max "
                                                       "or METRIC:min, such as accuracy:max or loss:min\n"},
      {"eval a --data b --metric topk:k=0", "ortc: error: --metric: metric 'topk:k=0': k is '0', but it must "
                                            "be a whole number from 1 to 2147483647\n"},
      {"run a --data b --watch '.*'",
       "ortc: error: --watch writes into --metrics FILE.jsonl, which is not given\n"},
      {"run a --data b --watch '('",
       "ortc: error: --watch: '(' is not a regular expression (ECMAScript); a plain dot is '\\.'\n"},
      {"report a", "ortc: error: --output is required\n"},
      {"eval a --data b --threads 0",
       "ortc: error: --threads: '0' must be a whole number of at least 1 and at most 256\n"}};
  for (auto [arguments, message] : cases) {
    Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_EQ(outcome.text, message) << arguments;
  }
}

TEST_F(OrtcToolTest, BracketsAreLetters) {
  for (const char *name : {"[a]", "[a,b]", "[]"}) {
    const std::string begin = std::string("ortc: error: ") + name + ": ";
    for (const char *arguments :
         {"merge '%' b -o c", "merge -o c '%' b", "report '%' b -o c", "inspect '%'"}) {
      std::string line = arguments;
      Outcome outcome = run(line.replace(line.find('%'), 1, name));
      EXPECT_EQ(outcome.text.substr(0, begin.size()), begin) << line;
    }
  }
}

TEST_F(OrtcToolTest, HelpAndVersionAreFine) {
  EXPECT_EQ(run("--help").status, 0);
  EXPECT_EQ(run("run --help").status, 0);
  EXPECT_EQ(run("--version").text.substr(0, 5), "ortc ");
  for (const char *command : {"train", "run", "report"}) {
    const std::string name = command, asked = run(name + " --help").text;
    EXPECT_EQ(run("help " + name).status, 0);
    EXPECT_EQ(run("help " + name).text, asked);
    EXPECT_NE(run("help").text.find("\n  " + name + " "), std::string::npos);
  }
  EXPECT_EQ(run("help").text, run("--help").text);
}

TEST_F(OrtcToolTest, ListsOperators) {
  std::string text = run("ops").text;
  EXPECT_NE(text.find("\nGemm "), std::string::npos);
  EXPECT_NE(text.find("\nStringConcat "), std::string::npos); // what is refused stands there too
  EXPECT_EQ(run("ops --json").text.substr(0, 2), "[\n");
  EXPECT_EQ(run("ops --json --markdown").status, 2);
}

TEST_F(OrtcToolTest, FailsWithStatus1WhereAFileIsMissing) {
  Outcome outcome = run("run " + path + " --data /no/such.npz");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.text, "ortc: error: /no/such.npz: cannot be opened: No such file or directory\n");
}

TEST_F(OrtcToolTest, EveryCommandSaysHowToMakeAnArtifact) {
  std::string missing = folder / "nothing";
  for (const char *command : {"run", "inspect", "verify", "eval"}) {
    bool takesData = command[0] == 'r' || command[0] == 'e';
    Outcome outcome = run(command + std::string(" ") + missing + (takesData ? " --data " + data : ""));
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_EQ(outcome.text, "ortc: error: " + missing +
                                ": there is no such artifact; make one with ortc train MODEL.onnx -o " +
                                missing + "\n")
        << command;
  }
}

TEST_F(OrtcToolTest, TrainsEvaluatesAndPredicts) {
  std::string saved = folder / "saved.safetensors";
  Outcome outcome = run("run " + path + " --data " + data + " --epochs 4 --save " + saved + " --threads 1");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_EQ(outcome.text.find('\r'), std::string::npos); // no terminal, no bar
  EXPECT_NE(outcome.text.find("\nstep 12/12  epoch 3  loss "), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("; saved to " + saved + "\n"), std::string::npos) << outcome.text;
  outcome = run("eval " + path + " --data " + data + " --load " + saved + " --quiet");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_EQ(outcome.text.substr(0, 5), "loss ");
  outcome = run("predict " + path + " --data " + data + " -o " + (folder / "y.npz"));
  EXPECT_EQ(outcome.text, "wrote " + (folder / "y.npz") + ": y [12, 2]\n");
}

TEST_F(OrtcToolTest, QuietRunsSayNothing) {
  Outcome outcome = run("run " + path + " --data " + data + " --quiet");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.text, "");
}

TEST_F(OrtcToolTest, AResultThatCannotBePrintedIsAFailure) {
  std::string missing = folder / "missing.npz";
  for (const std::string &arguments :
       std::vector<std::string>{"inspect " + path, "verify " + path, "ops --json", "--help", "--version",
                                "eval " + path + " --data " + data,
                                "predict " + path + " --data " + data + " -o " + (folder / "y.npz"),
                                "run --profile " + path + " --data " + data}) {
    Outcome full = run(arguments, "2>&1 >/dev/full"), closed = run(arguments, "2>&1 >&-");
    for (const Outcome &outcome : {full, closed}) {
      EXPECT_EQ(outcome.status, 1) << arguments;
      EXPECT_NE(outcome.text.find("ortc: error: standard output cannot be written"), std::string::npos)
          << arguments << ": " << outcome.text;
    }
  }
  EXPECT_EQ(run("verify " + path, "2>&1 >/dev/full").text,
            "ortc: error: standard output cannot be written: No space left on device\n");
  // Who prints nothing has lost nothing, and files that are opened do not become what was closed.
  std::string saved = folder / "saved.safetensors", same = folder / "same.safetensors";
  std::string quiet = "run " + path + " --data " + data + " --threads 1 --quiet --save ";
  EXPECT_EQ(run(quiet + saved, "2>&1 >&- <&-").status, 0);
  EXPECT_EQ(run(quiet + same).status, 0);
  EXPECT_TRUE(readFile(saved) == readFile(same));
  EXPECT_EQ(run("run " + path + " --data " + missing, "2>&1 >/dev/full").text,
            "ortc: error: " + missing + ": cannot be opened: No such file or directory\n");
}

TEST_F(OrtcToolTest, MetricsThatFillTheDiskSaySo) {
  Outcome outcome = run("run " + path + " --data " + data + " --quiet --metrics /dev/full");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.text, "ortc: error: /dev/full: cannot be written: No space left on device\n");
}

TEST_F(OrtcToolTest, AProfileOfNothingSaysSo) {
  Outcome outcome = run("run " + path + " --data " + data + " --profile --steps 0");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.text.find("ortc: note: --profile has nothing to show: no step was run\n"),
            std::string::npos)
      << outcome.text;
}

TEST_F(OrtcToolTest, AnInterruptSavesAndEndsWithTheStatusOfItsSignal) {
  for (int signal : {SIGINT, SIGTERM})
    interrupt(signal);
}

void OrtcToolTest::interrupt(int signal) {
  TemporaryFolder folder;
  std::string saved = folder / "saved.safetensors";
  pid_t child = fork();
  if (child == 0) {
    std::freopen("/dev/null", "w", stdout);
    execl(ORTC_TOOL, "ortc", "run", path.c_str(), "--data", data.c_str(), "--steps", "1000000000",
          "--threads", "1", "--save", saved.c_str(), "--metrics", (folder / "m.jsonl").c_str(),
          static_cast<char *>(nullptr));
    _exit(127);
  }
  for (int i = 0; i < 1000 && readFile(folder / "m.jsonl").size() < 100; ++i)
    usleep(10000);
  kill(child, signal);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + signal);
  EXPECT_TRUE(std::filesystem::exists(saved));
  EXPECT_EQ(
      std::distance(std::filesystem::directory_iterator(folder / ""), std::filesystem::directory_iterator{}),
      2);
  EXPECT_NE(readFile(folder / "m.jsonl").find("{\"event\":\"interrupted\",\"step\":"), std::string::npos);
}

/// A data file that is cut, or written anew in its place, while a run reads it.
TEST_F(OrtcToolTest, DataThatChangeEndTheRunWhichSaves) {
  for (int64_t bytes : {0, 1}) {
    TemporaryFolder folder;
    std::string saved = folder / "saved.safetensors", messages = folder / "messages",
                own = folder / "data.npz";
    std::filesystem::copy_file(data, own);
    pid_t child = fork();
    if (child == 0) {
      std::freopen("/dev/null", "w", stdout);
      std::freopen(messages.c_str(), "w", stderr);
      execl(ORTC_TOOL, "ortc", "run", path.c_str(), "--data", own.c_str(), "--steps", "1000000000",
            "--threads", "1", "--save", saved.c_str(), "--metrics", (folder / "m.jsonl").c_str(),
            static_cast<char *>(nullptr));
      _exit(127);
    }
    for (int i = 0; i < 1000 && readFile(folder / "m.jsonl").size() < 100; ++i)
      usleep(10000);
    std::filesystem::resize_file(own, bytes ? std::filesystem::file_size(own) - uintmax_t(bytes) : 0);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 1);
    std::string text = readFile(messages);
    EXPECT_NE(text.find("ortc: error: " + own + ": has changed since it was opened"), std::string::npos)
        << text;
    EXPECT_NE(text.find("; " + saved + " holds step "), std::string::npos) << text;
    EXPECT_EQ(run("eval " + path + " --data " + data + " --load " + saved).status, 0);
  }
}

/// Whatever is opened: a pipe without a writer is refused at once. `timeout` answers 124.
TEST_F(OrtcToolTest, PipesAreRefusedWithoutWaiting) {
  std::string pipe = folder / "pipe", npz = folder / "pipe.npz", onnx = folder / "pipe.onnx",
              here = " --data " + data, out = " -o " + (folder / "out.safetensors");
  std::filesystem::create_directory(folder / "dir");
  for (const std::string &each : {pipe, npz, onnx, folder / "dir/model.ortc"})
    ASSERT_EQ(mkfifo(each.c_str(), 0600), 0);
  for (const std::string &artifact : {pipe, folder / "dir"})
    for (const std::string &command :
         {"run " + artifact + here, "eval " + artifact + here,
          "predict " + artifact + here + " -o " + npz + ".npz", "gradients " + artifact + here + out,
          "export " + artifact + " -o " + (folder / "out.onnx"), "inspect " + artifact,
          "verify " + artifact}) {
      Outcome outcome = run(command, "2>&1", "timeout 20 ");
      EXPECT_EQ(outcome.status, 1) << command << "\n" << outcome.text;
      EXPECT_EQ(std::count(outcome.text.begin(), outcome.text.end(), '\n'), 1) << outcome.text;
    }
  for (const std::string &command :
       {"run " + path + " --data " + npz, "eval " + path + " --data " + pipe,
        "eval " + path + " --data " + pipe + "," + pipe, "run " + path + here + " --eval-data " + npz,
        "run " + path + here + " --load " + pipe, "eval " + path + here + " --load " + pipe,
        "export " + path + " --load " + pipe + " -o " + (folder / "out.onnx")}) {
    Outcome outcome = run(command, "2>&1", "timeout 20 ");
    EXPECT_EQ(outcome.status, 1) << command << "\n" << outcome.text;
    EXPECT_NE(outcome.text.find("is not a regular file\n"), std::string::npos) << outcome.text;
  }
  EXPECT_EQ(run("train " + onnx + " -o " + (folder / "new"), "2>&1", "timeout 20 ").status, 2);
}

TEST_F(OrtcToolTest, ExportsTrainedWeightsInTheirPlace) {
  std::string saved = folder / "saved.safetensors", exported = folder / "trained.onnx";
  ASSERT_EQ(run("run " + path + " --data " + data + " --quiet --save " + saved).status, 0);
  Outcome outcome = run("export " + path + " --load " + saved + " -o " + exported);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  ortc::proto::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(readFile(exported)));
  std::unique_ptr<DataSource> source;
  ASSERT_TRUE(openData(saved, source).isOk());
  Array weight;
  ASSERT_TRUE(source->load("fc.weight", weight).isOk());
  EXPECT_EQ(model.graph().initializer(0).raw_data(),
            std::string(reinterpret_cast<const char *>(weight.data), weight.bytes));
  EXPECT_EQ(model.graph().initializer(1).int64_data(0), 5); // what is not trained is as it was
  EXPECT_EQ(model.graph().node(0).op_type(), "Gemm");
}

TEST_F(OrtcToolTest, RefusesToExportAnInitializerThatIsNowhere) {
  auto model = makeModel();
  model.mutable_graph()->mutable_initializer(1)->clear_int64_data();
  writeArtifact(model);
  Outcome outcome = run("export " + path + " -o " + (folder / "trained.onnx"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.text, "ortc: error: " + path +
                              ": initializer 'shape' is neither in the source section nor in the "
                              "tensor table; compile the artifact again\n");
  EXPECT_FALSE(std::filesystem::exists(folder / "trained.onnx"));
}

TEST_F(OrtcToolTest, InspectsAndVerifies) {
  Outcome outcome = run("inspect " + path);
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  for (const char *part :
       {"binding    batch (n=4)\n", "entry      train/batch, all targets: transient 512 B",
        "parameter  fc.weight ", "target     baseline, ", "  stack      baseline 120 B (a worker 40 B)\n",
        "  stack      baseline unknown (a worker unknown)\n"})
    EXPECT_NE(outcome.text.find(part), std::string::npos) << part << "\n" << outcome.text;
  EXPECT_EQ(run("verify " + path).status, 0);
}

TEST_F(OrtcToolTest, VerifyFindsEveryFlippedByteOfASample) {
  for (size_t at = 0; at < file.size(); at += 97) {
    std::string damaged = file;
    damaged[at] = char(damaged[at] ^ 0x10);
    Outcome outcome = run("verify --quiet " + folder.write("damaged.ortc", damaged));
    EXPECT_EQ(outcome.status, 1) << at;
    EXPECT_EQ(outcome.text.substr(0, 13), "ortc: error: ") << outcome.text;
  }
}
