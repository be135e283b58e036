// Regular expressions of files of others, matched in time that grows with the name and not with the paths through the
// expression.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ortc::engine {

/// An expression as a nondeterministic automaton whose states are followed side by side (Thompson, "Regular expression
/// search algorithm", CACM 11(6), 1968): at most states times bytes. It has characters, `.`, escapes such as `\.`,
/// `\d` and `\w`, `[...]`, `(...)`, `(?:...)`, `|`, `*`, `+`, `?`, `{m,n}`, `^` and `$`; what looks around or back is
/// not taken.
class LinearPattern {
public:
  /// False, with the reason in `why`, for what is no such expression or would have more than kMostStates states.
  bool parse(std::string_view text, std::string &why);
  /// Whether the expression matches the whole name, or what follows one of its dots.
  bool matchesEnd(std::string_view name) const;
  size_t countStates() const { return states.size(); }

  static constexpr size_t kMostStates = 10000;

private:
  class Parser;
  using Bytes = std::bitset<256>;
  struct State {
    enum Kind : uint8_t { Byte, Fork, AtBegin, AtEnd, End } kind = End;
    uint32_t set = 0;             ///< of a Byte, in `sets`
    uint32_t next = 0, other = 0; ///< `other`: of a Fork
  };
  /// States by which a name can go on after `at` of its bytes.
  struct Front {
    std::vector<uint32_t> active, seen; ///< `seen`: by state, the number of the last front that has it
    uint32_t number = 1;
    size_t at = 0, size = 0;
  };
  void enter(Front &front, uint32_t state) const;

  std::vector<Bytes> sets;
  std::vector<State> states;
  uint32_t first = 0;
};

} // namespace ortc::engine
