// Text for people: names that show as they are, numbers of things, and sizes in the unit that was given.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "support/Json.h"
#include "support/Printable.h"
#include "support/Text.h"

using namespace ortc;

TEST(PrintableTest, WhatActsOnATerminalIsAQuestionMark) {
  EXPECT_EQ(makePrintable("fc.weight"), "fc.weight");
  EXPECT_EQ(makePrintable("a\nb\r\t\x1b[31m\x7f"), "a?b???[31m?");
  EXPECT_EQ(makePrintable("naïve \u6f22\u5b57 \U0001f600"), "naïve \u6f22\u5b57 \U0001f600");
  // Controls above 127, as characters and as bytes.
  for (int code = 0x80; code <= 0x9f; ++code) {
    EXPECT_EQ(makePrintable(std::string("a\xc2") + char(code) + "b"), "a?b") << code;
    EXPECT_EQ(makePrintable(std::string("a") + char(code) + "b"), "a?b") << code;
  }
  EXPECT_EQ(makePrintable("\u00a0"), "\u00a0");
  // Marks of direction, and the ends of lines and paragraphs.
  for (const char *mark : {"\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202b", "\u202c",
                           "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069", "\ufffe", "\uffff"})
    EXPECT_EQ(makePrintable(std::string("x") + mark + "y"), "x?y") << mark;
  for (const char *letter : {"\u061b", "\u200d", "\u2010", "\u2027", "\u202f", "\u2065", "\u206a", "\ufffd"})
    EXPECT_EQ(makePrintable(letter), letter);
}

TEST(PrintableTest, BytesThatAreNoTextAreQuestionMarks) {
  for (const char *bytes : {"\xff", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                            "\xf8\x88\x80\x80\x80", "\xe2\x80", "\xf0\x9f\x98", "\xc3"}) {
    const std::string text = bytes;
    EXPECT_EQ(makePrintable(text), std::string(text.size(), '?')) << text.size();
    EXPECT_EQ(makePrintable("a" + text + "b"), "a" + std::string(text.size(), '?') + "b");
  }
  EXPECT_EQ(makePrintable(std::string_view("a\0b", 3)), "a?b");
}

/// JSON says the same, without what acts on a terminal.
TEST(PrintableTest, JsonHasEscapes) {
  EXPECT_EQ(formatJsonString("a\u202eb\u0085\n\"ü"), "\"a\\u202eb\\u0085\\n\\\"ü\"");
  const nlohmann::json value = {{"n\u2028ame", {"\u061c", "\x7f", "ok"}}};
  const std::string text = formatJson(value);
  EXPECT_EQ(text, "{\n \"n\\u2028ame\": [\n  \"\\u061c\",\n  \"\\u007f\",\n  \"ok\"\n ]\n}\n");
  EXPECT_EQ(nlohmann::json::parse(text), value);
}

TEST(TextTest, OneThingIsNoneOfSeveral) {
  EXPECT_EQ(formatCount(1, "tensor"), "1 tensor");
  EXPECT_EQ(formatCount(0, "tensor"), "0 tensors");
  EXPECT_EQ(formatCount(2, "entry", "entries"), "2 entries");
  EXPECT_EQ(formatCount(1, "entry", "entries"), "1 entry");
}

TEST(TextTest, SizesAreInTheUnitThatWasGiven) {
  EXPECT_EQ(findByteUnit("8GB").bytes, 1000000000u);
  EXPECT_EQ(findByteUnit("1.5KiB").name, "KiB");
  EXPECT_EQ(findByteUnit("65536").bytes, 1u);
  EXPECT_EQ(formatBytesIn(8000000000, "GB"), "8GB");
  EXPECT_EQ(formatBytesIn(8000000001, "GB"), "8.001GB"); // enough of it
  EXPECT_EQ(formatBytesIn(1536, "KiB"), "1.5KiB");
  EXPECT_EQ(formatBytesIn(2047999999, "MB"), "2048MB");
  EXPECT_EQ(formatBytesIn(17184, ""), "17184");
  EXPECT_EQ(formatBytesIn(5, "B"), "5B");
  EXPECT_EQ(formatBytesIn(UINT64_MAX, "KiB"), "18014398509481984KiB");
}
