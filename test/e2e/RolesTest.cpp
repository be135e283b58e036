// Checkpoints say what each tensor is, whatever the optimizer; those from before they did still load.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/data/writers.h"
#include "engine/session/tensor_roles.h"
#include "test/e2e/Session.h"
#include "test/e2e/Tool.h"

using namespace ortc;
using namespace ortc::engine;
using namespace ortc::test;

namespace {

using Names = std::set<std::string>;

Names namesOf(const TensorRoles &roles, TensorRole role) {
  Names names;
  for (const auto &[name, each] : roles)
    if (each == role)
      names.insert(name);
  return names;
}

TensorRoles rolesOf(const DataSource &checkpoint) {
  TensorRoles roles;
  Status status = readRoles(checkpoint, roles);
  EXPECT_TRUE(status.isOk()) << status.getMessage();
  return roles;
}

std::unique_ptr<DataSource> openFile(const std::string &path) {
  std::unique_ptr<DataSource> source;
  Status status = openSafetensors(path, source);
  EXPECT_TRUE(status.isOk()) << status.getMessage();
  return source;
}

/// The same tensors, in a file that says no roles.
void writeWithoutRoles(const DataSource &from, const std::string &path) {
  std::vector<OutputArray> arrays;
  for (const std::string &name : from.getNames()) {
    Array array;
    ASSERT_TRUE(from.load(name, array).isOk());
    arrays.push_back({name, array.type, array.shape, {array.data, array.data + array.bytes}});
  }
  std::map<std::string, std::string> metadata = from.getMetadata();
  std::erase_if(metadata, [](const auto &entry) { return entry.first.starts_with(kRoleKey); });
  ASSERT_LT(metadata.size(), from.getMetadata().size());
  ASSERT_TRUE(writeSafetensors(path, arrays, metadata).isOk());
}

struct Case {
  std::string name;
  std::vector<std::string> flags;
};

/// Every optimizer, as test/optimizers has it, and one with all that a step may keep beside its states.
std::vector<Case> listCases() {
  std::ifstream file(sourcePath("optimizers/optimizers.json"));
  std::vector<Case> cases{{"averages",
                           {"--optimizer", "adamw", "--accumulate", "2", "--ema", "decay=0.9", "--swa",
                            "start=0,every=1", "--loss-scale", "dynamic"}}};
  for (const nlohmann::json &each : nlohmann::json::parse(file))
    if (each["model"] == "mlp-digits")
      cases.push_back({each["optimizer"], each["flags"]});
  return cases;
}

class RolesTest : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    std::vector<std::string> arguments{"train",   entry.model(), "-o",       folder / "artifact",
                                       "--shape", "batch=64",    "--target", "native",
                                       "--quiet"};
    arguments.insert(arguments.end(), GetParam().flags.begin(), GetParam().flags.end());
    mustRun(arguments);
    mustRun({"run", folder / "artifact", "--data", entry.data(), "--steps", "2", "--quiet", "--save",
             folder / "saved"});
    ASSERT_FALSE(HasFailure());
  }
  TemporaryFolder folder;
  ZooEntry entry{"mlp-digits"};
};

TEST_P(RolesTest, AreThoseOfTheArtifact) {
  std::unique_ptr<DataSource> saved = openFile(folder / "saved");
  TensorRoles roles = rolesOf(*saved);
  const Names weights{"0.bias", "0.weight", "2.bias", "2.weight"};
  EXPECT_EQ(namesOf(roles, TensorRole::Parameter), weights);
  EXPECT_EQ(namesOf(roles, TensorRole::Buffer), Names());
  Session session(folder / "artifact");
  ortc_tensor_info tensor{};
  tensor.size = sizeof tensor;
  Names states, scalars;
  for (uint32_t i = 0; ortc_tensor_get(session.getProgram(), i, &tensor) == ORTC_OK; ++i)
    if (tensor.role == ORTC_ROLE_STATE || tensor.role == ORTC_ROLE_SCALAR)
      (tensor.role == ORTC_ROLE_STATE ? states : scalars).insert(tensor.name);
  EXPECT_EQ(namesOf(roles, TensorRole::State), states);
  EXPECT_EQ(namesOf(roles, TensorRole::Scalar), scalars);
  EXPECT_TRUE(scalars.count("lr"));
  EXPECT_TRUE(
      std::ranges::any_of(states, [](const std::string &state) { return state.starts_with("0.weight."); }));

  // From names and shapes: of what deltas could be of, the same.
  writeWithoutRoles(*saved, folder / "before");
  TensorRoles judged = rolesOf(*openFile(folder / "before"));
  for (const auto &[name, role] : judged)
    if (Array array; saved->describe(name, array).isOk() && isFloat(array.type) && !array.shape.empty())
      EXPECT_EQ(role, roles.at(name)) << name;
  mustRun({"delta", folder / "before", folder / "saved", "-o", folder / "delta", "--quiet"});
  Names changed;
  for (const auto &[name, values] : loadValues(folder / "delta"))
    changed.insert(name);
  EXPECT_EQ(changed, weights);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, RolesTest, testing::ValuesIn(listCases()),
                         [](const testing::TestParamInfo<Case> &info) { return info.param.name; });

/// test/checkpoints/without-roles.safetensors: three steps of ds-cnn with these flags, saved before checkpoints had
/// roles. It has running statistics, and averages of rows and columns.
TEST(OldCheckpointTest, LoadsAndIsABaseOfDeltas) {
  TemporaryFolder folder;
  ZooEntry entry("ds-cnn");
  const std::string old = sourcePath("checkpoints/without-roles.safetensors");
  mustRun({"train", entry.model(), "-o", folder / "artifact", "--loss", "cross_entropy", "--batch-norm",
           "train", "--shape", "batch=10", "--optimizer", "adafactor", "--ema", "decay=0.9", "--target",
           "native", "--quiet"});
  Outcome outcome = mustRun({"run", folder / "artifact", "--data", entry.data(), "--steps", "5", "--load",
                             old, "--save", folder / "new"});
  EXPECT_EQ(outcome.errors.find("no use for"), std::string::npos) << outcome.errors;
  EXPECT_EQ(loadValues(folder / "new").size(), loadValues(old).size());
  mustRun({"delta", old, folder / "new", "-o", folder / "delta", "--quiet"});
  Names changed, expected;
  for (const auto &[name, values] : loadValues(folder / "delta"))
    changed.insert(name);
  TensorRoles roles = rolesOf(*openFile(folder / "new"));
  expected = namesOf(roles, TensorRole::Parameter);
  EXPECT_EQ(expected.size(), 23u); // seven convolutions without a bias, as many norms, and a linear layer
  Names buffers = namesOf(roles, TensorRole::Buffer);
  EXPECT_EQ(buffers.size(), 14u);
  EXPECT_TRUE(buffers.count("1.running_mean"));
  expected.merge(buffers);
  EXPECT_EQ(changed, expected);
  // A mean of both says no roles; a mean of two new ones does.
  mustRun({"merge", old, folder / "new", "-o", folder / "mixed", "--quiet"});
  mustRun({"merge", folder / "new", folder / "new", "-o", folder / "merged", "--quiet"});
  EXPECT_EQ(rolesOf(*openFile(folder / "mixed")), rolesOf(*openFile(old)));
  EXPECT_EQ(rolesOf(*openFile(folder / "merged")), roles);
  mustRun({"merge", "--base", old, folder / "delta", "-o", folder / "again", "--quiet"});
  EXPECT_EQ(rolesOf(*openFile(folder / "again")), rolesOf(*openFile(old)));
}

} // namespace
