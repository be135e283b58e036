// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
package dev.ortc;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The metrics of {@code ortc run --metric}, over the slices of an evaluation. One thread at a time may use it.
 *
 * <p>Needs libortc_jni_training, which Android's library has not.
 */
public final class Metrics implements AutoCloseable {
  static {
    System.loadLibrary("ortc_jni_training");
  }

  private long handle;
  private final List<String> names;
  private final List<String> tensors = new ArrayList<>(); // that every slice needs

  /** `names`: "accuracy", "f1:average=macro", "auc", ... Throws {@link OrtcException} with what ortc run says of such a metric. */
  public Metrics(Program program, String... names) {
    this.names = new ArrayList<>(new LinkedHashSet<>(List.of(names)));
    handle = create(Text.encodePlain(program.manifest()));
    try {
      for (EntryInfo entry : program.entries())
        if (entry.role == EntryInfo.EVAL || entry.role == EntryInfo.PREDICT)
          for (TensorInfo value : entry.values)
            if (value.role == TensorInfo.INPUT || value.role == TensorInfo.OUTPUT)
              addValue(handle, entry.binding, value.role == TensorInfo.INPUT, Text.encodePlain(value.name), value.dtype, value.shape());
      for (String name : this.names)
        addMetric(handle, Text.encodePlain(name));
    } catch (OrtcException error) {
      close();
      throw error;
    }
    for (byte[] tensor; (tensor = tensorAt(handle, tensors.size())) != null;)
      tensors.add(Text.decode(tensor));
  }

  private long handle() {
    if (handle == 0)
      throw new IllegalStateException("the metrics are closed");
    return handle;
  }

  /** Forgets all slices: an evaluation begins. */
  public void begin() {
    begin(handle());
  }

  /** Adds a slice: labels as they are in the session, and outputs of its last {@link Session#evalStep} or {@link Session#predictStep}. */
  public void add(Session session) {
    read(session);
    addSlice(handle(), session.binding(), false, 0);
  }

  /** The same of a batch of which `rows` samples count, and others fill it up. */
  public void add(Session session, long rows) {
    read(session);
    addSlice(handle(), session.binding(), true, rows);
  }

  private void read(Session session) {
    for (int i = 0; i < tensors.size(); i++)
      session.read(tensors.get(i), place(handle(), session.binding(), i));
  }

  /** Values by name, in the order of names; NaN where one is not defined. */
  public Map<String, Double> compute() {
    double[] values = compute(handle());
    Map<String, Double> all = new LinkedHashMap<>();
    for (int i = 0; i < values.length; i++)
      all.put(names.get(i), values[i]);
    return all;
  }

  @Override
  public void close() {
    if (handle != 0)
      destroy(handle);
    handle = 0;
  }

  private static native long create(byte[] manifest);
  private static native void destroy(long metrics);
  private static native void addValue(long metrics, int binding, boolean isInput, byte[] name, int dtype, long[] shape);
  private static native void addMetric(long metrics, byte[] metric);
  private static native void begin(long metrics);
  private static native byte[] tensorAt(long metrics, int index);
  private static native ByteBuffer place(long metrics, int binding, int tensor);
  private static native void addSlice(long metrics, int binding, boolean hasRows, long rows);
  private static native double[] compute(long metrics);
}
