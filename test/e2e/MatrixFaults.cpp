// Faults for kernels that multiply matrices.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/e2e/MatrixFaults.h"

#include <algorithm>
#include <regex>

namespace ortc::test {

/// Of one kernel.
static void addFaults(const std::string &name, const std::string &kernel, std::vector<Fault> &faults) {
  struct Kind {
    const char *opcode, *pattern;
    std::vector<const char *> changes;
    size_t most;
  };
  const Kind kinds[] = {
      {"barrier", "barrier|bar\\.sync", {"remove"}, 16},
      {"cp.async.wait_group", "cp\\.async\\.wait_group", {"remove", "1"}, 8},
      {"cp.async.commit_group", "cp\\.async\\.commit_group", {"remove"}, 2}, // those of the first stages
      {"cp.async.cg", "cp\\.async\\.cg", {"16", "source:16"}, 8},
      {"ldmatrix", "ldmatrix", {"16", "256"}, 12},
      {"mma", "mma", {"remove"}, 12},
      {"xor", "xor", {"pass"}, 8},
      {"add.rn.f32", "add\\.rn\\.(?:ftz\\.)?f32", {"pass"}, 8},
      {"sub", "sub\\.rn", {"pass"}, 8},
      {"cvt.rna", "cvt\\.rna", {"pass"}, 8},
      {"st.shared", "st\\.shared", {"8"}, 8},
      {"shfl.sync", "shfl\\.sync", {"remove"}, 8},
  };
  for (const Kind &kind : kinds) {
    std::vector<std::pair<size_t, std::string>> lines; // by their numbers
    size_t number = 0;
    std::string opcode = kind.opcode;
    std::regex instruction("\t(?:@!?%\\w+ )?\\s*((?:" + std::string(kind.pattern) + ")[\\w.:]*)[^\n]*;");
    for (auto at = std::sregex_iterator(kernel.begin(), kernel.end(), instruction);
         at != std::sregex_iterator(); ++at) {
      ++number;
      if (at->str().find(", 0f") !=
          std::string::npos) // a constant of how f16 is rounded, for numbers that are not here
        continue;
      lines.push_back({number, at->str().substr(1)});
      if (opcode.starts_with("add") || opcode == "sub") // with or without .ftz
        opcode = (*at)[1];
    }
    size_t step = std::max<size_t>((lines.size() + kind.most - 1) / kind.most, 1);
    for (size_t i = 0; i < lines.size(); i += step)
      for (const char *change : kind.changes)
        faults.push_back(
            {name + ":" + opcode + ":" + std::to_string(lines[i].first) + ":" + change, lines[i].second});
  }
}

std::vector<Fault> listMatrixFaults(const std::string &ptx) {
  std::vector<Fault> faults;
  static const std::regex entry("\\.visible \\.entry (\\w+)\\(");
  for (auto at = std::sregex_iterator(ptx.begin(), ptx.end(), entry); at != std::sregex_iterator(); ++at) {
    std::string body = ptx.substr(at->position());
    body = body.substr(0, body.find("\n}\n"));
    if (body.find("mma.sync") != std::string::npos)
      addFaults((*at)[1], body, faults);
  }
  return faults;
}

} // namespace ortc::test
