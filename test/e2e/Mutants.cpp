// Finds places for faults in PTX as LLVM writes it: an instruction a line.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/e2e/Mutants.h"

#include <cstddef>
#include <cstdlib>
#include <regex>
#include <set>
#include <sstream>

#include "ortc/device.h"

namespace ortc::test {

namespace {

/// Bytes of an access by the end of its opcode: ".v2.b32".
size_t bytesOf(const std::string &opcode) {
  size_t bits = std::strtoul(opcode.c_str() + opcode.find_last_of(".") + 2, nullptr, 10);
  size_t count = opcode.find(".v2") != opcode.npos ? 2 : opcode.find(".v4") != opcode.npos ? 4 : 1;
  return count * bits / 8;
}

class Lister {
public:
  void read(const std::string &line) {
    static const std::regex entry("\\.visible \\.entry (\\w+)\\("), parameter("\t\\.param .* (\\w+),?"),
        instruction("\t(?:@!?%\\w+ )?\\s*([a-z][\\w.]*)\\s*(.*);");
    std::smatch found;
    if (std::regex_match(line, found, entry))
      begin(found[1]);
    else if (std::regex_match(line, found, parameter))
      last = found[1];
    else if (std::regex_match(line, found, instruction))
      read(found[1], found[2], line.substr(1));
  }

  std::vector<Mutant> mutants;

private:
  void begin(const std::string &name) {
    kernel = name;
    barriers = accesses = 0;
    status.clear();
  }
  void addAccess(Mutant::Kind kind, size_t offset, const std::string &line) {
    const std::string access = kernel + ":access:" + std::to_string(accesses) + ":";
    constexpr int64_t kOutside = int64_t(1) << 48;
    mutants.push_back({kind, access + std::to_string(offset), line, access + std::to_string(kOutside)});
  }
  void read(const std::string &opcode, const std::string &operands, const std::string &line) {
    static const std::regex move("(%\\w+), \\[?(%?\\w+)\\]?"), address("\\[(%\\w+)\\]");
    std::smatch found;
    bool isLoad = opcode.starts_with("ld."), isOfParameter = opcode.find(".param") != opcode.npos;
    if (opcode.starts_with("bar.sync") || opcode.starts_with("barrier."))
      mutants.push_back({Mutant::Barrier, kernel + ":barrier:" + std::to_string(++barriers), line, ""});
    else if ((opcode.starts_with("cvta.") || (isLoad && isOfParameter)) &&
             std::regex_match(operands, found, move) && (found[2] == last || status.contains(found[2])))
      status.insert(found[1]);
    if (!(isLoad || opcode.starts_with("st.")) || isOfParameter)
      return;
    ++accesses;
    addAccess(Mutant::Index, bytesOf(opcode), line);
    if (bytesOf(opcode) > 1)
      addAccess(Mutant::Alignment, 1, line);
    // Words that are always zero, as the status is before a step fails.
    if (isLoad && std::regex_search(operands, found, address) && status.contains(found[1]))
      addAccess(Mutant::StatusTest, offsetof(ortc_device_status, reserved), line);
  }

  std::string kernel, last; ///< parameter
  int barriers = 0, accesses = 0;
  std::set<std::string> status; ///< registers that point to it
};

} // namespace

std::vector<Mutant> listMutants(const std::string &ptx) {
  Lister lister;
  std::istringstream lines(ptx);
  for (std::string line; std::getline(lines, line);)
    lister.read(line);
  return std::move(lister.mutants);
}

} // namespace ortc::test
