// A second family of targets beside the CPUs: its own plan, the same tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "compiler/artifact/ArtifactReader.h"
#include "compiler/artifact/ArtifactWriter.h"
#include "compiler/driver/CheckFamilies.h"
#include "compiler/driver/Compile.h"
#include "compiler/passes/memory/Passes.h"
#include "dialects/train/TrainDialect.h"
#include "ortc/ortc.h"
#include "test/compiler/backends/toy/ToyBackend.h"

#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

using namespace ortc;

namespace {

constexpr size_t kBatch = 4;

class ToyBackendTest : public testing::Test {
protected:
  ToyBackendTest() { extras.families.push_back(&toys); }

  CompileOptions makeOptions(std::vector<std::string> targets) {
    CompileOptions options;
    options.model = std::string(ORTC_TEST_DATA) + "/zoo/mlp-digits/model.onnx";
    options.targets = std::move(targets);
    options.gradients = true;
    EXPECT_TRUE(addShapes("batch=" + std::to_string(kBatch), options).isOk());
    return options;
  }
  driver::Compiled compileFor(std::vector<std::string> targets, const std::string &phase = "") {
    CompileOptions options = makeOptions(std::move(targets));
    options.compileTo = phase;
    Expected<driver::Compiled> compiled = driver::compile(options, extras);
    EXPECT_TRUE(compiled) << compiled.getStatus().getMessage();
    return compiled ? std::move(*compiled) : driver::Compiled();
  }

  test::ToyBackend toys;
  driver::CompileExtras extras;
};

/// The losses of ten steps on made-up data.
std::vector<double> train(const driver::Compiled &compiled) {
  const artifact::Bytes file = *artifact::writeArtifact(compiled.artifact);
  size_t bytes = (file.size() + ORTC_ALIGNMENT - 1) / ORTC_ALIGNMENT * ORTC_ALIGNMENT;
  void *image = std::aligned_alloc(ORTC_ALIGNMENT, bytes);
  std::memcpy(image, file.data(), file.size());
  ortc_program *program = nullptr;
  ortc_session *session = nullptr;
  ortc_message message{};
  EXPECT_EQ(ortc_program_open_memory(image, file.size(), nullptr, &program, &message), ORTC_OK)
      << message.text;
  EXPECT_EQ(ortc_session_create(program, nullptr, &session, &message), ORTC_OK) << message.text;
  std::vector<float> pixels(kBatch * 64);
  std::vector<int64_t> labels(kBatch);
  for (size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<float>(i % 17) / 17;
  for (size_t i = 0; i < labels.size(); ++i)
    labels[i] = static_cast<int64_t>(i % 10);
  EXPECT_EQ(ortc_bind(session, "pixels", pixels.data(), pixels.size() * sizeof pixels[0]), ORTC_OK);
  EXPECT_EQ(ortc_bind(session, "label", labels.data(), labels.size() * sizeof labels[0]), ORTC_OK);
  std::vector<double> losses(10);
  for (double &loss : losses)
    EXPECT_EQ(ortc_train_step(session, &loss), ORTC_OK) << ortc_session_message(session);
  ortc_session_destroy(session);
  ortc_program_close(program);
  std::free(image);
  return losses;
}

TEST_F(ToyBackendTest, AnArtifactOfTwoFamiliesTrainsOnTheCpuAsBefore) {
  driver::Compiled alone = compileFor({"native"}), both = compileFor({"native", "toy"});
  ASSERT_EQ(both.families.size(), 2u);
  std::vector<double> losses = train(both);
  EXPECT_LT(losses.back(), losses.front());
  EXPECT_EQ(losses, train(alone));
}

TEST_F(ToyBackendTest, AFamilyHasItsOwnKernelsAndItsOwnEntries) {
  driver::Compiled both = compileFor({"x86-64", "x86-64-v3", "toy"});
  ASSERT_EQ(both.families.size(), 2u);
  const driver::FamilyProgram &cpus = both.families[0], &toy = both.families[1];
  ASSERT_EQ(cpus.codes.size(), 2u);
  ASSERT_EQ(toy.codes.size(), 1u);
  EXPECT_GT(toy.kernels.names.size(), cpus.kernels.names.size()) << "other limits, other kernels";
  EXPECT_EQ(toy.codes[0]->kernels.size(), toy.kernels.names.size());
  EXPECT_EQ(toy.kernels.first, cpus.kernels.names.size());

  const artifact::Bytes bothFile = *artifact::writeArtifact(both.artifact);
  Expected<artifact::ArtifactFile> read = artifact::readArtifact(bothFile);
  ASSERT_TRUE(read) << read.getStatus().getMessage();
  const artifact::Artifact &artifact = read->artifact;
  EXPECT_EQ(artifact.kernelNames.size(), cpus.kernels.names.size() + toy.kernels.names.size());
  EXPECT_EQ(artifact.checkNames, std::vector<std::string>{"label"}) << "the same name, once";
  ASSERT_EQ(artifact.codes.size(), 3u);
  std::map<uint32_t, std::set<std::string>> names;
  for (const artifact::Entry &entry : artifact.entries)
    names[entry.target].insert(entry.name);
  ASSERT_EQ(names.size(), 3u) << "every code has entries of its own";
  EXPECT_EQ(names[0], names[1]);
  ASSERT_EQ(names[2].size(), names[0].size());
  for (const std::string &name : names[0])
    EXPECT_TRUE(names[2].contains(name + "@toys")) << name;

  nlohmann::json manifest = nlohmann::json::parse(artifact.manifest);
  EXPECT_EQ(manifest["kernels"].size(), artifact.kernelNames.size());
  EXPECT_EQ(manifest["kernels"].back()["family"], "toys");
  EXPECT_EQ(manifest["entries"].size(), 2 * names[0].size());
  EXPECT_EQ(manifest["targets"].size(), 3u);
}

/// Whichever family comes first has the tensors' table and the plain names.
TEST_F(ToyBackendTest, TheOrderOfFamiliesChangesNoNumber) {
  std::vector<double> losses = train(compileFor({"native"}));
  driver::Compiled both = compileFor({"toy", "native"});
  EXPECT_EQ(train(both), losses);
  EXPECT_EQ(both.artifact.entries.front().name, "train/default");
  EXPECT_EQ(both.artifact.entries.back().name.substr(both.artifact.entries.back().name.find('@')), "@cpu");
}

TEST_F(ToyBackendTest, AFamilyAloneHasPlainNames) {
  driver::Compiled alone = compileFor({"toy"});
  ASSERT_EQ(alone.families.size(), 1u);
  for (const artifact::Entry &entry : alone.artifact.entries) {
    EXPECT_EQ(entry.target, ORTC_NONE);
    EXPECT_EQ(entry.name.find('@'), std::string::npos);
  }
  EXPECT_GT(alone.facts.families[0].entries[0].flops, 0) << "work needs no code";
}

/// The smallest budget that is enough depends on the kernels, and so on the family.
TEST_F(ToyBackendTest, ABudgetHoldsForEveryFamily) {
  CompileOptions options = makeOptions({"x86-64-v3", "toy"});
  options.compileTo = "place";
  uint64_t most = 0;
  Expected<driver::Compiled> free = driver::compile(options, extras);
  ASSERT_TRUE(free) << free.getStatus().getMessage();
  for (const report::FamilyFacts &family : free->facts.families)
    for (const report::EntryFacts &entry : family.entries)
      most = std::max(most, entry.memory.bytes);
  options.memoryBudget = most;
  Expected<driver::Compiled> limited = driver::compile(options, extras);
  ASSERT_TRUE(limited) << limited.getStatus().getMessage();
  for (const report::FamilyFacts &family : limited->facts.families)
    for (const report::EntryFacts &entry : family.entries)
      EXPECT_LE(entry.memory.bytes, most) << entry.name;
}

TEST_F(ToyBackendTest, TargetsOfAllFamiliesAreKnownByName) {
  std::string names = "host, all, native";
  for (const backends::Backend *backend : backends::listBackends())
    for (llvm::StringRef name : backend->targetNames())
      names += ", " + name.str();
  EXPECT_EQ(driver::checkRequest(makeOptions({"toys"}), extras).getMessage(),
            "--target 'toys' is not known; known are " + names + ", toy");
  EXPECT_TRUE(driver::checkRequest(makeOptions({"toy"}), extras).isOk());
  EXPECT_EQ(driver::checkRequest(makeOptions({"toy"}), {}).getMessage(),
            "--target 'toy' is not known; known are " + names);
  driver::CompileExtras toysAlone;
  toysAlone.families = {&toys};
  EXPECT_EQ(driver::checkRequest(makeOptions({"host"}), toysAlone).getMessage(),
            "--target names nothing; known are host, all, native, toy");
  extras.tuning.measures = true;
  EXPECT_EQ(
      driver::checkRequest(makeOptions({"native", "toy"}), extras).getMessage(),
      "--tune measures on this machine, which cannot run code for toy; give --target native, or a level that "
      "it can run");
}

TEST_F(ToyBackendTest, FamiliesThatDisagreeAreRefused) {
  driver::Compiled both = compileFor({"x86-64-v3", "toy"}, "place");
  ASSERT_EQ(both.families.size(), 2u);
  mlir::ModuleOp first = *both.families[0].ir, other = *both.families[1].ir;
  EXPECT_TRUE(driver::checkFamily(first, other, "toys").isOk());
  mlir::Builder builder(both.context.get());
  auto tensor = *other.getOps<train::TensorOp>().begin();
  mlir::Attribute offset = tensor->getAttr(memory::kOffset);
  tensor->setAttr(memory::kOffset, builder.getI64IntegerAttr(1 << 20));
  EXPECT_EQ(driver::checkFamily(first, other, "toys").getMessage(),
            "the program for toys has another tensor '" + tensor.getName().str() +
                "' than that for the first family of targets; please report this with the model");
  tensor->setAttr(memory::kOffset, offset);
  mlir::Attribute bytes = other->getAttr(memory::kPersistentBytes);
  other->setAttr(memory::kPersistentBytes, builder.getI64IntegerAttr(64));
  EXPECT_FALSE(driver::checkFamily(first, other, "toys").isOk());
  other->setAttr(memory::kPersistentBytes, bytes);
  EXPECT_TRUE(driver::checkFamily(first, other, "toys").isOk());
  (*other.getOps<plan::ProgramOp>().begin()).erase();
  EXPECT_FALSE(driver::checkFamily(first, other, "toys").isOk()) << "an entry is missing";
}

/// Limits that differ give families programs of their own from attention on, and change nothing of the CPU's.
TEST_F(ToyBackendTest, AFamilyMayHaveLimitsOfItsOwnBeforeKernels) {
  driver::Compiled before = compileFor({"x86-64-v3", "toy"});
  toys.training.chunkBytes = 1 << 10;
  std::vector<std::string> ended;
  extras.afterPhase = [&](const char *phase, const std::string &family, mlir::ModuleOp) {
    ended.push_back(phase + (family.empty() ? "" : ":" + family));
    return Status();
  };
  driver::Compiled both = compileFor({"x86-64-v3", "toy"});
  ASSERT_GE(ended.size(), 4u);
  EXPECT_EQ(std::vector<std::string>(ended.begin(), ended.begin() + 4),
            (std::vector<std::string>{"import", "legalize", "simplify:cpu", "simplify:toys"}));
  ASSERT_EQ(both.families.size(), 2u);
  EXPECT_EQ(both.families[0].codes[0]->section.bytes, before.families[0].codes[0]->section.bytes);
  EXPECT_EQ(both.notes, before.notes);
  EXPECT_EQ(both.facts.warnings, before.facts.warnings);
  EXPECT_EQ(both.artifact.tensors.size(), before.artifact.tensors.size());
}

TEST_F(ToyBackendTest, PhasesEndOnceForEachFamily) {
  std::vector<std::string> ended;
  extras.afterPhase = [&](const char *phase, const std::string &family, mlir::ModuleOp) {
    ended.push_back(phase + (family.empty() ? "" : ":" + family));
    return Status();
  };
  compileFor({"toy", "x86-64-v3"}, "place");
  EXPECT_EQ(ended,
            (std::vector<std::string>{"import", "legalize", "simplify", "loss", "differentiate", "update",
                                      "entries", "fuse:toys", "fuse:cpu", "place:toys", "place:cpu"}));
}

} // namespace
