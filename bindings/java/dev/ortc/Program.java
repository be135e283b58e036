// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
package dev.ortc;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * An opened artifact, which any number of sessions in any threads may share. Close it after them.
 *
 * <p>Methods are calls of the C interface, ortc.h, which has the details; what fails there throws {@link OrtcException}.
 */
public final class Program implements AutoCloseable {
  private static final int MAX_NUMBERS = 16; // of TensorInfo

  static {
    System.loadLibrary("ortc_jni");
  }

  private long handle;
  private int sessions; // that are open
  private final ByteBuffer image; // stays where it is until the end

  private Program(long handle, ByteBuffer image) {
    this.handle = handle;
    this.image = image;
  }

  /** Maps a file, which must not be changed while the program is open. */
  public static Program open(String path) {
    return new Program(openFile(Text.encode(path)), null);
  }

  /** The bytes between position and limit of a direct buffer, used in place: aligned to 64 bytes, and not to be changed. */
  public static Program open(ByteBuffer image) {
    Session.needDirect(image);
    return new Program(openMemory(image, image.position(), image.remaining()), image);
  }

  synchronized long handle() {
    if (handle == 0)
      throw new IllegalStateException("the program is closed");
    return handle;
  }

  /** Of the code that was chosen for this processor, e.g. "x86-64-v3". */
  public String target() {
    return Text.decode(target(handle()));
  }

  /** JSON that says what the artifact is: docs/manifest.md. */
  public String manifest() {
    return Text.decode(manifest(handle()));
  }

  /** How many threads a session may have. */
  public int maxThreads() {
    return maxWorkers(handle());
  }

  /** All tensors, in the order of the artifact's table. */
  public List<TensorInfo> tensors() {
    List<TensorInfo> all = new ArrayList<>();
    long[] numbers = new long[MAX_NUMBERS];
    for (byte[] name; (name = tensorAt(handle(), all.size(), numbers)) != null;)
      all.add(new TensorInfo(name, numbers));
    return Collections.unmodifiableList(all);
  }

  /** Null where there is none of that name. */
  public TensorInfo tensor(String name) {
    long[] numbers = new long[MAX_NUMBERS];
    byte[] found = tensorNamed(handle(), Text.encode(name), numbers);
    return found == null ? null : new TensorInfo(found, numbers);
  }

  /** All kinds of steps, with the values of each. */
  public List<EntryInfo> entries() {
    List<EntryInfo> all = new ArrayList<>();
    long[] entry = new long[MAX_NUMBERS], value = new long[MAX_NUMBERS];
    for (byte[] name; (name = entryAt(handle(), all.size(), entry)) != null;) {
      List<TensorInfo> values = new ArrayList<>();
      for (byte[] each; (each = entryValue(handle(), all.size(), values.size(), value)) != null;)
        values.add(new TensorInfo(each, value));
      all.add(new EntryInfo(name, entry, Collections.unmodifiableList(values)));
    }
    return Collections.unmodifiableList(all);
  }

  /** -1 where there is none of that name. */
  public int bindingIndex(String name) {
    return bindingNamed(handle(), Text.encode(name));
  }

  /** A session of one thread. */
  public Session createSession() {
    return createSession(1, false);
  }

  /**
   * A session of `threads`, at most {@link #maxThreads}; every number gives the same bits. With `stopOnNotFinite` a
   * training step whose loss is not finite fails before any update.
   */
  public synchronized Session createSession(int threads, boolean stopOnNotFinite) {
    Session session = new Session(this, threads, stopOnNotFinite);
    sessions++;
    return session;
  }

  synchronized void forgetSession() {
    sessions--;
  }

  @Override
  public synchronized void close() {
    if (sessions > 0)
      throw new IllegalStateException(sessions + " of the program's sessions are open");
    close(handle);
    handle = 0;
  }

  // All of these are functions of ortc.h. A name is null past the end.
  private static native long openFile(byte[] path);
  private static native long openMemory(ByteBuffer image, int position, int bytes);
  private static native void close(long program);
  private static native byte[] target(long program);
  private static native byte[] manifest(long program);
  private static native int maxWorkers(long program);
  private static native byte[] tensorAt(long program, int index, long[] numbers);
  private static native byte[] tensorNamed(long program, byte[] name, long[] numbers);
  private static native byte[] entryAt(long program, int entry, long[] numbers);
  private static native byte[] entryValue(long program, int entry, int n, long[] numbers);
  private static native int bindingNamed(long program, byte[] name);
}
