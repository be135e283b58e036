// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
package dev.ortc;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Strings as C has them: UTF-8. JNI's own have another encoding. */
final class Text {
  private Text() {}

  /** With a terminator. */
  static byte[] encode(String text) {
    if (text.indexOf('\0') >= 0)
      throw new IllegalArgumentException("a name or path has the character 0 in it");
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    return Arrays.copyOf(bytes, bytes.length + 1);
  }

  /** Without a terminator, for what is given with its length. */
  static byte[] encodePlain(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static String decode(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }
}
