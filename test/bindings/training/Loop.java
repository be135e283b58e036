// A training with a schedule and metrics, in Java, for compare-runs.py.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// usage: java Loop MODEL.ortc STEPS EVERY LR SCHEDULE METRIC:max|min ROWS [--input NAME=FILE]... METRIC...
//        java Loop refuse MODEL.ortc [schedule|metric TEXT]...
// An evaluation takes the first ROWS samples. Says a line a step and an evaluation.
import dev.ortc.EntryInfo;
import dev.ortc.Metrics;
import dev.ortc.OrtcException;
import dev.ortc.Program;
import dev.ortc.Schedule;
import dev.ortc.Session;
import dev.ortc.TensorInfo;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

final class Loop {
  private final Map<String, byte[]> inputs = new HashMap<>();
  private final List<TensorInfo> values;
  private final int batch;

  private Loop(Program program) {
    values = program.entries().stream().filter(entry -> entry.role == EntryInfo.TRAIN).findFirst().get().values.stream()
        .filter(value -> value.role == TensorInfo.INPUT).collect(Collectors.toList());
    batch = (int) values.get(0).shape()[0];
  }

  private int samples() {
    return (int) (inputs.get(values.get(0).name).length / values.get(0).bytes * batch);
  }

  /** A batch from a sample on; after the last of `count` others begin anew. */
  private void feed(Session session, int first, int count) {
    for (TensorInfo value : values) {
      int size = (int) value.bytes / batch;
      ByteBuffer copy = ByteBuffer.allocateDirect((int) value.bytes);
      for (int i = 0; i < batch; i++)
        copy.put(inputs.get(value.name), (first + i) % count * size, size);
      session.write(value.name, copy.flip());
    }
  }

  private static void refuse(Program program, String kind, String text) {
    try {
      (kind.equals("schedule") ? new Schedule(text, 0.01, 12) : new Metrics(program, text)).close();
      System.out.println("nothing was refused");
    } catch (OrtcException error) {
      System.out.println(error.statusName() + "\t" + error.getMessage());
    } catch (Exception error) {
      System.out.println(error);
    }
  }

  public static void main(String[] words) throws Exception {
    if (words[0].equals("refuse")) {
      try (Program program = Program.open(words[1])) {
        for (int i = 2; i < words.length; i += 2)
          refuse(program, words[i], words[i + 1]);
      }
      return;
    }
    int steps = Integer.parseInt(words[1]), every = Integer.parseInt(words[2]), rows = Integer.parseInt(words[6]), next = 7;
    String[] goal = words[5].split(":");
    try (Program program = Program.open(words[0]); Session session = program.createSession();
         Schedule schedule = new Schedule(words[4], Double.parseDouble(words[3]), steps)) {
      Loop loop = new Loop(program);
      for (; words[next].equals("--input"); next += 2) {
        String[] pair = words[next + 1].split("=", 2);
        loop.inputs.put(pair[0], Files.readAllBytes(Path.of(pair[1])));
      }
      String[] names = Arrays.copyOfRange(words, next, words.length);
      try (Metrics metrics = new Metrics(program, names)) {
        for (int step = 0; step < steps; step++) {
          double rate = schedule.rate(step);
          session.setScalar("lr", rate);
          loop.feed(session, step % (loop.samples() / loop.batch) * loop.batch, loop.samples());
          System.out.println("step\t" + session.trainStep() + "\t" + rate);
          if ((step + 1) % every != 0)
            continue;
          metrics.begin();
          for (int first = 0; first < rows; first += loop.batch) {
            loop.feed(session, first, rows);
            session.evalStep();
            if (first + loop.batch <= rows)
              metrics.add(session);
            else
              metrics.add(session, rows - first);
          }
          Map<String, Double> found = metrics.compute();
          schedule.follow(found.get(goal[0]), goal[1].equals("max"));
          System.out.println("eval\t" + Arrays.stream(names).map(name -> "" + found.get(name)).collect(Collectors.joining("\t")));
        }
      }
    }
  }
}
