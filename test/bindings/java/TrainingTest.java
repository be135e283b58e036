// Schedule and Metrics of the Java classes by themselves: states, rows, errors, lifetimes. test/bindings/training compares their numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// usage: java TrainingTest MODEL.ortc: an artifact of mlp-digits
import dev.ortc.Metrics;
import dev.ortc.OrtcException;
import dev.ortc.Program;
import dev.ortc.Schedule;
import dev.ortc.Session;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Map;

final class TrainingTest {
  private static void check(boolean isGood, String what) {
    if (!isGood)
      throw new AssertionError(what);
  }

  /** The action throws an exception of this type, with this in its text. */
  private static void fails(Class<? extends RuntimeException> type, String text, Runnable action) {
    try {
      action.run();
    } catch (RuntimeException error) {
      check(type.isInstance(error) && error.getMessage().contains(text), "another exception: " + error);
      return;
    }
    throw new AssertionError("nothing was thrown, not even: " + text);
  }

  private static void refuses(String text, Runnable action) {
    fails(OrtcException.class, text, action);
  }

  private static void testSchedule() {
    Schedule plateau = new Schedule("plateau:patience=0,factor=0.5", 0.5, 0);
    plateau.follow(2, false);
    check(plateau.rate(100) == 0.5, "best");
    plateau.follow(2, false);
    check(plateau.rate(100) == 0.25, "fallen");
    try (Schedule resumed = new Schedule("plateau:patience=0,factor=0.5", plateau.rate(0), 0)) {
      resumed.restore(plateau.state());
      resumed.follow(1, false);
      check(resumed.rate(0) == 0.25, "better than before");
      resumed.follow(2, false);
      check(resumed.rate(0) == 0.125, "worse than before");
      refuses("state", () -> resumed.restore("state:bad=x"));
    }
    plateau.close();
    plateau.close();
    fails(IllegalStateException.class, "closed", () -> plateau.rate(0));
    refuses("the learning rate is nan", () -> new Schedule("constant", Double.NaN, 0));
    refuses("it needs total=N", () -> new Schedule("linear", 1, 0));
    refuses("-1 steps", () -> new Schedule("constant", 1, -1));
    refuses("'\u00e4\0'", () -> new Schedule("\u00e4\0", 1, 1));
  }

  private static void testMetrics(Program program) {
    check(program.manifest().contains("\"cross_entropy\""), "manifest");
    ByteBuffer pixels = ByteBuffer.allocateDirect(64 * 64 * 4).order(ByteOrder.nativeOrder());
    ByteBuffer labels = ByteBuffer.allocateDirect(64 * 8).order(ByteOrder.nativeOrder());
    ByteBuffer scores = ByteBuffer.allocateDirect(64 * 10 * 4).order(ByteOrder.nativeOrder());
    for (int i = 0; i < 64 * 64; i++)
      pixels.putFloat(4 * i, (i * 7 % 17) / 16f);
    Metrics metrics = new Metrics(program, "accuracy", "accuracy");
    try (Session session = program.createSession()) {
      refuses("output", () -> metrics.add(session));
      session.write("pixels", pixels);
      session.bind("label", labels);
      session.predictStep();
      session.read("output", scores);
      metrics.add(session, 0);
      check(Double.isNaN(metrics.compute().get("accuracy")), "no sample");
      for (int row = 0; row < 64; row++) {
        int best = 0;
        for (int i = 1; i < 10; i++)
          if (scores.getFloat(40 * row + 4 * i) > scores.getFloat(40 * row + 4 * best))
            best = i;
        labels.putLong(8 * row, row < 16 ? best : (best + 1) % 10);
      }
      metrics.begin();
      metrics.add(session, 20);
      check(metrics.compute().equals(Map.of("accuracy", 16.0 / 20)), "some rows: " + metrics.compute());
      metrics.add(session);
      check(metrics.compute().equals(Map.of("accuracy", 32.0 / 84)), "all rows: " + metrics.compute());
      refuses("batch of 64 samples", () -> metrics.add(session, 65));
      refuses("batch of 64 samples", () -> metrics.add(session, -1));
    }
    metrics.close();
    metrics.close();
    fails(IllegalStateException.class, "closed", metrics::compute);
    refuses("there is no metric 'nothing'", () -> new Metrics(program, "nothing"));
  }

  public static void main(String[] words) {
    testSchedule();
    try (Program program = Program.open(words[0])) {
      testMetrics(program);
    }
  }
}
