// Opening a GPU: the driver's library, its functions, the device and its context.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/gpu.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

namespace ortc::device {

int32_t fail(ortc_message *message, ortc_status status, const char *format, ...) {
  if (!message)
    return status;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message->text, sizeof message->text, format, arguments);
  va_end(arguments);
  return status;
}

const char *Device::describe(Result result) const {
  const char *text = nullptr;
  return driver.describe(result, &text) || !text ? "an unknown error" : text;
}

int32_t Device::check(Result result, const char *what, ortc_message *message) const {
  return !result ? ORTC_OK
                 : fail(message, result == vendor->outOfMemory ? ORTC_E_MEMORY : ORTC_E_INTERNAL,
                        "%s failed when the runtime %s: %s (%d)", name, what, describe(result), result);
}

int32_t Device::enter(ortc_message *message) const {
  return check(driver.useDevice ? driver.useDevice(handle) : driver.useContext(context), "chose it", message);
}

/// Fills the table of functions.
static int32_t loadDriver(Device &device, ortc_message *message) {
  const Vendor &vendor = *device.vendor;
  const char *name = getenv(vendor.variable);
  void *library = nullptr; // stays open: drivers have threads of their own
  if (name && *name) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  } else {
    for (const char *next = vendor.library; *next && !library; next += strlen(next) + 1)
      library = dlopen(name = next, RTLD_NOW | RTLD_LOCAL);
  }
  if (!library)
    return fail(message, ORTC_E_TARGET, "there is no driver of %s here, which a device needs: %s",
                vendor.name, dlerror());
  void **slot = (void **)&device.driver;
  const char *symbol = vendor.symbols;
  for (unsigned i = 0; i < kDriverFunctions; i++, symbol += strlen(symbol) + 1) {
    if (!*symbol)
      continue;
    slot[i] = dlsym(library, symbol);
    if (!slot[i] && i + 1 < kDriverFunctions)
      return fail(message, ORTC_E_TARGET, "the driver %s is too old: it has no %s; install a newer one", name,
                  symbol);
  }
  return ORTC_OK;
}

static int32_t open(Device &device, uint32_t ordinal, ortc_message *message) {
  const Vendor &vendor = *device.vendor;
  if (int32_t status = loadDriver(device, message))
    return status;
  const Driver &driver = device.driver;
  snprintf(device.name, sizeof device.name, "the driver of %s", vendor.name);
  Result result = driver.initialise(0);
  int count = 0;
  if (!result)
    result = driver.countDevices(&count);
  if (result == vendor.noDevice || (!result && !count))
    return fail(message, ORTC_E_TARGET, "there is no GPU of %s here, though there is its driver",
                vendor.name);
  ORTC_TRY_DRIVER(device, result, "started it");
  if (ordinal >= (uint32_t)count)
    return fail(message, ORTC_E_NOT_FOUND, "there is no device %u: this machine has %d, counted from 0",
                ordinal, count);
  ORTC_TRY_DRIVER(device, driver.getVersion(&device.version), "asked for its version");
  ORTC_TRY_DRIVER(device, driver.getDevice(&device.handle, (int)ordinal), "asked for a device");
  ORTC_TRY_DRIVER(device, driver.nameDevice(device.name, sizeof device.name, device.handle),
                  "asked for its name");
  ORTC_TRY_DRIVER(device, vendor.identify(device), "asked for its processor");
  device.table.processor = strchr(device.model, ' ') + 1;
  ORTC_TRY_DRIVER(device, driver.getAttribute(&device.mostShared, vendor.mostShared, device.handle),
                  "asked for its shared memory");
  if (!device.table.features)
    return fail(message, ORTC_E_TARGET, "device %u (%s) is %s, but %s is needed", ordinal, device.name,
                device.model, vendor.least);
  return driver.retainContext
             ? device.check(driver.retainContext(&device.context, device.handle), "made its context", message)
             : device.enter(message);
}

ortc_status openDevice(const Vendor &vendor, uint32_t ordinal, const ortc_device **device,
                       ortc_message *message) {
  *device = nullptr;
  auto *opened = (Device *)calloc(1, sizeof(Device));
  if (!opened)
    return fail(message, ORTC_E_MEMORY, "out of memory");
  opened->table = {sizeof(ortc_device),
                   vendor.architecture,
                   0,
                   opened,
                   load,
                   unload,
                   create,
                   destroy,
                   reset,
                   copy,
                   run,
                   ""};
  opened->vendor = &vendor;
  ortc_status status = open(*opened, ordinal, message);
  if (status)
    free(opened);
  else
    *device = &opened->table;
  return status;
}

void closeDevice(const ortc_device *device) {
  auto *opened = (Device *)device;
  if (!opened)
    return;
  if (opened->driver.releaseContext)
    opened->driver.releaseContext(opened->handle);
  free(opened);
}

} // namespace ortc::device
