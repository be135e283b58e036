// The tool as a process, and the arrays it reads and writes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/data/data_source.h"
#include "test/engine/data_files.h"

namespace ortc::test {

using engine::test::readFile;
using engine::test::TemporaryFolder;

/// Path below test/ in the source tree.
std::string sourcePath(const std::string &name);

struct Outcome {
  int status = -1;    ///< of exit; minus the signal when one ended the process
  std::string text;   ///< stdout
  std::string errors; ///< stderr, without notes of progress ("after N s")
};

/// Runs the tool with these arguments, no shell in between.
Outcome runTool(const std::vector<std::string> &arguments);
/// The same, and the test fails when the exit status is not 0.
Outcome mustRun(const std::vector<std::string> &arguments);

/// What a command of the shell prints, on both streams, and its exit status as pclose() gives it.
std::pair<int, std::string> runShell(const std::string &command);
/// The path of a program in one of these folders, or its name where PATH has it; empty where neither does.
std::string findTool(const std::string &name, const std::vector<std::string> &folders);

/// An array; integers and booleans with their bits, since a double does not hold all of 64.
struct Values {
  DataType type = DataType::None;
  Shape shape;
  std::vector<double> data;
  std::vector<uint64_t> bits; ///< empty for floating point
};

/// All arrays of an npz or safetensors file by name; empty, with a failure of the test, when it cannot be
/// read.
std::map<std::string, Values> loadValues(const std::string &path);

/// The array called `name`; without one the test fails, and the array is empty.
const Values &valuesOf(const std::map<std::string, Values> &arrays, const std::string &name);

/// The tensors of a checkpoint, without the header, which also says how long the run was.
std::string readTensors(const std::string &path);

/// The losses of the steps in a metrics file, in order.
std::vector<double> loadLosses(const std::string &path);

/// One zoo entry: its folder and what recipe.json says.
struct ZooEntry {
  explicit ZooEntry(const std::string &name);
  std::string model() const { return folder + "/model.onnx"; }
  std::string data() const { return folder + "/data.npz"; }

  std::string folder, predict;
  std::vector<std::string> flags;
  std::map<std::string, std::string> optimizers; ///< "sgd", "adamw" -> specification
  std::map<std::string, double> tolerance;
  int steps = 0;
};

/// Every folder of test/zoo with a recipe, sorted.
std::vector<std::string> listEntries();

/// The name of a test with this parameter: GoogleTest takes no '-'.
std::string caseName(std::string parameter);

/// The most transient memory that any entry of an artifact takes, by its manifest.
uint64_t transientOf(const std::string &artifact);

} // namespace ortc::test
