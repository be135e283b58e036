// A model as C source, for programs that it is linked into.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/artifact/StaticModel.h"

#include "compiler/artifact/ArtifactReader.h"
#include "compiler/artifact/ArtifactWriter.h"
#include "compiler/artifact/FileLayout.h"
#include "support/FormatNames.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <set>

namespace ortc::artifact {

/// A name as a part of one of C: what C has no letter for is _.
static std::string asIdentifier(std::string text) {
  for (char &c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) || static_cast<unsigned char>(c) >= 128)
      c = '_';
  return text;
}

static std::string inCapitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

/// "train", or "train_large" of a binding that is not the first.
static std::string nameEntry(const Artifact &artifact, const Entry &entry) {
  std::string name = getEntryRoleName(entry.role);
  if (entry.binding > 0)
    name += "_" + asIdentifier(artifact.bindings[entry.binding]);
  return entry.segment > 0 ? name + "_" + std::to_string(entry.segment) : name;
}

/// One name for each entry, also in capitals: where C would have two bindings called alike, the later one gets lines.
static std::vector<std::string> nameEntries(const Artifact &artifact) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const Entry &entry : artifact.entries) {
    names.push_back(nameEntry(artifact, entry));
    while (!taken.insert(inCapitals(names.back())).second)
      names.back() += "_";
  }
  return names;
}

std::vector<std::string> nameSteps(const std::string &name, const Artifact &artifact) {
  const Bytes &code = artifact.codes.front().bytes;
  std::string prefix = name + "_" + sha256Hex(code.data(), code.size()).substr(0, 8) + "_";
  std::vector<std::string> symbols;
  for (const std::string &entry : nameEntries(artifact))
    symbols.push_back(prefix + entry);
  return symbols;
}

namespace {

/// Lines of #define.
class Macros {
public:
  void define(const std::string &name, const std::string &value, const std::string &comment = "") {
    lines.push_back({name, value, comment});
  }
  void define(const std::string &name, uint64_t value, const std::string &comment = "") {
    define(name, std::to_string(value) + "u", comment);
  }
  void addBlankLine() { lines.emplace_back(); }

  /// Of a name that several lines want, each has one with a number, and none the name itself: what a program takes for
  /// one of them is never another.
  std::string print(const std::string &prefix) const {
    std::map<std::string, int> uses;
    for (const Line &line : lines)
      ++uses[line.name];
    std::map<std::string, int> numbers;
    std::string text;
    for (const Line &line : lines) {
      std::string name = line.name;
      if (uses[name] > 1)
        do
          name = line.name + "_" + std::to_string(++numbers[line.name]);
        while (uses.count(name));
      text += line.name.empty() ? "\n"
                                : "#define " + prefix + name + " " + line.value +
                                      (line.comment.empty() ? "" : " /* " + line.comment + " */") + "\n";
    }
    return text;
  }

private:
  struct Line {
    std::string name, value, comment;
  };
  std::vector<Line> lines;
};

/// The name of a tensor for a comment of C, where it is no name of C itself: without what could end the comment.
std::string describeName(const std::string &name) {
  if (asIdentifier(name) == name)
    return "";
  std::string text;
  for (char c : name)
    text += c >= ' ' && c <= '~' && c != '*' && c != '\\' && c != '?' ? c : '_';
  return "'" + text + "', ";
}

/// For a comment of C: "'dense.bias', float32 [10]".
std::string describeTensor(const Tensor &tensor) {
  std::string text = describeName(tensor.name) + dtypeName(tensor.dtype) + " [";
  for (size_t i = 0; i < tensor.dims.size(); ++i)
    text += (i ? ", " : "") + std::to_string(tensor.dims[i]);
  return text + "]" +
         (tensor.strides.empty() || tensor.strides == denseStrides(tensor.dims, elementBytes(tensor.dtype))
              ? ""
              : ", not dense");
}

uint64_t alignRegion(uint64_t bytes) { return alignTo(bytes, ORTC_ALIGNMENT); }

uint64_t bytesOf(const Tensor &tensor, const std::vector<int64_t> &dims) {
  uint64_t bytes = elementBytes(tensor.dtype);
  for (int64_t dim : dims)
    bytes *= static_cast<uint64_t>(dim);
  return bytes;
}

/// `name`: of the entry, in capitals.
void defineEntry(const StaticModel &model, size_t number, const std::string &name, Macros &macros) {
  const Artifact &artifact = model.artifact;
  const Entry &entry = artifact.entries[number];
  macros.addBlankLine();
  macros.define(name + "_STEP", model.steps[number]);
  macros.define(name + "_TRANSIENT_BYTES", alignRegion(entry.fixedBytes));
  if (model.stack[number])
    macros.define(name + "_STACK_BYTES", *model.stack[number]);
  for (size_t i = 0; i < entry.external.size(); ++i) {
    const Tensor &tensor = artifact.tensors[entry.external[i].tensor];
    std::string value = name + "_" + asIdentifier(tensor.name);
    Tensor shown = tensor;
    shown.dims = entry.external[i].dims;
    shown.strides.clear();
    macros.define(value + "_EXT", i, describeTensor(shown));
    macros.define(value + "_BYTES", bytesOf(tensor, shown.dims));
  }
  if (entry.loss != ORTC_NONE)
    macros.define(name + "_LOSS_OFFSET", entry.internal[entry.loss - entry.external.size()].offset,
                  "in the transient region");
}

/// The regions, and what is found in those of the model.
void defineRegions(const StaticModel &model, Macros &macros) {
  const Artifact &artifact = model.artifact;
  uint64_t transient = 0;
  for (const Entry &entry : artifact.entries)
    transient = std::max(transient, alignRegion(entry.fixedBytes));
  macros.define("CONSTANT_BYTES", artifact.constants.size());
  macros.define("PERSISTENT_BYTES", alignRegion(artifact.persistentBytes));
  macros.define("INITIAL_BYTES", artifact.persistent.size(),
                "of the persistent region; the rest begins as zeros");
  macros.define("TRANSIENT_BYTES", transient, "the most of all entries");
  macros.addBlankLine();
  for (const Tensor &tensor : artifact.tensors)
    if (tensor.role <= ORTC_ROLE_SCALAR && tensor.role != ORTC_ROLE_CONSTANT) {
      macros.define("OFFSET_" + asIdentifier(tensor.name), tensor.offset,
                    std::string(getTensorRoleName(tensor.role)) + ", " + describeTensor(tensor));
    }
}

/// Bytes as an initializer of an array.
void appendBytes(std::string &text, const uint8_t *bytes, size_t count) {
  for (size_t i = 0; i < count; ++i)
    text += std::to_string(bytes[i]) + (i % 32 == 31 || i + 1 == count ? ",\n" : ",");
}

Artifact stripped(const Artifact &artifact) {
  Artifact image = artifact;
  image.kernelNames.clear();
  image.manifest.clear();
  image.source.clear();
  Bytes &code = image.codes.front().bytes;
  image.codes.front().features |= ORTC_FEATURE_LINKED;
  const ortc_blob head{ORTC_BLOB_MAGIC, ORTC_CALL_ABI, static_cast<uint32_t>(artifact.entries.size()),
                       sizeof(ortc_blob_entry)};
  code.clear();
  append(code, head);
  for (uint32_t i = 0; i < head.count; ++i) {
    const Entry &entry = artifact.entries[i];
    append(code, ortc_blob_entry{static_cast<uint32_t>(entry.role), entry.binding, entry.segment, i});
  }
  return image;
}

} // namespace

Expected<Bytes> makeStaticImage(const Artifact &artifact) { return writeArtifact(stripped(artifact)); }

std::string makeStaticHeader(const StaticModel &model) {
  Macros macros;
  defineRegions(model, macros);
  for (size_t i = 0; const std::string &name : nameEntries(model.artifact))
    defineEntry(model, i++, inCapitals(name), macros);
  std::string guard = "ORTC_LINKED_" + model.name;
  std::string text =
      "/* A model that ortc compiled for " + model.artifact.codes.front().name +
      ": sizes in bytes, places of its tensors, and its steps.\n"
      " *\n"
      " * With the runtime: ortc_program_open_static(" +
      model.name +
      "(), ...) of ortc/static.h.\n"
      " * Without: call a step with an ortc_call of ortc/call.h. bases: " +
      model.name + "_constants, a persistent region that begins\n * with " + model.name +
      "_initial, and a transient one; each aligned to 64 bytes. ext: the values in the order of their "
      "numbers _EXT. */\n"
      "#ifndef " +
      guard + "\n#define " + guard + "\n#include \"ortc/static.h\"\n\n";
  text += macros.print(inCapitals(model.name) + "_") + "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
  for (const std::string &step : model.steps)
    text += "int32_t ORTC_STEP_ABI " + step + "(const ortc_call *call);\n";
  text += "extern const uint8_t *const " + model.name + "_constants, *const " + model.name + "_initial;\n";
  text += "const ortc_static *" + model.name + "(void);\n#ifdef __cplusplus\n}\n#endif\n#endif\n";
  return text;
}

Expected<std::string> makeStaticData(const StaticModel &model) {
  Expected<Bytes> image = makeStaticImage(model.artifact);
  if (!image)
    return image.getStatus();
  Expected<ArtifactFile> read = readArtifact(*image);
  if (!read)
    return read.getStatus();
  auto find = [&](uint32_t kind) {
    for (const SectionReport &section : read->sections)
      if (section.kind == kind)
        return section;
    return SectionReport();
  };
  // The weights are the last sections but for the code, constants first.
  const SectionReport constants = find(ORTC_SECTION_CONSTANTS), initial = find(ORTC_SECTION_PERSISTENT);
  uint64_t first = constants.bytes ? constants.offset : initial.bytes ? initial.offset : image->size();
  uint64_t end = std::max(constants.offset + constants.bytes, initial.offset + initial.bytes);
  end = std::max(end, first);
  const std::string capitals = inCapitals(model.name);
  std::string text = "/* The data of model.h. With -D" + capitals +
                     "_WITHOUT_RUNTIME the weights alone, for programs that call the steps themselves. */\n"
                     "#include \"model.h\"\n\n"
                     "static const uint8_t " +
                     model.name + "_image[] __attribute__((aligned(64))) = {\n#ifndef " + capitals +
                     "_WITHOUT_RUNTIME\n";
  appendBytes(text, image->data(), first);
  text += "#endif\n";
  appendBytes(text, image->data() + first, end - first);
  text += "#ifndef " + capitals + "_WITHOUT_RUNTIME\n";
  appendBytes(text, image->data() + end, image->size() - end);
  text += "#else\n0, /* arrays have an element */\n#endif\n};\n\n";
  auto place = [&](const char *name, const SectionReport &section) {
    std::string at = section.bytes ? std::to_string(section.offset - first) : "0";
    text += "const uint8_t *const " + model.name + "_" + name + " = " + model.name + "_image + " + capitals +
            "_FIRST + " + at + ";\n";
  };
  text += "#ifndef " + capitals + "_WITHOUT_RUNTIME\n#define " + capitals + "_FIRST " +
          std::to_string(first) + "\n#else\n#define " + capitals + "_FIRST 0\n#endif\n";
  place("constants", constants);
  place("initial", initial);
  text +=
      "\n#ifndef " + capitals + "_WITHOUT_RUNTIME\nstatic const ortc_step_fn " + model.name + "_steps[] = {";
  for (size_t i = 0; i < model.steps.size(); ++i)
    text += (i ? ", " : "") + model.steps[i];
  text += "};\n\nconst ortc_static *" + model.name +
          "(void) {\n  static const ortc_static self = {sizeof self, ORTC_ABI_VERSION, " + model.name +
          "_image, sizeof " + model.name + "_image, " + model.name +
          "_steps};\n"
          "  return &self;\n}\n#endif\n";
  return text;
}

} // namespace ortc::artifact
