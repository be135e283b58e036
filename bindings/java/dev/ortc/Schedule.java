// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
package dev.ortc;

/**
 * The learning rates of a training, by the text and the formulas of {@code ortc run --lr-schedule}: before each step {@code
 * session.setScalar("lr", schedule.rate(step))}. One thread at a time may use it.
 *
 * <p>Needs libortc_jni_training, which Android's library has not.
 */
public final class Schedule implements AutoCloseable {
  static {
    System.loadLibrary("ortc_jni_training");
  }

  private long handle;

  /**
   * `text`: a schedule, "cosine:warmup=100", or "plateau:patience=3". `base`: the rate it starts from. `steps`: of the whole
   * training, where a schedule that falls ends unless it has total=N; 0: not known. Throws {@link OrtcException} with what ortc
   * run says of such a text.
   */
  public Schedule(String text, double base, long steps) {
    handle = create(Text.encodePlain(text), base, steps);
  }

  private long handle() {
    if (handle == 0)
      throw new IllegalStateException("the schedule is closed");
    return handle;
  }

  /** The rate of a step, counted from 0; that of a plateau depends on evaluations and not on the step. */
  public double rate(long step) {
    return rate(handle(), step);
  }

  /** After every evaluation: a plateau lowers its rate where values get no better, smaller or larger. Others do nothing. */
  public void follow(double value, boolean isLargerBetter) {
    follow(handle(), value, isLargerBetter);
  }

  /** A plateau's memory of evaluations, for a training that goes on later; empty for schedules. */
  public String state() {
    return Text.decode(state(handle()));
  }

  /** Takes a {@link #state}, in a plateau of the same text whose base is the last rate of the other. */
  public void restore(String state) {
    restore(handle(), Text.encodePlain(state));
  }

  @Override
  public void close() {
    if (handle != 0)
      destroy(handle);
    handle = 0;
  }

  private static native long create(byte[] text, double base, long steps);
  private static native void destroy(long schedule);
  private static native double rate(long schedule, long step);
  private static native void follow(long schedule, double value, boolean isMaximum);
  private static native byte[] state(long schedule);
  private static native void restore(long schedule, byte[] state);
}
