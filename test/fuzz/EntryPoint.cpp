// Where libFuzzer calls the target of a program, ORTC_FUZZ_TARGET.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/fuzz/Target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  ortc::fuzz::ORTC_FUZZ_TARGET({data, bytes});
  return 0;
}
