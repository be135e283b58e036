// The emulated driver as tests call it: loaded as a library, with short ways to run a kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <initializer_list>
#include <string>
#include <vector>

#include "test/gpu/emulator/cuda_driver.h"

namespace ortc::emulator::test {

/// The functions of libcuda.so.1.
struct Driver {
#define ORTC_FIELD(symbol, parameters) ortc_cu_result(*symbol) parameters = nullptr;
  ORTC_CU_FUNCTIONS(ORTC_FIELD)
#undef ORTC_FIELD
  static const Driver &get();
};

/// A value of any type, as a parameter of a kernel.
struct Argument {
  template <class T> Argument(T value) : bytes(sizeof value) { std::memcpy(data, &value, sizeof value); }
  std::byte data[8] = {};
  size_t bytes;
};

struct Dimensions {
  Dimensions(unsigned x, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  unsigned x, y, z;
};

/// Every test has a context of its own, whose environment it may change before `open`.
class EmulatorTest : public testing::Test {
protected:
  EmulatorTest();
  ~EmulatorTest() override;

  /// Sets a variable ORTC_EMULATOR_<name> for this test.
  void set(const char *name, const std::string &value);
  /// Begins a context; called by whatever needs one.
  void open();
  /// Ends it; allocations are released before, unless the test is about them.
  void close(bool releasesMemory = true);

  ortc_cu_pointer allocate(size_t bytes);
  template <class T> ortc_cu_pointer upload(const std::vector<T> &values) {
    ortc_cu_pointer memory = allocate(values.size() * sizeof(T));
    EXPECT_EQ(driver.cuMemcpyHtoDAsync_v2(memory, values.data(), values.size() * sizeof(T), stream),
              ORTC_CU_SUCCESS);
    return memory;
  }
  template <class T> std::vector<T> download(ortc_cu_pointer memory, size_t count) {
    std::vector<T> values(count);
    EXPECT_EQ(driver.cuMemcpyDtoHAsync_v2(values.data(), memory, count * sizeof(T), stream), ORTC_CU_SUCCESS);
    EXPECT_EQ(driver.cuStreamSynchronize(stream), ORTC_CU_SUCCESS);
    return values;
  }

  /// Loads PTX; `log` becomes what the driver says about it.
  ortc_cu_result load(const std::string &ptx, ortc_cu_module *module, std::string *log = nullptr);
  /// The kernel `name` of a module that must be a good one.
  ortc_cu_kernel kernel(const std::string &ptx, const char *name = "k");
  ortc_cu_result launch(ortc_cu_kernel kernel, Dimensions grid, Dimensions block,
                        std::initializer_list<Argument> arguments, unsigned sharedBytes = 0);
  void run(ortc_cu_kernel kernel, Dimensions grid, Dimensions block,
           std::initializer_list<Argument> arguments, unsigned sharedBytes = 0) {
    EXPECT_EQ(launch(kernel, grid, block, arguments, sharedBytes), ORTC_CU_SUCCESS);
  }
  /// Launches what must fail so; the line that is printed.
  std::string fail(ortc_cu_result expected, ortc_cu_kernel kernel, Dimensions grid, Dimensions block,
                   std::initializer_list<Argument> arguments, unsigned sharedBytes = 0);

  const Driver &driver;
  ortc_cu_stream stream = nullptr;

private:
  bool isOpen = false;
  std::vector<ortc_cu_pointer> memories;
  std::vector<ortc_cu_module> modules;
  std::vector<std::string> variables;
};

/// The head of a module, for sm_80.
extern const char kHead[];
/// A kernel `k` with parameters %a0, %a1, ... of the types, %tid (b32), %i: the number of the thread in the
/// grid (b32), registers %r %rd %f %d %h %p up to 40, and declarations in front of the body.
std::string makeKernel(std::initializer_list<const char *> types, const std::string &body,
                       const std::string &declarations = "");
/// A file beside the tests.
std::string readPtx(const char *name);

} // namespace ortc::emulator::test
