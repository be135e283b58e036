// The command line of ortc-plan: packs the buffers of a CSV file in MiniMalloc's format.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <new>

#include <CLI/CLI.hpp>

#include "engine/signals.h"
#include "support/FileGuard.h"
#include "support/Printable.h"
#include "tools/ortc-plan/PackFile.h"

using namespace ortc;

namespace {

constexpr uint64_t kMostBytes = uint64_t(1) << 62; ///< as the sum of all sizes
constexpr uint64_t kMostWork = 1'000'000;          ///< millions of units: hours

int reportError(const std::string &message, int code) {
  std::fflush(stdout);
  std::fprintf(stderr, "ortc-plan: error: %s\n", makePrintable(message).c_str());
  return code;
}

bool parseWhole(std::string_view text, uint64_t most, uint64_t &value) {
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc() && end == text.data() + text.size() && value <= most;
}

/// "N" or "POOL=N".
void addCapacity(const std::string &text, tool::PackOptions &options) {
  size_t equals = text.find('=');
  uint64_t pool = 0, bytes = 0;
  std::string_view number = text;
  if (equals != text.npos)
    number.remove_prefix(equals + 1);
  if (!parseWhole(number, kMostBytes, bytes) ||
      (equals != text.npos && !parseWhole(std::string_view(text).substr(0, equals), UINT32_MAX - 1, pool)))
    throw CLI::ValidationError("--capacity", "'" + text.substr(0, 80) +
                                                 "' must be BYTES or POOL=BYTES, whole numbers of " +
                                                 "at most " + std::to_string(kMostBytes));
  bool isNew =
      equals == text.npos ? !options.capacity : options.capacities.insert({uint32_t(pool), bytes}).second;
  if (!isNew)
    throw CLI::ValidationError("--capacity", "given twice");
  if (equals == text.npos)
    options.capacity = bytes;
}

/// CLI11's messages begin with a capital letter or a flag, and some end with a full stop.
std::string describe(const CLI::Error &error) {
  std::string text = error.what();
  while (!text.empty() && (text.back() == '\n' || text.back() == '.'))
    text.pop_back();
  if (text.size() > 1 && std::isupper(static_cast<unsigned char>(text[0])) &&
      std::islower(static_cast<unsigned char>(text[1])))
    text[0] = char(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

int run(int argc, char **argv) {
  CLI::App app{"ortc-plan packs buffers with known lifetimes into as few bytes as it can", "ortc-plan"};
  app.set_version_flag("--version", "ortc-plan " ORTC_VERSION);
  tool::PackOptions options;
  options.work = 20'000;
  app.add_option("INPUT.csv", options.input,
                 "columns id, lower, upper, size and perhaps alignment, gaps, hint, "
                 "offset (a fixed one), pool, as MiniMalloc reads them")
      ->required()
      ->type_name("");
  app.add_option_function<std::string>(
         "--capacity", [&](const std::string &text) { addCapacity(text, options); },
         "stop as soon as the packing fits; without it, minimise the height. POOL=BYTES for one pool; "
         "repeatable")
      ->trigger_on_parse()
      ->allow_extra_args(false)
      ->type_name("BYTES");
  app.add_option("-o,--output", options.output, "where the offsets go: the columns of the input and `offset`")
      ->allow_extra_args(false)
      ->type_name("OUT.csv");
  app.add_option_function<std::string>(
         "--work",
         [&](const std::string &text) {
           if (!parseWhole(text, kMostWork, options.work))
             throw CLI::ValidationError("--work", "'" + text.substr(0, 80) +
                                                      "' must be a whole number of at most " +
                                                      std::to_string(kMostWork));
         },
         "limit of the exact search of each pool, in millions of units of about 2 ns; default: 20000")
      ->allow_extra_args(false)
      ->type_name("N");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &success) { // --help, --version
    return app.exit(success);
  } catch (const CLI::Error &error) {
    return reportError(describe(error) + "; ortc-plan --help lists what there is", 2);
  }
  options.work *= 1'000'000;
  try {
    Status status = tool::packFile(options);
    return status.isOk() ? 0 : reportError(status.getMessage(), static_cast<int>(status.getCode()));
  } catch (const std::bad_alloc &) {
    return reportError("out of memory", 1);
  }
}

} // namespace

/// What the tool prints is a result: to have lost it is a failure.
int main(int argc, char **argv) {
  guardMappedFiles("ortc-plan");
  engine::catchSignals(engine::OnSignal::End);
  int code = run(argc, argv);
  bool isLost = std::fflush(stdout) != 0;
  std::string reason = isLost ? std::string(": ") + std::strerror(errno) : "";
  return code == 0 && (isLost || std::ferror(stdout))
             ? reportError("standard output cannot be written" + reason, 1)
             : code;
}
