// The tool as a process, and the arrays it reads and writes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/e2e/Tool.h"

#include "test/compiler/legalize/Exact.h"
#include "test/engine/cases.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace ortc::test {

std::string sourcePath(const std::string &name) { return std::string(ORTC_TEST_DATA) + "/" + name; }

/// Without the notes of what takes more than two seconds, which a slow machine has more of.
static std::string dropProgress(const std::string &text) {
  std::istringstream lines(text);
  std::string kept;
  for (std::string line; std::getline(lines, line);)
    if (line.rfind("ortc: note: after ", 0) != 0)
      kept += line + "\n";
  return kept;
}

Outcome runTool(const std::vector<std::string> &arguments) {
  TemporaryFolder folder;
  std::string text = folder / "stdout", errors = folder / "stderr";
  pid_t child = fork();
  if (child == 0) {
    dup2(open(text.c_str(), O_CREAT | O_WRONLY, 0600), 1);
    dup2(open(errors.c_str(), O_CREAT | O_WRONLY, 0600), 2);
    std::vector<char *> argv{const_cast<char *>("ortc")};
    for (const std::string &argument : arguments)
      argv.push_back(const_cast<char *>(argument.c_str()));
    argv.push_back(nullptr);
    execv(ORTC_TOOL, argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), readFile(text),
          dropProgress(readFile(errors))};
}

std::pair<int, std::string> runShell(const std::string &command) {
  std::string text;
  FILE *pipe = popen((command + " 2>&1").c_str(), "r");
  char buffer[4096];
  while (size_t count = pipe ? fread(buffer, 1, sizeof buffer, pipe) : 0)
    text.append(buffer, count);
  return {pipe ? pclose(pipe) : -1, text};
}

std::string findTool(const std::string &name, const std::vector<std::string> &folders) {
  for (const std::string &folder : folders)
    if (access((folder + "/" + name).c_str(), X_OK) == 0)
      return folder + "/" + name;
  return runShell("command -v " + name).first == 0 ? name : "";
}

Outcome mustRun(const std::vector<std::string> &arguments) {
  Outcome outcome = runTool(arguments);
  std::string line;
  for (const std::string &argument : arguments)
    line += " " + argument;
  EXPECT_EQ(outcome.status, 0) << "ortc" << line << "\n" << outcome.errors;
  return outcome;
}

std::map<std::string, Values> loadValues(const std::string &path) {
  std::map<std::string, Values> result;
  std::unique_ptr<engine::DataSource> source;
  if (Status status = engine::openData(path, source); !status.isOk()) {
    ADD_FAILURE() << status.getMessage();
    return result;
  }
  for (const std::string &name : source->getNames()) {
    Array array;
    if (Status status = source->load(name, array); !status.isOk()) {
      ADD_FAILURE() << status.getMessage();
      continue;
    }
    Values &values = result[name];
    values.type = array.type;
    values.shape = array.shape;
    int64_t count = static_cast<int64_t>(array.bytes / getElementBytes(array.type));
    for (int64_t i = 0; i < count; ++i)
      values.data.push_back(engine::test::elementOf(array, i));
    for (int64_t i = 0; isExact(array.type) && i < count; ++i)
      values.bits.push_back(bitsOf(array, i));
  }
  return result;
}

const Values &valuesOf(const std::map<std::string, Values> &arrays, const std::string &name) {
  static const Values kNone;
  auto found = arrays.find(name);
  if (found != arrays.end())
    return found->second;
  ADD_FAILURE() << "there is no array '" << name << "'";
  return kNone;
}

std::string readTensors(const std::string &path) {
  std::string file = readFile(path);
  uint64_t header = 0;
  if (file.size() > sizeof(header))
    std::memcpy(&header, file.data(), sizeof(header));
  return file.substr(std::min(file.size(), size_t(8 + header)));
}

std::vector<double> loadLosses(const std::string &path) {
  std::vector<double> losses;
  std::istringstream lines(readFile(path));
  for (std::string line; std::getline(lines, line);) {
    auto object = nlohmann::json::parse(line);
    if (object.contains("loss"))
      losses.push_back(object["loss"].get<double>());
  }
  return losses;
}

std::vector<std::string> listEntries() {
  std::vector<std::string> names;
  for (const auto &folder : std::filesystem::directory_iterator(sourcePath("zoo")))
    if (std::filesystem::exists(folder.path() / "recipe.json"))
      names.push_back(folder.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

ZooEntry::ZooEntry(const std::string &name) : folder(sourcePath("zoo/" + name)) {
  auto recipe = nlohmann::json::parse(readFile(folder + "/recipe.json"));
  predict = recipe["predict"];
  flags = recipe["flags"];
  optimizers = recipe["optimizers"];
  tolerance = recipe["tolerance"];
  steps = recipe["steps"];
}

std::string caseName(std::string parameter) {
  std::replace(parameter.begin(), parameter.end(), '-', '_');
  return parameter;
}

uint64_t transientOf(const std::string &artifact) {
  auto manifest = nlohmann::json::parse(readFile(artifact + "/manifest.json"));
  uint64_t most = 0;
  for (const auto &item : manifest["entries"])
    most = std::max(most, item["memory"]["transient"].get<uint64_t>());
  return most;
}

} // namespace ortc::test
