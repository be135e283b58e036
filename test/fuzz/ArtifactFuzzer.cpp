// Artifacts in the runtime: everything that a host may do with an opened file, short of a step.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/artifact/artifact.h"
#include "test/fuzz/Target.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace ortc::fuzz {
namespace {

/// Of one allocation. What a file claims to need is a host's to refuse.
constexpr size_t kMostBytes = 4 << 20;

void *allocate(void *, size_t bytes, size_t alignment) {
  if (bytes > kMostBytes)
    return nullptr;
  // Exactly as large as it was asked for: what lies behind it is poisoned.
  void *memory = nullptr;
  return posix_memalign(&memory, alignment, bytes) == 0 ? memory : nullptr;
}
void release(void *, void *memory, size_t) { std::free(memory); }

const ortc_host kHost = {sizeof(ortc_host), 0, nullptr, allocate, release, nullptr, nullptr};

int32_t keep(void *context, const void *data, size_t bytes) {
  auto *file = static_cast<std::vector<uint8_t> *>(context);
  auto *first = static_cast<const uint8_t *>(data);
  file->insert(file->end(), first, first + bytes);
  return file->size() > kMostBytes;
}

/// Every tensor by every function that takes one.
void useTensor(ortc_session *session, const ortc_tensor_info &tensor) {
  demand(tensor.name != nullptr, "a tensor has no name");
  std::vector<uint8_t> copy(std::min<uint64_t>(tensor.bytes, kMostBytes));
  ortc_status status = ortc_read(session, tensor.name, copy.data(), copy.size());
  if (status == ORTC_OK)
    ortc_write(session, tensor.name, copy.data(), copy.size());
  ortc_write(session, tensor.name, copy.data(), copy.size());
  void *data = nullptr;
  // Not so of a name that two tensors have: the first one answers.
  if (ortc_data(session, tensor.name, &data) == ORTC_OK && status == ORTC_OK && tensor.dense && !copy.empty())
    std::memmove(data, copy.data(), 1);
  double value = 0;
  if (ortc_get_scalar(session, tensor.name, &value) == ORTC_OK)
    ortc_set_scalar(session, tensor.name, value);
  ortc_read_gradient(session, tensor.name, copy.data(), copy.size());
  ortc_bind(session, tensor.name, copy.data(), copy.size());
  ortc_bind(session, tensor.name, nullptr, 0);
}

void useSession(ortc_session *session, const ortc_program *program, uint32_t tensors) {
  ortc_tensor_info tensor{};
  tensor.size = sizeof tensor;
  // Of a table of thousands of rows the first hundreds are enough: each use looks its name up.
  for (uint32_t binding = 0; binding < 2; ++binding) {
    if (ortc_session_use_binding(session, binding) != ORTC_OK)
      break;
    for (uint32_t i = 0; i < std::min(tensors, 256u); ++i)
      if (ortc_tensor_get(program, i, &tensor) == ORTC_OK)
        useTensor(session, tensor);
  }
  std::vector<uint8_t> checkpoint;
  if (ortc_checkpoint_write(session, keep, &checkpoint, nullptr, 0) == ORTC_OK)
    ortc_checkpoint_read(session, checkpoint.data(), checkpoint.size(), nullptr);
  ortc_session_reset(session);
  demand(std::memchr(ortc_session_message(session), 0, sizeof(ortc_message)), "a message has no end");
}

void useProgram(const ortc_program *program) {
  ortc_program_info info{};
  info.size = sizeof info;
  demand(ortc_program_get_info(program, &info) == ORTC_OK, "an open program has no facts");
  for (uint32_t kind = 0; kind <= ORTC_SECTION_SIGNATURE + 1; ++kind) {
    const void *data = nullptr;
    uint64_t bytes = 0;
    if (ortc_program_section(program, kind, &data, &bytes) == ORTC_OK && bytes)
      touch(data, bytes);
  }
  for (uint32_t i = 0; i < info.entry_count; ++i) {
    ortc_entry_info entry{};
    entry.size = sizeof entry;
    demand(ortc_entry_get(program, i, &entry) == ORTC_OK && entry.name, "an entry is missing");
    ortc_tensor_info value{};
    value.size = sizeof value;
    for (uint32_t n = 0; n < std::min(entry.value_count, 256u); ++n)
      demand(ortc_entry_value(program, i, n, &value) == ORTC_OK && value.name, "a value is missing");
  }
  for (uint32_t i = 0; const char *name = ortc_kernel_name(program, i); ++i)
    demand(std::strlen(name) < kMostBytes, "a name has no end");
  for (uint32_t i = 0; const char *name = i < 256 ? ortc_binding_name(program, i) : nullptr; ++i)
    ortc_binding_find(program, name);
  for (uint32_t flags : {0u, uint32_t(ORTC_SESSION_BIND_ALL)}) {
    ortc_session_options options{};
    options.size = sizeof options;
    options.flags = flags;
    options.workers = flags ? info.max_workers : 1;
    ortc_sizes sizes{};
    sizes.size = sizeof sizes;
    ortc_session *session = nullptr;
    if (ortc_session_sizes(program, &options, &sizes) != ORTC_OK ||
        ortc_session_create(program, &options, &session, nullptr) != ORTC_OK)
      continue;
    useSession(session, program, info.tensor_count);
    ortc_session_destroy(session);
  }
}

} // namespace

bool fuzzArtifact(Input file) {
  // From memory, whose end is exact, and from a file, of which the runtime copies tables.
  void *image = nullptr;
  demand(posix_memalign(&image, ORTC_ALIGNMENT, std::max<size_t>(file.size(), 1)) == 0, "no memory");
  std::copy(file.begin(), file.end(), static_cast<uint8_t *>(image));
  ortc_program *program = nullptr;
  ortc_message message{};
  bool isTaken = ortc_program_open_memory(image, file.size(), &kHost, &program, &message) == ORTC_OK;
  if (isTaken)
    useProgram(program);
  ortc_program_close(program);
  std::free(image);

  MemoryFile onDisk(file);
  if (ortc_program_open_file(onDisk.getPath().c_str(), &kHost, &program, &message) == ORTC_OK)
    useProgram(program);
  ortc_program_close(program);

  engine::Artifact artifact;
  if (engine::Artifact::open(onDisk.getPath(), artifact).isOk())
    artifact.readKernels();
  return isTaken;
}

} // namespace ortc::fuzz
