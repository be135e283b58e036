// Runs a step: inputs to the device, the launches of its list as one graph, outputs and status back.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/gpu.h"

namespace ortc::device {
namespace {

constexpr uint32_t kMostPlans = 4; ///< of one list, for as many sets of bound memory

class Runner {
public:
  Runner(Memory &memory, const ortc_device_step &step, const ortc_call &call, ortc_message *message)
      : memory(memory), driver(memory.driver()), program(memory.program()), step(step), call(call),
        message(message) {}
  int32_t moveIn();
  int32_t launch();
  int32_t moveOut();
  int32_t await(double *loss, int32_t &result);
  bool hasHostOutputs = false;

private:
  const ortc_file_value &value(uint32_t i) const {
    return ((const ortc_file_value *)program.tables[ORTC_SECTION_VALUES].data)[step.entry->first_value + i];
  }
  bool isInput(uint32_t i) const {
    auto *tensors = (const ortc_file_tensor *)program.tables[ORTC_SECTION_TENSORS].data;
    return tensors[value(i).tensor].role == ORTC_ROLE_INPUT;
  }
  int32_t check(Result result, const char *what) { return memory.device().check(result, what, message); }
  int32_t prepareStaging();
  bool hasPlaces(const Plan &plan) const;
  int32_t makePlan(const ortc_launch_list &list, Plan **plan);
  Result launchAll(const ortc_launch_list &list);

  Memory &memory;
  const Driver &driver;
  const ortc_device_program &program;
  const ortc_device_step &step;
  const ortc_call &call;
  ortc_message *message;
};

/// Pinned memory that the inputs before have left.
int32_t Runner::prepareStaging() {
  if (!memory.staging)
    if (int32_t status = check(driver.allocatePinned((void **)&memory.staging, program.sizes[ORTC_REGION_IO]),
                               "allocated pinned memory for inputs and outputs"))
      return status;
  if (!memory.isStaging)
    return ORTC_OK;
  memory.isStaging = false;
  return check(driver.awaitEvent(memory.staged), "waited for the device");
}

/// Decides where the kernels find each external value, and copies inputs there that lie elsewhere.
int32_t Runner::moveIn() {
  bool isStaged = false;
  for (uint32_t i = 0; i < step.entry->ext_count; i++) {
    const ortc_file_view &view = value(i).view;
    const void *data = call.ext[i];
    Address own = memory.regions[ORTC_REGION_IO] + view.offset, given = (Address)(uintptr_t)data;
    Memory::Place &place = memory.places[i];
    place.isOnDevice = memory.isOnDevice(data, view.bytes);
    place.isCopied = view.bytes && !(place.isOnDevice && given % ORTC_ALIGNMENT == 0);
    place.used = place.isCopied ? own : given;
    if (!place.isCopied)
      continue;
    Result result = 0;
    if (!isInput(i)) {
      hasHostOutputs |= !place.isOnDevice;
    } else if (place.isOnDevice) {
      result = driver.copyWithin(own, given, view.bytes, memory.stream);
    } else {
      if (int32_t status = isStaged ? 0 : prepareStaging())
        return status;
      isStaged = true;
      memcpy(memory.staging + view.offset, data, view.bytes);
      result = driver.copyIn(own, memory.staging + view.offset, view.bytes, memory.stream);
    }
    if (int32_t status = check(result, "copied an input"))
      return status;
  }
  memory.isStaging |= isStaged;
  return isStaged ? check(driver.recordEvent(memory.staged, memory.stream), "marked its inputs") : ORTC_OK;
}

/// Launches every kernel of the list, loops and all.
Result Runner::launchAll(const ortc_launch_list &list) {
  struct {
    uint32_t row, count, done;
    bool isReverse;
  } loops[ORTC_MAX_LOOPS];
  uint32_t depth = 0;
  Address values[kMostArguments];
  void *parameters[kMostArguments]; // also behind the last one: a kernel that takes more gets null pointers
  for (uint32_t i = 0; i < kMostArguments; i++)
    parameters[i] = &values[i];
  const ortc_device_code &code = memory.module->code;
  for (uint32_t row = 0; row < list.launch_count; row++) {
    auto launch = readRow<ortc_launch>(program, list.launches, list.launch_bytes, row);
    if (launch.kind == ORTC_LAUNCH_LOOP) {
      loops[depth++] = {row, launch.count, 0, launch.reverse != 0};
      continue;
    }
    if (launch.kind == ORTC_LAUNCH_END) {
      if (++loops[depth - 1].done < loops[depth - 1].count)
        row = loops[depth - 1].row;
      else
        depth--;
      continue;
    }
    auto kernel = readRow<ortc_device_kernel>(program, code.kernels, code.kernel_bytes, launch.kernel);
    memset(values, 0, sizeof values);
    for (uint32_t i = 0; i < kernel.arguments; i++) {
      auto argument = readRow<ortc_launch_argument>(program, list.arguments, list.argument_bytes,
                                                    (uint64_t)launch.first_argument + i);
      Address place = argument.kind == ORTC_ARGUMENT_STATUS ? memory.status + argument.offset
                      : argument.kind == ORTC_ARGUMENT_EXTERNAL
                          ? memory.places[argument.offset].used
                          : memory.regions[argument.kind] + argument.offset;
      for (uint32_t k = 0; k < depth; k++) {
        uint32_t iteration = loops[k].isReverse ? loops[k].count - 1 - loops[k].done : loops[k].done;
        place += iteration * (uint64_t)argument.strides[k];
      }
      values[i] = place;
    }
    Result result = driver.launch(memory.module->functions[launch.kernel], launch.count, 1, 1, kernel.threads,
                                  1, 1, kernel.shared, memory.stream, parameters, nullptr);
    if (result)
      return result;
  }
  return 0;
}
static_assert(ORTC_ARGUMENT_CONSTANTS == (int)ORTC_REGION_CONSTANTS &&
                  ORTC_ARGUMENT_PERSISTENT == (int)ORTC_REGION_PERSISTENT &&
                  ORTC_ARGUMENT_TRANSIENT == (int)ORTC_REGION_TRANSIENT,
              "arguments are found by region");

int32_t Runner::makePlan(const ortc_launch_list &list, Plan **made) {
  uint32_t count = step.entry->ext_count;
  auto *plan = (Plan *)calloc(1, sizeof(Plan) + count * sizeof(Address));
  if (!plan)
    return fail(message, ORTC_E_MEMORY, "out of memory");
  plan->list = step.list;
  plan->count = count;
  for (uint32_t i = 0; i < count; i++)
    plan->places[i] = memory.places[i].used;
  Graph graph = nullptr;
  int32_t status = check(driver.beginCapture(memory.stream, /*thread-local*/ 1), "began a graph");
  if (!status) {
    status = check(launchAll(list), "launched a kernel");
    // also after a failure: the stream is used again
    Result result = driver.endCapture(memory.stream, &graph);
    if (!status)
      status = check(result, "captured a graph");
  }
  if (!status)
    status = check(driver.instantiate(&plan->code, graph, 0), "made a graph");
  if (graph)
    driver.destroyGraph(graph);
  if (status)
    free(plan);
  else
    *made = plan;
  return status;
}

/// Whether a graph of this list is for the memory that is bound now.
bool Runner::hasPlaces(const Plan &plan) const {
  uint32_t i = 0;
  while (i < plan.count && plan.places[i] == memory.places[i].used)
    i++;
  return i == plan.count;
}

int32_t Runner::launch() {
  ortc_launch_list list;
  memcpy(&list, step.list, sizeof list);
  if (!list.launch_count)
    return ORTC_OK;
  Plan **at = &memory.plans, **last = nullptr, *found = nullptr;
  uint32_t others = 0; // of this list
  for (; *at && !found; at = found ? at : &(*at)->next) {
    if ((*at)->list != step.list)
      continue;
    if (hasPlaces(**at))
      found = *at;
    else if (last = at, ++others == kMostPlans)
      break;
  }
  if (found) {
    *at = found->next;
  } else {
    if (others == kMostPlans) { // the one that was used longest ago
      Plan *old = *last;
      *last = old->next;
      driver.destroyGraphCode(old->code);
      free(old);
    }
    if (int32_t status = makePlan(list, &found))
      return status;
  }
  found->next = memory.plans;
  memory.plans = found;
  return check(driver.launchGraph(found->code, memory.stream), "launched a step");
}

/// Copies outputs to where they are bound, those of the host into the staging memory.
int32_t Runner::moveOut() {
  if (hasHostOutputs)
    if (int32_t status = prepareStaging())
      return status;
  for (uint32_t i = 0; i < step.entry->ext_count; i++) {
    const ortc_file_view &view = value(i).view;
    const Memory::Place &place = memory.places[i];
    if (isInput(i) || !place.isCopied)
      continue;
    Result result =
        place.isOnDevice
            ? driver.copyWithin((Address)(uintptr_t)call.ext[i], place.used, view.bytes, memory.stream)
            : driver.copyOut(memory.staging + view.offset, place.used, view.bytes, memory.stream);
    if (int32_t status = check(result, "copied an output"))
      return status;
  }
  return ORTC_OK;
}

/// Waits, takes outputs, loss and status, and makes the status good again.
int32_t Runner::await(double *loss, int32_t &result) {
  ortc_device_status &seen = memory.mailbox->seen;
  uint8_t *stored = memory.mailbox->loss;
  const ortc_file_view *place =
      loss && step.entry->loss != ORTC_NONE ? &value(step.entry->loss).view : nullptr;
  if (place)
    if (int32_t status = check(driver.copyOut(stored, memory.regions[place->region] + place->offset,
                                              place->bytes, memory.stream),
                               "copied the loss"))
      return status;
  if (int32_t status =
          check(driver.copyOut(&seen, memory.status, sizeof seen, memory.stream), "copied the status"))
    return status;
  if (int32_t status = check(driver.awaitStream(memory.stream), "ran a step"))
    return status;
  memory.isStaging = false;
  for (uint32_t i = 0; hasHostOutputs && i < step.entry->ext_count; i++) {
    const ortc_file_view &view = value(i).view;
    if (!isInput(i) && memory.places[i].isCopied && !memory.places[i].isOnDevice)
      memcpy(call.ext[i], memory.staging + view.offset, view.bytes);
  }
  result = (int32_t)(seen.status & INT32_MAX);
  if (place && (result == ORTC_STEP_OK || result == ORTC_STEP_NOT_FINITE)) {
    float single;
    memcpy(&single, stored, sizeof single);
    if (place->bytes == sizeof single)
      *loss = single;
    else
      memcpy(loss, stored, sizeof *loss);
  }
  if (result == ORTC_STEP_OK)
    return ORTC_OK;
  *call.detail = seen.detail;
  return check(driver.copyIn(memory.status, &memory.mailbox->clean, sizeof seen, memory.stream),
               "reset the status");
}

} // namespace

int32_t run(void *memory, const ortc_device_step *step, const ortc_call *call, double *loss,
            ortc_message *message) {
  // Those that may go on: what fails is told by a step after them, and leaves nothing wrong behind.
  constexpr uint32_t kUpdating = 1 << ORTC_ENTRY_TRAIN | 1 << ORTC_ENTRY_ACCUMULATE | 1 << ORTC_ENTRY_UPDATE;
  Memory &own = *(Memory *)memory;
  int32_t result = ORTC_STEP_OK, status = own.device().enter(message);
  own.forgetPart();
  Runner runner(own, *step, *call, message);
  if (!status)
    status = runner.moveIn();
  if (!status)
    status = runner.launch();
  if (!status)
    status = runner.moveOut();
  if (!status && (loss || runner.hasHostOutputs || !(kUpdating >> step->entry->role & 1)))
    status = runner.await(loss, result);
  return status ? -status : result;
}

} // namespace ortc::device
