// Runs one artifact through the Java classes and says what came of it, as gpu-run does.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// usage: java Run MODEL.ortc THREADS [--input NAME=FILE]... ACTION...; actions are steps N and save FILE
import dev.ortc.EntryInfo;
import dev.ortc.Program;
import dev.ortc.Session;
import dev.ortc.TensorInfo;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

final class Run {
  private final Map<String, ByteBuffer> inputs = new HashMap<>();
  private final Map<String, Integer> sizes = new HashMap<>();
  private int slice = 0;

  private void feed(Session session) {
    for (Map.Entry<String, ByteBuffer> input : inputs.entrySet()) {
      int size = sizes.get(input.getKey());
      ByteBuffer data = input.getValue();
      int at = slice % (data.capacity() / size) * size;
      data.limit(at + size).position(at);
      // In turns, which must make no difference.
      if (slice % 2 == 0)
        session.write(input.getKey(), data);
      else
        session.bind(input.getKey(), data);
    }
    slice++;
  }

  public static void main(String[] words) throws Exception {
    Run run = new Run();
    int next = 2;
    for (; words[next].equals("--input"); next += 2) {
      String[] pair = words[next + 1].split("=", 2);
      byte[] bytes = Files.readAllBytes(Path.of(pair[1]));
      run.inputs.put(pair[0], ByteBuffer.allocateDirect(bytes.length).put(bytes));
    }
    StringBuilder losses = new StringBuilder();
    try (Program program = Program.open(words[0]);
         Session session = program.createSession(Integer.parseInt(words[1]), false)) {
      for (EntryInfo entry : program.entries())
        for (TensorInfo value : entry.values)
          if (value.role == TensorInfo.INPUT)
            run.sizes.put(value.name, (int) value.bytes);
      for (; next < words.length; next += 2) {
        if (words[next].equals("save"))
          session.save(words[next + 1]);
        else
          for (int i = Integer.parseInt(words[next + 1]); i > 0; i--) {
            run.feed(session);
            losses.append(losses.length() > 0 ? ", " : "").append(session.trainStep());
          }
      }
      System.out.println("{\"target\": \"" + program.target() + "\", \"losses\": [" + losses + "]}");
    }
  }
}
