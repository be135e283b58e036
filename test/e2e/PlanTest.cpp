// `ortc plan`: its figures are those of the artifact and of what the runtime allocates; its buffers are a packing.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "compiler/frontend/onnx.pb.h"
#include "compiler/planning/csv/PackingCsv.h"
#include "ortc/ortc.h"
#include "support/Text.h"
#include "test/e2e/Models.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::test;
using Json = nlohmann::ordered_json;

namespace {

/// Counts what a runtime asks its host for.
struct CountingHost {
  CountingHost() {
    host.size = sizeof host;
    host.context = this;
    host.allocate = [](void *context, size_t bytes, size_t alignment) {
      static_cast<CountingHost *>(context)->bytes += bytes;
      return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    };
    host.release = [](void *, void *memory, size_t) { std::free(memory); };
  }
  ortc_host host{};
  uint64_t bytes = 0;
};

/// A model of the zoo, planned and compiled with the same flags.
struct Compiled {
  explicit Compiled(const std::string &model) {
    ZooEntry entry(model);
    std::vector<std::string> flags{entry.model(), "--gradients", "--optimizer",
                                   "adamw",       "--target",    "native"};
    flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
    std::vector<std::string> plan{"plan"}, train{"train"};
    plan.insert(plan.end(), flags.begin(), flags.end());
    train.insert(train.end(), flags.begin(), flags.end());
    plan.insert(plan.end(), {"--report", folder / "plan.json", "--dump-buffers", folder / "buffers.csv"});
    train.insert(train.end(), {"-o", folder / "model", "--dump-buffers", folder / "artifact.csv", "--quiet"});
    screen = mustRun(plan).text;
    mustRun(train);
    report = Json::parse(readFile(folder / "plan.json"));
    manifest = Json::parse(readFile(folder / "model/manifest.json"));
  }

  TemporaryFolder folder;
  std::string screen;
  Json report, manifest;
};

class PlanTest : public testing::TestWithParam<const char *> {
protected:
  static const Compiled &compile(const std::string &model) {
    static std::map<std::string, std::unique_ptr<Compiled>> all; // for all tests of a model
    std::unique_ptr<Compiled> &compiled = all[model];
    if (!compiled)
      compiled = std::make_unique<Compiled>(model);
    return *compiled;
  }

  const Compiled &compiled = compile(GetParam());
  const TemporaryFolder &folder = compiled.folder;
  const Json &report = compiled.report, &manifest = compiled.manifest;
};

TEST_P(PlanTest, IsThePlanOfTheArtifact) {
  EXPECT_EQ(report["memory"]["persistent"], manifest["memory"]["persistent"]);
  EXPECT_EQ(report["memory"]["constants"], manifest["memory"]["constants"]);
  ASSERT_FALSE(manifest["entries"].empty());
  ASSERT_EQ(report["entries"].size(), manifest["entries"].size());
  for (size_t i = 0; i < report["entries"].size(); ++i) {
    EXPECT_EQ(report["entries"][i]["name"], manifest["entries"][i]["name"]);
    Json memory = report["entries"][i]["memory"];
    memory.erase("curve"); // of plans that are no artifact
    EXPECT_EQ(memory.dump(1), manifest["entries"][i]["memory"].dump(1));
  }
  EXPECT_EQ(readFile(folder / "buffers.csv"), readFile(folder / "artifact.csv"));
  // What `ortc inspect` prints of the first entry is what `ortc plan` has printed.
  const std::string &screen = compiled.screen;
  size_t from = screen.find("\n  peak "), to = screen.find("\n  recompute ");
  ASSERT_NE(from, std::string::npos) << screen;
  ASSERT_NE(to, std::string::npos) << screen;
  std::string shown = mustRun({"inspect", folder / "model"}).text;
  EXPECT_NE(shown.find(screen.substr(from, to - from)), std::string::npos) << screen << shown;
}

TEST_P(PlanTest, IsWhatTheRuntimeAllocates) {
  CountingHost counting;
  ortc_program *program = nullptr;
  std::string file = folder / "model/model.ortc";
  ASSERT_EQ(ortc_program_open_file(file.c_str(), &counting.host, &program, nullptr), ORTC_OK);
  uint32_t workers = report["memory"]["max_workers"];
  ortc_session_options options{};
  options.size = sizeof options;
  options.workers = workers;
  ortc_sizes sizes{};
  sizes.size = sizeof sizes;
  ASSERT_EQ(ortc_session_sizes(program, &options, &sizes), ORTC_OK);
  uint64_t transient = 0;
  for (const Json &entry : report["entries"])
    transient = std::max(transient, entry["memory"]["transient"].get<uint64_t>());
  EXPECT_EQ(sizes.transient, transient);
  EXPECT_EQ(sizes.persistent, report["memory"]["persistent"].get<uint64_t>());
  ortc_entry_info info{};
  info.size = sizeof info;
  size_t found = 0;
  for (uint32_t i = 0; ortc_entry_get(program, i, &info) == ORTC_OK; ++i)
    for (const Json &entry : report["entries"])
      if (entry["name"] == info.name) {
        ++found;
        EXPECT_EQ(info.fixed_bytes, entry["memory"]["transient"].get<uint64_t>()) << info.name;
        EXPECT_EQ(info.worker_bytes, 0u) << info.name;
      }
  EXPECT_EQ(found, report["entries"].size());
  EXPECT_GT(found, 0u);
  ortc_session *session = nullptr;
  uint64_t before = counting.bytes;
  ASSERT_EQ(ortc_session_create(program, &options, &session, nullptr), ORTC_OK);
  EXPECT_EQ(counting.bytes - before, sizes.handle + sizes.persistent + sizes.transient + sizes.io);
  ortc_session_destroy(session);
  ortc_program_close(program);
}

TEST_P(PlanTest, BuffersAreAPackingOfTheArena) {
  auto file = planning::readPacking(readFile(folder / "buffers.csv"));
  ASSERT_TRUE(file) << file.getStatus().getMessage();
  std::vector<uint32_t> pools = file->pools;
  pools.resize(file->ids.size(), 0);
  auto split = planning::splitPools(file->problem, pools);
  EXPECT_FALSE(split.empty());
  for (const planning::Pool &pool : split) {
    std::vector<uint64_t> offsets;
    for (const planning::Item &item : pool.problem.items)
      offsets.push_back(item.fixed);
    uint64_t transient = report["entries"][pool.number]["memory"]["transient"];
    ortc::Status status = planning::validatePacking(pool.problem, offsets, transient);
    EXPECT_TRUE(status.isOk()) << report["entries"][pool.number]["name"] << ": " << status.getMessage();
  }
}

TEST_P(PlanTest, ThePeakIsTheStepWithMostBytes) {
  ASSERT_FALSE(report["entries"].empty());
  for (const Json &entry : report["entries"]) {
    const Json &memory = entry["memory"];
    uint64_t most = 0;
    for (const Json &step : entry["steps"])
      most = std::max(most, step["bytes"].get<uint64_t>());
    ASSERT_FALSE(entry["steps"].empty());
    EXPECT_EQ(memory["peak"]["bytes"], most);
    EXPECT_EQ(entry["steps"][memory["peak"]["step"].get<size_t>()]["bytes"], most);
    EXPECT_LE(most, memory["bound"].get<uint64_t>());
    EXPECT_LE(memory["order_bound"].get<uint64_t>(), memory["bound"].get<uint64_t>());
    EXPECT_LE(memory["bound"].get<uint64_t>(), memory["transient"].get<uint64_t>());
    // A loop's arena counts as a whole, and two entries may share a plan.
    bool isWhole = std::string(GetParam()) != "gru-forecast" && entry["name"] != "gradients/default" &&
                   entry["name"] != "update/default";
    if (isWhole)
      EXPECT_EQ(most, memory["bound"].get<uint64_t>()) << entry["name"];
    EXPECT_LE(memory["peak"]["tensors"].size(), 10u);
    for (const Json &tensor : memory["peak"]["tensors"]) {
      EXPECT_LE(tensor["first"], memory["peak"]["step"]);
      EXPECT_GE(tensor["last"], memory["peak"]["step"]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plan, PlanTest,
                         testing::Values("mlp-digits", "lenet", "resnet-tiny", "bert-tiny", "gru-forecast"),
                         [](const auto &info) { return caseName(info.param); });

/// Names of a model as a graph's author may have chosen them.
TEST(PlanNamesTest, TensorsAreCalledAsInTheModel) {
  TemporaryFolder folder;
  const std::string report = folder / "plan.json";
  ZooEntry entry("lenet");
  std::vector<std::string> flags{"plan", entry.model(), "--report", report, "--quiet"};
  flags.insert(flags.end(), entry.flags.begin(), entry.flags.end());
  EXPECT_EQ(mustRun(flags).text, "");
  Json plan = Json::parse(readFile(report));
  std::vector<std::string> names;
  for (const Json &buffer : plan["entries"][0]["buffers"])
    names.push_back(buffer["name"]);
  for (const char *name :
       {"/1/Tanh_output_0", "gradient of /3/Conv_output_0", "gradient of 11.weight", "loss"})
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end()); // every name is there once
}

TEST(PlanNamesTest, HostileNamesStayText) {
  TemporaryFolder folder;
  const std::string evil = "</script><script>document.body.dataset.evil=1</script>\"<!--";
  proto::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  auto *graph = model.mutable_graph();
  describe(graph->add_input(), "x", 1, {4, 256});
  describe(graph->add_output(), "y", 1, {4, 256});
  auto add = [&](const char *op, const std::string &from, const std::string &to) {
    auto *node = graph->add_node();
    node->set_op_type(op);
    node->add_input(from);
    node->add_output(to);
    return node;
  };
  auto *weight = graph->add_initializer();
  weight->set_name("w" + evil);
  weight->set_data_type(1);
  weight->add_dims(256);
  weight->add_dims(256);
  for (int i = 0; i < 256 * 256; ++i)
    weight->add_float_data(0.01f);
  add("Tanh", "x", evil);
  add("MatMul", evil, "a" + evil)->add_input("w" + evil);
  add("Tanh", "a" + evil, "y");
  std::string path = folder.write("model.onnx", model.SerializeAsString());
  mustRun(
      {"plan", path, "--loss", "mse", "--html", folder / "plan.html", "--dump-buffers", folder / "plan.csv"});
  std::string page = readFile(folder / "plan.html");
  EXPECT_EQ(page.find(evil), std::string::npos);
  EXPECT_EQ(page.find("<script>document.body.dataset.evil"), std::string::npos);
  EXPECT_NE(page.find("\\u003c/script>\\u003cscript>document.body.dataset.evil"), std::string::npos);
  EXPECT_TRUE(planning::readPacking(readFile(folder / "plan.csv")));
}

TEST(PlanNamesTest, TheDocumentationShowsWhatIsPrinted) {
  std::string guide = readFile(sourcePath("../docs/commands/plan.md")),
              command = "    $ ortc plan test/zoo/mlp-digits/";
  size_t begin = guide.find(command);
  ASSERT_NE(begin, std::string::npos);
  begin = guide.find('\n', begin) + 1;
  std::string shown, line;
  for (std::istringstream lines(guide.substr(begin)); std::getline(lines, line) && line.starts_with("    ");)
    shown += line.substr(4) + "\n";
  EXPECT_EQ(
      mustRun({"plan", ZooEntry("mlp-digits").model(), "--shape", "batch=64", "--target", "x86-64-v3"}).text,
      shown);
}

TEST(PlanNamesTest, ShowsWhatTrainingLessWouldSave) {
  ZooEntry entry("mlp-digits");
  std::vector<std::string> flags{"--shape", "batch=64", "--optimizer", "adamw"},
      plan{"plan", entry.model(), "--train-choices"};
  plan.insert(plan.end(), flags.begin(), flags.end());
  std::string text = mustRun(plan).text;
  auto line = [&](const std::string &start) {
    size_t from = text.find("\n  " + start);
    return from == std::string::npos ? "" : text.substr(from + 1, text.find('\n', from + 1) - from - 1);
  };
  EXPECT_NE(line("as asked"), "") << text;
  EXPECT_NE(line("biases and norms"), "") << text;
  // A choice takes what the flags that say the same take.
  TemporaryFolder folder;
  std::vector<std::string> same{"plan",    entry.model(), "--train",        "2\\..*",
                                "--quiet", "--report",    folder / "p.json"};
  same.insert(same.end(), flags.begin(), flags.end());
  mustRun(same);
  Json report = Json::parse(readFile(folder / "p.json"));
  std::string last = line("last 1 of 2 layers");
  for (const Json &bytes : {report["memory"]["persistent"], report["memory"]["constants"],
                            report["entries"][0]["memory"]["transient"]})
    EXPECT_NE(last.find(formatBytes(bytes)), std::string::npos) << bytes << " " << text;
}

TEST(PlanNamesTest, IsRefusedAsTrainIs) {
  TemporaryFolder folder;
  ZooEntry entry("mlp-digits");
  Outcome outcome =
      runTool({"plan", entry.model(), "--shape", "batch=64", "--html", folder / "no/plan.html"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.errors.find("plan.html"), std::string::npos) << outcome.errors;
  outcome = runTool({"plan", entry.model(), "--shape", "batch=64", "--html", entry.model()});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.errors.find("--html " + entry.model() + " would overwrite the model"), std::string::npos)
      << outcome.errors;
  EXPECT_EQ(runTool({"plan", entry.model()}).status, 2); // a dimension is not bound
}

} // namespace
