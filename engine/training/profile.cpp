// Where the time of training steps goes: kernels by time, beside what the machine could do.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/training/profile.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <ortc/call.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "support/Json.h"
#include "support/Plural.h"
#include "support/Printable.h"

namespace ortc::engine {

/// A clock that a kernel of a microsecond can bear; its unit does not matter.
static uint64_t readTicks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

void Profiler::trace(void *context, uint32_t kernel, uint32_t phase) {
  auto *profiler = static_cast<Profiler *>(context);
  if (!profiler->isActive || kernel >= profiler->current.size())
    return;
  if (phase == ORTC_TRACE_BEGIN) {
    profiler->begun = readTicks();
    return;
  }
  StepTimes::Kernel &time = profiler->current[kernel];
  time.seconds += double(readTicks() - profiler->begun);
  ++time.calls;
}

void Profiler::start(int64_t steps, size_t kernels) {
  times = StepTimes();
  times.kernels.resize(kernels);
  waiting = times.warmUp = steps > 1 ? std::clamp<int64_t>(steps / 10, 1, 10) : 0;
}

void Profiler::beginStep() {
  current.assign(times.kernels.size(), StepTimes::Kernel());
  isActive = true;
  stepBegun = readTicks();
}

void Profiler::endStep(double dataSeconds, double stepSeconds) {
  double ticks = double(readTicks() - stepBegun);
  isActive = false;
  if (waiting > 0) {
    --waiting;
    return;
  }
  double tick = ticks > 0 ? stepSeconds / ticks : 0;
  for (size_t i = 0; i < current.size(); ++i) {
    times.kernels[i].seconds += current[i].seconds * tick;
    times.kernels[i].calls += current[i].calls;
  }
  times.dataSeconds += dataSeconds;
  times.stepSeconds += stepSeconds;
  ++times.steps;
}

Profile makeProfile(const StepTimes &times, const KernelTable &table, const Machine &single,
                    const Machine &all) {
  Profile profile;
  profile.steps = times.steps;
  profile.warmUp = times.warmUp;
  profile.single = single;
  profile.all = all;
  profile.isDouble = table.isDouble;
  double steps = double(std::max<int64_t>(times.steps, 1));
  double unit = table.isDouble ? 2 : 1; // a vector has half as many elements of twice the size
  double kernelSeconds = 0;
  for (size_t i = 0; i < std::min(times.kernels.size(), table.kernels.size()); ++i) {
    const StepTimes::Kernel &time = times.kernels[i];
    if (time.calls == 0)
      continue;
    ProfileRow row;
    row.kernel = &table.kernels[i];
    row.calls = double(time.calls) / steps;
    row.seconds = time.seconds / steps;
    row.flops = row.kernel->flops * row.calls;
    row.bytes = row.kernel->bytes * row.calls;
    const Machine &machine = row.kernel->isParallel ? all : single;
    row.bound = machine.getBound(row.kernel->flops * unit, row.kernel->bytes) * row.calls;
    kernelSeconds += row.seconds;
    profile.total.calls += row.calls;
    profile.total.flops += row.flops;
    profile.total.bytes += row.bytes;
    profile.total.bound += row.bound;
    profile.rows.push_back(row);
  }
  profile.data = times.dataSeconds / steps;
  profile.between = std::max(0.0, times.stepSeconds / steps - kernelSeconds);
  profile.total.seconds = profile.data + std::max(times.stepSeconds / steps, kernelSeconds);
  std::sort(profile.rows.begin(), profile.rows.end(), [](const ProfileRow &a, const ProfileRow &b) {
    return a.seconds != b.seconds ? a.seconds > b.seconds : a.kernel < b.kernel;
  });
  return profile;
}

namespace {

__attribute__((format(printf, 1, 2))) std::string print(const char *format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

/// A number in a column of this width: three digits or so, whatever its size; "-" where there is none.
std::string printCell(int width, double value) {
  if (!(value > 0) || !std::isfinite(value))
    return print("%*s", width, "-");
  return print("%*.*f", width, value < 10 ? 2 : value < 100 ? 1 : 0, value);
}

/// Steps that are shown in microseconds.
bool isShort(double step) { return step < 1e-3; }

std::string printLine(const ProfileRow &row, double step, const std::string &text) {
  std::string line = isShort(step)         ? print("%10.3f", row.seconds * 1e6)
                     : row.seconds >= 1e-3 ? print("%10.3f", row.seconds * 1e3)
                                           : print("%10.4f", row.seconds * 1e3);
  line += print(" %6.1f%%", step > 0 ? row.seconds / step * 100 : 0);
  line += row.calls > 0 ? print(" %7.*f", row.calls == std::floor(row.calls) ? 0 : 2, row.calls)
                        : print("%8s", "");
  bool hasWork = row.calls > 0 && row.seconds > 0;
  line += hasWork ? printCell(9, row.flops / row.seconds * 1e-9) : print("%9s", "");
  line += hasWork ? printCell(8, row.bytes / row.seconds * 1e-9) : print("%8s", "");
  line += hasWork && row.bound > 0 ? print(" %8.0f%%", row.bound / row.seconds * 100)
          : hasWork                ? print("%10s", "-")
                                   : print("%10s", "");
  return line + "  " + text + "\n";
}

std::string describeMachine(const Machine &machine, double unit) {
  std::string text = machine.threads == 1 ? "one core" : std::to_string(machine.threads) + " cores";
  if (machine.flopRate > 0)
    text += print(": %.0f GFLOP/s", machine.flopRate / unit * 1e-9);
  for (size_t i = 0; i < machine.rates.size(); i += 2) // 32 KiB, 512 KiB, ...
    text += (i ? ", " : "; copies ") + print("%.0f", machine.rates[i].bytesPerSecond * 1e-9) + " GB/s of " +
            (machine.rates[i].bytes < 1 << 20 ? print("%.0f KiB", machine.rates[i].bytes / 1024)
                                              : print("%.0f MiB", machine.rates[i].bytes / (1 << 20)));
  return text;
}

} // namespace

std::string formatProfile(const Profile &profile, const std::string &target, size_t most) {
  std::string text =
      "profile of " + formatCount(profile.steps, "step") +
      (profile.warmUp ? " (" + formatCount(profile.warmUp, "step") + " of warm-up left out)" : "") + ", " +
      formatCount(profile.all.threads, "thread") + ", code for " + makePrintable(target) + "\n";
  double unit = profile.isDouble ? 2 : 1;
  text += "machine: " + describeMachine(profile.single, unit) + "\n";
  if (profile.all.threads > 1)
    text += "         " + describeMachine(profile.all, unit) + "\n";
  double step = profile.total.seconds;
  text += std::string("\n   ") + (isShort(step) ? "us" : "ms") +
          "/step   share   calls  GFLOP/s    GB/s  of bound  kernel\n";
  ProfileRow others;
  size_t hidden = 0;
  for (size_t i = 0; i < profile.rows.size(); ++i) {
    const ProfileRow &row = profile.rows[i];
    const KernelFacts &kernel = *row.kernel;
    if (i < most || profile.rows.size() == most + 1) {
      std::string name = kernel.work.empty() ? kernel.name : kernel.work;
      for (const std::string *part : {&kernel.shape, &kernel.place})
        name += part->empty() ? "" : (part == &kernel.shape ? " " : " | ") + *part;
      text += printLine(row, step, makePrintable(name));
      continue;
    }
    ++hidden;
    others.calls += row.calls;
    others.seconds += row.seconds;
    others.flops += row.flops;
    others.bytes += row.bytes;
    others.bound += row.bound;
  }
  if (hidden)
    text += printLine(others, step, "(" + formatCount(int64_t(hidden), "other kernel") + ")");
  ProfileRow line;
  line.seconds = profile.between;
  text += printLine(line, step, "(between kernels: dispatch, checks of indices)");
  line.seconds = profile.data;
  text += printLine(line, step, "(data: waiting for it, copies of the inputs)");
  text += printLine(profile.total, step, "the step");
  return text;
}

std::vector<std::pair<std::string, std::string>> describeProfile(const Profile &profile) {
  using Json = nlohmann::ordered_json;
  auto number = [](double value) { // four digits are more than a measurement has
    return value == 0 ? 0.0 : std::stod(print("%.4g", value));
  };
  Json kernels = Json::array();
  for (const ProfileRow &row : profile.rows) {
    Json item{{"name", row.kernel->name},   {"work", row.kernel->work},        {"shape", row.kernel->shape},
              {"place", row.kernel->place}, {"ms", number(row.seconds * 1e3)}, {"calls", number(row.calls)},
              {"flops", number(row.flops)}, {"bytes", number(row.bytes)}};
    if (row.bound > 0)
      item["bound_ms"] = number(row.bound * 1e3);
    kernels.push_back(item);
  }
  Json machines = Json::array();
  for (const Machine *machine : {&profile.single, &profile.all}) {
    if (machine == &profile.all && machine->threads == 1)
      continue;
    Json rates = Json::array();
    for (const CopyRate &rate : machine->rates)
      rates.push_back({{"bytes", rate.bytes}, {"gbs", number(rate.bytesPerSecond * 1e-9)}});
    machines.push_back({{"threads", machine->threads},
                        {"gflops", number(machine->flopRate / (profile.isDouble ? 2 : 1) * 1e-9)},
                        {"copies", rates}});
  }
  return {{"steps", std::to_string(profile.steps)},
          {"warm_up", std::to_string(profile.warmUp)},
          {"ms", Json(number(profile.total.seconds * 1e3)).dump()},
          {"between_ms", Json(number(profile.between * 1e3)).dump()},
          {"data_ms", Json(number(profile.data * 1e3)).dump()},
          {"machine", machines.dump()},
          {"kernels", kernels.dump()}};
}

} // namespace ortc::engine
