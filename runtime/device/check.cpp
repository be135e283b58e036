// Checks device code: whatever its bytes are, what is launched later stays within the memory of its session.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/gpu.h"

namespace ortc::device {
namespace {

/// Rows of launches and their arguments over all entries, and launches of one entry with its loops run: above
/// what any model has, and little enough that no file keeps a host busy for long.
constexpr uint64_t kMostRows = 1 << 22, kMostLaunches = ORTC_MAX_LAUNCHES;

class Checker {
public:
  Checker(const ortc_device_program &program, ortc_device_code &code) : program(program), code(code) {}
  /// What is malformed, or nullptr.
  const char *run();
  uint64_t number = 0; ///< of what is malformed

private:
  bool has(uint64_t offset, uint64_t count, uint64_t rowBytes) const {
    return offset <= program.code_bytes &&
           count * rowBytes <= program.code_bytes - offset; // 32 bits each, or one row
  }
  bool isText(uint64_t offset, uint64_t bytes) const {
    return has(offset, 1, bytes) && memchr((const uint8_t *)program.code + offset, 0, bytes);
  }
  const char *checkImages();
  const char *checkKernels();
  const char *checkList(const ortc_device_step &step);
  bool isArgumentGood(const ortc_device_step &step, const ortc_launch_argument &argument) const;

  const ortc_device_program &program;
  ortc_device_code &code;
  uint64_t rowsLeft = kMostRows;
  uint32_t loops[ORTC_MAX_LOOPS], depth = 0; ///< around the row that is being checked
};

const char *Checker::run() {
  ortc_blob head;
  if (program.code_bytes < sizeof head)
    return "head";
  memcpy(&head, program.code, sizeof head);
  uint64_t end = sizeof head + (uint64_t)head.count * head.entry_bytes;
  end = (end + 7) / 8 * 8;
  if (head.magic != ORTC_BLOB_MAGIC || head.entry_bytes < sizeof(ortc_blob_entry) ||
      !has(end, 1, sizeof code))
    return "head";
  code = readRow<ortc_device_code>(program, end, 0, 0);
  if (const char *malformed = checkImages())
    return malformed;
  if (const char *malformed = checkKernels())
    return malformed;
  for (uint32_t i = 0; i < program.step_count; i++)
    if (const char *malformed = checkList(program.steps[i]))
      return malformed;
  return nullptr;
}

const char *Checker::checkImages() {
  if (!code.image_count || code.image_bytes < sizeof(ortc_device_image) ||
      !has(code.images, code.image_count, code.image_bytes))
    return "table of images";
  for (number = 0; number < code.image_count; number++) {
    auto image = readRow<ortc_device_image>(program, code.images, code.image_bytes, number);
    if (!image.bytes || !has(image.offset, 1, image.bytes) ||
        (image.kind == ORTC_IMAGE_PTX && ((const char *)program.code)[image.offset + image.bytes - 1]))
      return "image";
  }
  return nullptr;
}

const char *Checker::checkKernels() {
  number = 0;
  if (code.kernel_bytes < sizeof(ortc_device_kernel) ||
      !has(code.kernels, code.kernel_count, code.kernel_bytes))
    return "table of kernels";
  for (; number < code.kernel_count; number++) {
    auto kernel = readRow<ortc_device_kernel>(program, code.kernels, code.kernel_bytes, number);
    if (kernel.name >= program.code_bytes || !isText(kernel.name, program.code_bytes - kernel.name) ||
        !kernel.threads || kernel.threads > 1024 || kernel.shared > 1 << 20 ||
        kernel.arguments > kMostArguments)
      return "kernel";
  }
  return nullptr;
}

const char *Checker::checkList(const ortc_device_step &step) {
  ortc_launch_list list;
  number = (uint64_t)(&step - program.steps);
  auto offset = (uint64_t)((const uint8_t *)step.list - (const uint8_t *)program.code);
  if (!has(offset, 1, sizeof list))
    return "launch list";
  memcpy(&list, step.list, sizeof list);
  if (list.launch_bytes < sizeof(ortc_launch) || list.argument_bytes < sizeof(ortc_launch_argument) ||
      !has(list.launches, list.launch_count, list.launch_bytes) ||
      !has(list.arguments, list.argument_count, list.argument_bytes) || list.launch_count > rowsLeft)
    return "launch list";
  rowsLeft -= list.launch_count;
  uint64_t times = 1, launches = 0; // of the row, of all
  depth = 0;
  for (number = 0; number < list.launch_count; number++) {
    auto launch = readRow<ortc_launch>(program, list.launches, list.launch_bytes, number);
    if (launch.kind == ORTC_LAUNCH_END) {
      if (!depth)
        return "launch";
      times /= loops[--depth];
    } else if (!launch.count || launch.count > INT32_MAX) {
      return "launch";
    } else if (launch.kind == ORTC_LAUNCH_LOOP) {
      if (depth == ORTC_MAX_LOOPS || launch.reverse > 1)
        return "launch";
      loops[depth++] = launch.count;
      times *= launch.count; // at most kMostLaunches before
    } else {
      if (launch.kind != ORTC_LAUNCH_KERNEL || launch.kernel >= code.kernel_count)
        return "launch";
      auto kernel = readRow<ortc_device_kernel>(program, code.kernels, code.kernel_bytes, launch.kernel);
      if ((uint64_t)launch.first_argument + kernel.arguments > list.argument_count ||
          kernel.arguments > rowsLeft)
        return "launch";
      rowsLeft -= kernel.arguments;
      for (uint32_t i = 0; i < kernel.arguments; i++)
        if (!isArgumentGood(step, readRow<ortc_launch_argument>(program, list.arguments, list.argument_bytes,
                                                                launch.first_argument + i)))
          return "arguments of launch";
    }
    launches += times;
    if (launches > kMostLaunches)
      return "launch";
  }
  number = (uint64_t)(&step - program.steps);
  return depth ? "launch list" : nullptr;
}

bool Checker::isArgumentGood(const ortc_device_step &step, const ortc_launch_argument &argument) const {
  const ortc_file_entry &entry = *step.entry;
  uint64_t offset = argument.offset, limit;
  switch (argument.kind) {
  case ORTC_ARGUMENT_CONSTANTS:
    limit = program.sizes[ORTC_REGION_CONSTANTS];
    break;
  case ORTC_ARGUMENT_PERSISTENT:
    limit = program.sizes[ORTC_REGION_PERSISTENT];
    break;
  case ORTC_ARGUMENT_TRANSIENT:
    limit = entry.fixed_bytes + entry.worker_bytes;
    break;
  case ORTC_ARGUMENT_EXTERNAL: {
    if (offset >= entry.ext_count)
      return false;
    auto *values = (const ortc_file_value *)program.tables[ORTC_SECTION_VALUES].data;
    limit = values[entry.first_value + offset].view.bytes;
    offset = 0;
    break;
  }
  case ORTC_ARGUMENT_STATUS:
    limit = sizeof(ortc_device_status);
    break;
  default:
    return false;
  }
  // Sizes are below 2^ORTC_REGION_BITS, so what passes here cannot overflow below.
  if (offset > limit || argument.bytes > limit - offset)
    return false;
  auto low = (int64_t)offset, high = (int64_t)(offset + argument.bytes);
  for (uint32_t i = 0; i < depth; i++) {
    int64_t way;
    if (__builtin_mul_overflow((int64_t)loops[i] - 1, argument.strides[i], &way) ||
        __builtin_add_overflow(way < 0 ? low : high, way, way < 0 ? &low : &high))
      return false;
  }
  return low >= 0 && (uint64_t)high <= limit;
}

} // namespace

int32_t checkCode(const ortc_device_program &program, ortc_device_code &code, ortc_message *message) {
  Checker checker(program, code);
  const char *malformed = checker.run();
  return !malformed ? ORTC_OK
                    : fail(message, ORTC_E_FORMAT, "code %u is malformed: %s %llu", program.ordinal,
                           malformed, (unsigned long long)checker.number);
}

} // namespace ortc::device
