// Artifacts with hostile numbers under right hashes: anybody can compute those. Run with sanitizers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <sys/mman.h>
#include <unistd.h>

#include <map>

#include "compiler/artifact/ArtifactReader.h"
#include "test/runtime/ArtifactEditor.h"

namespace ortc::test {
namespace {

/// A host that sees whether what comes back is what it gave, and that has no terabytes.
class StrictHost {
public:
  StrictHost() {
    hooks.size = sizeof hooks;
    hooks.context = this;
    hooks.allocate = [](void *context, size_t bytes, size_t alignment) -> void * {
      if (bytes >> 26)
        return nullptr;
      void *memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
      static_cast<StrictHost *>(context)->live[memory] = bytes;
      return memory;
    };
    hooks.release = [](void *context, void *memory, size_t bytes) {
      auto &live = static_cast<StrictHost *>(context)->live;
      auto found = live.find(memory);
      ASSERT_NE(found, live.end()) << "released without having been allocated";
      EXPECT_EQ(found->second, bytes);
      live.erase(found);
      std::free(memory);
    };
  }
  ~StrictHost() { EXPECT_TRUE(live.empty()) << live.size() << " leaks"; }
  ortc_host hooks{};

private:
  std::map<void *, size_t> live;
};

/// A file without a name.
class MemoryFile {
public:
  explicit MemoryFile(const Bytes &bytes) : descriptor(memfd_create("artifact", 0)) {
    EXPECT_EQ(write(descriptor, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  ~MemoryFile() { close(descriptor); }
  MemoryFile(const MemoryFile &) = delete;
  MemoryFile &operator=(const MemoryFile &) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor); }

private:
  int descriptor;
};

ortc_status openFile(const Bytes &bytes, const ortc_host &host, ProgramHandle &program) {
  MemoryFile file(bytes);
  ortc_program *opened = nullptr;
  ortc_status status = ortc_program_open_file(file.path().c_str(), &host, &opened, nullptr);
  program.reset(opened);
  return status;
}

/// Everything that can be asked of a program.
void askAll(const ortc_program *program) {
  ortc_program_info info{};
  info.size = sizeof info;
  EXPECT_EQ(ortc_program_get_info(program, &info), ORTC_OK);
  ortc_tensor_info tensor{};
  tensor.size = sizeof tensor;
  for (uint32_t i = 0; ortc_tensor_get(program, i, &tensor) == ORTC_OK; ++i)
    ortc_tensor_find(program, tensor.name, &tensor);
  ortc_entry_info entry{};
  entry.size = sizeof entry;
  for (uint32_t i = 0; ortc_entry_get(program, i, &entry) == ORTC_OK; ++i)
    for (uint32_t k = 0; ortc_entry_value(program, i, k, &tensor) == ORTC_OK; ++k)
      EXPECT_NE(tensor.name, nullptr);
  for (uint32_t i = 0; const char *name = ortc_binding_name(program, i); ++i)
    ortc_binding_find(program, name);
  for (uint32_t i = 0; ortc_kernel_name(program, i); ++i)
    continue;
  for (uint32_t kind = 0; kind <= ORTC_SECTION_SIGNATURE + 1; ++kind) {
    const void *data = nullptr;
    uint64_t bytes = 0;
    ortc_program_section(program, kind, &data, &bytes);
  }
}

/// Everything that can be done with a tensor, in every binding.
void touchTensors(const ortc_program *program, ortc_session *session) {
  std::vector<uint64_t> buffer(1 << 13);
  size_t size = buffer.size() * sizeof buffer[0];
  for (uint32_t binding = 0; ortc_session_use_binding(session, binding) == ORTC_OK && binding < 8;
       ++binding) {
    ortc_tensor_info info{};
    info.size = sizeof info;
    for (uint32_t i = 0; ortc_tensor_get(program, i, &info) == ORTC_OK; ++i) {
      // What it takes in this binding is in the message of a call that says nothing.
      std::vector<uint64_t> sizes = {info.bytes};
      ortc_entry_info entry{};
      entry.size = sizeof entry;
      for (uint32_t e = 0; ortc_entry_get(program, e, &entry) == ORTC_OK; ++e) {
        ortc_tensor_info value{};
        value.size = sizeof value;
        for (uint32_t k = 0; ortc_entry_value(program, e, k, &value) == ORTC_OK; ++k)
          if (value.index == i)
            sizes.push_back(value.bytes);
      }
      for (uint64_t bytes : sizes) {
        if (bytes > size)
          continue;
        ortc_write(session, info.name, buffer.data(), bytes);
        ortc_read(session, info.name, buffer.data(), bytes);
        ortc_read_gradient(session, info.name, buffer.data(), bytes);
        ortc_bind(session, info.name, buffer.data(), bytes);
        ortc_bind(session, info.name, nullptr, bytes);
      }
      void *place = nullptr;
      if (ortc_data(session, info.name, &place) == ORTC_OK && info.role <= ORTC_ROLE_SCALAR && info.bytes)
        std::memset(place, 1, info.bytes);
      double value = 0;
      ortc_get_scalar(session, info.name, &value);
      ortc_set_scalar(session, info.name, 1);
    }
  }
}

void useSession(const ortc_program *program, const ortc_session_options &options) {
  ortc_sizes sizes{};
  sizes.size = sizeof sizes;
  ortc_session_sizes(program, &options, &sizes);
  ortc_session *raw = nullptr;
  if (ortc_session_create(program, &options, &raw, nullptr) != ORTC_OK)
    return; // an impossible size
  SessionHandle session(raw);
  touchTensors(program, raw);
  ortc_session_reset(raw);
  Bytes checkpoint;
  ortc_sink_fn sink = [](void *context, const void *data, size_t bytes) -> int32_t {
    auto &all = *static_cast<Bytes *>(context);
    all.insert(all.end(), static_cast<const uint8_t *>(data), static_cast<const uint8_t *>(data) + bytes);
    return all.size() >> 22 != 0;
  };
  if (ortc_checkpoint_write(raw, sink, &checkpoint, nullptr, 0) == ORTC_OK)
    ortc_checkpoint_read(raw, checkpoint.data(), checkpoint.size(), nullptr);
}

/// Everything but a step, on one file.
bool useAll(const Bytes &file, bool isMapped) {
  (void)artifact::readArtifact(file);
  StrictHost host;
  AlignedBytes image(file);
  ProgramHandle program;
  if (isMapped) {
    openFile(file, host.hooks, program);
  } else {
    ortc_program *opened = nullptr;
    ortc_program_open_memory(image.data(), image.size, &host.hooks, &opened, nullptr);
    program.reset(opened);
  }
  if (!program)
    return false;
  askAll(program.get());
  ortc_session_options options{};
  options.size = sizeof options;
  useSession(program.get(), options);
  options.workers = 4;
  options.flags = ORTC_SESSION_BIND_ALL;
  useSession(program.get(), options);
  return true;
}

/// Where the numbers of a file are: all of them, of every header, row and blob.
struct Field {
  uint64_t at;
  size_t bytes;
};

class Fields {
public:
  explicit Fields(Editor &editor) {
    ortc_file_header &head = editor.header();
    base = editor.file.data();
    add(head.persistent_bytes, head.io_bytes, head.max_workers, head.section_count, head.file_bytes,
        head.header_bytes, head.section_bytes);
    for (uint32_t i = 0; i < head.section_count; ++i) {
      ortc_file_section &row = editor.row(i);
      add(row.kind, row.flags, row.offset, row.bytes, row.row_bytes, row.architecture, row.features,
          row.name);
    }
    each<ortc_file_tensor>(editor, ORTC_SECTION_TENSORS, [&](ortc_file_tensor &t) {
      add(t.name, t.role, t.owner, t.flags);
      addView(t.view);
    });
    each<ortc_file_value>(editor, ORTC_SECTION_VALUES, [&](ortc_file_value &v) {
      add(v.tensor);
      addView(v.view);
    });
    each<ortc_file_entry>(editor, ORTC_SECTION_ENTRIES, [&](ortc_file_entry &e) {
      add(e.role, e.binding, e.segment, e.target, e.first_value, e.value_count, e.ext_count, e.loss,
          e.fixed_bytes, e.worker_bytes, e.name);
    });
    each<ortc_file_binding>(editor, ORTC_SECTION_BINDINGS, [&](ortc_file_binding &b) { add(b.name); });
    each<uint32_t>(editor, ORTC_SECTION_CHECK_NAMES, [&](uint32_t &name) { add(name); });
    each<uint32_t>(editor, ORTC_SECTION_KERNEL_NAMES, [&](uint32_t &name) { add(name); });
    ortc_blob &blob = editor.blob();
    add(blob.magic, blob.abi, blob.count, blob.entry_bytes);
    for (uint32_t i = 0; i < blob.count; ++i) {
      auto &row = editor.at<ortc_blob_entry>(ORTC_SECTION_CODE, 1 + i);
      add(row.role, row.binding, row.segment, row.offset);
    }
  }
  std::vector<Field> all;

private:
  template <typename... Numbers> void add(Numbers &...numbers) {
    (all.push_back({static_cast<uint64_t>(reinterpret_cast<uint8_t *>(&numbers) - base), sizeof numbers}),
     ...);
  }
  void addView(ortc_file_view &v) {
    add(v.dtype, v.rank, v.region, v.offset, v.bytes);
    for (int i = 0; i < 4; ++i)
      add(v.dims[i], v.strides[i]);
  }
  template <typename Row, typename Visit> static void each(Editor &editor, uint32_t kind, Visit visit) {
    for (uint32_t i = 0; i < editor.section(kind).bytes / sizeof(Row); ++i)
      visit(editor.at<Row>(kind, i));
  }
  uint8_t *base;
};

class Random {
public:
  explicit Random(uint64_t seed) : state(seed * 0x9e3779b97f4a7c15u + 1) {}
  uint64_t below(uint64_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
  }

private:
  uint64_t state;
};

/// A number of the kind that breaks sums, products and bounds.
uint64_t hostile(Random &random, uint64_t old, const Bytes &file, const std::vector<Field> &fields) {
  switch (random.below(7)) {
  case 0:
    return random.below(10);
  case 1:
    return (uint64_t(1) << random.below(64)) - random.below(3);
  case 2:
    return (uint64_t(1) << random.below(64)) - 64 * random.below(4);
  case 3:
    return old + 64 * random.below(5) - 128;
  case 4:
    return old + random.below(5) - 2;
  case 5:
    return old << random.below(8) >> random.below(4);
  default: { // of another place
    const Field &field = fields[random.below(fields.size())];
    uint64_t value = 0;
    std::memcpy(&value, file.data() + field.at, field.bytes);
    return value;
  }
  }
}

TEST(MutatedArtifactTest, ATableThatIsRefusedIsNotReleased) {
  for (uint32_t kind : {ORTC_SECTION_TENSORS, ORTC_SECTION_VALUES, ORTC_SECTION_ENTRIES,
                        ORTC_SECTION_BINDINGS, ORTC_SECTION_CHECK_NAMES, ORTC_SECTION_KERNEL_NAMES}) {
    Editor editor;
    editor.section(kind).row_bytes += 8;
    editor.seal();
    StrictHost host;
    ProgramHandle program;
    EXPECT_EQ(openFile(editor.file, host.hooks, program), ORTC_E_FORMAT) << kind;
    // The same without hooks, where the C library would abort.
    EXPECT_EQ(openFile(editor.file, ortc_host{}, program), ORTC_E_FORMAT) << kind;
  }
}

TEST(MutatedArtifactTest, TheHostIsAskedBeforeTables) {
  Editor editor;
  editor.section(ORTC_SECTION_TENSORS).row_bytes += 8;
  editor.seal();
  StrictHost host;
  host.hooks.verify = [](void *, const uint8_t *, const void *, size_t) -> int32_t { return 1; };
  OpenProgram opened(editor.file, &host.hooks);
  EXPECT_EQ(opened.status, ORTC_E_HASH);
  EXPECT_STREQ(opened.message.text, "not trusted by host");
}

/// Sizes whose sum is a few bytes more than 2^64 would make the session's memory as small as these few.
TEST(MutatedArtifactTest, RegionsWhoseSumWrapsAreRefused) {
  for (unsigned bits : {59u, 60u, 61u, 62u}) {
    Editor editor;
    uint64_t most = (uint64_t(1) << bits) - 64;
    editor.header().persistent_bytes = editor.header().io_bytes = most;
    editor.header().max_workers = 1;
    for (uint32_t i = 0; i < 7; ++i)
      editor.entry(i).fixed_bytes = editor.entry(i).worker_bytes = most;
    editor.seal();
    StrictHost host;
    OpenProgram opened(editor.file, &host.hooks);
    Expected<artifact::ArtifactFile> read = artifact::readArtifact(editor.file);
    EXPECT_EQ(bool(read), opened.status == ORTC_OK) << read.getStatus().getMessage();
    if (opened.status != ORTC_OK)
      continue;
    ortc_session *session = nullptr;
    EXPECT_EQ(ortc_session_create(opened.program.get(), nullptr, &session, nullptr), ORTC_E_MEMORY) << bits;
  }
}

/// Moves a section with new contents to the end of the file.
void append(Editor &editor, uint32_t kind, const Bytes &contents) {
  std::memset(&editor.at<uint8_t>(kind, 0), 0, editor.section(kind).bytes);
  editor.file.resize((editor.file.size() + 63) / 64 * 64);
  editor.section(kind).offset = editor.file.size();
  editor.section(kind).bytes = contents.size();
  editor.file.insert(editor.file.end(), contents.begin(), contents.end());
  editor.header().file_bytes = editor.file.size();
}

/// A row of four bytes can name a text of a megabyte, as often as there are rows.
TEST(MutatedArtifactTest, NamesTakeNoMemoryWithoutEnd) {
  Editor editor;
  const ortc_file_section strings = editor.section(ORTC_SECTION_STRINGS);
  Bytes texts(editor.file.begin() + static_cast<std::ptrdiff_t>(strings.offset),
              editor.file.begin() + static_cast<std::ptrdiff_t>(strings.offset + strings.bytes));
  auto longName = static_cast<uint32_t>(texts.size());
  texts.resize(texts.size() + (1 << 20), 'n');
  texts.push_back(0);
  Bytes rows;
  for (int i = 0; i < 300; ++i)
    rows.insert(rows.end(), reinterpret_cast<uint8_t *>(&longName),
                reinterpret_cast<uint8_t *>(&longName + 1));
  append(editor, ORTC_SECTION_STRINGS, texts);
  append(editor, ORTC_SECTION_KERNEL_NAMES, rows);
  editor.seal();
  EXPECT_EQ(artifact::readArtifact(editor.file).getStatus().getMessage(),
            "the names have more than 268435456 bytes in all");
  EXPECT_EQ(OpenProgram(editor.file).status, ORTC_OK) << "copies no names";
}

/// Sections over the same bytes would be hashed as often as there are sections.
TEST(MutatedArtifactTest, NoByteIsHashedTwice) {
  Editor editor;
  for (uint32_t kind : {ORTC_SECTION_MANIFEST, ORTC_SECTION_SOURCE}) {
    editor.section(kind).offset = 0;
    editor.section(kind).bytes = editor.file.size();
  }
  editor.seal();
  Expected<artifact::ArtifactFile> read = artifact::readArtifact(editor.file);
  EXPECT_FALSE(read);
  const std::string &error = read.getStatus().getMessage();
  EXPECT_NE(error.find("overlaps another one: together they have more bytes than the file"),
            std::string::npos)
      << error;
}

TEST(MutatedArtifactTest, HostileNumbersAreRefusedOrHarmless) {
  Editor good;
  const std::vector<Field> fields = Fields(good).all;
  EXPECT_GT(fields.size(), 400u);
  // Other seeds: --gtest_random_seed=N.
  Random random(12345 + static_cast<uint64_t>(testing::GTEST_FLAG(random_seed)));
  int opened = 0, rounds = 10000;
  Editor editor;
  for (int round = 0; round < rounds; ++round) {
    editor.file = good.file;
    for (uint64_t n = 1 + random.below(3); n; --n) {
      const Field &field = fields[random.below(fields.size())];
      uint64_t value = 0;
      std::memcpy(&value, editor.file.data() + field.at, field.bytes);
      value = hostile(random, value, editor.file, fields);
      std::memcpy(editor.file.data() + field.at, &value, field.bytes);
    }
    editor.seal();
    opened += useAll(editor.file, round % 2);
    if (testing::Test::HasFailure())
      FAIL() << "round " << round;
  }
  EXPECT_GT(opened, rounds / 20);
  RecordProperty("opened", opened);
}

} // namespace
} // namespace ortc::test
