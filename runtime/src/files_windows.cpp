// Files on Windows: artifacts that are mapped, checkpoints that are read and written whole or not at all.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Paths are UTF-8. Numbers of errors in messages are those of GetLastError.
#include "runtime/src/internal.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

namespace ortc {
namespace {

constexpr int kPathLimit = 4096; ///< units of UTF-16, terminator included
constexpr int kSuffixLimit = 24; ///< of ".N.tmp"
constexpr DWORD kMostAtOnce = 1u << 30;

/// A path as the system takes it. False, with an error, for what is no UTF-8 or too long.
bool convert(const char *path, wchar_t *wide) {
  return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, kPathLimit) != 0;
}

int32_t fileSink(void *context, const void *data, size_t bytes) {
  const char *p = (const char *)data;
  for (DWORD written; bytes; p += written, bytes -= written)
    if (!WriteFile(*(HANDLE *)context, p, bytes < kMostAtOnce ? (DWORD)bytes : kMostAtOnce, &written,
                   nullptr))
      return 1;
  return 0;
}

} // namespace

Error mapFile(const char *path, FileMapping &file, Arguments &arguments) {
  file = {};
  wchar_t wide[kPathLimit];
  HANDLE handle = INVALID_HANDLE_VALUE, mapping = nullptr;
  // With backup semantics folders can be opened, too, and be told from what is missing.
  if (convert(path, wide))
    handle = CreateFileW(wide, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_DELETE, nullptr, OPEN_EXISTING,
                         FILE_FLAG_BACKUP_SEMANTICS, nullptr);
  BY_HANDLE_FILE_INFORMATION about;
  Error error = kCannotRead;
  if (handle != INVALID_HANDLE_VALUE) {
    if (GetFileType(handle) != FILE_TYPE_DISK || !GetFileInformationByHandle(handle, &about) ||
        about.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) {
      error = kNotAFile;
    } else if (uint64_t bytes = (uint64_t)about.nFileSizeHigh << 32 | about.nFileSizeLow; !bytes) {
      error = kNoError;
    } else if ((mapping = CreateFileMappingW(handle, nullptr, PAGE_READONLY, 0, 0, nullptr))) {
      file = {(const uint8_t *)MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0), (size_t)bytes};
      error = file.data ? kNoError : kCannotRead;
    }
  }
  arguments.set(0, path);
  arguments.set(1, (uint64_t)GetLastError());
  if (mapping)
    CloseHandle(mapping); // the view keeps it
  if (handle != INVALID_HANDLE_VALUE)
    CloseHandle(handle);
  return error;
}

void unmapFile(const FileMapping &file) {
  if (file.data)
    UnmapViewOfFile(file.data);
}

} // namespace ortc

using namespace ortc;

extern "C" {

ortc_status ortc_checkpoint_save(ortc_session *session, const char *path, const ortc_metadata *metadata,
                                 size_t count) {
  Arguments &arguments = session->arguments;
  wchar_t target[kPathLimit], temporary[kPathLimit + kSuffixLimit];
  HANDLE file = INVALID_HANDLE_VALUE;
  ortc_status status = ORTC_E_IO;
  DWORD error = 0;
  if (convert(path, target)) {
    int end = lstrlenW(target);
    memcpy(temporary, target, (size_t)end * sizeof *target);
    uint64_t number = 0;
    do { // the first name that is free
      char suffix[kSuffixLimit] = ".", digits[kSuffixLimit];
      lstrcatA(suffix, putDigits(number++, digits + sizeof digits - 1));
      lstrcatA(suffix, ".tmp");
      for (int i = 0; i <= lstrlenA(suffix); i++)
        temporary[end + i] = (wchar_t)suffix[i];
      file = CreateFileW(temporary, GENERIC_WRITE, 0, nullptr, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, nullptr);
    } while (file == INVALID_HANDLE_VALUE && GetLastError() == ERROR_FILE_EXISTS);
  }
  if (file != INVALID_HANDLE_VALUE) {
    status = ortc_checkpoint_write(session, fileSink, &file, metadata, count);
    bool isSafe = !status && FlushFileBuffers(file);
    error = GetLastError();
    CloseHandle(file);
    if (isSafe && MoveFileExW(temporary, target, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH))
      return ORTC_OK;
    if (isSafe)
      error = GetLastError();
    DeleteFileW(temporary);
  } else {
    error = GetLastError();
  }
  arguments.set(0, path);
  arguments.set(1, (uint64_t)error);
  return status && status != ORTC_E_IO ? status : report(kCannotWrite, arguments);
}
}
