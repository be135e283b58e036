// Headers and ORTC_INIT in C++ and C; compiled with every warning as an error.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "ortc/cuda.h"
#include "ortc/device.h"
#include "ortc/ortc.h"
#include "ortc/slots.h"
#include "ortc/verify.h"

extern "C" uint32_t ortc_test_init_in_c(void);

namespace {

TEST(InitTest, SetsTheSizeAndNothingElse) {
  ortc_session_options options = ORTC_INIT(ortc_session_options);
  EXPECT_EQ(options.size, sizeof options);
  EXPECT_EQ(options.workers, 0u);
  EXPECT_EQ(options.persistent, nullptr);
  EXPECT_EQ(ORTC_INIT(ortc_program_info).size, sizeof(ortc_program_info));
  EXPECT_EQ(ortc_test_init_in_c(), 1u);
}

} // namespace
