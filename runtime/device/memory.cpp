// The memory of a session on the device, and its copies to and from the host.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/gpu.h"
#include "runtime/src/transfer.h"

namespace ortc::device {
namespace {

constexpr uint64_t kAlignment = 256;
uint64_t align(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// From the first byte of a tensor to its last one, with what lies between.
uint64_t getExtent(const ortc_view &view) {
  uint64_t bytes = view.element;
  for (uint32_t i = 0; i < view.rank; i++)
    bytes += (uint64_t)(view.dims[i] - 1) * (uint64_t)view.strides[i]; // without elements: 0
  return bytes;
}

bool isDense(const ortc_view &view) { return view.rank == 1 && view.strides[0] == (int64_t)view.element; }

int32_t copyOut(Memory &memory, void *to, Address from, uint64_t bytes, ortc_message *message) {
  if (!bytes)
    return ORTC_OK;
  ORTC_TRY_DRIVER(memory.device(), memory.driver().copyOut(to, from, bytes, memory.stream),
                  "copied to the host");
  return memory.device().check(memory.driver().awaitStream(memory.stream), "waited for the device", message);
}

/// Waits, because the driver may read pinned memory of the caller's later.
int32_t copyIn(Memory &memory, Address to, const void *from, uint64_t bytes, ortc_message *message) {
  if (!bytes)
    return ORTC_OK;
  const Driver &driver = memory.driver();
  uint32_t words[2];
  // Numbers that are set between steps go with the launch and keep nobody waiting.
  if (bytes <= sizeof words && bytes % 4 == 0 && to % 4 == 0) {
    memcpy(words, from, bytes);
    for (uint64_t i = 0; i < bytes / 4; i++)
      ORTC_TRY_DRIVER(memory.device(), driver.fillWords(to + 4 * i, words[i], 1, memory.stream),
                      "set a number");
    return ORTC_OK;
  }
  ORTC_TRY_DRIVER(memory.device(), driver.copyIn(to, from, bytes, memory.stream), "copied to the device");
  return memory.device().check(driver.awaitStream(memory.stream), "waited for the device", message);
}

/// The tensor's extent on the host, which the caller frees. nullptr on failure.
uint8_t *fetch(Memory &memory, const ortc_view &view, int32_t &status, ortc_message *message) {
  uint64_t bytes = getExtent(view);
  auto *held = (uint8_t *)malloc(bytes + !bytes);
  status = held ? copyOut(memory, held, (Address)(uintptr_t)view.data, bytes, message)
                : fail(message, ORTC_E_MEMORY, "out of memory: a copy of %llu bytes on the host",
                       (unsigned long long)bytes);
  if (!status)
    return held;
  free(held);
  return nullptr;
}

/// Reads what is not dense, or only a part: all of it is fetched with the first part and stays until the last one.
int32_t readPart(Memory &memory, const ortc_view &view, uint64_t first, uint64_t count, uint8_t *dense,
                 ortc_message *message) {
  auto place = (Address)(uintptr_t)view.data;
  if (!first || memory.partPlace != place)
    memory.forgetPart();
  if (!memory.part) {
    int32_t status;
    memory.part = fetch(memory, view, status, message);
    memory.partPlace = place;
    if (status)
      return status;
  }
  ortc_view held = view;
  held.data = memory.part;
  transfer(held, first, count, dense, true);
  if (first + count == view.count)
    memory.forgetPart();
  return ORTC_OK;
}

int32_t write(Memory &memory, const ortc_view &view, const uint8_t *dense, ortc_message *message) {
  memory.forgetPart();
  auto place = (Address)(uintptr_t)view.data;
  if (isDense(view))
    return copyIn(memory, place, dense, view.count * view.element, message);
  int32_t status;
  ortc_view held = view;
  held.data = fetch(memory, view, status, message); // what lies between may be another tensor's
  if (status)
    return status;
  transfer(held, 0, view.count, (uint8_t *)dense, false);
  status = copyIn(memory, place, held.data, getExtent(view), message);
  free(held.data);
  return status;
}

int32_t allocate(Memory &memory, uint32_t flags, ortc_message *message) {
  const Device &device = memory.device();
  const Driver &driver = device.driver;
  const ortc_device_program &program = memory.program();
  uint64_t sizes[4], offsets[4], mostPlaces = 0;
  memcpy(sizes, program.sizes, sizeof sizes);
  sizes[ORTC_REGION_TRANSIENT] = 0;
  for (uint32_t i = 0; i < program.step_count; i++) {
    const ortc_file_entry &entry = *program.steps[i].entry;
    uint64_t transient = entry.fixed_bytes + entry.worker_bytes;
    if (sizes[ORTC_REGION_TRANSIENT] < transient)
      sizes[ORTC_REGION_TRANSIENT] = transient;
    if (mostPlaces < entry.ext_count)
      mostPlaces = entry.ext_count;
  }
  for (int i = 0; i < 4; i++) { // each below 2^ORTC_REGION_BITS
    offsets[i] = memory.bytes;
    memory.bytes += align(sizes[i]);
  }
  memory.bytes += align(sizeof(ortc_device_status));
  memory.places = (Memory::Place *)calloc(mostPlaces + 1, sizeof(Memory::Place));
  if (!memory.places)
    return fail(message, ORTC_E_MEMORY, "out of memory");
  Result result = driver.allocate(&memory.base, memory.bytes);
  if (result == device.vendor->outOfMemory) {
    size_t unused = 0, all = 0;
    driver.countMemory(&unused, &all);
    return fail(message, ORTC_E_MEMORY, "out of memory: %llu bytes are needed, and %s has %llu of %llu free",
                (unsigned long long)memory.bytes, device.name, (unsigned long long)unused,
                (unsigned long long)all);
  }
  ORTC_TRY_DRIVER(device, result, "allocated memory");
  for (int i = 0; i < 4; i++)
    memory.regions[i] = memory.base + offsets[i];
  memory.status = memory.base + memory.bytes - align(sizeof(ortc_device_status));
  ORTC_TRY_DRIVER(device, driver.createStream(&memory.stream, /*non-blocking*/ 1), "made a stream");
  ORTC_TRY_DRIVER(device, driver.createEvent(&memory.staged, /*no timing*/ 2), "made an event");
  ORTC_TRY_DRIVER(device, driver.allocatePinned((void **)&memory.mailbox, sizeof(Mailbox)),
                  "allocated pinned memory");
  memset(memory.mailbox, 0, sizeof(Mailbox));
  memory.mailbox->clean.flags = flags;
  ORTC_TRY_DRIVER(device, driver.fillBytes(memory.base, 0, memory.bytes, memory.stream),
                  "cleared its memory");
  ORTC_TRY_DRIVER(
      device, driver.copyIn(memory.status, &memory.mailbox->clean, sizeof(ortc_device_status), memory.stream),
      "copied to the device");
  const ortc_table &constants = program.tables[ORTC_SECTION_CONSTANTS];
  if (int32_t status =
          copyIn(memory, memory.regions[ORTC_REGION_CONSTANTS], constants.data, constants.count, message))
    return status;
  return reset(&memory, message);
}

} // namespace

bool Memory::isOnDevice(const void *data, uint64_t size) const {
  auto place = (Address)(uintptr_t)data;
  if (place >= base && place - base <= bytes && size <= bytes - (place - base))
    return true;
  unsigned type = 0; // what it stays for memory that the driver does not know, which is no error
  void *values[] = {&type};
  const Vendor &vendor = *device().vendor;
  int attributes[] = {vendor.memoryType};
  return driver().getPointerAttributes && !driver().getPointerAttributes(1, attributes, values, place) &&
         type == (unsigned)vendor.deviceMemory;
}

int32_t create(void *module, uint32_t flags, void *bases[4], void **memory, ortc_message *message) {
  auto *own = (const Module *)module;
  if (int32_t status = own->device->enter(message))
    return status;
  auto *created = (Memory *)calloc(1, sizeof(Memory));
  if (!created)
    return fail(message, ORTC_E_MEMORY, "out of memory");
  created->module = own;
  int32_t status = allocate(*created, flags, message);
  if (status) {
    destroy(created);
    return status;
  }
  for (int i = 0; i < 4; i++)
    bases[i] = (void *)(uintptr_t)created->regions[i];
  *memory = created;
  return ORTC_OK;
}

void destroy(void *opaque) {
  Memory &memory = *(Memory *)opaque;
  const Driver &driver = memory.driver();
  memory.device().enter(nullptr);
  if (memory.stream)
    driver.awaitStream(memory.stream);
  for (Plan *plan = memory.plans, *next; plan; plan = next) {
    next = plan->next;
    driver.destroyGraphCode(plan->code);
    free(plan);
  }
  if (memory.staged)
    driver.destroyEvent(memory.staged);
  if (memory.stream)
    driver.destroyStream(memory.stream);
  if (memory.mailbox)
    driver.releasePinned(memory.mailbox);
  if (memory.staging)
    driver.releasePinned(memory.staging);
  if (memory.base)
    driver.release(memory.base);
  memory.forgetPart();
  free(memory.places);
  free(opaque);
}

int32_t reset(void *opaque, ortc_message *message) {
  Memory &memory = *(Memory *)opaque;
  if (int32_t status = memory.device().enter(message))
    return status;
  memory.forgetPart();
  const ortc_table &image = memory.program().tables[ORTC_SECTION_PERSISTENT];
  Address place = memory.regions[ORTC_REGION_PERSISTENT];
  uint64_t rest = memory.program().sizes[ORTC_REGION_PERSISTENT] - image.count;
  if (int32_t status = copyIn(memory, place, image.data, image.count, message))
    return status;
  return rest ? memory.device().check(memory.driver().fillBytes(place + image.count, 0, rest, memory.stream),
                                      "cleared its memory", message)
              : ORTC_OK;
}

int32_t copy(void *opaque, const ortc_view *view, uint64_t first, uint64_t count, void *dense,
             uint32_t toDense, ortc_message *message) {
  Memory &memory = *(Memory *)opaque;
  if (int32_t status = memory.device().enter(message))
    return status;
  if (!memory.isOnDevice(view->data, getExtent(*view))) {
    transfer(*view, first, count, (uint8_t *)dense, toDense);
    return ORTC_OK;
  }
  if (!toDense)
    return write(memory, *view, (const uint8_t *)dense, message);
  if (!isDense(*view) || count < view->count)
    return readPart(memory, *view, first, count, (uint8_t *)dense, message);
  return copyOut(memory, dense, (Address)(uintptr_t)view->data, count * view->element, message);
}

} // namespace ortc::device
