// Functions that the C library of WASI would import: training.wasm has no files, and runs where nobody offers any.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdint>

/// errno of WASI: no such file descriptor.
constexpr int32_t kBadFile = 8;

// The C library writes to them where it aborts with a message.
extern "C" {
int32_t __imported_wasi_snapshot_preview1_fd_close(int32_t) { return kBadFile; }
int32_t __imported_wasi_snapshot_preview1_fd_seek(int32_t, int64_t, int32_t, int32_t) { return kBadFile; }
int32_t __imported_wasi_snapshot_preview1_fd_write(int32_t, int32_t, int32_t, int32_t) { return kBadFile; }
}
