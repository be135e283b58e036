// The Java classes by themselves: what they say of a program, buffers, errors, lifetimes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// usage: java ClassesTest MODEL.ortc ELSEWHERE.ortc FOLDER: an artifact of mlp-digits for two threads with gradients, and one
// without code for this machine
import dev.ortc.EntryInfo;
import dev.ortc.OrtcException;
import dev.ortc.Program;
import dev.ortc.Session;
import dev.ortc.TensorInfo;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.ReadOnlyBufferException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

final class ClassesTest {
  private static void check(boolean isGood, String what) {
    if (!isGood)
      throw new AssertionError(what);
  }

  private interface Action {
    void run() throws Exception;
  }

  /** The action throws an exception of this type, with this in its text. */
  private static void fails(Class<? extends Exception> type, String text, Action action) {
    try {
      action.run();
    } catch (Exception error) {
      check(type.isInstance(error), "another exception: " + error);
      check(String.valueOf(error.getMessage()).contains(text), "another text: " + error.getMessage());
      return;
    }
    throw new AssertionError("nothing was thrown, not even: " + text);
  }

  /** The action throws what the runtime says. */
  private static void refuses(String status, String text, Action action) {
    fails(OrtcException.class, text, () -> {
      try {
        action.run();
      } catch (OrtcException error) {
        check(error.statusName().equals(status), "another status: " + error.statusName());
        throw error;
      }
    });
  }

  private static ByteBuffer buffer(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
  }

  private static ByteBuffer pixels() {
    ByteBuffer pixels = buffer(64 * 64 * 4);
    for (int i = 0; i < 64 * 64; i++)
      pixels.putFloat(4 * i, (i * 7 % 17) / 16f);
    return pixels;
  }

  private static ByteBuffer labels() {
    ByteBuffer labels = buffer(64 * 8);
    for (int i = 0; i < 64; i++)
      labels.putLong(8 * i, i % 10);
    return labels;
  }

  private static void testProgram(Program program) {
    check(program.target().startsWith("x86-64") || program.target().equals("aarch64"), program.target());
    check(program.maxThreads() == 2, "threads");
    TensorInfo weight = program.tensor("0.weight");
    check(Arrays.equals(weight.shape(), new long[] {64, 64}) && weight.bytes == 64 * 64 * 4 && weight.dtype == 1, "weight");
    check(weight.role == TensorInfo.PARAMETER && program.tensors().get(weight.index).name.equals("0.weight"), "role");
    check(program.tensor("nobody") == null && program.bindingIndex("nobody") == -1, "absent");
    fails(IllegalArgumentException.class, "character 0", () -> program.tensor("0.weight\0"));
    EntryInfo train = program.entries().stream().filter(each -> each.role == EntryInfo.TRAIN).findFirst().get();
    check(train.values.stream().filter(each -> each.role == TensorInfo.INPUT).count() == 2, "inputs");
    check(program.entries().stream().anyMatch(each -> each.role == EntryInfo.GRADIENTS), "gradients");
  }

  private static void testSession(Program program, Path folder) throws Exception {
    Session session = program.createSession();
    refuses("state", "is not bound or written", session::trainStep);
    session.write("pixels", pixels());
    session.write("label", labels());
    refuses("shape", "12", () -> session.write("pixels", buffer(12)));
    refuses("not found", "nobody", () -> session.read("nobody", buffer(4)));
    refuses("not found", "", () -> session.useBinding("nobody"));
    fails(IllegalArgumentException.class, "not direct", () -> session.write("label", ByteBuffer.allocate(512)));
    fails(ReadOnlyBufferException.class, "", () -> session.read("2.bias", buffer(40).asReadOnlyBuffer()));
    session.write("label", labels().asReadOnlyBuffer());

    ByteBuffer before = buffer(40), after = buffer(48);
    session.read("2.bias", before);
    check(before.position() == 0, "positions stay");
    double loss = session.trainStep();
    after.position(4).limit(44); // only in between
    session.read("2.bias", after);
    check(!after.equals(before), "trained");
    check(after.getInt(0) == 0 && after.clear().getInt(44) == 0, "outside of the limits");
    check(Math.abs(session.getScalar("lr") - 0.02) < 1e-9, "lr");
    session.setScalar("lr", 0.5);
    check(session.getScalar("lr") == 0.5, "another lr");

    // Names beyond ASCII, and beyond what JNI calls UTF-8.
    Path file = folder.resolve("gr\u00f6\u00dfe \ud83d\ude00");
    session.save(file.toString());
    double next = session.trainStep();
    check(next < loss, "learning");
    session.load(file.toString());
    check(session.trainStep() == next, "resumed");
    byte[] bytes = Files.readAllBytes(file);
    session.load(buffer(bytes.length).put(bytes).flip());
    check(session.trainStep() == next, "resumed from memory");
    bytes[bytes.length - 1] ^= 1;
    refuses("hash", "checksum", () -> session.load(buffer(bytes.length).put(bytes).flip()));
    refuses("io", "\ud83d\ude00", () -> session.load(file + " none"));
    session.reset();
    ByteBuffer reset = buffer(40);
    session.read("2.bias", reset);
    check(reset.equals(before), "reset");

    ByteBuffer wrong = labels();
    wrong.putLong(0, 10);
    session.write("label", wrong);
    refuses("range", "index 10", session::trainStep);
    session.bind("label", labels());
    System.gc(); // what is bound stays
    check(session.trainStep() == loss, "bound");
    session.bind("label", null);
    refuses("range", "index 10", session::trainStep);
    session.close();
    session.close();
    fails(IllegalStateException.class, "closed", session::trainStep);
  }

  private static void testGradients(Program program) {
    try (Session fused = program.createSession(2, true); Session split = program.createSession()) {
      for (Session session : new Session[] {fused, split}) {
        session.write("pixels", pixels());
        session.write("label", labels());
      }
      fused.trainStep();
      ByteBuffer gradient = buffer(64 * 64 * 4), one = buffer(64 * 64 * 4), other = buffer(64 * 64 * 4);
      refuses("state", "no gradients", split::updateStep);
      split.gradientsStep();
      split.readGradient("0.weight", gradient);
      split.writeGradient("0.weight", gradient);
      split.updateStep();
      fused.read("0.weight", one);
      split.read("0.weight", other);
      check(one.equals(other), "gradients and update are a step");
      check(fused.evalStep() == split.evalStep(), "eval");
      fused.predictStep();
      refuses("not found", "no such entry", fused::accumulateStep);
    }
    refuses("argument", "", () -> program.createSession(3, false).close());
  }

  public static void main(String[] words) throws Exception {
    Path folder = Path.of(words[2]);
    Program program = Program.open(words[0]);
    testProgram(program);
    testSession(program, folder);
    testGradients(program);
    Session open = program.createSession();
    fails(IllegalStateException.class, "1 of the program's sessions", program::close);
    open.close();
    program.close();
    program.close();
    fails(IllegalStateException.class, "closed", program::createSession);

    try (FileChannel channel = FileChannel.open(Path.of(words[0]))) {
      ByteBuffer image = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
      try (Program mapped = Program.open(image)) {
        testProgram(mapped);
      }
      image.position(4);
      refuses("argument", "aligned", () -> Program.open(image));
      image.position(0).limit(image.capacity() - 64);
      refuses("format", "cut short", () -> Program.open(image));
    }
    refuses("target", "no code for this processor", () -> Program.open(words[1]));
    refuses("io", "none.ortc", () -> Program.open("none.ortc"));
    System.out.println("passed");
  }
}
