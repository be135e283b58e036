// Archives of models that are linked into programs: the blob as it is, with symbols where its head has functions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/object/Archive.h"

#include "compiler/backends/cpu/Target.h"
#include "compiler/backends/cpu/isa/Architecture.h"
#include "compiler/backends/cpu/object/Blob.h"

#include "ortc/call.h"

#include "llvm/Object/Archive.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Object/ObjectFile.h"

#include <gtest/gtest.h>

using namespace ortc::cpu;
using ortc::ObjectFormat;

namespace {

/// A blob of two steps, whose code is no code at all.
Bytes makeBlob(uint32_t functionBit) {
  std::vector<BlobEntry> entries{{ORTC_ENTRY_TRAIN, 0, 0, "a"}, {ORTC_ENTRY_EVAL, 0, 0, "b"}};
  Bytes blob;
  appendHead(entries, {150 | functionBit, 64 | functionBit}, blob);
  while (blob.size() < 300)
    blob.push_back(static_cast<uint8_t>(blob.size() * 7));
  return blob;
}

struct Case {
  const char *target;
  ObjectFormat format;
  const char *prefix; ///< of the names of C
};

TEST(ArchiveTest, HasTheBlobAndItsSteps) {
  for (const Case &each :
       {Case{"aarch64", ObjectFormat::Elf, ""}, Case{"aarch64", ObjectFormat::MachO, "_"},
        Case{"aarch64", ObjectFormat::Coff, ""}, Case{"x86-64-v3", ObjectFormat::Coff, ""},
        Case{"x86-64", ObjectFormat::MachO, "_"}, Case{"riscv64", ObjectFormat::Elf, ""},
        Case{"cortex-m4", ObjectFormat::Elf, ""}, Case{"cortex-m55", ObjectFormat::Elf, ""}}) {
    SCOPED_TRACE(each.target);
    Isa isa = findTarget(each.target)->isa;
    auto bit = static_cast<uint32_t>(isa.architecture->functionBit());
    Bytes blob = makeBlob(bit);
    auto bytes = makeArchive(blob, {"model_train", "model_eval"}, isa, each.format);
    ASSERT_TRUE(bytes) << bytes.getStatus().getMessage();
    llvm::StringRef text(reinterpret_cast<const char *>(bytes->data()), bytes->size());
    auto archive = llvm::object::Archive::create(llvm::MemoryBufferRef(text, "model.a"));
    ASSERT_TRUE(bool(archive));
    EXPECT_GE((*archive)->getNumberOfSymbols(), 2u); // a linker finds the object by these
    llvm::Error error = llvm::Error::success();
    auto member = *(*archive)->child_begin(error);
    ASSERT_FALSE(bool(error));
    auto binary = member.getAsBinary();
    ASSERT_TRUE(bool(binary));
    auto &object = llvm::cast<llvm::object::ObjectFile>(**binary);
    int sections = 0;
    for (const llvm::object::SectionRef &section : object.sections())
      if (section.isText() && section.getSize()) {
        ++sections;
        llvm::StringRef contents = llvm::cantFail(section.getContents());
        EXPECT_EQ(contents.take_front(blob.size()),
                  llvm::StringRef(reinterpret_cast<const char *>(blob.data()), blob.size()));
        EXPECT_GE(section.getAlignment().value(), isa.architecture->blobAlignment());
        EXPECT_TRUE(section.relocations().empty());
      }
    EXPECT_EQ(sections, 1);
    std::map<std::string, uint64_t> places;
    for (const llvm::object::SymbolRef &symbol : object.symbols()) {
      EXPECT_FALSE(llvm::cantFail(symbol.getFlags()) & llvm::object::SymbolRef::SF_Undefined);
      bool isThumb = llvm::cantFail(symbol.getFlags()) & llvm::object::SymbolRef::SF_Thumb;
      places[llvm::cantFail(symbol.getName()).str()] = llvm::cantFail(symbol.getValue()) | isThumb;
    }
    std::string prefix = each.prefix;
    EXPECT_EQ(places.at(prefix + "model_train"), 150 | bit);
    EXPECT_EQ(places.at(prefix + "model_eval"), 64 | bit);
  }
}

TEST(ArchiveTest, RefusesFormatsWithoutPrograms) {
  for (auto [target, format] : {std::pair{"cortex-m4", ObjectFormat::Coff},
                                {"riscv64", ObjectFormat::MachO},
                                {"wasm32", ObjectFormat::Elf}}) {
    auto archive = makeArchive(makeBlob(0), {"a", "b"}, findTarget(target)->isa, format);
    ASSERT_FALSE(archive) << target;
    EXPECT_EQ(archive.getStatus().getCode(), ortc::ExitCode::Refused);
  }
}

} // namespace
