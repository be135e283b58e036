// Opening models that are linked into the program: the steps are those of the table, and images that do not fit are
// refused before a step is looked up.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ortc/static.h"

#include "compiler/artifact/ArtifactReader.h"
#include "compiler/artifact/StaticModel.h"
#include "test/runtime/TestArtifact.h"

using namespace ortc::test;

namespace {

int called = -1;

template <int number> int32_t step(const ortc_call *) {
  called = number;
  return ORTC_STEP_OK;
}
const ortc_step_fn kSteps[] = {step<0>, step<1>, step<2>, step<3>, step<4>, step<5>, step<6>, step<7>};

class StaticTest : public testing::Test {
protected:
  StaticTest() : image(*ortc::artifact::makeStaticImage(makeArtifact())) {}

  ortc_status open(const Bytes &bytes) {
    AlignedBytes aligned(bytes);
    ortc_static model = {sizeof model, abi, aligned.data(), aligned.size, kSteps};
    ortc_program *opened = nullptr;
    ortc_status status = ortc_program_open_static(&model, nullptr, &opened, &message);
    if (status == ORTC_OK)
      use(opened);
    ortc_program_close(opened);
    return status;
  }
  /// Makes every step of the first binding once.
  void use(ortc_program *program) {
    SessionHandle session = makeSession(program);
    writeBatch(session.get(), 1);
    ortc_entry_info info = ORTC_INIT(ortc_entry_info);
    for (uint32_t i = 0; ortc_entry_get(program, i, &info) == ORTC_OK; ++i)
      if (info.binding == 0 && info.role == ORTC_ENTRY_TRAIN) {
        EXPECT_EQ(ortc_train_step(session.get(), nullptr), ORTC_OK);
        EXPECT_EQ(called, int(i));
      }
  }
  Bytes image;
  uint32_t abi = ORTC_ABI_VERSION;
  ortc_message message{};
};

TEST_F(StaticTest, RunsTheStepsOfTheTable) {
  EXPECT_EQ(open(image), ORTC_OK) << message.text;
  EXPECT_GE(called, 0);
}

TEST_F(StaticTest, RefusesNumbersBeyondTheTable) {
  ortc_blob head;
  std::memcpy(&head, ortc::artifact::readArtifact(image)->artifact.codes.front().bytes.data(), sizeof head);
  for (uint32_t offset : {head.count, head.count + 40, 0xffffffffu}) {
    // The reader of the compiler refuses it, too: the bytes are changed where they lie, without their hash.
    Bytes broken = image;
    const auto *header = reinterpret_cast<const ortc_file_header *>(broken.data());
    const auto *sections = reinterpret_cast<const ortc_file_section *>(header + 1);
    for (uint32_t i = 0; i < header->section_count; ++i)
      if (sections[i].kind == ORTC_SECTION_CODE)
        std::memcpy(broken.data() + sections[i].offset + sizeof head + offsetof(ortc_blob_entry, offset),
                    &offset, sizeof offset);
    EXPECT_EQ(open(broken), ORTC_E_FORMAT) << offset;
  }
}

TEST_F(StaticTest, RefusesCodeThatIsNotLinked) { EXPECT_EQ(open(makeFile()), ORTC_E_FORMAT); }

TEST_F(StaticTest, RefusesAnotherAbiAndCutImages) {
  abi = ORTC_ABI_VERSION + 1;
  EXPECT_EQ(open(image), ORTC_E_VERSION);
  abi = ORTC_ABI_VERSION;
  for (size_t bytes : {size_t(0), size_t(100), size_t(200), image.size() - 1})
    EXPECT_NE(open(Bytes(image.begin(), image.begin() + bytes)), ORTC_OK) << bytes;
}

TEST_F(StaticTest, AFileWithoutCodeOfItsOwnDoesNotOpen) {
  OpenProgram opened(image);
  EXPECT_EQ(opened.status, ORTC_E_TARGET);
}

} // namespace
