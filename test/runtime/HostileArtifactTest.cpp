// Malformed, truncated and flipped artifacts: refused with the expected words, by the runtime and by the reader.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/artifact/ArtifactReader.h"
#include "test/runtime/ArtifactEditor.h"

namespace ortc::test {
namespace {

struct Case {
  const char *name;
  void (*damage)(Editor &);
  ortc_status status;
  const char
      *message; ///< of the runtime; names are checked when they are used: "" for those that do not exist
  const char *readerMessage; ///< of the reader; nullptr: it is fine with it
};

const Case kCases[] = {
    {"empty", [](Editor &e) { e.file.clear(); }, ORTC_E_FORMAT, "not an ortc artifact",
     "the file has 0 bytes, too few for a header of 120"},
    {"shorter-than-header", [](Editor &e) { e.file.resize(100); }, ORTC_E_FORMAT, "not an ortc artifact",
     "the file has 100 bytes, too few for a header of 120"},
    {"wrong-magic", [](Editor &e) { e.file[1] = 'X'; }, ORTC_E_FORMAT, "not an ortc artifact",
     "this is no ortc artifact (wrong magic)"},
    {"newline-translated", [](Editor &e) { e.file.erase(e.file.begin() + 4); }, ORTC_E_FORMAT,
     "not an ortc artifact", "this is no ortc artifact (wrong magic)"},
    {"newer-version",
     [](Editor &e) {
       e.header().major = 2;
       e.seal();
     },
     ORTC_E_VERSION, "format 2 needs a newer runtime",
     "the format has version 2.0 but this tool reads version 1"},
    {"one-byte-short", [](Editor &e) { e.file.pop_back(); }, ORTC_E_FORMAT, "artifact is cut short",
     "bytes but its header says"},
    {"one-byte-long", [](Editor &e) { e.file.push_back(0); }, ORTC_E_FORMAT, "artifact is cut short",
     "bytes but its header says"},
    {"too-many-sections", [](Editor &e) { e.header().section_count = 0x7fffffff; }, ORTC_E_FORMAT,
     "header 0 is malformed", "the section table does not fit in the file"},
    {"header-too-small", [](Editor &e) { e.header().header_bytes = 64; }, ORTC_E_FORMAT,
     "header 0 is malformed", "the section table does not fit in the file"},
    {"section-rows-of-zero-bytes", [](Editor &e) { e.header().section_bytes = 0; }, ORTC_E_FORMAT,
     "header 0 is malformed", "the section table does not fit in the file"},
    {"header-hash", [](Editor &e) { e.header().io_bytes += 64; }, ORTC_E_HASH,
     "header 0 does not match its hash", "header and section table do not match their hash"},
    {"no-workers",
     [](Editor &e) {
       e.header().max_workers = 0;
       e.seal();
     },
     ORTC_E_FORMAT, "header 0 is malformed", "the header has sizes that are not aligned, or no workers"},
    {"huge-persistent-region",
     [](Editor &e) {
       e.header().persistent_bytes = ~uint64_t(63);
       e.seal();
     },
     ORTC_E_FORMAT, "header 0 is malformed", "the header has a persistent region of"},
    {"huge-io-region",
     [](Editor &e) {
       e.header().io_bytes = uint64_t(1) << ORTC_REGION_BITS;
       e.seal();
     },
     ORTC_E_FORMAT, "header 0 is malformed", "the limit of each is 2^60"},
    {"section-past-the-end",
     [](Editor &e) {
       e.section(ORTC_SECTION_TENSORS).offset = e.file.size() / 64 * 64 + 64;
       e.seal();
     },
     ORTC_E_FORMAT, "section 0 is malformed",
     "section 0 (tensors) does not fit in the file or is not aligned"},
    {"section-size-overflows",
     [](Editor &e) {
       e.section(ORTC_SECTION_VALUES).bytes = ~uint64_t(0) - 100;
       e.sealHeader();
     },
     ORTC_E_FORMAT, " is malformed", "does not fit in the file or is not aligned"},
    {"section-misaligned",
     [](Editor &e) {
       e.section(ORTC_SECTION_ENTRIES).offset += 8;
       e.seal();
     },
     ORTC_E_FORMAT, " is malformed", "does not fit in the file or is not aligned"},
    {"section-twice",
     [](Editor &e) {
       e.section(ORTC_SECTION_CHECK_NAMES).kind = ORTC_SECTION_TENSORS;
       e.seal();
     },
     ORTC_E_FORMAT, " is malformed", "occurs twice"},
    {"unknown-required-section",
     [](Editor &e) {
       e.section(ORTC_SECTION_SOURCE).flags = ORTC_SECTION_REQUIRED;
       e.section(ORTC_SECTION_SOURCE).kind = 500;
       e.seal();
     },
     ORTC_E_VERSION, "needs a newer runtime", "is required but not known to this tool"},
    {"tensor-hash", [](Editor &e) { e.tensor(0).view.offset = 4; }, ORTC_E_HASH,
     "section kind 1 does not match its hash", "section 0 (tensors) does not match its hash"},
    {"code-hash", [](Editor &e) { e.file[e.section(ORTC_SECTION_CODE).offset + 200] ^= 1; }, ORTC_E_HASH,
     "code 0 does not match its hash", "(code) does not match its hash"},
    {"strings-not-terminated",
     [](Editor &e) {
       const ortc_file_section &strings = e.section(ORTC_SECTION_STRINGS);
       e.file[strings.offset + strings.bytes - 1] = 'x';
       e.seal();
     },
     ORTC_E_FORMAT, "section kind 2 is malformed", "the strings section is missing or not terminated"},
    {"no-strings",
     [](Editor &e) {
       e.section(ORTC_SECTION_STRINGS).kind = 501;
       e.seal();
     },
     ORTC_E_FORMAT, "section kind 2 is malformed", "the strings section is missing or not terminated"},
    {"no-bindings",
     [](Editor &e) {
       e.section(ORTC_SECTION_BINDINGS).kind = 501;
       e.seal();
     },
     ORTC_E_FORMAT, "entry 0 is malformed", "has an unknown role or binding"},
    {"binding-name",
     [](Editor &e) {
       e.at<ortc_file_binding>(ORTC_SECTION_BINDINGS, 1).name = 0xfffffff0;
       e.seal();
     },
     ORTC_OK, "", "string offset 4294967280 is past the"},
    {"half-a-row",
     [](Editor &e) {
       e.section(ORTC_SECTION_VALUES).bytes -= 8;
       e.seal();
     },
     ORTC_E_FORMAT, " is malformed", "the values table is no whole number of rows"},
    {"rows-too-small",
     [](Editor &e) {
       e.section(ORTC_SECTION_TENSORS).row_bytes = 8;
       e.seal();
     },
     ORTC_E_FORMAT, " is malformed", "the tensors table is no whole number of rows"},
    {"rows-of-zero-bytes",
     [](Editor &e) {
       e.section(ORTC_SECTION_ENTRIES).row_bytes = 0;
       e.seal();
     },
     ORTC_E_FORMAT, " is malformed", "the entries table is no whole number of rows"},
    {"image-larger-than-region",
     [](Editor &e) {
       e.header().persistent_bytes = 128;
       e.seal();
     },
     ORTC_E_FORMAT, "section kind 7 is malformed", "the persistent image has"},
    {"tensor-name",
     [](Editor &e) {
       e.tensor(3).name = 100000;
       e.seal();
     },
     ORTC_OK, "", "string offset 100000 is past the"},
    {"tensor-rank",
     [](Editor &e) {
       e.tensor(0).view.rank = 9;
       e.seal();
     },
     ORTC_E_FORMAT, "tensor 0 is malformed", "tensor 'fc.weight' has rank 9 but the format ends at 8"},
    {"tensor-dtype",
     [](Editor &e) {
       e.tensor(0).view.dtype = 8;
       e.seal();
     },
     ORTC_E_FORMAT, "tensor 0 is malformed", "tensor 'fc.weight' has dtype 8, which cannot be stored"},
    {"tensor-role",
     [](Editor &e) {
       e.tensor(0).role = 8;
       e.seal();
     },
     ORTC_E_FORMAT, "tensor 0 is malformed", "tensor 'fc.weight' has unknown role 8"},
    {"tensor-negative-dimension",
     [](Editor &e) {
       e.tensor(0).view.dims[0] = -2;
       e.seal();
     },
     ORTC_E_FORMAT, "tensor 0 is malformed", "tensor 'fc.weight' has a negative dimension or stride"},
    {"tensor-product-overflows",
     [](Editor &e) {
       e.tensor(0).view.dims[0] = int64_t(1) << 62;
       e.tensor(0).view.dims[1] = 6;
       e.seal();
     },
     ORTC_E_FORMAT, "tensor 0 is malformed", "which its shape does not give"},
    {"tensor-owner",
     [](Editor &e) {
       e.tensor(1).owner = 10;
       e.seal();
     },
     ORTC_E_FORMAT, "tensor 1 is malformed", "belongs to a tensor that does not exist"},
    {"tensor-offset",
     [](Editor &e) {
       e.tensor(0).view.offset = 256 - 20;
       e.seal();
     },
     ORTC_E_FORMAT, "tensor 0 is malformed", "tensor 'fc.weight' reaches past its region of 256 bytes"},
    {"tensor-offset-overflows",
     [](Editor &e) {
       e.tensor(0).view.offset = ~uint64_t(0) - 7;
       e.seal();
     },
     ORTC_E_FORMAT, "tensor 0 is malformed", "reaches past its region"},
    {"tensor-misaligned",
     [](Editor &e) {
       e.tensor(0).view.offset = 2;
       e.seal();
     },
     ORTC_E_FORMAT, "tensor 0 is malformed", "which is not aligned to its elements"},
    {"tensors-that-share-their-place",
     [](Editor &e) {
       e.tensor(kW).view.dims[0] = 20; // without strides: a terabyte of them would fit as well
       e.tensor(kW).view.strides[0] = 0;
       e.tensor(kW).view.bytes = 240;
       e.seal();
     },
     ORTC_E_FORMAT, "tensor 1 is malformed", "shares its place"},
    {"tensor-of-places-that-overflow",
     [](Editor &e) { // has no place of its own, but its strides are multiplied where it is described
       e.tensor(kX).view.dims[0] = 2;
       e.tensor(kX).view.dims[1] = 1;
       e.tensor(kX).view.bytes = 8;
       e.tensor(kX).view.strides[0] = int64_t(1) << 62;
       e.seal();
     },
     ORTC_E_FORMAT, "tensor 5 is malformed", "reaches past its region"},
    {"tensor-stride",
     [](Editor &e) {
       e.tensor(0).view.strides[1] = 1000;
       e.seal();
     },
     ORTC_E_FORMAT, "tensor 0 is malformed", "reaches past its region"},
    {"tensor-stride-overflows",
     [](Editor &e) {
       e.tensor(0).view.strides[1] = int64_t(1) << 62;
       e.seal();
     },
     ORTC_E_FORMAT, "tensor 0 is malformed", ""},
    {"tensor-negative-stride",
     [](Editor &e) {
       e.tensor(0).view.strides[1] = -8;
       e.seal();
     },
     ORTC_E_FORMAT, "tensor 0 is malformed", "has a negative dimension or stride"},
    {"parameter-in-constants",
     [](Editor &e) {
       e.tensor(0).view.region = ORTC_REGION_CONSTANTS;
       e.seal();
     },
     ORTC_E_FORMAT, "tensor 0 is malformed", "where a parameter cannot be"},
    {"constant-past-its-section",
     [](Editor &e) {
       e.tensor(kShift).view.offset = 4;
       e.seal();
     },
     ORTC_E_FORMAT, "tensor 4 is malformed", "reaches past its region of 8 bytes"},
    {"entry-role",
     [](Editor &e) {
       e.entry(0).role = ORTC_ENTRY_ROLES;
       e.seal();
     },
     ORTC_E_FORMAT, "entry 0 is malformed", "has an unknown role or binding"},
    {"entry-binding",
     [](Editor &e) {
       e.entry(1).binding = 2;
       e.seal();
     },
     ORTC_E_FORMAT, "entry 1 is malformed", "has an unknown role or binding"},
    {"entry-values",
     [](Editor &e) {
       e.entry(0).value_count = 0xffffffff;
       e.seal();
     },
     ORTC_E_FORMAT, "entry 0 is malformed", "has values outside the values table"},
    {"entry-first-value",
     [](Editor &e) {
       e.entry(0).first_value = 0xfffffffe;
       e.seal();
     },
     ORTC_E_FORMAT, "entry 0 is malformed", "has values outside the values table"},
    {"entry-more-external-than-values",
     [](Editor &e) {
       e.entry(0).ext_count = 5;
       e.seal();
     },
     ORTC_E_FORMAT, "entry 0 is malformed", "has values outside the values table"},
    {"entry-transient-overflows",
     [](Editor &e) {
       e.entry(0).worker_bytes = uint64_t(1) << 63;
       e.seal();
     },
     ORTC_E_FORMAT, "entry 0 is malformed", "has a transient size that is not aligned or overflows"},
    {"entry-transient-too-large",
     [](Editor &e) {
       e.entry(0).fixed_bytes = uint64_t(1) << ORTC_REGION_BITS;
       e.seal();
     },
     ORTC_E_FORMAT, "entry 0 is malformed", "has a transient size that is not aligned or overflows"},
    {"entry-workers-too-large",
     [](Editor &e) { // for its 4 workers
       e.entry(0).worker_bytes = uint64_t(1) << (ORTC_REGION_BITS - 2);
       e.seal();
     },
     ORTC_E_FORMAT, "entry 0 is malformed", "has a transient size that is not aligned or overflows"},
    {"entries-that-share-values",
     [](Editor &e) {
       e.entry(1).first_value = e.entry(0).first_value;
       e.seal();
     },
     ORTC_E_FORMAT, "entry 1 is malformed", "has values of the entry before it"},
    {"entry-loss",
     [](Editor &e) {
       e.entry(0).loss = 4;
       e.seal();
     },
     ORTC_E_FORMAT, " is malformed", "has values outside the values table"},
    {"entry-loss-is-no-number",
     [](Editor &e) {
       e.entry(0).loss = 0;
       e.seal();
     },
     ORTC_E_FORMAT, " is malformed", "has a loss that is not one f32 or f64"},
    {"entry-without-code",
     [](Editor &e) {
       e.entry(0).segment = 1;
       e.seal();
     },
     ORTC_E_FORMAT, "entry 0 is malformed", "code 'baseline' has no step function for entry 'train/batch'"},
    {"value-tensor",
     [](Editor &e) {
       e.value(2).tensor = 10;
       e.seal();
     },
     ORTC_E_FORMAT, "value 2 is malformed", "refers to a tensor that does not exist"},
    {"value-dtype",
     [](Editor &e) { // of one byte, where scalar access would write the tensor's eight
       ortc_file_view &label = e.value(1).view;
       label.dtype = 2;
       label.bytes = 4;
       label.strides[0] = 1;
       e.seal();
     },
     ORTC_E_FORMAT, "value 1 is malformed", "has another dtype or rank than its tensor"},
    {"value-size",
     [](Editor &e) {
       e.value(0).view.dims[0] = 1000;
       e.seal();
     },
     ORTC_E_FORMAT, "value 0 is malformed", "which its shape does not give"},
    {"value-past-io",
     [](Editor &e) {
       e.value(0).view.offset = e.header().io_bytes - 40;
       e.seal();
     },
     ORTC_E_FORMAT, "value 0 is malformed", "reaches past its region"},
    {"value-not-dense",
     [](Editor &e) {
       e.value(0).view.strides[1] = 8;
       e.seal();
     },
     ORTC_E_FORMAT, "value 0 is malformed", ""},
    {"external-value-in-persistent-region",
     [](Editor &e) {
       e.value(0).view.region = ORTC_REGION_PERSISTENT;
       e.seal();
     },
     ORTC_E_FORMAT, "value 0 is malformed", "where it cannot be"},
    {"loss-past-transient",
     [](Editor &e) {
       e.value(3).view.offset = 256;
       e.seal();
     },
     ORTC_E_FORMAT, "value 3 is malformed", "reaches past its region of 256 bytes"},
    {"parameter-as-value",
     [](Editor &e) {
       e.value(3).tensor = kRate;
       e.seal();
     },
     ORTC_E_FORMAT, "value 3 is malformed", "where it cannot be"},
    {"code-too-short",
     [](Editor &e) {
       e.section(ORTC_SECTION_CODE).bytes = 8;
       e.seal();
     },
     ORTC_E_FORMAT, "code 0 is malformed", ""},
    {"code-magic",
     [](Editor &e) {
       e.blob().magic = 0;
       e.seal();
     },
     ORTC_E_FORMAT, "code 0 is malformed", "code 'baseline' has a wrong magic"},
    {"code-abi",
     [](Editor &e) {
       e.blob().abi = 2;
       e.seal();
     },
     ORTC_E_VERSION, "call ABI 2 needs a newer runtime", "or ABI 2"},
    {"code-entries",
     [](Editor &e) {
       e.blob().count = 0x10000000;
       e.seal();
     },
     ORTC_E_FORMAT, "code 0 is malformed", "has a head that does not fit"},
    {"code-entry-bytes",
     [](Editor &e) {
       e.blob().entry_bytes = 4;
       e.seal();
     },
     ORTC_E_FORMAT, "code 0 is malformed", "has a head that does not fit"},
    {"code-offset",
     [](Editor &e) {
       e.at<ortc_blob_entry>(ORTC_SECTION_CODE, 1).offset = 0x7fffffff;
       e.seal();
     },
     ORTC_E_FORMAT, "entry 0 is malformed", "has no step function for entry"},
    {"no-code",
     [](Editor &e) {
       e.section(ORTC_SECTION_CODE).architecture = ORTC_ARCH_NONE;
       e.seal();
     },
     ORTC_E_TARGET, "no code for this processor", nullptr},
};

class HostileArtifactTest : public testing::TestWithParam<Case> {};

TEST_P(HostileArtifactTest, IsRefused) {
  const Case &c = GetParam();
  Editor editor;
  c.damage(editor);
  OpenProgram opened(editor.file);
  EXPECT_EQ(opened.status, c.status) << ortc_status_name(opened.status);
  EXPECT_EQ(opened.program == nullptr, c.status != ORTC_OK);
  EXPECT_NE(std::string(opened.message.text).find(c.message), std::string::npos) << opened.message.text;

  Expected<artifact::ArtifactFile> read = artifact::readArtifact(editor.file);
  const std::string &error = read.getStatus().getMessage();
  EXPECT_EQ(bool(read), c.readerMessage == nullptr) << error;
  EXPECT_NE(error.find(c.readerMessage ? c.readerMessage : ""), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(Cases, HostileArtifactTest, testing::ValuesIn(kCases), [](const auto &info) {
  std::string name;
  for (const char *c = info.param.name; *c; ++c)
    name += *c == '-' ? '_' : *c;
  return name;
});

TEST(DamagedArtifactTest, UnknownSectionsAreSkipped) {
  Editor editor;
  editor.section(ORTC_SECTION_SOURCE).kind = 500;
  editor.seal();
  EXPECT_EQ(OpenProgram(editor.file).status, ORTC_OK);
}

TEST(DamagedArtifactTest, EveryTruncationIsRefused) {
  Bytes file = makeFile();
  for (size_t size = 0; size < file.size(); size += size < 1500 ? 1 : 97) {
    Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_NE(OpenProgram(cut).status, ORTC_OK) << size;
  }
}

/// Whether a file can be opened and has a session.
bool canStep(const Bytes &file) {
  OpenProgram opened(file);
  ortc_session *session = nullptr;
  bool isGood = opened.status == ORTC_OK &&
                ortc_session_create(opened.program.get(), nullptr, &session, nullptr) == ORTC_OK;
  ortc_session_destroy(session);
  return isGood;
}

/// The runtime may accept a flip only in what it never reads: manifest, source, and the space between
/// sections. The reader accepts none.
TEST(DamagedArtifactTest, EveryFlippedBitThatIsReadIsRefused) {
  Editor editor;
  Bytes &file = editor.file;
  std::vector<std::pair<uint64_t, uint64_t>> used = {
      {0, sizeof(ortc_file_header) + editor.header().section_count * sizeof(ortc_file_section)}};
  for (uint32_t i = 0; i < editor.header().section_count; ++i) {
    const ortc_file_section &row = editor.row(i);
    if (row.kind != ORTC_SECTION_MANIFEST && row.kind != ORTC_SECTION_SOURCE)
      used.push_back({row.offset, row.offset + row.bytes});
  }
  int refused = 0, accepted = 0;
  for (size_t at = 0; at < file.size(); ++at) {
    bool isUsed = false;
    for (auto [begin, end] : used)
      isUsed |= at >= begin && at < end;
    if (!isUsed && at % 31)
      continue;
    file[at] ^= static_cast<uint8_t>(1 << at % 8);
    bool isRefused = !canStep(file);
    EXPECT_EQ(isRefused, isUsed) << "byte " << at;
    (isRefused ? refused : accepted)++;
    if (at % 17 == 0)
      EXPECT_FALSE(artifact::readArtifact(file)) << "byte " << at;
    file[at] ^= static_cast<uint8_t>(1 << at % 8);
  }
  EXPECT_GT(refused, 4000);
  EXPECT_GT(accepted, 0);
}

/// Random damage to the tables under right hashes: refused or harmless, never a crash (run with sanitizers).
TEST(DamagedArtifactTest, RandomTablesUnderRightHashesNeverCrash) {
  ortc_host host{}; // has no terabytes, whatever a damaged size asks for
  host.size = sizeof host;
  host.allocate = [](void *, size_t bytes, size_t alignment) -> void * {
    return bytes >> 26 ? nullptr
                       : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  };
  host.release = [](void *, void *memory, size_t) { std::free(memory); };
  uint32_t state = 12345;
  auto next = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
  const uint32_t kinds[] = {ORTC_SECTION_TENSORS, ORTC_SECTION_ENTRIES, ORTC_SECTION_VALUES,
                            ORTC_SECTION_BINDINGS};
  int opened = 0;
  for (int round = 0; round < 3000; ++round) {
    Editor editor;
    for (uint32_t n = 1 + next() % 3; n; --n) {
      const ortc_file_section &row = editor.section(kinds[next() % 4]);
      uint64_t at = row.offset + next() % row.bytes;
      editor.file[at] = static_cast<uint8_t>(next() % 3 ? 1 << next() % 8 : next());
    }
    editor.seal();
    OpenProgram program(editor.file, &host);
    (void)artifact::readArtifact(editor.file);
    if (program.status != ORTC_OK)
      continue;
    ++opened;
    ortc_session *raw = nullptr;
    if (ortc_session_create(program.program.get(), nullptr, &raw, nullptr) != ORTC_OK)
      continue; // an impossible size
    SessionHandle session(raw);
    Bytes buffer(1 << 16);
    ortc_tensor_info info{};
    info.size = sizeof info;
    for (uint32_t i = 0; ortc_tensor_get(program.program.get(), i, &info) == ORTC_OK; ++i) {
      if (info.bytes > buffer.size())
        continue;
      ortc_write(raw, info.name, buffer.data(), info.bytes);
      ortc_read(raw, info.name, buffer.data(), info.bytes);
    }
    ortc_sink_fn sink = [](void *, const void *, size_t) -> int32_t { return 0; };
    ortc_checkpoint_write(raw, sink, nullptr, nullptr, 0);
  }
  EXPECT_GT(opened, 10);
}

} // namespace
} // namespace ortc::test
