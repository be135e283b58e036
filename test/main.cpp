// The main function of test programs: what was skipped shows in the exit status.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdio>
#include <gtest/gtest.h>

/// What ctest takes for "skipped" (SKIP_RETURN_CODE).
static constexpr int kSkipped = 77;

int main(int count, char **arguments) {
  testing::InitGoogleTest(&count, arguments);
  const testing::UnitTest &all = *testing::UnitTest::GetInstance();
  int status = RUN_ALL_TESTS();
  if (testing::GTEST_FLAG(list_tests))
    return status;
  if (all.test_to_run_count() == 0) {
    std::fputs("no test matches the filter\n", stderr);
    return 1;
  }
  return status == 0 && all.skipped_test_count() > 0 ? kSkipped : status;
}
