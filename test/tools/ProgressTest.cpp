// What a compilation that takes long says.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/Progress.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

using ortc::tool::Progress;
using namespace std::chrono_literals;

namespace {

/// A pipe in place of stderr.
class ProgressTest : public testing::Test {
protected:
  ProgressTest() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    from = fdopen(ends[0], "r");
    to = fdopen(ends[1], "w");
    setvbuf(to, nullptr, _IONBF, 0);
    alarm(20); // a line that never comes
  }
  ~ProgressTest() override {
    alarm(0);
    closeWriter();
    std::fclose(from);
  }
  void closeWriter() {
    if (to)
      std::fclose(to);
    to = nullptr;
  }
  /// The next line, without its number of seconds; waits for it. "" at the end.
  std::string readLine() {
    char line[200] = "";
    if (!std::fgets(line, sizeof line, from))
      return "";
    std::string text = line;
    size_t number = text.find("after "), unit = text.find(" s: ");
    EXPECT_TRUE(number < unit && unit != std::string::npos) << text;
    return text.substr(0, number) + text.substr(unit);
  }

  /// Nothing is said, not even a while later.
  bool isSilent() {
    pollfd waiting{fileno(from), POLLIN, 0};
    return poll(&waiting, 1, 200) == 0;
  }

  std::FILE *from, *to;
};

TEST_F(ProgressTest, SaysWhatIsBeingDoneAndThenWhateverBegins) {
  Progress progress(false, 0ms, to);
  progress.begin("placing the buffers");
  EXPECT_EQ(readLine(), "ortc: note:  s: placing the buffers\n");
  progress.begin("making code for native");
  EXPECT_EQ(readLine(), "ortc: note:  s: making code for native\n");
  progress.end();
  progress.begin("something else");
  closeWriter();
  EXPECT_EQ(readLine(), "") << "after the end";
}

TEST_F(ProgressTest, SaysNothingBeforeItsTime) {
  Progress progress(false, 1h, to); // whose end does not wait for the hour
  progress.begin("placing the buffers");
  EXPECT_TRUE(isSilent());
  progress.begin("making code for native");
  EXPECT_TRUE(isSilent());
}

TEST_F(ProgressTest, SaysNothingWhenQuiet) {
  Progress progress(true, 0ms, to);
  progress.begin("placing the buffers");
  EXPECT_TRUE(isSilent());
}

} // namespace
