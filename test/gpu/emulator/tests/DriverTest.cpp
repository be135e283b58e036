// The driver's interface: contexts, memory, streams, graphs, events.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <dlfcn.h>
#include <thread>

#include "test/gpu/emulator/tests/Emulator.h"

namespace ortc::emulator::test {
namespace {

class DriverTest : public EmulatorTest {
protected:
  /// Adds a number to every element of an array.
  ortc_cu_kernel adder() {
    return kernel(makeKernel({"b64", "b32"}, "mad.wide.u32 %rd1, %i, 4, %a0; ld.global.b32 %r1, [%rd1]; "
                                             "add.u32 %r1, %r1, %a1; st.global.b32 [%rd1], %r1;"));
  }
};

TEST_F(DriverTest, CallsNeedAContext) {
  ortc_cu_pointer memory;
  open();
  ASSERT_EQ(driver.cuCtxSetCurrent(nullptr), ORTC_CU_SUCCESS);
  EXPECT_EQ(driver.cuMemAlloc_v2(&memory, 16), ORTC_CU_INVALID_CONTEXT);
  ortc_cu_context context;
  ASSERT_EQ(driver.cuDevicePrimaryCtxRetain(&context, 0), ORTC_CU_SUCCESS);
  ASSERT_EQ(driver.cuCtxSetCurrent(context), ORTC_CU_SUCCESS);
  ASSERT_EQ(driver.cuDevicePrimaryCtxRelease_v2(0), ORTC_CU_SUCCESS);
  EXPECT_NE(allocate(16), 0u);
  ortc_cu_result elsewhere = ORTC_CU_SUCCESS; // every thread has a current context of its own
  std::thread([&] { elsewhere = driver.cuMemAlloc_v2(&memory, 16); }).join();
  EXPECT_EQ(elsewhere, ORTC_CU_INVALID_CONTEXT);
  close();
  EXPECT_EQ(driver.cuMemAlloc_v2(&memory, 16), ORTC_CU_INVALID_CONTEXT);
}

TEST_F(DriverTest, TellsAboutItself) {
  set("SM", "90");
  set("MEMORY", "1000000");
  set("DRIVER", "12040");
  open();
  int value = 0;
  EXPECT_EQ(driver.cuDriverGetVersion(&value), ORTC_CU_SUCCESS);
  EXPECT_EQ(value, 12040);
  EXPECT_EQ(driver.cuDeviceGetCount(&value), ORTC_CU_SUCCESS);
  EXPECT_EQ(value, 1);
  ortc_cu_device device = 5;
  EXPECT_EQ(driver.cuDeviceGet(&device, 0), ORTC_CU_SUCCESS);
  EXPECT_EQ(driver.cuDeviceGet(&device, 1), ORTC_CU_INVALID_DEVICE);
  char name[32];
  EXPECT_EQ(driver.cuDeviceGetName(name, sizeof name, device), ORTC_CU_SUCCESS);
  EXPECT_STREQ(name, "ortc emulator sm_90");
  auto attribute = [&](int which) {
    EXPECT_EQ(driver.cuDeviceGetAttribute(&value, which, device), ORTC_CU_SUCCESS);
    return value;
  };
  EXPECT_EQ(attribute(ORTC_CU_COMPUTE_CAPABILITY_MAJOR), 9);
  EXPECT_EQ(attribute(ORTC_CU_COMPUTE_CAPABILITY_MINOR), 0);
  EXPECT_EQ(attribute(ORTC_CU_WARP_SIZE), 32);
  EXPECT_EQ(attribute(ORTC_CU_MAX_SHARED_MEMORY_PER_BLOCK), 48 << 10);
  EXPECT_EQ(attribute(ORTC_CU_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN), 227 << 10);
  EXPECT_EQ(driver.cuDeviceGetAttribute(&value, 100000, device), ORTC_CU_INVALID_VALUE);
  size_t bytes = 0, unused = 0;
  EXPECT_EQ(driver.cuDeviceTotalMem_v2(&bytes, device), ORTC_CU_SUCCESS);
  EXPECT_EQ(bytes, 1000000u);
  allocate(1024);
  EXPECT_EQ(driver.cuMemGetInfo_v2(&unused, &bytes), ORTC_CU_SUCCESS);
  EXPECT_EQ(unused, bytes - 1024);
  const char *text = nullptr;
  EXPECT_EQ(driver.cuGetErrorName(ORTC_CU_ILLEGAL_ADDRESS, &text), ORTC_CU_SUCCESS);
  EXPECT_STREQ(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_EQ(driver.cuGetErrorString(ORTC_CU_OUT_OF_MEMORY, &text), ORTC_CU_SUCCESS);
  EXPECT_STREQ(text, "out of memory");
}

TEST_F(DriverTest, KnowsWhosePointersAre) {
  ortc_cu_pointer memory = allocate(64);
  void *pinned = nullptr;
  ASSERT_EQ(driver.cuMemAllocHost_v2(&pinned, 64), ORTC_CU_SUCCESS);
  auto ask = [&](ortc_cu_pointer pointer) {
    int attribute = ORTC_CU_POINTER_MEMORY_TYPE;
    unsigned type = ~0u;
    void *value = &type;
    EXPECT_EQ(driver.cuPointerGetAttributes(1, &attribute, &value, pointer), ORTC_CU_SUCCESS);
    return type;
  };
  EXPECT_EQ(ask(memory + 63), unsigned(ORTC_CU_MEMORY_DEVICE));
  EXPECT_EQ(ask(reinterpret_cast<ortc_cu_pointer>(pinned)), unsigned(ORTC_CU_MEMORY_HOST));
  EXPECT_EQ(ask(memory + 64), 0u);
  EXPECT_EQ(ask(reinterpret_cast<ortc_cu_pointer>(&memory)), 0u);
  int unknown = 100000;
  void *value = &unknown;
  EXPECT_EQ(driver.cuPointerGetAttributes(1, &unknown, &value, memory), ORTC_CU_INVALID_VALUE);
  ASSERT_EQ(driver.cuMemFreeHost(pinned), ORTC_CU_SUCCESS);
  EXPECT_EQ(driver.cuMemFreeHost(pinned), ORTC_CU_INVALID_VALUE);
}

TEST_F(DriverTest, MemoryEnds) {
  set("MEMORY", "1048576");
  open();
  ortc_cu_pointer a = 0, b = 0;
  ASSERT_EQ(driver.cuMemAlloc_v2(&a, 1 << 19), ORTC_CU_SUCCESS);
  EXPECT_EQ(a % 256, 0u);
  EXPECT_EQ(driver.cuMemAlloc_v2(&b, (1 << 19) + 1), ORTC_CU_OUT_OF_MEMORY);
  ASSERT_EQ(driver.cuMemAlloc_v2(&b, 1 << 19), ORTC_CU_SUCCESS);
  ASSERT_EQ(driver.cuMemFree_v2(a), ORTC_CU_SUCCESS);
  EXPECT_EQ(driver.cuMemFree_v2(a), ORTC_CU_INVALID_VALUE);
  EXPECT_EQ(driver.cuMemFree_v2(b + 512), ORTC_CU_INVALID_VALUE);
  for (int k = 0; k < 5000; ++k) { // addresses are used again in the end
    ASSERT_EQ(driver.cuMemAlloc_v2(&a, 400000), ORTC_CU_SUCCESS) << k;
    ASSERT_EQ(driver.cuMemFree_v2(a), ORTC_CU_SUCCESS);
  }
  ASSERT_EQ(driver.cuMemFree_v2(b), ORTC_CU_SUCCESS);
}

TEST_F(DriverTest, CopiesAndFillsKnowTheirBounds) {
  ortc_cu_pointer memory = allocate(64);
  std::vector<uint8_t> host(128);
  testing::internal::CaptureStderr();
  EXPECT_EQ(driver.cuMemcpyHtoDAsync_v2(memory + 8, host.data(), 57, stream), ORTC_CU_INVALID_VALUE);
  EXPECT_EQ(driver.cuMemcpyDtoHAsync_v2(host.data(), memory - 1, 8, stream), ORTC_CU_INVALID_VALUE);
  EXPECT_EQ(driver.cuMemsetD32Async(memory, 0, 17, stream), ORTC_CU_INVALID_VALUE);
  EXPECT_EQ(driver.cuMemsetD32Async(memory + 2, 0, 1, stream), ORTC_CU_INVALID_VALUE);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("out of bounds"), std::string::npos);
  EXPECT_EQ(driver.cuMemsetD8Async(memory, 0xab, 64, stream), ORTC_CU_SUCCESS);
  EXPECT_EQ(download<uint8_t>(memory, 64), std::vector<uint8_t>(64, 0xab));
}

TEST_F(DriverTest, CopiesRectangles) {
  std::vector<uint8_t> in(10 * 8);
  for (size_t k = 0; k < in.size(); ++k)
    in[k] = uint8_t(k);
  ortc_cu_pointer memory = allocate(6 * 5);
  ASSERT_EQ(driver.cuMemsetD8Async(memory, 0, 30, stream), ORTC_CU_SUCCESS);
  ortc_cu_memcpy2d copy = {};
  copy.src_type = ORTC_CU_MEMORY_HOST;
  copy.src_host = in.data();
  copy.src_pitch = 10;
  copy.src_x = 3;
  copy.src_y = 2;
  copy.dst_type = ORTC_CU_MEMORY_DEVICE;
  copy.dst_device = memory;
  copy.dst_pitch = 6;
  copy.dst_x = 1;
  copy.width = 4;
  copy.height = 5;
  ASSERT_EQ(driver.cuMemcpy2DAsync_v2(&copy, stream), ORTC_CU_SUCCESS);
  std::vector<uint8_t> out = download<uint8_t>(memory, 30);
  for (unsigned y = 0; y < 5; ++y)
    for (unsigned x = 0; x < 6; ++x)
      EXPECT_EQ(out[y * 6 + x], x >= 1 && x < 5 ? in[(y + 2) * 10 + x + 2] : 0);
  copy.src_pitch = 5;
  EXPECT_EQ(driver.cuMemcpy2DAsync_v2(&copy, stream), ORTC_CU_INVALID_VALUE);
}

TEST_F(DriverTest, GraphsReplayWhatWasCaptured) {
  ortc_cu_kernel k = adder();
  std::vector<uint32_t> host(64, 5), back(64);
  ortc_cu_pointer memory = allocate(256), other = allocate(256);
  ASSERT_EQ(driver.cuStreamBeginCapture_v2(stream, ORTC_CU_CAPTURE_THREAD_LOCAL), ORTC_CU_SUCCESS);
  uint32_t amount = 10;
  ASSERT_EQ(driver.cuMemcpyHtoDAsync_v2(memory, host.data(), 256, stream), ORTC_CU_SUCCESS);
  void *params[] = {&memory, &amount};
  ASSERT_EQ(driver.cuLaunchKernel(k, 2, 1, 1, 32, 1, 1, 0, stream, params, nullptr), ORTC_CU_SUCCESS);
  amount = 99; // parameters are those of the call
  ASSERT_EQ(driver.cuMemcpyDtoDAsync_v2(other, memory, 256, stream), ORTC_CU_SUCCESS);
  ASSERT_EQ(driver.cuMemsetD32Async(other, 7, 2, stream), ORTC_CU_SUCCESS);
  ASSERT_EQ(driver.cuMemcpyDtoHAsync_v2(back.data(), other, 256, stream), ORTC_CU_SUCCESS);
  ortc_cu_graph graph = nullptr;
  ASSERT_EQ(driver.cuStreamEndCapture(stream, &graph), ORTC_CU_SUCCESS);
  EXPECT_EQ(back[5], 0u); // nothing ran
  ortc_cu_graph_exec exec = nullptr;
  ASSERT_EQ(driver.cuGraphInstantiateWithFlags(&exec, graph, 0), ORTC_CU_SUCCESS);
  ASSERT_EQ(driver.cuGraphDestroy(graph), ORTC_CU_SUCCESS);
  for (uint32_t value : {5u, 1000u}) { // memory is that of the replay
    host.assign(64, value);
    ASSERT_EQ(driver.cuGraphLaunch(exec, stream), ORTC_CU_SUCCESS);
    ASSERT_EQ(driver.cuStreamSynchronize(stream), ORTC_CU_SUCCESS);
    for (uint32_t i = 0; i < 64; ++i)
      ASSERT_EQ(back[i], i < 2 ? 7 : value + 10);
  }
  ASSERT_EQ(driver.cuGraphExecDestroy(exec), ORTC_CU_SUCCESS);
  EXPECT_EQ(driver.cuGraphLaunch(exec, stream), ORTC_CU_INVALID_HANDLE);
}

TEST_F(DriverTest, GraphsAreBuiltByHand) {
  ortc_cu_kernel k = adder();
  ortc_cu_pointer memory = upload(std::vector<uint32_t>(32, 1));
  ortc_cu_graph graph;
  ASSERT_EQ(driver.cuGraphCreate(&graph, 0), ORTC_CU_SUCCESS);
  uint32_t amount = 20;
  void *params[] = {&memory, &amount};
  ortc_cu_kernel_node node = {k, 1, 1, 1, 32, 1, 1, 0, params, nullptr, nullptr, nullptr};
  ortc_cu_graph_node first, second;
  ASSERT_EQ(driver.cuGraphAddKernelNode_v2(&first, graph, nullptr, 0, &node), ORTC_CU_SUCCESS);
  amount = 300;
  ASSERT_EQ(driver.cuGraphAddKernelNode_v2(&second, graph, &first, 1, &node), ORTC_CU_SUCCESS);
  ortc_cu_graph_exec exec;
  ASSERT_EQ(driver.cuGraphInstantiateWithFlags(&exec, graph, 0), ORTC_CU_SUCCESS);
  ASSERT_EQ(driver.cuGraphLaunch(exec, stream), ORTC_CU_SUCCESS);
  EXPECT_EQ(download<uint32_t>(memory, 32), std::vector<uint32_t>(32, 321));
}

TEST_F(DriverTest, CapturesForbidWhatTheDriverForbids) {
  open();
  ortc_cu_pointer memory;
  ortc_cu_graph graph;
  EXPECT_EQ(driver.cuStreamBeginCapture_v2(nullptr, ORTC_CU_CAPTURE_GLOBAL),
            ORTC_CU_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(driver.cuStreamEndCapture(stream, &graph), ORTC_CU_STREAM_CAPTURE_UNMATCHED);
  ASSERT_EQ(driver.cuStreamBeginCapture_v2(stream, ORTC_CU_CAPTURE_THREAD_LOCAL), ORTC_CU_SUCCESS);
  EXPECT_EQ(driver.cuMemAlloc_v2(&memory, 16), ORTC_CU_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(driver.cuMemsetD8Async(1, 0, 0, nullptr), ORTC_CU_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(driver.cuStreamSynchronize(stream), ORTC_CU_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(driver.cuStreamEndCapture(stream, &graph), ORTC_CU_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(driver.cuStreamSynchronize(stream), ORTC_CU_SUCCESS);
}

TEST_F(DriverTest, LazyStreamsWorkWhenSomebodyWaits) {
  set("LAZY", "1");
  ortc_cu_kernel k = adder();
  ortc_cu_pointer memory = allocate(128);
  void *pinned = nullptr;
  ASSERT_EQ(driver.cuMemAllocHost_v2(&pinned, 128), ORTC_CU_SUCCESS);
  uint32_t *host = static_cast<uint32_t *>(pinned);
  std::vector<uint32_t> pageable(32, 1);
  ASSERT_EQ(driver.cuMemcpyHtoDAsync_v2(memory, pageable.data(), 128, stream), ORTC_CU_SUCCESS);
  pageable.assign(32, 77); // was taken when the copy was called
  run(k, 1, 32, {memory, 4});
  host[0] = 0;
  ASSERT_EQ(driver.cuMemcpyDtoHAsync_v2(host, memory, 128, stream), ORTC_CU_SUCCESS);
  EXPECT_EQ(host[0], 0u); // too early
  ASSERT_EQ(driver.cuStreamSynchronize(stream), ORTC_CU_SUCCESS);
  EXPECT_EQ(host[0], 5u);
  // Errors come when one waits, as on a GPU.
  run(k, 2, 32, {memory, 4});
  testing::internal::CaptureStderr();
  EXPECT_EQ(driver.cuStreamSynchronize(stream), ORTC_CU_ILLEGAL_ADDRESS);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("out of bounds"), std::string::npos);
}

TEST_F(DriverTest, Events) {
  ortc_cu_kernel k = adder();
  ortc_cu_pointer memory = upload(std::vector<uint32_t>(32, 1));
  ortc_cu_event start, end;
  ASSERT_EQ(driver.cuEventCreate(&start, 0), ORTC_CU_SUCCESS);
  ASSERT_EQ(driver.cuEventCreate(&end, 0), ORTC_CU_SUCCESS);
  float milliseconds = -1;
  EXPECT_EQ(driver.cuEventElapsedTime(&milliseconds, start, end), ORTC_CU_INVALID_HANDLE);
  ASSERT_EQ(driver.cuEventRecord(start, stream), ORTC_CU_SUCCESS);
  run(k, 1, 32, {memory, 4});
  ASSERT_EQ(driver.cuEventRecord(end, stream), ORTC_CU_SUCCESS);
  ASSERT_EQ(driver.cuStreamWaitEvent(nullptr, end, 0), ORTC_CU_SUCCESS);
  ASSERT_EQ(driver.cuEventSynchronize(end), ORTC_CU_SUCCESS);
  ASSERT_EQ(driver.cuEventElapsedTime(&milliseconds, start, end), ORTC_CU_SUCCESS);
  EXPECT_GE(milliseconds, 0);
  ASSERT_EQ(driver.cuEventDestroy_v2(start), ORTC_CU_SUCCESS);
  EXPECT_EQ(driver.cuEventRecord(start, stream), ORTC_CU_INVALID_HANDLE);
}

TEST_F(DriverTest, SharedMemoryBeyondTheUsual) {
  std::string ptx =
      makeKernel({"b64"},
                 "mov.b32 %r1, s; mad.lo.u32 %r1, %tid, 4096, %r1; st.shared.b32 [%r1], %tid; bar.sync 0; "
                 "mov.u32 %r3, %dynamic_smem_size; ld.shared.b32 %r2, [%r1]; add.u32 %r2, %r2, %r3;"
                 "mad.wide.u32 %rd1, %tid, 4, %a0; st.global.b32 [%rd1], %r2;",
                 ".extern .shared .align 16 .b8 s[];");
  ortc_cu_kernel k = kernel(ptx);
  ortc_cu_pointer out = allocate(128);
  const unsigned bytes = 32 * 4096;
  fail(ORTC_CU_INVALID_VALUE, k, 1, 32, {out}, bytes);
  EXPECT_EQ(driver.cuFuncSetAttribute(k, ORTC_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 164 << 10),
            ORTC_CU_INVALID_VALUE);
  ASSERT_EQ(driver.cuFuncSetAttribute(k, ORTC_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, int(bytes)),
            ORTC_CU_SUCCESS);
  int value = 0;
  ASSERT_EQ(driver.cuFuncGetAttribute(&value, ORTC_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, k),
            ORTC_CU_SUCCESS);
  EXPECT_EQ(value, int(bytes));
  run(k, 1, 32, {out}, bytes);
  EXPECT_EQ(download<uint32_t>(out, 32)[9], bytes + 9);
  EXPECT_NE(fail(ORTC_CU_ILLEGAL_ADDRESS, k, 1, 32, {out}, bytes - 4096).find("lane 31"), std::string::npos);
}

TEST_F(DriverTest, HostsCannotFollowDeviceAddresses) {
  ortc_cu_pointer memory = allocate(64);
  EXPECT_DEATH({ *reinterpret_cast<volatile char *>(memory) = 1; }, "");
}

TEST_F(DriverTest, ShowsItsFunctionsOnly) {
  void *library = dlopen(ORTC_EMULATOR_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  EXPECT_NE(dlsym(library, "cuMemAlloc_v2"), nullptr);
  EXPECT_EQ(dlsym(library, "cuMemAlloc"), nullptr);
  EXPECT_EQ(dlsym(library, "_ZN4ortc8emulator8laneCodeEv"), nullptr);
  dlclose(library);
}

} // namespace
} // namespace ortc::emulator::test
