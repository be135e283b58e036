// Regular expressions of files of others: what they match, what is refused, and that no path is followed twice.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/artifact/linear_pattern.h"

#include <gtest/gtest.h>
#include <regex>

using ortc::engine::LinearPattern;

namespace {

bool matches(const std::string &expression, const std::string &name) {
  LinearPattern pattern;
  std::string why;
  EXPECT_TRUE(pattern.parse(expression, why)) << expression << ": " << why;
  return pattern.matchesEnd(name);
}

/// As PEFT puts it, and std::regex matches it.
TEST(LinearPatternTest, MatchesWhatARegexDoes) {
  const char *expressions[] = {"q_proj",
                               "layers\\.1\\.q_proj",
                               "layers.1.q_proj",
                               "layers\\.(0|1)\\..*",
                               ".*",
                               "",
                               "(q|k|v)_proj",
                               "[qkv]_proj",
                               "[^q]_proj",
                               "layers\\.\\d+\\.q",
                               "(a|ab)(c|bcd)(d*)",
                               "x{2,3}",
                               "x{2}",
                               "x{2,}y?",
                               "(?:x|y)+",
                               "\\w+\\.\\W?",
                               "^layers.*proj",
                               "^q_proj$",
                               "(^a|b)c?",
                               "[a-f0-9]*[_-]",
                               "x+?y*?",
                               "(x*)*",
                               "(|x)y",
                               "a$|b"};
  const char *names[] = {"q_proj",
                         "layers.1.q_proj",
                         "layers.10.q_proj",
                         "layers.12.q",
                         "k_proj",
                         "",
                         "xx",
                         "xxx",
                         "xxxx",
                         "xxxy",
                         "abcd",
                         "a.b",
                         "b.bc",
                         "y",
                         "xy",
                         "deadbeef_",
                         "a.",
                         "z.ac",
                         "a",
                         "m.b",
                         "m.a"};
  int found = 0;
  for (const char *expression : expressions)
    for (const char *name : names) {
      const bool wanted = std::regex_match(name, std::regex("(.*\\.)?(" + std::string(expression) + ")"));
      EXPECT_EQ(matches(expression, name), wanted) << expression << " " << name;
      found += wanted;
    }
  EXPECT_GT(found, 60);
}

/// Each has more paths through a name of 5,000 characters than could ever be followed.
TEST(LinearPatternTest, EndsSoonWhereManyPathsMatch) {
  const std::string name(5000, 'a');
  for (const char *expression :
       {"(a*)*b", "(a|a)*b", "(a|aa)+$b", "(.*.*.*.*.*.*.*.*)*b", "((a+)+)+b", "(a?){500}b"})
    EXPECT_FALSE(matches(expression, name)) << expression;
  EXPECT_TRUE(matches("((a*)*)*", name));
}

TEST(LinearPatternTest, RefusesWhatItDoesNotHave) {
  for (const auto &[expression, reason] :
       {std::pair("[", "a '[' without its ']'"), std::pair("a)", "a ')' without its '('"),
        std::pair("(a", "a '(' without"), std::pair("*", "a '*' that repeats nothing"),
        std::pair("a**", "two repetitions"), std::pair("(?=a)", "a '(?'"),
        std::pair("(a)\\1", "an escape '\\1'"), std::pair("\\bx", "an escape '\\b'"),
        std::pair("a{3,1}", "a '{'"), std::pair("a{1001}", "a '{'"), std::pair("\\", "a '\\' at the end"),
        std::pair("[z-a]", "a range"), std::pair("((a{1000}){1000}){1000}", "more than 10000 states")}) {
    LinearPattern pattern;
    std::string why;
    EXPECT_FALSE(pattern.parse(expression, why)) << expression;
    EXPECT_TRUE(why.starts_with(reason)) << expression << ": " << why;
  }
  LinearPattern pattern;
  std::string why;
  EXPECT_FALSE(pattern.parse(std::string(100000, '('), why));
  EXPECT_TRUE(why.starts_with("groups within groups")) << why;
}

} // namespace
