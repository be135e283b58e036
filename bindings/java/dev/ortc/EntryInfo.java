// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
package dev.ortc;

import java.util.List;

/** One kind of step, for one binding. */
public final class EntryInfo {
  /** What {@link #role} is. */
  public static final int TRAIN = 0, EVAL = 1, PREDICT = 2, GRADIENTS = 3, UPDATE = 4, ACCUMULATE = 5;

  public final String name;
  public final int role;
  public final int binding;
  /** Inputs, outputs, gradients, loss. */
  public final List<TensorInfo> values;

  EntryInfo(byte[] name, long[] numbers, List<TensorInfo> values) {
    this.name = Text.decode(name);
    role = (int) numbers[0];
    binding = (int) numbers[1];
    this.values = values;
  }
}
