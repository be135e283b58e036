// What takes a path and maps the file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"

using namespace ortc;

extern "C" {

ortc_status ortc_program_open_file(const char *path, const ortc_host *host, ortc_program **program,
                                   ortc_message *message) {
  FileMapping file;
  Arguments arguments;
  *program = nullptr;
  ortc_status status = report(message, mapFile(path, file, arguments), &arguments);
  return status ? status : openImage(file, host, program, message, kOwnFile);
}

ortc_status ortc_checkpoint_load(ortc_session *session, const char *path, ortc_load_info *info) {
  FileMapping file;
  ortc_status status = report(mapFile(path, file, session->arguments), session->arguments);
  if (status)
    return status;
  status = ortc_checkpoint_read(session, file.data, file.bytes, info);
  unmapFile(file);
  return status;
}
}
