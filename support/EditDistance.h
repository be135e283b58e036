// How far two words are apart, and which of some was meant.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace ortc {

/// How many elements must be inserted, removed or replaced to make one sequence the other (Levenshtein).
template <typename Sequence> size_t countEdits(const Sequence &a, const Sequence &b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t k = 0; k < b.size(); ++k) {
      size_t replaced = diagonal + (a[i] != b[k]);
      diagonal = row[k + 1];
      row[k + 1] = std::min({replaced, row[k] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// The same of letters.
inline size_t editDistance(std::string_view a, std::string_view b) { return countEdits(a, b); }

/// "; did you mean 'word'?" where one of `words` is close to `text`, else nothing.
inline std::string suggestWord(std::string_view text, const std::vector<std::string> &words) {
  size_t least = 1 + text.size() / 4; // letters that are wrong: one, and one more of each four
  const std::string *closest = nullptr;
  for (const std::string &word : words)
    if (size_t distance = editDistance(text, word);
        distance <= least && distance < word.size() && (!closest || distance < editDistance(text, *closest)))
      closest = &word;
  return closest && !text.empty() ? "; did you mean '" + *closest + "'?" : "";
}

} // namespace ortc
