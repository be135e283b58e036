// What the runtime does with Windows: files with any names, atomic saves, code that is never writable, threads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// usage: windows_test MODEL.ortc FOLDER: an artifact for two workers; files go to FOLDER. Exit status: failures.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <windows.h>

#include "ortc/ortc.h"
#include "ortc/threads.h"

static int failures = 0;

#define CHECK(condition)                                                                                     \
  ((condition) ? (void)0 : (void)(failures++, std::printf("FAILED line %d: %s\n", __LINE__, #condition)))

namespace {

/// What the trace hook has seen.
struct Trace {
  int kernels = 0;
  bool isProtected = true; ///< the code that called is executable and not writable
};

void ORTC_STEP_ABI onTrace(void *context, uint32_t, uint32_t phase) {
  auto &trace = *static_cast<Trace *>(context);
  trace.kernels += phase == ORTC_TRACE_BEGIN;
  MEMORY_BASIC_INFORMATION about;
  VirtualQuery(__builtin_return_address(0), &about, sizeof about);
  trace.isProtected &= about.Protect == PAGE_EXECUTE_READ;
}

std::wstring widen(const std::string &text) {
  std::wstring wide(text.size() + 1, 0);
  wide.resize(MultiByteToWideChar(CP_UTF8, 0, text.c_str(), -1, wide.data(), (int)wide.size()) - 1);
  return wide;
}

std::string readFile(const std::string &path) {
  HANDLE file = CreateFileW(widen(path).c_str(), GENERIC_READ, 0, nullptr, OPEN_EXISTING, 0, nullptr);
  std::string bytes(file == INVALID_HANDLE_VALUE ? 0 : GetFileSize(file, nullptr), 0);
  DWORD read = 0;
  if (!bytes.empty())
    ReadFile(file, bytes.data(), (DWORD)bytes.size(), &read, nullptr);
  CloseHandle(file);
  return bytes;
}

int countFiles(const std::string &pattern) {
  WIN32_FIND_DATAW found;
  HANDLE search = FindFirstFileW(widen(pattern).c_str(), &found);
  int count = search != INVALID_HANDLE_VALUE;
  while (count && FindNextFileW(search, &found))
    count++;
  FindClose(search);
  return count;
}

/// Trains for some steps and gives the checkpoint's bytes.
std::string train(const ortc_program *program, ortc_session_options options, const std::string &path) {
  ortc_session *session;
  ortc_message message;
  if (ortc_session_create(program, &options, &session, &message)) {
    std::printf("%s\n", message.text);
    std::exit(1);
  }
  std::vector<float> pixels(64 * 64);
  std::vector<int64_t> labels(64);
  for (size_t i = 0; i < pixels.size(); i++)
    pixels[i] = (float)(i * 7 % 17) / 16;
  for (size_t i = 0; i < labels.size(); i++)
    labels[i] = (int64_t)(i % 10);
  CHECK(!ortc_write(session, "pixels", pixels.data(), pixels.size() * sizeof pixels[0]));
  CHECK(!ortc_write(session, "label", labels.data(), labels.size() * sizeof labels[0]));
  for (int i = 0; i < 5; i++)
    CHECK(!ortc_train_step(session, nullptr));
  CHECK(!ortc_checkpoint_save(session, path.c_str(), nullptr, 0));
  std::string first = readFile(path);
  CHECK(!ortc_train_step(session, nullptr));
  CHECK(!ortc_checkpoint_save(session, path.c_str(), nullptr, 0)); // replaces it
  CHECK(readFile(path) != first);
  CHECK(!ortc_checkpoint_load(session, path.c_str(), nullptr));
  // Where the target is in use nothing is left behind, and the old file stays.
  HANDLE user =
      CreateFileW(widen(path).c_str(), GENERIC_READ, FILE_SHARE_READ, nullptr, OPEN_EXISTING, 0, nullptr);
  CHECK(ortc_checkpoint_save(session, path.c_str(), nullptr, 0) == ORTC_E_IO);
  CHECK(std::strstr(ortc_session_message(session), "cannot write"));
  CloseHandle(user);
  CHECK(!readFile(path).empty());
  CHECK(countFiles(path + "*.tmp") == 0);
  CHECK(ortc_checkpoint_save(session, (path + "/no/folder").c_str(), nullptr, 0) == ORTC_E_IO);
  CHECK(ortc_checkpoint_save(session, "\xff", nullptr, 0) == ORTC_E_IO); // no UTF-8
  ortc_session_destroy(session);
  return first;
}

} // namespace

int main(int count, char **arguments) {
  if (count != 3)
    return 64;
  const std::string folder = arguments[2];
  ortc_program *program;
  ortc_message message;
  CHECK(ortc_program_open_file((folder + "/none").c_str(), nullptr, &program, &message) == ORTC_E_IO);
  CHECK(std::strstr(message.text, "(errno 2)")); // ERROR_FILE_NOT_FOUND
  CHECK(ortc_program_open_file(folder.c_str(), nullptr, &program, &message) == ORTC_E_IO);
  CHECK(std::strstr(message.text, "is not a regular file"));
  fclose(fopen((folder + "/empty").c_str(), "wb"));
  CHECK(ortc_program_open_file((folder + "/empty").c_str(), nullptr, &program, &message) == ORTC_E_FORMAT);
  // Beyond ASCII, and in two units of UTF-16.
  const std::string name = folder + "/gr\u00f6\u00dfe \u8a13\u7df4 \U0001f600", model = name + ".ortc";
  CHECK(CopyFileW(widen(arguments[1]).c_str(), widen(model).c_str(), FALSE));
  if (ortc_program_open_file(model.c_str(), nullptr, &program, &message)) {
    std::printf("FAILED: %s\n", message.text);
    return 1;
  }
  CHECK(!MoveFileExW(widen(arguments[1]).c_str(), widen(model).c_str(),
                     MOVEFILE_REPLACE_EXISTING)); // it is mapped

  Trace trace;
  ortc_session_options options = ORTC_INIT(ortc_session_options);
  options.trace = onTrace;
  options.trace_context = &trace;
  const std::string alone = train(program, options, name);
  CHECK(trace.kernels > 5 && trace.isProtected);
  options.trace = nullptr;
  ortc_pool *pool = ortc_pool_create(2);
  CHECK(pool && ortc_pool_workers(pool) == 2);
  options.workers = 2;
  options.parallel_for = ortc_pool_parallel_for;
  options.pool = pool;
  CHECK(train(program, options, name) == alone);
  Sleep(10); // the workers fall asleep
  CHECK(train(program, options, name) == alone);
  ortc_pool_destroy(pool);
  ortc_program_close(program);
  std::printf("%s after %d kernels\n", failures ? "failed" : "passed", trace.kernels);
  return failures;
}
