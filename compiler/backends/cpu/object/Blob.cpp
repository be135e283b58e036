// A linker for the one case that code blobs need: text and read-only data, references relative to their own place.
// Chosen over lld in process, which reads files, keeps global state and would have to be told not to make a GOT:
// here everything else than the wanted case is an error.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/object/Blob.h"

#include "compiler/backends/cpu/isa/Architecture.h"
#include "compiler/backends/cpu/object/WasmModule.h"

#include "ortc/call.h"

#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

#include <optional>

using namespace llvm;
using namespace llvm::object;

namespace ortc::cpu {
namespace {

/// A section that becomes part of the blob.
struct Piece {
  SectionRef section;
  uint64_t offset = 0; ///< in the blob
};

struct Input {
  std::unique_ptr<ELFObjectFileBase> file;
  /// Key: section index in the file.
  std::map<uint64_t, Piece> pieces;
};

constexpr uint64_t kMaxAlignment = 64;

} // namespace

static Error error(const Twine &message) { return createStringError(inconvertibleErrorCode(), message); }

/// Whether the section goes into the blob; an error when it must not exist at all.
static Expected<bool> isWanted(const SectionRef &section) {
  ELFSectionRef elf(section);
  Expected<StringRef> name = section.getName();
  if (!name)
    return name.takeError();
  if (!(elf.getFlags() & ELF::SHF_ALLOC) || section.getSize() == 0)
    return false;
  if (name->starts_with(".eh_frame") || name->starts_with(".ARM.ex"))
    return false; // for unwinding
  if ((elf.getFlags() & ELF::SHF_WRITE) || elf.getType() == ELF::SHT_NOBITS || name->starts_with(".got"))
    return error("section '" + *name + "' is writable, a code blob has no data");
  if (section.getAlignment().value() > kMaxAlignment)
    return error("section '" + *name + "' is aligned to " + Twine(section.getAlignment().value()) +
                 " bytes, a code blob to " + Twine(kMaxAlignment));
  return true;
}

static Expected<Input> readObject(const Bytes &bytes, const Architecture &architecture) {
  MemoryBufferRef buffer(StringRef(reinterpret_cast<const char *>(bytes.data()), bytes.size()), "object");
  auto file = ObjectFile::createELFObjectFile(buffer);
  if (!file)
    return file.takeError();
  Input input;
  input.file.reset(cast<ELFObjectFileBase>(file->release()));
  if (input.file->getEMachine() != architecture.elfMachine())
    return error("an object is not of " + architecture.name() + " as the first one of its code blob is");
  for (SectionRef section : input.file->sections()) {
    Expected<bool> wanted = isWanted(section);
    if (!wanted)
      return wanted.takeError();
    if (*wanted)
      input.pieces[section.getIndex()] = {section, 0};
  }
  return input;
}

/// Blob offset of a symbol that is defined in `input`, as its address has it (Architecture::functionBit), or nothing.
static Expected<std::optional<uint64_t>> definedAt(const Input &input, const SymbolRef &symbol,
                                                   const Architecture &architecture) {
  Expected<section_iterator> section = symbol.getSection();
  if (!section)
    return section.takeError();
  if (*section == input.file->section_end())
    return std::optional<uint64_t>();
  auto piece = input.pieces.find((*section)->getIndex());
  if (piece == input.pieces.end())
    return std::optional<uint64_t>();
  Expected<uint64_t> value = symbol.getValue();
  if (!value)
    return value.takeError();
  bool isFunction = ELFSymbolRef(symbol).getELFType() == ELF::STT_FUNC;
  return std::optional<uint64_t>((piece->second.offset + *value) |
                                 (isFunction ? architecture.functionBit() : 0));
}

/// Appends the sections for which `isCode` holds.
static Error appendSections(std::vector<Input> &inputs, Bytes &bytes, bool isCode, uint8_t filler) {
  for (Input &input : inputs) {
    for (auto &[index, piece] : input.pieces) {
      if (piece.section.isText() != isCode)
        continue;
      Expected<StringRef> contents = piece.section.getContents();
      if (!contents)
        return contents.takeError();
      bytes.resize(alignTo(bytes.size(), piece.section.getAlignment().value()), filler);
      piece.offset = bytes.size();
      bytes.insert(bytes.end(), contents->bytes_begin(), contents->bytes_end());
    }
  }
  return Error::success();
}

static Error collectSymbols(const std::vector<Input> &inputs, const Architecture &architecture,
                            CodeBlob &blob) {
  for (const Input &input : inputs) {
    for (ELFSymbolRef symbol : input.file->symbols()) {
      if (symbol.getBinding() == ELF::STB_LOCAL)
        continue;
      auto offset = definedAt(input, symbol, architecture);
      if (!offset)
        return offset.takeError();
      Expected<StringRef> name = symbol.getName();
      if (!name)
        return name.takeError();
      if (*offset && !blob.symbols.try_emplace(name->str(), static_cast<uint32_t>(**offset)).second)
        return error("symbol '" + *name + "' is defined by two objects");
    }
  }
  return Error::success();
}

/// What a relocation refers to, without `first`.
static Expected<Relocation> resolve(const Input &input, const Piece &piece, const RelocationRef &relocation,
                                    const Architecture &architecture, const CodeBlob &blob) {
  ELFSymbolRef symbol = *relocation.getSymbol();
  Expected<StringRef> name = symbol.getName();
  if (!name)
    return name.takeError();
  auto local = definedAt(input, symbol, architecture);
  if (!local)
    return local.takeError();
  uint64_t target;
  if (*local) {
    target = **local;
  } else {
    auto found = blob.symbols.find(name->str());
    if (found == blob.symbols.end())
      return error("undefined symbol '" + *name + "' in a code blob");
    target = found->second;
  }
  uint64_t place = piece.offset + relocation.getOffset();
  std::optional<int64_t> addend =
      architecture.implicitAddend(relocation.getType(), blob.bytes.data() + place);
  if (!addend) {
    Expected<int64_t> own = ELFRelocationRef(relocation).getAddend();
    if (!own)
      return own.takeError();
    addend = *own;
  }
  return Relocation{relocation.getType(), static_cast<int64_t>(place), static_cast<int64_t>(target) + *addend,
                    std::nullopt};
}

/// The relocations of a section's table, in its order.
static Error relocateSection(const Input &input, const Piece &piece, const SectionRef &table,
                             const Architecture &architecture, CodeBlob &blob) {
  std::vector<Relocation> resolved;
  std::map<int64_t, int64_t> distances; // by place
  for (const RelocationRef &relocation : table.relocations()) {
    Expected<Relocation> found = resolve(input, piece, relocation, architecture, blob);
    if (!found)
      return found.takeError();
    resolved.push_back(*found);
    distances.try_emplace(found->place, found->distance());
  }
  auto relocation = table.relocation_begin();
  for (Relocation &each : resolved) {
    if (auto first = distances.find(each.target); first != distances.end())
      each.first = first->second;
    Architecture::Relocated done = architecture.relocate(each, blob.bytes.data() + each.place);
    if (done != Architecture::Relocated::Done) {
      SmallString<32> type;
      relocation->getTypeName(type);
      return error("relocation " + type +
                   (done == Architecture::Relocated::TooFar ? " does not reach: the code blob is too large"
                                                            : " is not relative to its place"));
    }
    ++relocation;
  }
  return Error::success();
}

static Error relocateAll(const std::vector<Input> &inputs, const Architecture &architecture, CodeBlob &blob) {
  for (const Input &input : inputs) {
    for (SectionRef table : input.file->sections()) {
      Expected<section_iterator> patched = table.getRelocatedSection();
      if (!patched)
        return patched.takeError();
      if (*patched == input.file->section_end())
        continue;
      auto piece = input.pieces.find((*patched)->getIndex());
      if (piece == input.pieces.end())
        continue;
      if (Error failed = relocateSection(input, piece->second, table, architecture, blob))
        return failed;
    }
  }
  return Error::success();
}

void appendHead(ArrayRef<BlobEntry> entries, ArrayRef<uint32_t> offsets, Bytes &bytes) {
  size_t start = bytes.size();
  bytes.resize(start + alignTo(sizeof(ortc_blob) + entries.size() * sizeof(ortc_blob_entry), kMaxAlignment));
  uint8_t *word = bytes.data() + start;
  auto put = [&](uint32_t value) {
    support::endian::write32le(word, value);
    word += sizeof value;
  };
  for (uint32_t value : {uint32_t(ORTC_BLOB_MAGIC), uint32_t(ORTC_CALL_ABI),
                         static_cast<uint32_t>(entries.size()), uint32_t(sizeof(ortc_blob_entry))})
    put(value);
  for (auto [entry, offset] : zip_equal(entries, offsets))
    for (uint32_t value : {entry.role, entry.binding, entry.segment, offset})
      put(value);
}

void addFrames(ArrayRef<Object> objects, CodeBlob &blob) {
  for (const Object &object : objects)
    for (const auto &[name, frame] : object.frames)
      if (auto [known, isNew] = blob.frames.try_emplace(name, frame); !isNew)
        known->second.bytes.reset();
}

/// Places of the entries' functions.
static Expected<std::vector<uint32_t>> findEntries(ArrayRef<BlobEntry> entries, const CodeBlob &blob) {
  std::vector<uint32_t> offsets;
  for (const BlobEntry &entry : entries) {
    auto symbol = blob.symbols.find(entry.symbol);
    if (symbol == blob.symbols.end())
      return error("entry function '" + entry.symbol + "' is not in the code blob");
    offsets.push_back(symbol->second);
  }
  return offsets;
}

Expected<CodeBlob> linkBlob(ArrayRef<Object> objects, ArrayRef<BlobEntry> entries) {
  if (objects.empty())
    return error("a code blob needs an object");
  const Architecture &architecture = *objects.front().architecture;
  if (architecture.isModule())
    return linkWasmModule(objects, entries);
  std::vector<Input> inputs;
  for (const Object &object : objects) {
    Expected<Input> input = readObject(object.bytes, architecture);
    if (!input)
      return input.takeError();
    inputs.push_back(std::move(*input));
  }
  CodeBlob blob;
  appendHead(entries, std::vector<uint32_t>(entries.size()),
             blob.bytes); // written again once places are known
  uint64_t head = blob.bytes.size();
  if (Error failed = appendSections(inputs, blob.bytes, /*isCode=*/true, architecture.codeFiller()))
    return failed;
  blob.textBytes = blob.bytes.size() - head;
  if (Error failed = appendSections(inputs, blob.bytes, /*isCode=*/false, /*filler=*/0))
    return failed;
  blob.constantBytes = blob.bytes.size() - head - blob.textBytes;
  if (Error failed = collectSymbols(inputs, architecture, blob))
    return failed;
  if (Error failed = relocateAll(inputs, architecture, blob))
    return failed;
  auto offsets = findEntries(entries, blob);
  if (!offsets)
    return offsets.takeError();
  Bytes headBytes;
  appendHead(entries, *offsets, headBytes);
  std::copy(headBytes.begin(), headBytes.end(), blob.bytes.begin());
  addFrames(objects, blob);
  return blob;
}

} // namespace ortc::cpu
