// Reads ORTC_EMULATOR_*.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/driver/Options.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace ortc::emulator {
namespace {

#if defined(__SANITIZE_THREAD__)
#define ORTC_HAS_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ORTC_HAS_THREAD_SANITIZER 1
#endif
#endif
/// Threads touch neighbouring bytes of what is known about memory, which is right but looks like a race.
#if defined(ORTC_HAS_THREAD_SANITIZER)
constexpr uint32_t kMostThreads = 1;
#else
constexpr uint32_t kMostThreads = 256;
#endif

constexpr uint64_t kDefaultMemory = uint64_t(4) << 30;

/// A whole number from the environment, or the one that is given.
uint64_t numberOf(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  if (!text || !*text)
    return otherwise;
  char *end = nullptr;
  uint64_t value = std::strtoull(text, &end, 10);
  if (!*end)
    return value;
  say("%s='%s' is no number", name, text);
  return otherwise;
}

bool isSet(const char *name, const char *value) {
  const char *text = std::getenv(name);
  return text && !std::strcmp(text, value);
}

Order orderOf(const char *text) {
  Order order;
  if (!text || !*text || !std::strcmp(text, "forward"))
    return order;
  if (!std::strcmp(text, "reverse")) {
    order.kind = Order::Kind::Reverse;
  } else if (!std::strncmp(text, "random:", 7)) {
    order.kind = Order::Kind::Random;
    order.seed = std::strtoull(text + 7, nullptr, 10);
  } else {
    say("ORTC_EMULATOR_ORDER='%s' is none of forward, reverse, random:SEED", text);
  }
  return order;
}

} // namespace

Options readOptions() {
  Options options;
  options.capability = int(numberOf("ORTC_EMULATOR_SM", 80));
  options.memory = numberOf("ORTC_EMULATOR_MEMORY", kDefaultMemory);
  options.driver = int(numberOf("ORTC_EMULATOR_DRIVER", 13000));
  uint64_t threads = numberOf("ORTC_EMULATOR_THREADS", std::thread::hardware_concurrency());
  options.threads = uint32_t(std::clamp<uint64_t>(threads, 1, kMostThreads));
  options.order = orderOf(std::getenv("ORTC_EMULATOR_ORDER"));
  options.isChecked = !isSet("ORTC_EMULATOR_CHECKS", "off");
  options.failsOnLeaks = isSet("ORTC_EMULATOR_LEAKS", "fail");
  options.printsStatistics = isSet("ORTC_EMULATOR_STATS", "1");
  options.isLazy = isSet("ORTC_EMULATOR_LAZY", "1");
  const char *countFile = std::getenv("ORTC_EMULATOR_COUNT");
  options.countFile = countFile ? countFile : "";
  options.countsLines = isSet("ORTC_EMULATOR_COUNT_LINES", "1");
  options.sample = numberOf("ORTC_EMULATOR_SAMPLE", 0);
  options.isChecked &= !options.sample; // blocks that did not run have written nothing
  using A = Options::Approximate;
  options.approximate = isSet("ORTC_EMULATOR_APPROXIMATE", "report")   ? A::Report
                        : isSet("ORTC_EMULATOR_APPROXIMATE", "refuse") ? A::Refuse
                                                                       : A::Allow;
  return options;
}

void say(const char *format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  // One write: lines of several threads do not mix.
  std::fprintf(stderr, "ortc emulator: %s\n", text);
}

} // namespace ortc::emulator
