// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
package dev.ortc;

import java.util.Arrays;

/** A tensor, or a value of an entry, in the shape that it has there. */
public final class TensorInfo {
  /** What {@link #role} is. */
  public static final int PARAMETER = 0, CONSTANT = 1, STATE = 2, SCALAR = 3, INPUT = 4, OUTPUT = 5, GRADIENT = 6, LOSS = 7;

  public final String name;
  public final int index;
  public final int role;
  /** ONNX's TensorProto.DataType: 1 is float32, 7 is int64. */
  public final int dtype;
  /** Of the dense tensor. */
  public final long bytes;
  private final long[] shape;

  /** From what native code gives: index, role, dtype, bytes, rank, shape. */
  TensorInfo(byte[] name, long[] numbers) {
    this.name = Text.decode(name);
    index = (int) numbers[0];
    role = (int) numbers[1];
    dtype = (int) numbers[2];
    bytes = numbers[3];
    shape = Arrays.copyOfRange(numbers, 5, 5 + (int) numbers[4]);
  }

  public long[] shape() {
    return shape.clone();
  }
}
