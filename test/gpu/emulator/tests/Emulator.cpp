// Loads the driver and runs kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/tests/Emulator.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <sstream>

namespace ortc::emulator::test {

const Driver &Driver::get() {
  static const Driver driver = [] {
    Driver loaded;
    void *library = dlopen(ORTC_EMULATOR_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      ADD_FAILURE() << dlerror();
      std::abort();
    }
#define ORTC_FIND(symbol, parameters)                                                                        \
  loaded.symbol = reinterpret_cast<decltype(loaded.symbol)>(dlsym(library, #symbol));
    ORTC_CU_FUNCTIONS(ORTC_FIND)
#undef ORTC_FIND
    return loaded;
  }();
  return driver;
}

EmulatorTest::EmulatorTest() : driver(Driver::get()) {}
EmulatorTest::~EmulatorTest() {
  close();
  for (const std::string &name : variables)
    unsetenv(name.c_str());
}

void EmulatorTest::set(const char *name, const std::string &value) {
  std::string variable = std::string("ORTC_EMULATOR_") + name;
  setenv(variable.c_str(), value.c_str(), 1);
  variables.push_back(variable);
}

void EmulatorTest::open() {
  if (isOpen)
    return;
  isOpen = true;
  ortc_cu_context context = nullptr;
  ASSERT_EQ(driver.cuInit(0), ORTC_CU_SUCCESS);
  ASSERT_EQ(driver.cuDevicePrimaryCtxRetain(&context, 0), ORTC_CU_SUCCESS);
  ASSERT_EQ(driver.cuCtxSetCurrent(context), ORTC_CU_SUCCESS);
  ASSERT_EQ(driver.cuStreamCreate(&stream, ORTC_CU_STREAM_NON_BLOCKING), ORTC_CU_SUCCESS);
}

void EmulatorTest::close(bool releasesMemory) {
  if (!isOpen)
    return;
  isOpen = false;
  if (releasesMemory) // fails where a kernel did; the context then takes everything with it
    for (ortc_cu_pointer memory : memories)
      driver.cuMemFree_v2(memory);
  memories.clear();
  modules.clear();
  testing::internal::CaptureStderr();
  driver.cuDevicePrimaryCtxRelease_v2(0);
  std::string said = testing::internal::GetCapturedStderr();
  if (releasesMemory && said.find("leak") == said.npos)
    std::fputs(said.c_str(), stderr);
}

ortc_cu_pointer EmulatorTest::allocate(size_t bytes) {
  open();
  ortc_cu_pointer memory = 0;
  EXPECT_EQ(driver.cuMemAlloc_v2(&memory, bytes), ORTC_CU_SUCCESS);
  memories.push_back(memory);
  return memory;
}

ortc_cu_result EmulatorTest::load(const std::string &ptx, ortc_cu_module *module, std::string *log) {
  open();
  char buffer[512] = {};
  int options[] = {ORTC_CU_JIT_ERROR_LOG_BUFFER, ORTC_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {buffer, reinterpret_cast<void *>(sizeof buffer)};
  ortc_cu_result result = driver.cuModuleLoadDataEx(module, ptx.c_str(), 2, options, values);
  if (log)
    *log = buffer;
  return result;
}

ortc_cu_kernel EmulatorTest::kernel(const std::string &ptx, const char *name) {
  ortc_cu_module module = nullptr;
  ortc_cu_kernel found = nullptr;
  std::string log;
  EXPECT_EQ(load(ptx, &module, &log), ORTC_CU_SUCCESS) << log << "\n" << ptx;
  if (module) {
    EXPECT_EQ(driver.cuModuleGetFunction(&found, module, name), ORTC_CU_SUCCESS);
  }
  return found;
}

ortc_cu_result EmulatorTest::launch(ortc_cu_kernel kernel, Dimensions grid, Dimensions block,
                                    std::initializer_list<Argument> arguments, unsigned sharedBytes) {
  std::vector<Argument> values(arguments);
  std::vector<void *> pointers;
  for (Argument &value : values)
    pointers.push_back(value.data);
  pointers.push_back(nullptr);
  return driver.cuLaunchKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z, sharedBytes, stream,
                               pointers.data(), nullptr);
}

std::string EmulatorTest::fail(ortc_cu_result expected, ortc_cu_kernel kernel, Dimensions grid,
                               Dimensions block, std::initializer_list<Argument> arguments,
                               unsigned sharedBytes) {
  testing::internal::CaptureStderr();
  ortc_cu_result result = launch(kernel, grid, block, arguments, sharedBytes);
  std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(result, expected) << said;
  return said;
}

const char kHead[] = ".version 7.0\n.target sm_80\n.address_size 64\n";

std::string makeKernel(std::initializer_list<const char *> types, const std::string &body,
                       const std::string &declarations) {
  std::ostringstream text;
  text << kHead << declarations << "\n.visible .entry k(";
  size_t n = 0;
  for (const char *type : types)
    text << (n ? ", " : "") << ".param ." << type << " a" << n, ++n;
  text << ") {\n.reg .pred %p<40>;\n.reg .b16 %h<40>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<40>;\n.reg .f32 "
          "%f<40>;\n"
       << ".reg .f64 %d<40>;\n.reg .b32 %tid, %i;\n";
  n = 0;
  for (const char *type : types) {
    text << ".reg ." << type << " %a" << n << ";\nld.param." << type << " %a" << n << ", [a" << n << "];\n";
    ++n;
  }
  text << "mov.u32 %tid, %tid.x;\nmov.u32 %i, %ctaid.x;\n{ .reg .b32 %n; mov.u32 %n, %ntid.x; mad.lo.s32 %i, "
          "%i, %n, %tid; }\n"
       << body << "\nret;\n}\n";
  return text.str();
}

std::string readPtx(const char *name) {
  std::ifstream file(std::string(ORTC_EMULATOR_TESTS) + "/" + name);
  EXPECT_TRUE(file) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

} // namespace ortc::emulator::test
