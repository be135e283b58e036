// Runs one artifact through the C runtime and says what came of it, as one line of JSON. Needs no library.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// usage: gpu-run MODEL.ortc [--host] [--input NAME=FILE]... ACTION...   or   gpu-run --describe
//
// A FILE has the bytes of slices of an input one after the other. Actions are done in order:
//   load FILE, save FILE      a checkpoint
//   reset                     parameters, state and slices as at the start
//   steps N                   training steps, each with the next slice
//   gradients FILE            loss and gradients of the next slice, as safetensors
//   predict FILE              outputs for the next slice, as safetensors
//   place                     from here on inputs (their first slice) and outputs lie in memory of the device
//   time ENTRY SECONDS        how long a step takes: train, predict, gradients, or gradients and then update
//   kernels ENTRY STEPS       how long each kernel takes in so many steps that are waited for, kernel by kernel; every
//                             step of the run is then without graphs
//   memory                    how much memory of the device is in use now
//   copy BYTES                how fast the device copies within its memory
//
// Exit status: 0, or the ortc_status of what failed; 64 for wrong arguments.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ortc/ortc.h"
#include "tools/gpu/driver.h"
#include "tools/gpu/files.h"
#include "tools/gpu/launch_times.h"

using namespace ortc::gpucheck;

namespace {

constexpr int kWrongUsage = 64;

struct Input {
  std::string bytes; ///< all slices
  size_t sliceBytes = 0;
};

/// What has been asked for and what there is to say.
struct Run {
  ~Run() {
    for (void *memory : placed)
      driver.release(memory);
    ortc_session_destroy(session);
    ortc_program_close(program);
    driver.close(device);
  }

  Driver driver;
  const ortc_device *device = nullptr; ///< nullptr: this processor
  ortc_program *program = nullptr;
  ortc_session *session = nullptr;
  std::map<std::string, Input> inputs;
  size_t slice = 0;           ///< the next one
  bool isPlaced = false;      ///< inputs are on the device
  std::vector<void *> placed; ///< memory of the device
  std::vector<double> losses;
  std::string facts; ///< members of the JSON object
};

[[noreturn]] void fail(const std::string &what, ortc_status status, const std::string &text) {
  std::fprintf(stderr, "gpu-run: %s: %s\n", what.c_str(),
               text.empty() ? ortc_status_name(status) : text.c_str());
  std::exit(status);
}

void check(const Run &run, const std::string &what, ortc_status status) {
  if (status != ORTC_OK)
    fail(what, status, ortc_session_message(run.session));
}

/// JSON as Python reads it, which knows numbers that are not finite.
std::string format(double value) {
  if (std::isnan(value))
    return "NaN";
  if (std::isinf(value))
    return value > 0 ? "Infinity" : "-Infinity";
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

void say(Run &run, const std::string &key, const std::string &value) {
  run.facts += (run.facts.empty() ? "" : ", ") + quote(key) + ": " + value;
}

/// Memory of the device that somebody uses, in bytes; 0 without one.
double countUsed(const Run &run) { return run.device ? run.driver.countUsed() : 0; }

/// Sizes of what a session has in memory of the device by the artifact: the regions.
void sayRegions(Run &run) {
  ortc_program_info info = ORTC_INIT(ortc_program_info);
  ortc_program_get_info(run.program, &info);
  uint64_t transient = 0;
  ortc_entry_info entry = ORTC_INIT(ortc_entry_info);
  for (uint32_t i = 0; ortc_entry_get(run.program, i, &entry) == ORTC_OK; i++)
    transient = std::max(transient, entry.fixed_bytes + entry.worker_bytes);
  say(run, "target", quote(info.target_name));
  say(run, "regions",
      "{\"constants\": " + std::to_string(info.constant_bytes) + ", \"persistent\": " +
          std::to_string(info.persistent_bytes) + ", \"transient\": " + std::to_string(transient) +
          ", \"io\": " + std::to_string(info.io_bytes) + "}");
}

/// Finds the sizes of the inputs in the entries.
void measureInputs(Run &run) {
  ortc_entry_info entry = ORTC_INIT(ortc_entry_info);
  for (uint32_t i = 0; ortc_entry_get(run.program, i, &entry) == ORTC_OK; i++)
    for (uint32_t k = 0; k < entry.value_count; k++) {
      ortc_tensor_info value = ORTC_INIT(ortc_tensor_info);
      auto found = ortc_entry_value(run.program, i, k, &value) == ORTC_OK ? run.inputs.find(value.name)
                                                                          : run.inputs.end();
      if (found != run.inputs.end() && value.role == ORTC_ROLE_INPUT)
        found->second.sliceBytes = value.bytes;
    }
  for (const auto &[name, input] : run.inputs)
    if (!input.sliceBytes || input.bytes.empty() || input.bytes.size() % input.sliceBytes)
      fail("--input " + name, ORTC_E_SHAPE,
           std::to_string(input.bytes.size()) + " bytes are no slices of " +
               std::to_string(input.sliceBytes));
}

void open(Run &run, const char *path) {
  double start = countUsed(run);
  ortc_host host = ORTC_INIT(ortc_host);
  host.device = run.device;
  ortc_message message{};
  double started = readClock();
  if (ortc_status status = ortc_program_open_file(path, &host, &run.program, &message))
    fail(path, status, message.text);
  say(run, "open_seconds", format(readClock() - started));
  double opened = countUsed(run);
  if (ortc_status status = ortc_session_create(run.program, nullptr, &run.session, &message))
    fail(path, status, message.text);
  say(run, "memory_before", format(start));
  say(run, "memory_opened", format(opened));
  say(run, "memory_created", format(countUsed(run)));
  sayRegions(run);
  measureInputs(run);
}

/// Hands the next slice of every input to the session.
void feed(Run &run) {
  if (run.isPlaced)
    return;
  for (auto &[name, input] : run.inputs) {
    size_t slices = input.bytes.size() / input.sliceBytes;
    char *data = &input.bytes[run.slice % slices * input.sliceBytes];
    check(run, "input " + name, ortc_bind(run.session, name.c_str(), data, input.sliceBytes));
  }
  run.slice++;
}

/// Calls `visit` with every value of a role in the entry of a role, in the first binding.
void visitValues(const Run &run, uint32_t entryRole, uint32_t role,
                 const std::function<void(const ortc_tensor_info &)> &visit) {
  ortc_entry_info entry = ORTC_INIT(ortc_entry_info);
  for (uint32_t i = 0; ortc_entry_get(run.program, i, &entry) == ORTC_OK; i++) {
    if (entry.role != entryRole || entry.binding)
      continue;
    for (uint32_t k = 0; k < entry.value_count; k++) {
      ortc_tensor_info value = ORTC_INIT(ortc_tensor_info);
      if (ortc_entry_value(run.program, i, k, &value) == ORTC_OK && value.role == role)
        visit(value);
    }
  }
}

void save(const Run &run, const std::string &path) {
  check(run, path, ortc_checkpoint_save(run.session, path.c_str(), nullptr, 0));
}

void writeGradients(Run &run, const std::string &path) {
  double loss = 0;
  feed(run);
  check(run, "gradients", ortc_gradients_step(run.session, &loss));
  TensorFile file;
  file.add("loss", "F64", {}, std::string(reinterpret_cast<const char *>(&loss), sizeof loss));
  visitValues(run, ORTC_ENTRY_GRADIENTS, ORTC_ROLE_GRADIENT, [&](const ortc_tensor_info &value) {
    std::string bytes(value.bytes, 0);
    check(run, value.name, ortc_read_gradient(run.session, value.name, bytes.data(), bytes.size()));
    file.add(value, bytes);
  });
  file.write(path);
}

void writePredictions(Run &run, const std::string &path) {
  feed(run);
  check(run, "predict", ortc_predict_step(run.session));
  TensorFile file;
  visitValues(run, ORTC_ENTRY_PREDICT, ORTC_ROLE_OUTPUT, [&](const ortc_tensor_info &value) {
    std::string bytes(value.bytes, 0);
    check(run, value.name, ortc_read(run.session, value.name, bytes.data(), bytes.size()));
    file.add(value, bytes);
  });
  file.write(path);
}

/// Binds memory of the device to every input, filled with its first slice, and to every output.
void place(Run &run) {
  if (!run.device)
    return;
  for (auto &[name, input] : run.inputs) {
    run.placed.push_back(run.driver.allocate(input.sliceBytes));
    run.driver.copyIn(run.placed.back(), input.bytes.data(), input.sliceBytes);
    check(run, "input " + name, ortc_bind(run.session, name.c_str(), run.placed.back(), input.sliceBytes));
  }
  visitValues(run, ORTC_ENTRY_PREDICT, ORTC_ROLE_OUTPUT, [&](const ortc_tensor_info &value) {
    run.placed.push_back(run.driver.allocate(value.bytes));
    check(run, value.name, ortc_bind(run.session, value.name, run.placed.back(), value.bytes));
  });
  run.isPlaced = true;
}

/// One step; with `wait` it is done when this returns.
void step(Run &run, const std::string &entry, bool wait) {
  double loss = 0;
  feed(run);
  if (entry == "train")
    return check(run, entry, ortc_train_step(run.session, wait ? &loss : nullptr));
  if (entry == "predict")
    return check(run, entry, ortc_predict_step(run.session));
  check(run, entry, ortc_gradients_step(run.session, &loss));
  if (entry == "update")
    check(run, entry, ortc_update_step(run.session));
}

/// Milliseconds a step: the median of groups of steps, of which the last is waited for. Two groups warm up.
void timeEntry(Run &run, const std::string &entry, double seconds) {
  constexpr double kGroupSeconds = 0.1; // so long that waiting once does not count
  auto runGroup = [&](int steps) {
    double started = readClock();
    for (int i = 1; i <= steps; i++)
      step(run, entry, i == steps);
    if (run.device)
      run.driver.wait(); // updates are never waited for
    return readClock() - started;
  };
  runGroup(1); // records the launches
  int steps = std::max(1, static_cast<int>(kGroupSeconds / std::max(runGroup(3) / 3, 1e-9)));
  steps = std::min(steps, 10000);
  std::vector<double> times;
  for (double started = readClock(); times.size() < 3 || readClock() - started < seconds;)
    times.push_back(runGroup(steps) * 1e3 / steps);
  std::sort(times.begin(), times.end());
  say(run, "ms_" + entry, format(times[times.size() / 2]));
}

/// Bytes a second that are read and written by copies.
void timeCopies(Run &run, size_t bytes) {
  if (!run.device)
    return;
  void *from = run.driver.allocate(bytes), *to = run.driver.allocate(bytes);
  run.driver.copyIn(from, std::string(bytes, 1).data(), bytes);
  constexpr int kCopies = 20;
  std::vector<double> rates;
  for (int i = 0; i < 6; i++) {
    double started = readClock();
    for (int k = 0; k < kCopies; k++)
      run.driver.copyWithin(to, from, bytes);
    run.driver.wait();
    rates.push_back(2.0 * bytes * kCopies / (readClock() - started));
  }
  std::sort(rates.begin() + 1, rates.end()); // the first one warms up
  say(run, "copy_bytes_per_second", format(rates[3]));
  run.driver.release(from);
  run.driver.release(to);
}

/// The first step is not counted: it makes the code ready.
void timeKernels(Run &run, const std::string &entry, int steps) {
  if (!run.device)
    return;
  for (int i = 0; i <= steps; i++) {
    step(run, entry, /*wait=*/true);
    run.driver.wait();
    if (i == 0)
      forgetTimes();
  }
  say(run, "kernels_" + entry, describeTimes());
}

void train(Run &run, int steps) {
  for (int i = 0; i < steps; i++) {
    double loss = 0;
    feed(run);
    check(run, "step " + std::to_string(i + 1), ortc_train_step(run.session, &loss));
    run.losses.push_back(loss);
  }
}

/// Does the action at `arguments`; returns how many of them it took, 0 when they are wrong.
int act(Run &run, const std::vector<std::string> &arguments) {
  const std::string &action = arguments[0];
  if (action == "place")
    return place(run), 1;
  if (action == "memory")
    return say(run, "memory_after", format(countUsed(run))), 1;
  if (action == "reset") {
    check(run, action, ortc_session_reset(run.session));
    run.slice = 0;
    return 1;
  }
  if (arguments.size() < 2)
    return 0;
  const std::string &value = arguments[1];
  if (action == "load")
    check(run, value, ortc_checkpoint_load(run.session, value.c_str(), nullptr));
  else if (action == "save")
    save(run, value);
  else if (action == "steps")
    train(run, std::atoi(value.c_str()));
  else if (action == "gradients")
    writeGradients(run, value);
  else if (action == "predict")
    writePredictions(run, value);
  else if (action == "copy")
    timeCopies(run, std::strtoull(value.c_str(), nullptr, 10));
  else if (action == "time" && arguments.size() > 2)
    return timeEntry(run, value, std::atof(arguments[2].c_str())), 3;
  else if (action == "kernels" && arguments.size() > 2)
    return timeKernels(run, value, std::max(1, std::atoi(arguments[2].c_str()))), 3;
  else
    return 0;
  return 2;
}

int perform(Run &run, std::vector<std::string> arguments) {
  while (!arguments.empty()) {
    int taken = act(run, arguments);
    if (!taken) {
      std::fprintf(stderr, "gpu-run: '%s' is no action, or lacks something\n", arguments[0].c_str());
      return kWrongUsage;
    }
    arguments.erase(arguments.begin(), arguments.begin() + taken);
  }
  std::string losses;
  for (double loss : run.losses)
    losses += (losses.empty() ? "" : ", ") + format(loss);
  say(run, "losses", "[" + losses + "]");
  std::printf("{%s}\n", run.facts.c_str());
  return 0;
}

} // namespace

int main(int count, char **texts) {
  std::vector<std::string> arguments(texts + 1, texts + count);
  Run run;
  bool isDescribing = arguments.size() == 1 && arguments[0] == "--describe";
  bool isHost = arguments.size() > 1 && arguments[1] == "--host";
  if (arguments.empty()) {
    std::fprintf(stderr, "usage: gpu-run MODEL.ortc [--host] [--input NAME=FILE]... ACTION...\n");
    return kWrongUsage;
  }
  if (!isHost)
    run.device = run.driver.open();
  if (isDescribing) {
    std::printf("%s\n", run.driver.describe().c_str());
    return 0;
  }
  size_t next = isHost ? 2 : 1;
  for (; next + 1 < arguments.size() && arguments[next] == "--input"; next += 2) {
    size_t equal = arguments[next + 1].rfind('=');
    if (equal == std::string::npos)
      return kWrongUsage;
    run.inputs[arguments[next + 1].substr(0, equal)].bytes = readFile(arguments[next + 1].substr(equal + 1));
  }
  if (run.device && std::find(arguments.begin() + static_cast<ptrdiff_t>(next), arguments.end(), "kernels") !=
                        arguments.end())
    timeLaunches(run.device, run.driver.getLibrary());
  open(run, arguments[0].c_str());
  return perform(run, {arguments.begin() + static_cast<ptrdiff_t>(next), arguments.end()});
}
