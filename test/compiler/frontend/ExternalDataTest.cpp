// Models with data in other files.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ModelBuilder.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace ortc;
using namespace ortc::frontend;
using namespace ortc::frontend::test;

namespace {

/// External data in a folder of its own.
class ExternalDataTest : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "ortc-external-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    outside = pattern;
    folder = outside + "/model";
    std::filesystem::create_directory(folder);
  }
  void TearDown() override { std::filesystem::remove_all(outside); }

  static void write(const std::string &path, size_t bytes) {
    std::ofstream(path, std::ios::binary) << std::string(bytes, 'd');
  }
  std::string message(std::initializer_list<std::pair<const char *, const char *>> entries) {
    proto::ModelProto model = smallModel();
    setExternal(model.mutable_graph()->mutable_initializer(0), entries);
    return check(model, folder);
  }

  std::string outside, folder;
};

TEST_F(ExternalDataTest, AcceptsDataInTheFolder) {
  write(folder + "/w.bin", 100);
  EXPECT_EQ(message({{"location", "w.bin"}, {"offset", "52"}}), "");
  EXPECT_EQ(message({{"location", "w.bin"}, {"offset", "4"}, {"length", "48"}, {"checksum", "0"}}), "");
  std::filesystem::create_symlink("w.bin", folder + "/inside");
  EXPECT_EQ(message({{"location", "./inside"}, {"length", "48"}}), "");
}

TEST_F(ExternalDataTest, NoticesFilesThatChange) {
  const std::string file = folder + "/w.bin";
  for (size_t bytes :
       {size_t(47), size_t(48)}) { // cut inside the last page, which reads as zeros; written again
    write(file, 48);
    proto::ModelProto proto = smallModel();
    setExternal(proto.mutable_graph()->mutable_initializer(0), {{"location", "w.bin"}});
    std::shared_ptr<const Model> model;
    ASSERT_TRUE(Model::parse(proto.SerializeAsString(), "m.onnx", folder, model).isOk());
    EXPECT_EQ(model->checkFiles().getMessage(), "");
    write(file, bytes);
    std::filesystem::last_write_time(file,
                                     std::filesystem::file_time_type::clock::now() + std::chrono::seconds(1));
    EXPECT_EQ(model->checkFiles().getMessage(),
              "'m.onnx': external data file 'w.bin' was changed while it was read");
  }
}

TEST_F(ExternalDataTest, NoticesAModelThatChanges) {
  const std::string file = folder + "/m.onnx";
  std::ofstream(file, std::ios::binary) << smallModel().SerializeAsString();
  std::shared_ptr<const Model> model, edited;
  ASSERT_TRUE(Model::load(file, model).isOk());
  ASSERT_TRUE(model->edit([](proto::ModelProto &proto) { proto.set_doc_string("edited"); }, edited).isOk());
  EXPECT_EQ(edited->checkFiles().getMessage(), "");
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  for (const Model *each : {model.get(), edited.get()})
    EXPECT_EQ(each->checkFiles().getMessage(), "'" + file + "' was changed while it was read");
}

TEST_F(ExternalDataTest, RefusesMissingFiles) {
  EXPECT_EQ(message({{"location", "w.bin"}}),
            "'m.onnx': initializer 'w': external data file 'w.bin' cannot be opened in "
            "the model's folder '" +
                folder + "': No such file or directory; copy it next to the model");
}

TEST_F(ExternalDataTest, RefusesShortFiles) {
  write(folder + "/w.bin", 47);
  EXPECT_EQ(
      message({{"location", "w.bin"}, {"length", "48"}}),
      "'m.onnx': initializer 'w': external data file 'w.bin' has 47 bytes, but bytes 0 to 0 + 48 are needed");
  EXPECT_EQ(
      message({{"location", "w.bin"}, {"offset", "18446744073709551615"}}),
      "'m.onnx': initializer 'w': external data file 'w.bin' has 47 bytes, but bytes 18446744073709551615 to "
      "18446744073709551615 + 48 are needed");
}

TEST_F(ExternalDataTest, RefusesOtherLengths) {
  write(folder + "/w.bin", 100);
  EXPECT_EQ(message({{"location", "w.bin"}, {"length", "52"}}),
            "'m.onnx': initializer 'w': external data has 52 bytes but shape [3,4] of FLOAT needs 48");
  EXPECT_EQ(message({{"location", "w.bin"}}), ""); // as many as it needs
}

TEST_F(ExternalDataTest, RefusesLinksThatLeaveTheFolder) {
  write(outside + "/secret", 48);
  std::filesystem::create_symlink("../secret", folder + "/w.bin");
  std::filesystem::create_symlink(outside, folder + "/sub");
  EXPECT_EQ(message({{"location", "w.bin"}}), "'m.onnx': initializer 'w': external data file 'w.bin' is a "
                                              "link that leaves the model's folder; copy the data "
                                              "there");
  EXPECT_EQ(message({{"location", "sub/secret"}}),
            "'m.onnx': initializer 'w': external data file 'sub/secret' is a link that leaves the model's "
            "folder; copy the "
            "data there");
}

TEST_F(ExternalDataTest, RefusesFolders) {
  std::filesystem::create_directory(folder + "/w.bin");
  EXPECT_EQ(message({{"location", "w.bin"}}),
            "'m.onnx': initializer 'w': " + std::filesystem::canonical(folder).string() +
                "/w.bin: is not a regular file");
}

} // namespace
