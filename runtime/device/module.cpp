// Loads the code of a program: picks an image, lets the driver have it, looks the kernels up.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/gpu.h"

#include <stdio.h>

namespace ortc::device {
namespace {

constexpr uint32_t kSharedWithoutAsking = 48 << 10; ///< bytes of shared memory that every kernel may have

class Loader {
public:
  Loader(Module &module, ortc_message *message) : module(module), device(*module.device), message(message) {}
  int32_t loadImage();
  int32_t findKernels();

private:
  ortc_device_image image(uint64_t i) const {
    return readRow<ortc_device_image>(*module.program, module.code.images, module.code.image_bytes, i);
  }
  int32_t explain(Result result, const ortc_device_image &refused, char *log);

  Module &module;
  const Device &device;
  ortc_message *message;
};

int32_t Loader::loadImage() {
  int32_t status = ORTC_OK;
  for (int rating = 2; rating; rating--)
    for (uint32_t i = module.code.image_count; i-- > 0;) {
      ortc_device_image candidate = image(i);
      if (device.vendor->rateImage(candidate, device.processor) != rating)
        continue;
      char log[2048] = "";
      int options[] = {device.vendor->errorLog, device.vendor->errorLogBytes};
      void *values[] = {log, (void *)(sizeof log - 1)};
      const void *data = (const uint8_t *)module.program->code + candidate.offset;
      Result result = device.driver.loadImage(&module.image, data, device.vendor->options, options, values);
      if (!result)
        return ORTC_OK;
      module.image = nullptr;
      status = explain(result, candidate, log); // the last one's stays
    }
  if (status)
    return status;
  char name[48];
  device.vendor->nameImage(image(module.code.image_count - 1), name);
  return fail(message, ORTC_E_TARGET, "%s is %s, but the artifact's code is %s", device.name, device.model,
              name);
}

/// Why the driver did not take an image.
int32_t Loader::explain(Result result, const ortc_device_image &refused, char *log) {
  const Vendor &vendor = *device.vendor;
  if (result == vendor.outOfMemory)
    return device.check(result, "loaded the code", message);
  char name[96];
  const char *data = (const char *)module.program->code + refused.offset;
  if (vendor.isTooOld && vendor.isTooOld(result, refused, data, device.version, name))
    return fail(message, ORTC_E_TARGET, "the driver of %s %s; install a newer one", device.name, name);
  for (char *at = log; *at; at++)
    if ((uint8_t)*at < ' ')
      *at = ' ';
  vendor.nameImage(refused, name);
  return fail(message, ORTC_E_TARGET, "the driver of %s refuses the artifact's %s: %s", device.name, name,
              *log ? log : device.describe(result));
}

int32_t Loader::findKernels() {
  for (uint32_t i = 0; i < module.code.kernel_count; i++) {
    auto kernel =
        readRow<ortc_device_kernel>(*module.program, module.code.kernels, module.code.kernel_bytes, i);
    const char *name = (const char *)module.program->code + kernel.name;
    Function &function = module.functions[i];
    if (device.driver.getFunction(&function, module.image, name))
      return fail(message, ORTC_E_FORMAT, "code %u has no kernel '%s'", module.program->ordinal, name);
    if (kernel.shared > (uint32_t)device.mostShared)
      return fail(message, ORTC_E_TARGET,
                  "kernel '%s' needs %u bytes of shared memory; a block of %s can have %d", name,
                  kernel.shared, device.name, device.mostShared);
    if (kernel.shared > kSharedWithoutAsking && device.driver.setAttribute)
      ORTC_TRY_DRIVER(device,
                      device.driver.setAttribute(function, device.vendor->dynamicShared, (int)kernel.shared),
                      "asked for shared memory");
  }
  return ORTC_OK;
}

} // namespace

int32_t load(void *context, const ortc_device_program *program, void **module, ortc_message *message) {
  const Device &device = *(const Device *)context;
  ortc_device_code code;
  if (int32_t status = checkCode(*program, code, message))
    return status;
  if (int32_t status = device.enter(message))
    return status;
  auto *loaded = (Module *)calloc(1, sizeof(Module) + code.kernel_count * sizeof(Function));
  if (!loaded)
    return fail(message, ORTC_E_MEMORY, "out of memory");
  loaded->device = &device;
  loaded->program = program;
  loaded->code = code;
  Loader loader(*loaded, message);
  int32_t status = loader.loadImage();
  if (!status)
    status = loader.findKernels();
  if (status)
    unload(loaded);
  else
    *module = loaded;
  return status;
}

void unload(void *opaque) {
  auto *module = (Module *)opaque;
  module->device->enter(nullptr);
  if (module->image)
    module->device->driver.unloadImage(module->image);
  free(module);
}

} // namespace ortc::device
