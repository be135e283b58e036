// A folder with the runtime's small test artifact and data for it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <csignal>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/data/writers.h"
#include "engine/training/apply.h"
#include "engine/training/run.h"
#include "test/engine/data_files.h"
#include "test/runtime/TestArtifact.h"

namespace ortc::engine::test {

using Json = nlohmann::json;

/// A folder with the artifact and 22 samples: five batches of 4 and a rest of 2.
class LoopTest : public testing::Test {
protected:
  LoopTest() {
    artifactPath = folder / "model.ortc";
    ortc::test::writeTestArtifact(artifactPath);
    dataPath = writeData("data.npz", 22);
  }

  std::string writeData(const std::string &name, int64_t samples, float first = 0.5f, int64_t label = 1) {
    std::vector<float> x;
    std::vector<int64_t> labels;
    for (int64_t i = 0; i < samples; ++i) {
      for (int64_t k = 0; k < 3; ++k)
        x.push_back(float((i * 7 + k * 5) % 11) / 8 - 0.5f);
      labels.push_back(i % 3 == 0);
    }
    x[0] = first;
    labels[0] = label;
    std::string path = folder / name;
    EXPECT_TRUE(writeNpz(path, {{"x", DataType::Float32, {samples, 3}, toBytes(x)},
                                {"label", DataType::Int64, {samples}, toBytes(labels)}})
                    .isOk());
    return path;
  }
  template <typename T> static std::vector<uint8_t> toBytes(const std::vector<T> &values) {
    auto first = reinterpret_cast<const uint8_t *>(values.data());
    return {first, first + values.size() * sizeof(T)};
  }

  TrainOptions makeTrain(int64_t steps) {
    TrainOptions options;
    options.artifact = artifactPath;
    options.data = dataPath;
    options.steps = steps;
    options.quiet = true;
    options.threads = 1;
    return options;
  }
  ApplyOptions makeApply(const std::string &output) {
    ApplyOptions options;
    options.artifact = artifactPath;
    options.data = dataPath;
    options.output = folder / output;
    options.threads = 1;
    options.quiet = true;
    return options;
  }
  static void expectOk(const Status &status) { ASSERT_TRUE(status.isOk()) << status.getMessage(); }

  /// The steps of a metrics file without their times.
  static std::vector<Json> readSteps(const std::string &path) {
    std::vector<Json> steps;
    std::istringstream lines(readFile(path));
    for (std::string line; std::getline(lines, line);) {
      Json parsed = Json::parse(line);
      if (!parsed.contains("event")) {
        parsed.erase("ms");
        steps.push_back(parsed);
      }
    }
    return steps;
  }
  /// The events of a metrics file that have this name.
  static std::vector<Json> readEvents(const std::string &path, const std::string &name) {
    std::vector<Json> events;
    std::istringstream lines(readFile(path));
    for (std::string line; std::getline(lines, line);)
      if (Json parsed = Json::parse(line); parsed.contains("event") && parsed["event"] == name)
        events.push_back(parsed);
    return events;
  }
  /// The arrays of a file, by name.
  static std::map<std::string, std::string> readArrays(const std::string &path) {
    std::unique_ptr<DataSource> source;
    expectOk(openData(path, source));
    std::map<std::string, std::string> arrays;
    for (const std::string &name : source->getNames()) {
      Array array;
      expectOk(source->load(name, array));
      arrays[name] =
          formatShape(array.shape) + std::string(reinterpret_cast<const char *>(array.data), array.bytes);
    }
    return arrays;
  }

  TemporaryFolder folder;
  std::string artifactPath, dataPath;
  std::sig_atomic_t interrupted = 0;
};

} // namespace ortc::engine::test
