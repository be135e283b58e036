// What is said at the end of a process: leaks and statistics.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdlib>

#include "test/gpu/emulator/tests/Emulator.h"

namespace ortc::emulator::test {
namespace {

class ExitTest : public EmulatorTest {
protected:
  /// Uses the device and ends the process with status 3.
  [[noreturn]] void use(bool releasesMemory, bool releasesContext) {
    ortc_cu_pointer memory = allocate(1000);
    run(kernel(makeKernel({"b64"}, "st.global.b32 [%a0], 1;")), 1, 1, {memory});
    if (releasesMemory)
      driver.cuMemFree_v2(memory);
    if (releasesContext)
      driver.cuDevicePrimaryCtxRelease_v2(0);
    std::exit(3);
  }
  const char *leak =
      "leak: 1 allocations with 1000 bytes of device memory, 0 with 0 bytes of pinned host memory";
};

using testing::ExitedWithCode;

TEST_F(ExitTest, LeaksAreSaid) {
  EXPECT_EXIT(use(false, false), ExitedWithCode(3), leak);
  EXPECT_EXIT(use(false, true), ExitedWithCode(3), leak);
  set("STATS", "1"); // nothing but these
  EXPECT_EXIT(use(true, true), ExitedWithCode(3),
              "^ortc emulator: 1024 bytes allocated at most, 1 launches, [0-9]+ lane-instructions");
}

TEST_F(ExitTest, LeaksFailWhenThatIsAskedFor) {
  set("LEAKS", "fail");
  EXPECT_EXIT(use(false, false), ExitedWithCode(99), leak);
  EXPECT_EXIT(use(false, true), ExitedWithCode(99), leak);
  EXPECT_EXIT(use(true, true), ExitedWithCode(3), "");
}

} // namespace
} // namespace ortc::emulator::test
