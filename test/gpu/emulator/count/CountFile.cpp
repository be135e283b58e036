// Writes counts, scaled to the whole launch where only some of its blocks have run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/count/CountFile.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "test/gpu/emulator/run/Block.h"
#include "test/gpu/emulator/run/Runner.h"

namespace ortc::emulator {
namespace {

/// Objects and numbers, with commas where they belong.
class Writer {
public:
  std::string text;
  void key(const std::string &name) {
    comma();
    text += quoted(name) + ": ";
    isFirst = true;
  }
  void open(char bracket) {
    comma();
    text += bracket;
    isFirst = true;
  }
  void close(char bracket) {
    text += bracket;
    isFirst = false;
  }
  void number(double value) {
    comma();
    char digits[40];
    if (value == std::floor(value) && std::fabs(value) < 1e18)
      std::snprintf(digits, sizeof digits, "%lld", (long long)value);
    else
      std::snprintf(digits, sizeof digits, "%.6g", value);
    text += digits;
  }
  void string(const std::string &value) {
    comma();
    text += quoted(value);
  }
  void null() {
    comma();
    text += "null";
  }
  void field(const std::string &name, double value) {
    key(name);
    number(value);
  }

private:
  bool isFirst = true;
  void comma() {
    if (!isFirst)
      text += ", ";
    isFirst = false;
  }
  static std::string quoted(const std::string &value) {
    std::string result = "\"";
    for (char c : value) {
      if (c == '"' || c == '\\')
        result += '\\';
      result += c < ' ' ? ' ' : c;
    }
    return result + '"';
  }
};

bool startsWith(const std::string &text, const char *start) { return text.rfind(start, 0) == 0; }

/// Where memory begins that parameters of the launch point to.
std::vector<uint64_t> basesOf(const Launch &launch) {
  std::vector<uint64_t> bases;
  for (const KernelParam &param : launch.kernel->params) {
    uint64_t value = 0;
    if (param.bytes != sizeof value)
      continue;
    std::memcpy(&value, launch.params.data() + param.offset, sizeof value);
    if (launch.memory.contains(value, 1))
      bases.push_back(value - launch.memory.base);
  }
  std::sort(bases.begin(), bases.end());
  return bases;
}

/// Distinct bytes of all blocks, from those of the blocks that have run: `each` of them summed up, and all of
/// them in `touched`.
///
/// Two bounds, of which the smaller one counts: blocks share nothing; or they touch everything from the first to
/// the last byte that was touched behind each pointer, and as much more as lies behind the last block that ran.
/// How much few blocks share tells little of all: some arrays are shared, others are not.
double estimateUnion(const Launch &launch, double each, const TouchedBytes &touched, double sampled) {
  const double united = double(touched.count()), blocks = double(launch.blocks());
  if (sampled >= blocks || united == 0)
    return united;
  const double apart = each * blocks / sampled;
  const double last = double(sampledBlock(uint64_t(sampled) - 1, uint64_t(sampled), launch.blocks()));
  const double dense = sampled > 1 ? double(touched.spread(basesOf(launch))) * blocks / (last + 1) : apart;
  return std::fmax(united, std::round(std::fmin(apart, dense)));
}

void writeClasses(Writer &out, const std::map<std::string, Count> &classes, double scale) {
  out.open('{');
  for (const auto &[name, count] : classes)
    if (count.warps)
      out.field(name, std::round(double(count.warps) * scale));
  out.close('}');
}

/// Sectors or wavefronts of the classes that have some.
void writeAccesses(Writer &out, const std::map<std::string, Count> &classes, double scale, bool isGlobal) {
  for (const auto &[name, count] : classes) {
    if (!(isGlobal ? count.sectors : count.wavefronts))
      continue;
    out.key(name);
    out.open('{');
    if (isGlobal) {
      out.field("bytes", std::round(double(count.bytes) * scale));
      out.field("sectors", std::round(double(count.sectors) * scale));
      out.field("ideal_sectors", std::round(double(count.idealSectors) * scale));
    } else {
      out.field("wavefronts", std::round(double(count.wavefronts) * scale));
      out.field("ideal_wavefronts", std::round(double(count.idealWavefronts) * scale));
    }
    out.close('}');
  }
}

std::map<std::string, Count> sumClasses(const CountPlan &plan, const std::vector<Count> &statements,
                                        const std::set<uint32_t> *which) {
  std::map<std::string, Count> classes;
  for (uint32_t k = 0; k < statements.size(); ++k)
    if (!which || which->count(k))
      classes[plan.classes[plan.classOf[k]]].add(statements[k]);
  return classes;
}

/// Of the innermost loops the one with the most products of matrices, or fma where there are none.
void writeLoop(Writer &out, const Kernel &kernel, const std::vector<Count> &statements, double scale) {
  const CountPlan &plan = *kernel.plan;
  const CountPlan::Loop *best = nullptr;
  std::pair<uint64_t, uint64_t> most = {0, 0};
  std::map<std::string, Count> ofBest;
  for (const CountPlan::Loop &loop : plan.loops) {
    std::map<std::string, Count> classes = sumClasses(plan, statements, &loop.statements);
    std::pair<uint64_t, uint64_t> products = {0, 0};
    for (const auto &[name, count] : classes) {
      products.first += startsWith(name, "mma.") || startsWith(name, "wgmma.m") ? count.warps : 0;
      products.second += name == "f32.fma" || name == "f32x2.fma" || name == "half" ? count.warps : 0;
    }
    if (products > most) {
      most = products;
      best = &loop;
      ofBest = std::move(classes);
    }
  }
  out.key("loop");
  if (!best) {
    out.null();
    return;
  }
  out.open('{');
  out.key("lines");
  out.open('[');
  int first = INT32_MAX, last = 0;
  for (uint32_t statement : best->statements) {
    first = std::min(first, kernel.statements[statement].line);
    last = std::max(last, kernel.statements[statement].line);
  }
  out.number(first);
  out.number(last);
  out.close(']');
  out.field("iterations", std::round(double(statements[best->head].warps) * scale));
  out.key("instructions");
  writeClasses(out, ofBest, scale);
  out.key("global");
  out.open('{');
  writeAccesses(out, ofBest, scale, true);
  out.close('}');
  out.key("shared_accesses");
  out.open('{');
  writeAccesses(out, ofBest, scale, false);
  out.close('}');
  out.close('}');
}

void writeLines(Writer &out, const Kernel &kernel, const std::vector<Count> &statements, double scale) {
  out.key("lines");
  out.open('[');
  for (uint32_t k = 0; k < statements.size(); ++k) {
    if (!statements[k].warps)
      continue;
    out.open('[');
    out.number(kernel.statements[k].line);
    out.string(kernel.plan->classes[kernel.plan->classOf[k]]);
    out.number(std::round(double(statements[k].warps) * scale));
    out.number(std::round(double(statements[k].sectors) * scale));
    out.number(std::round(double(statements[k].wavefronts) * scale));
    out.close(']');
  }
  out.close(']');
}

void writeTriple(Writer &out, const char *name, const uint32_t *values) {
  out.key(name);
  out.open('[');
  for (int k = 0; k < 3; ++k)
    out.number(values[k]);
  out.close(']');
}

} // namespace

CountFile::CountFile(const std::string &path, bool hasLines)
    : file(std::fopen(path.c_str(), "w")), hasLines(hasLines) {
  if (file)
    std::fputs("[\n]\n", file);
}

CountFile::~CountFile() {
  if (file)
    std::fclose(file);
}

void CountFile::begin(Launch &launch) {
  counts.statements.assign(launch.kernel->statements.size(), Count());
  counts.blocks = counts.blockReads = counts.blockWrites = 0;
  counts.read.open(launch.memory.bytes);
  counts.written.open(launch.memory.bytes);
  launch.counts = &counts;
}

void CountFile::write(const Launch &launch) {
  if (!file)
    return;
  const Kernel &kernel = *launch.kernel;
  const double blocks = double(launch.blocks()), sampled = std::fmax(1, double(counts.blocks));
  const double scale = blocks / sampled;
  const std::map<std::string, Count> classes = sumClasses(*kernel.plan, counts.statements, nullptr);
  Count all;
  for (const auto &[name, count] : classes)
    all.add(count);
  Writer out;
  out.open('{');
  out.key("kernel");
  out.string(kernel.name);
  out.field("launch", double(launch.gridId));
  writeTriple(out, "grid", launch.grid);
  writeTriple(out, "block", launch.block);
  out.field("static_shared", kernel.sharedBytes);
  out.field("dynamic_shared", launch.dynamicBytes);
  out.field("blocks_run", double(counts.blocks));
  if (launch.isFailed) {
    out.key("stopped");
    out.string(launch.message);
  }
  out.field("warp_instructions", std::round(double(all.warps) * scale));
  out.field("active_lanes", all.warps ? double(all.lanes) / (32 * double(all.warps)) : 0);
  out.key("instructions");
  writeClasses(out, classes, scale);
  out.key("global");
  out.open('{');
  const double read = double(counts.read.count()), written = double(counts.written.count());
  const double allRead = estimateUnion(launch, double(counts.blockReads), counts.read, sampled);
  const double allWritten = estimateUnion(launch, double(counts.blockWrites), counts.written, sampled);
  auto sectorsOf = [](const TouchedBytes &bytes, double counted, double estimated) {
    return counted ? std::round(double(bytes.countSectors()) * estimated / counted) : 0;
  };
  out.field("distinct_bytes_read", allRead);
  out.field("distinct_bytes_written", allWritten);
  out.field("distinct_sectors_read", sectorsOf(counts.read, read, allRead));
  out.field("distinct_sectors_written", sectorsOf(counts.written, written, allWritten));
  out.field("block_bytes_read", std::round(double(counts.blockReads) / sampled));
  out.field("block_bytes_written", std::round(double(counts.blockWrites) / sampled));
  writeAccesses(out, classes, scale, true);
  out.close('}');
  out.key("shared_accesses");
  out.open('{');
  writeAccesses(out, classes, scale, false);
  out.close('}');
  writeLoop(out, kernel, counts.statements, scale);
  if (hasLines)
    writeLines(out, kernel, counts.statements, scale);
  out.close('}');
  // The file is an array after every row.
  const bool isFirst = std::ftell(file) <= 4;
  std::fseek(file, -3, SEEK_CUR);
  std::fprintf(file, "%s%s\n]\n", isFirst ? "\n" : ",\n", out.text.c_str());
  std::fflush(file);
}

} // namespace ortc::emulator
