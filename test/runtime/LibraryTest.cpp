// What the built libraries promise: size, exported symbols, needed libraries.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <elf.h>

#include <set>

#include "test/runtime/TestArtifact.h"

namespace ortc::test {
namespace {

/// The few things of a 64-bit ELF file that the tests ask for.
class Elf {
public:
  explicit Elf(const std::string &path) : file(readFile(path)) {
    EXPECT_GT(file.size(), sizeof(Elf64_Ehdr)) << path;
    auto &head = at<Elf64_Ehdr>(0);
    for (unsigned i = 0; i < head.e_shnum; ++i)
      sections.push_back(at<Elf64_Shdr>(head.e_shoff + i * sizeof(Elf64_Shdr)));
    names = sections.at(head.e_shstrndx).sh_offset;
  }
  uint64_t size(const std::string &name) const {
    uint64_t total = 0;
    for (const Elf64_Shdr &s : sections)
      if (name == text(names + s.sh_name))
        total += s.sh_size;
    return total;
  }
  std::set<std::string> needed() const {
    std::set<std::string> result;
    forEach<Elf64_Dyn>(SHT_DYNAMIC, [&](const Elf64_Dyn &d, uint64_t strings) {
      if (d.d_tag == DT_NEEDED)
        result.insert(text(strings + d.d_un.d_val));
    });
    return result;
  }
  std::set<std::string> symbols(bool isDefined) const {
    std::set<std::string> result;
    forEach<Elf64_Sym>(SHT_DYNSYM, [&](const Elf64_Sym &s, uint64_t strings) {
      if (s.st_name && (s.st_shndx != SHN_UNDEF) == isDefined && ELF64_ST_BIND(s.st_info) == STB_GLOBAL)
        result.insert(text(strings + s.st_name));
    });
    return result;
  }

private:
  template <typename T> const T &at(uint64_t offset) const {
    return *reinterpret_cast<const T *>(&file.at(offset));
  }
  const char *text(uint64_t offset) const { return reinterpret_cast<const char *>(&file.at(offset)); }
  template <typename T, typename F> void forEach(uint32_t type, F visit) const {
    for (const Elf64_Shdr &s : sections)
      if (s.sh_type == type)
        for (uint64_t i = 0; i < s.sh_size / sizeof(T); ++i)
          visit(at<T>(s.sh_offset + i * sizeof(T)), sections.at(s.sh_link).sh_offset);
  }
  Bytes file;
  std::vector<Elf64_Shdr> sections;
  uint64_t names = 0;
};

/// Names the header declares with `macro` in front.
std::set<std::string> declared(const std::string &path, const std::string &macro) {
  Bytes bytes = readFile(path);
  std::string source(bytes.begin(), bytes.end());
  std::set<std::string> names;
  for (size_t at = source.find("\n" + macro); at != std::string::npos;
       at = source.find("\n" + macro, at + 1)) {
    size_t end = source.find('(', at), begin = end;
    while (std::isalnum(static_cast<unsigned char>(source[begin - 1])) || source[begin - 1] == '_')
      --begin;
    names.insert(source.substr(begin, end - begin));
  }
  return names;
}

TEST(LibraryTest, TheRuntimeIsSmallAndNeedsOnlyLibc) {
  Elf library(ORTC_RUNTIME_LIBRARY);
  EXPECT_EQ(library.needed(), std::set<std::string>{"libc.so.6"});
  uint64_t size = library.size(".text") + library.size(".rodata");
  RecordProperty("bytes", static_cast<int>(size));
  EXPECT_LE(size, 16384u) << "the limit of .text + .rodata";
  EXPECT_EQ(library.size(".bss") + library.size(".data"), 0u) << "no globals";
}

TEST(LibraryTest, TheRuntimeExportsWhatTheHeaderDeclares) {
  Elf library(ORTC_RUNTIME_LIBRARY);
  std::set<std::string> names = declared(ORTC_RUNTIME_INCLUDE "/ortc.h", "ORTC_API ");
  EXPECT_GT(names.size(), 35u);
  EXPECT_EQ(library.symbols(/*isDefined=*/true), names);
}

TEST(LibraryTest, TheThreadPoolIsSmall) {
  Elf library(ORTC_THREADS_LIBRARY);
  EXPECT_EQ(library.needed(), std::set<std::string>{"libc.so.6"});
  EXPECT_LE(library.size(".text") + library.size(".rodata"), 4096u);
  EXPECT_EQ(library.symbols(/*isDefined=*/true),
            declared(ORTC_RUNTIME_INCLUDE "/threads.h", "ORTC_THREADS_API "));
}

TEST(LibraryTest, SlotsAreSmallAndNeedTheRuntimeAndLibc) {
  Elf library(ORTC_SLOTS_LIBRARY);
  EXPECT_EQ(library.needed(), (std::set<std::string>{"libc.so.6", "libortc.so.1"}));
  uint64_t size = library.size(".text") + library.size(".rodata");
  RecordProperty("bytes", static_cast<int>(size));
  EXPECT_LE(size, 3328u);
  EXPECT_EQ(library.size(".bss") + library.size(".data"), 0u) << "no globals";
  EXPECT_EQ(library.symbols(/*isDefined=*/true),
            declared(ORTC_RUNTIME_INCLUDE "/slots.h", "ORTC_SLOTS_API "));
}

TEST(LibraryTest, DeltasAreSmallAndNeedTheRuntimeAndLibc) {
  Elf library(ORTC_DELTA_LIBRARY);
  EXPECT_EQ(library.needed(), (std::set<std::string>{"libc.so.6", "libortc.so.1"}));
  uint64_t size = library.size(".text") + library.size(".rodata");
  RecordProperty("bytes", static_cast<int>(size));
  EXPECT_LE(size, 6144u);
  EXPECT_EQ(library.size(".bss") + library.size(".data"), 0u) << "no globals";
  EXPECT_EQ(library.symbols(/*isDefined=*/true),
            declared(ORTC_RUNTIME_INCLUDE "/delta.h", "ORTC_DELTA_API "));
}

TEST(LibraryTest, ParametersAreSmallAndNeedTheRuntimeAndLibc) {
  Elf library(ORTC_PARAMETERS_LIBRARY);
  EXPECT_EQ(library.needed(), (std::set<std::string>{"libc.so.6", "libortc.so.1"}));
  uint64_t size = library.size(".text") + library.size(".rodata");
  RecordProperty("bytes", static_cast<int>(size));
  EXPECT_LE(size, 2048u);
  EXPECT_EQ(library.size(".bss") + library.size(".data"), 0u) << "no globals";
  EXPECT_EQ(library.symbols(/*isDefined=*/true),
            declared(ORTC_RUNTIME_INCLUDE "/parameters.h", "ORTC_PARAMETERS_API "));
}

TEST(LibraryTest, SignaturesAreSmallAndNeedOnlyLibc) {
  Elf library(ORTC_VERIFY_LIBRARY);
  EXPECT_EQ(library.needed(), std::set<std::string>{"libc.so.6"});
  uint64_t size = library.size(".text") + library.size(".rodata");
  RecordProperty("bytes", static_cast<int>(size));
  EXPECT_LE(size, 8192u);
  EXPECT_EQ(library.size(".bss") + library.size(".data"), 0u) << "no globals";
  EXPECT_EQ(library.symbols(/*isDefined=*/true),
            declared(ORTC_RUNTIME_INCLUDE "/verify.h", "ORTC_VERIFY_API "));
}

/// A library that finds its driver itself.
void checkDeviceLibrary(const char *path, const std::string &header, const std::string &macro) {
  SCOPED_TRACE(path);
  Elf library(path);
  EXPECT_EQ(library.needed(), std::set<std::string>{"libc.so.6"});
  uint64_t size = library.size(".text") + library.size(".rodata");
  testing::Test::RecordProperty("bytes", static_cast<int>(size));
  EXPECT_LE(size, 32768u);
  EXPECT_EQ(library.size(".bss") + library.size(".data"), 0u) << "no globals";
  std::set<std::string> names = declared(header, macro);
  EXPECT_EQ(names.size(), 2u);
  EXPECT_EQ(library.symbols(/*isDefined=*/true), names);
}

TEST(LibraryTest, TheCudaLibraryIsSmallAndFindsTheDriverItself) {
  checkDeviceLibrary(ORTC_CUDA_LIBRARY, ORTC_RUNTIME_INCLUDE "/cuda.h", "ORTC_CUDA_API ");
}

TEST(LibraryTest, TheHipLibraryIsSmallAndFindsTheDriverItself) {
  checkDeviceLibrary(ORTC_HIP_LIBRARY, ORTC_RUNTIME_INCLUDE "/hip.h", "ORTC_HIP_API ");
}

} // namespace
} // namespace ortc::test
