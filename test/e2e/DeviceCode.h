// The code of artifacts for GPUs, to be looked at.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fstream>
#include <gtest/gtest.h>

#include "test/e2e/DeviceImages.h"
#include "test/e2e/Tool.h"

namespace ortc::test {

class DeviceCodeTest : public testing::Test {
protected:
  /// `arguments` but for the targets write an artifact into `out`.
  std::vector<Image> compile(std::vector<std::string> arguments, const std::string &out,
                             const std::vector<std::string> &targets) {
    arguments.insert(arguments.end(), {"-o", out, "--quiet"});
    for (const std::string &target : targets)
      arguments.insert(arguments.end(), {"--target", target});
    mustRun(arguments);
    return imagesOf(out + "/model.ortc");
  }
  /// Of an entry of the zoo, in the folder of its name.
  std::vector<Image> compileEntry(const std::string &name, const std::vector<std::string> &targets,
                                  const std::vector<std::string> &flags = {}) {
    ZooEntry entry(name);
    std::vector<std::string> arguments{"train", entry.model(), "--optimizer", entry.optimizers.at("adamw"),
                                       "--gradients"};
    arguments.insert(arguments.end(), entry.flags.begin(), entry.flags.end());
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return compile(std::move(arguments), folder / name, targets);
  }
  std::string write(const Image &image) {
    std::string path = folder / ("image-" + image.target);
    bool isText = image.bytes.starts_with("//"); // with a NUL behind it
    std::ofstream(path, std::ios::binary) << image.bytes.substr(0, image.bytes.size() - isText);
    return path;
  }

  TemporaryFolder folder;
};

} // namespace ortc::test
