// Messages on stderr.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Message.h"

#include <cstdio>
#include <string>

#include "support/Printable.h"

namespace ortc {

void printMessage(const char *kind, std::string_view text) {
  constexpr size_t kMost = 8000, kBegin = 2000, kEnd = 2000; // what to do stands at the end
  std::string shown = makePrintable(text.size() > kMost ? text.substr(0, kBegin) : text);
  if (text.size() > kMost)
    shown += " ... (" + std::to_string(text.size() - kBegin - kEnd) + " bytes) ... " +
             makePrintable(text.substr(text.size() - kEnd));
  std::fflush(stdout);
  std::fprintf(stderr, "ortc: %s: %s\n", kind, shown.c_str());
}

} // namespace ortc
