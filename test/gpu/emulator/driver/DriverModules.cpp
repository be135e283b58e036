// The driver's functions on modules, kernels and launches.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <cstring>

#include "test/gpu/emulator/driver/Driver.h"

using namespace ortc::emulator;

namespace {

/// The caller's buffer for errors of the compilation, if there is one.
void writeLog(unsigned count, const int *options, void **values, const std::string &text) {
  char *buffer = nullptr;
  size_t bytes = 0;
  for (unsigned k = 0; k < count; ++k) {
    if (options[k] == ORTC_CU_JIT_ERROR_LOG_BUFFER)
      buffer = static_cast<char *>(values[k]);
    if (options[k] == ORTC_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
      bytes = reinterpret_cast<uintptr_t>(values[k]) & 0xffffffffu;
  }
  size_t written = bytes ? std::min(bytes - 1, text.size()) : 0;
  if (buffer && bytes) {
    std::memcpy(buffer, text.data(), written);
    buffer[written] = '\0';
  }
  for (unsigned k = 0; k < count; ++k) // the option's value becomes how much there is
    if (options[k] == ORTC_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
      values[k] = reinterpret_cast<void *>(uintptr_t(written));
}

ortc_cu_result makeLaunch(Device &device, const ortc_cu_kernel_node &node, LaunchWork &work) {
  auto found = device.kernels.find(node.kernel);
  if (found == device.kernels.end())
    return ORTC_CU_INVALID_HANDLE;
  work = {found->second,
          {node.grid_x, node.grid_y, node.grid_z},
          {node.block_x, node.block_y, node.block_z},
          node.shared_bytes,
          {}};
  if (ortc_cu_result result = checkLaunch(*found->second, work, device.options))
    return result;
  return readParams(found->second->kernel, node.params, node.extra, work.params);
}

} // namespace

ORTC_DRIVER cuModuleLoadDataEx(ortc_cu_module *module, const void *image, unsigned count, int *options,
                               void **values) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  if (!module || !image)
    return ORTC_CU_INVALID_VALUE;
  try {
    auto loaded = loadModule(static_cast<const char *>(image), call.device.options, call.device.memory);
    writeLog(count, options, values, "");
    for (const auto &[name, kernel] : loaded->kernels)
      call.device.kernels[kernel.get()] = kernel;
    *module = loaded.get();
    call.device.modules[loaded.get()] = std::move(loaded);
    return ORTC_CU_SUCCESS;
  } catch (const LoadError &error) {
    say("module refused: %s", error.message.c_str());
    writeLog(count, options, values, error.message);
    return error.result;
  }
}

ORTC_DRIVER cuModuleUnload(ortc_cu_module module) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  auto found = call.device.modules.find(module);
  if (found == call.device.modules.end())
    return ORTC_CU_INVALID_HANDLE;
  if (ortc_cu_result result = call.device.drainAll())
    return result;
  for (const auto &[name, kernel] : found->second->kernels)
    call.device.kernels.erase(kernel.get());
  for (uint64_t address : found->second->allocations)
    call.device.memory.release(address);
  call.device.modules.erase(found);
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuModuleGetFunction(ortc_cu_kernel *kernel, ortc_cu_module module, const char *name) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  if (!kernel || !name)
    return ORTC_CU_INVALID_VALUE;
  auto found = call.device.modules.find(module);
  if (found == call.device.modules.end())
    return ORTC_CU_INVALID_HANDLE;
  auto named = found->second->kernels.find(name);
  if (named == found->second->kernels.end())
    return ORTC_CU_NOT_FOUND;
  *kernel = named->second.get();
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuFuncGetAttribute(int *value, int attribute, ortc_cu_kernel handle) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  auto found = call.device.kernels.find(handle);
  if (found == call.device.kernels.end())
    return ORTC_CU_INVALID_HANDLE;
  if (!value)
    return ORTC_CU_INVALID_VALUE;
  const Kernel &kernel = handle->kernel;
  const uint32_t threads = kernel.maxThreads[0] * kernel.maxThreads[1] * kernel.maxThreads[2];
  switch (attribute) {
  case ORTC_CU_FUNC_MAX_THREADS_PER_BLOCK:
    *value = threads ? int(threads) : 1024;
    break;
  case ORTC_CU_FUNC_SHARED_SIZE_BYTES:
    *value = int(kernel.sharedBytes);
    break;
  case ORTC_CU_FUNC_CONST_SIZE_BYTES:
    *value = 0;
    break;
  case ORTC_CU_FUNC_LOCAL_SIZE_BYTES:
    *value = int(kernel.localBytes);
    break;
  case ORTC_CU_FUNC_NUM_REGS:
    *value = 32;
    break; // only ptxas knows
  case ORTC_CU_FUNC_PTX_VERSION:
    *value = handle->ptxVersion;
    break;
  case ORTC_CU_FUNC_BINARY_VERSION:
    *value = call.device.options.capability;
    break;
  case ORTC_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *value = int(handle->mostDynamicShared);
    break;
  default:
    return ORTC_CU_INVALID_VALUE;
  }
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuFuncSetAttribute(ortc_cu_kernel handle, int attribute, int value) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  auto found = call.device.kernels.find(handle);
  if (found == call.device.kernels.end())
    return ORTC_CU_INVALID_HANDLE;
  if (attribute == ORTC_CU_FUNC_PREFERRED_SHARED_MEMORY_CARVEOUT)
    return ORTC_CU_SUCCESS;
  const uint32_t most = sharedLimit(call.device.options.capability, true) - handle->kernel.sharedBytes;
  if (attribute != ORTC_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 || uint32_t(value) > most)
    return ORTC_CU_INVALID_VALUE;
  found->second->mostDynamicShared = uint32_t(value);
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuLaunchKernel(ortc_cu_kernel kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                           unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                           ortc_cu_stream stream, void **params, void **extra) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  LaunchWork work;
  ortc_cu_kernel_node node = {kernel,  grid_x,       grid_y, grid_z, block_x, block_y,
                              block_z, shared_bytes, params, extra,  nullptr, nullptr};
  if (ortc_cu_result result = makeLaunch(call.device, node, work))
    return result;
  return call.device.enqueue(stream, std::move(work));
}

ORTC_DRIVER cuGraphCreate(ortc_cu_graph *graph, unsigned flags) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  if (!graph || flags)
    return ORTC_CU_INVALID_VALUE;
  auto made = std::make_unique<ortc_cu_graph_s>();
  *graph = made.get();
  call.device.graphs[*graph] = std::move(made);
  return ORTC_CU_SUCCESS;
}

/// Nodes run in the order in which they are added, which fits every dependency.
ORTC_DRIVER cuGraphAddKernelNode_v2(ortc_cu_graph_node *node, ortc_cu_graph graph, const ortc_cu_graph_node *,
                                    size_t, const ortc_cu_kernel_node *params) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  auto found = call.device.graphs.find(graph);
  if (found == call.device.graphs.end() || !node || !params)
    return ORTC_CU_INVALID_VALUE;
  LaunchWork work;
  if (ortc_cu_result result = makeLaunch(call.device, *params, work))
    return result;
  found->second->works.push_back(std::move(work));
  *node = reinterpret_cast<ortc_cu_graph_node>(found->second->works.size());
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuGraphInstantiateWithFlags(ortc_cu_graph_exec *exec, ortc_cu_graph graph, unsigned long long) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  auto found = call.device.graphs.find(graph);
  if (found == call.device.graphs.end() || !exec)
    return ORTC_CU_INVALID_VALUE;
  auto made = std::make_unique<ortc_cu_graph_exec_s>();
  made->works = found->second->works;
  *exec = made.get();
  call.device.graphExecs[*exec] = std::move(made);
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuGraphLaunch(ortc_cu_graph_exec exec, ortc_cu_stream stream) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  auto found = call.device.graphExecs.find(exec);
  if (found == call.device.graphExecs.end())
    return ORTC_CU_INVALID_HANDLE;
  for (const Work &work : found->second->works)
    if (ortc_cu_result result = call.device.enqueue(stream, work))
      return result;
  return ORTC_CU_SUCCESS;
}

ORTC_DRIVER cuGraphExecDestroy(ortc_cu_graph_exec exec) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  return call.device.graphExecs.erase(exec) ? ORTC_CU_SUCCESS : ORTC_CU_INVALID_VALUE;
}

ORTC_DRIVER cuGraphDestroy(ortc_cu_graph graph) {
  Call call(Call::Needs::Context);
  if (!call)
    return call.result;
  return call.device.graphs.erase(graph) ? ORTC_CU_SUCCESS : ORTC_CU_INVALID_VALUE;
}
