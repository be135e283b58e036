// The blob as assembly text: LLVM's assembler knows the formats and how each marks a function.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/object/Archive.h"

#include "compiler/backends/cpu/isa/Architecture.h"
#include "compiler/backends/emit/LlvmModule.h"

#include "ortc/call.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

#include <map>

namespace ortc::cpu {

using namespace emit;

namespace {

/// What a format writes otherwise.
struct Dialect {
  const char *system;  ///< vendor and system of the triple; empty: the target's own
  const char *section; ///< of code
  const char *prefix;  ///< of names of C
  llvm::object::Archive::Kind kind;
};

Dialect dialectOf(ObjectFormat format) {
  switch (format) {
  case ObjectFormat::MachO: // of no version: it links into programs of macOS and iOS
    return {"apple-darwin", ".section __TEXT,__text,regular,pure_instructions", "_",
            llvm::object::Archive::K_DARWIN};
  case ObjectFormat::Coff:
    return {"pc-windows-msvc", ".text", "", llvm::object::Archive::K_COFF};
  default:
    return {"", ".section .text.ortc,\"ax\",%progbits", "", llvm::object::Archive::K_GNU};
  }
}

std::string nameSymbol(const std::string &name, const Dialect &dialect, bool isThumb) {
  std::string symbol = dialect.prefix + name, text = ".globl " + symbol + "\n";
  if (dialect.kind == llvm::object::Archive::K_GNU)
    text += ".hidden " + symbol + "\n.type " + symbol + ",%function\n" + (isThumb ? ".thumb_func\n" : "");
  else if (dialect.kind == llvm::object::Archive::K_DARWIN)
    text += ".private_extern " + symbol + "\n.alt_entry " + symbol +
            "\n"; // a place in the blob, which stays whole
  else
    text += ".def " + symbol + "\n.scl 2\n.type 32\n.endef\n";
  return text + symbol + ":\n";
}

/// Places of the entries' functions, by the blob's head.
std::map<size_t, std::string> placeSymbols(const Bytes &blob, const std::vector<std::string> &symbols,
                                           uint64_t functionBit) {
  std::map<size_t, std::string> places;
  for (auto [i, symbol] : llvm::enumerate(symbols)) {
    const uint8_t *offset =
        blob.data() + sizeof(ortc_blob) + i * sizeof(ortc_blob_entry) + offsetof(ortc_blob_entry, offset);
    places[llvm::support::endian::read32le(offset) & ~functionBit] = symbol;
  }
  return places;
}

std::string makeAssembly(const Bytes &blob, const std::map<size_t, std::string> &places,
                         const Dialect &dialect, const Architecture &architecture) {
  std::string text = std::string(dialect.section) + "\n.p2align " +
                     std::to_string(llvm::Log2_64(architecture.blobAlignment())) + "\n";
  if (dialect.kind == llvm::object::Archive::K_DARWIN) // what begins with the first symbol could be left out
    text += dialect.prefix + places.begin()->second + "_code:\n";
  auto next = places.begin();
  for (size_t at = 0; at < blob.size(); ++at) {
    if (next != places.end() && next->first == at)
      text += "\n" + nameSymbol((next++)->second, dialect, architecture.functionBit() != 0) + ".byte ";
    else
      text += at % 32 == 0 ? "\n.byte " : text.back() == ' ' ? "" : ",";
    text += std::to_string(blob[at]);
  }
  return text + "\n";
}

} // namespace

/// The triple of the architecture's programs in this format; empty where there are none.
static std::string findTriple(const Isa &isa, ObjectFormat format, const Dialect &dialect) {
  if (format == ObjectFormat::Elf)
    return isa.triple;
  llvm::Triple triple(isa.triple);
  if (triple.isAArch64())
    return std::string(format == ObjectFormat::MachO ? "arm64-" : "aarch64-") + dialect.system;
  return triple.getArch() == llvm::Triple::x86_64 ? std::string("x86_64-") + dialect.system : "";
}

static Expected<llvm::SmallVector<char, 0>> assemble(const std::string &text, const Isa &isa,
                                                     const llvm::Triple &triple) {
  std::string message;
  const llvm::Target *found = findLlvmTarget(triple, message);
  std::unique_ptr<llvm::TargetMachine> machine(
      found
          ? found->createTargetMachine(triple, isa.cpu, isa.features, makeTargetOptions(), llvm::Reloc::PIC_)
          : nullptr);
  if (!machine)
    return Status::failure("LLVM has no assembler for " + triple.str());
  llvm::LLVMContext context;
  llvm::Module module("model", context);
  module.setTargetTriple(triple);
  module.setDataLayout(machine->createDataLayout());
  module.setModuleInlineAsm(text);
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return Status::failure("LLVM cannot emit objects for " + triple.str());
  passes.run(module);
  return object;
}

Expected<Bytes> makeArchive(const Bytes &blob, const std::vector<std::string> &symbols, const Isa &isa,
                            ObjectFormat format) {
  const Architecture &architecture = *isa.architecture;
  Dialect dialect = dialectOf(format);
  std::string triple = findTriple(isa, format, dialect);
  if (architecture.isModule())
    return Status::refusal("its code is a module of its own; leave --emit static out");
  if (triple.empty())
    return Status::refusal(std::string("--object ") + (format == ObjectFormat::MachO ? "macho" : "coff") +
                           ": no system has programs of " + architecture.name().str() +
                           " in this format; name elf");
  auto object = assemble(
      makeAssembly(blob, placeSymbols(blob, symbols, architecture.functionBit()), dialect, architecture), isa,
      llvm::Triple(triple));
  if (!object)
    return object.getStatus();
  llvm::NewArchiveMember member(
      llvm::MemoryBufferRef(llvm::StringRef(object->data(), object->size()), "model.o"));
  auto archive = llvm::writeArchiveToBuffer(member, llvm::SymtabWritingMode::NormalSymtab, dialect.kind,
                                            /*Deterministic=*/true, /*Thin=*/false);
  if (!archive)
    return Status::failure(llvm::toString(archive.takeError()));
  return Bytes((*archive)->getBufferStart(), (*archive)->getBufferEnd());
}

} // namespace ortc::cpu
