// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
package dev.ortc;

/** What a failed call of the C interface says. */
public final class OrtcException extends RuntimeException {
  private static final long serialVersionUID = 1;
  private static final String[] NAMES = {"ok", "argument", "format", "version", "target", "hash", "memory", "io", "not found",
      "shape", "range", "not finite", "state", "internal"};

  private final int status;

  /** Called by native code. */
  OrtcException(int status, byte[] text) {
    super(text.length > 0 ? Text.decode(text) : nameOf(status));
    this.status = status;
  }

  /** Its ortc_status. */
  public int status() {
    return status;
  }

  /** Its status by name: "range", "shape", ... */
  public String statusName() {
    return nameOf(status);
  }

  private static String nameOf(int status) {
    return status >= 0 && status < NAMES.length ? NAMES[status] : "status " + status;
  }
}
