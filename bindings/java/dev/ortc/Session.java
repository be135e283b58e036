// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
package dev.ortc;

import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.util.HashMap;
import java.util.Map;

/**
 * Parameters, optimizer state and what a step needs, with the first binding in use. One thread at a time may use it.
 *
 * <p>Numbers lie in direct buffers, between position and limit, dense and row-major in the ONNX layout and type; the order of
 * bytes is {@link java.nio.ByteOrder#nativeOrder}. Positions are left as they are.
 */
public final class Session implements AutoCloseable {
  private final Program program;
  private final Map<String, ByteBuffer> bound = new HashMap<>(); // memory that steps use stays where it is; by place()
  private int binding;
  private long pool; // 0: one thread
  private long handle;

  Session(Program program, int threads, boolean stopOnNotFinite) {
    this.program = program;
    pool = threads > 1 ? createPool(threads) : 0;
    try {
      handle = create(program.handle(), threads, pool, stopOnNotFinite);
    } finally {
      if (handle == 0)
        destroyPool(pool);
    }
  }

  static void needDirect(ByteBuffer buffer) {
    if (!buffer.isDirect())
      throw new IllegalArgumentException("the buffer is not direct");
  }

  private static void needWritable(ByteBuffer buffer) {
    needDirect(buffer);
    if (buffer.isReadOnly())
      throw new ReadOnlyBufferException();
  }

  private long handle() {
    if (handle == 0)
      throw new IllegalStateException("the session is closed");
    return handle;
  }

  /** The binding that the following calls speak about. */
  public void useBinding(String name) {
    int index = program.bindingIndex(name);
    useBinding(handle(), index);
    binding = index;
  }

  int binding() {
    return binding;
  }

  /** An input or output of the binding in use. */
  private String place(String name) {
    return binding + " " + name;
  }

  /** Parameters, state and scalars as they were when the session was created. */
  public void reset() {
    reset(handle());
  }

  /** Copies in: parameters, state, scalars, inputs. As many bytes as the tensor has. */
  public void write(String name, ByteBuffer source) {
    needDirect(source);
    write(handle(), Text.encode(name), source, source.position(), source.remaining());
    bound.remove(place(name));
  }

  /** Copies out: also constants, and outputs after a step. */
  public void read(String name, ByteBuffer target) {
    needWritable(target);
    read(handle(), Text.encode(name), target, target.position(), target.remaining());
  }

  /** Lets steps use this memory for an input or output, in place, until bound anew; null: the session's own. */
  public void bind(String name, ByteBuffer memory) {
    if (memory == null) {
      bind(handle(), Text.encode(name), null, 0, 0);
    } else {
      needWritable(memory);
      bind(handle(), Text.encode(name), memory, memory.position(), memory.remaining());
    }
    bound.put(place(name), memory);
  }

  /** The gradient of a parameter, after {@link #gradientsStep} and before any other step. */
  public void readGradient(String parameter, ByteBuffer target) {
    needWritable(target);
    readGradient(handle(), Text.encode(parameter), target, target.position(), target.remaining());
  }

  public void writeGradient(String parameter, ByteBuffer source) {
    needDirect(source);
    writeGradient(handle(), Text.encode(parameter), source, source.position(), source.remaining());
  }

  /** Hyper-parameters: lr, weight_decay, ... */
  public void setScalar(String name, double value) {
    setScalar(handle(), Text.encode(name), value);
  }

  public double getScalar(String name) {
    return getScalar(handle(), Text.encode(name));
  }

  /** Steps give the loss before the update. */
  public double trainStep() {
    return step(handle(), EntryInfo.TRAIN);
  }

  public double accumulateStep() {
    return step(handle(), EntryInfo.ACCUMULATE);
  }

  public double evalStep() {
    return step(handle(), EntryInfo.EVAL);
  }

  public double gradientsStep() {
    return step(handle(), EntryInfo.GRADIENTS);
  }

  public void predictStep() {
    step(handle(), EntryInfo.PREDICT);
  }

  public void updateStep() {
    step(handle(), EntryInfo.UPDATE);
  }

  /** Writes a checkpoint, a safetensors file, whole or not at all. */
  public void save(String path) {
    save(handle(), Text.encode(path));
  }

  /** Takes a checkpoint, or throws and stays as it is. */
  public void load(String path) {
    load(handle(), Text.encode(path));
  }

  /** The same from the bytes of the file. */
  public void load(ByteBuffer checkpoint) {
    needDirect(checkpoint);
    loadMemory(handle(), checkpoint, checkpoint.position(), checkpoint.remaining());
  }

  @Override
  public void close() {
    if (handle == 0)
      return;
    destroy(handle);
    destroyPool(pool);
    handle = pool = 0;
    bound.clear();
    program.forgetSession();
  }

  // All of these are functions of ortc.h and threads.h.
  private static native long createPool(int threads);
  private static native void destroyPool(long pool);
  private static native long create(long program, int threads, long pool, boolean stopOnNotFinite);
  private static native void destroy(long session);
  private static native void useBinding(long session, int binding);
  private static native void reset(long session);
  private static native void write(long session, byte[] name, ByteBuffer source, int position, int bytes);
  private static native void read(long session, byte[] name, ByteBuffer target, int position, int bytes);
  private static native void bind(long session, byte[] name, ByteBuffer memory, int position, int bytes);
  private static native void readGradient(long session, byte[] name, ByteBuffer target, int position, int bytes);
  private static native void writeGradient(long session, byte[] name, ByteBuffer source, int position, int bytes);
  private static native void setScalar(long session, byte[] name, double value);
  private static native double getScalar(long session, byte[] name);
  private static native double step(long session, int role);
  private static native void save(long session, byte[] path);
  private static native void load(long session, byte[] path);
  private static native void loadMemory(long session, ByteBuffer checkpoint, int position, int bytes);
}
