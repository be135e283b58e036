// Results as a markdown table.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "benchmarks/kernels/Table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ortc::benchmarks {
namespace {

std::string format(const char *form, double value) {
  char text[64];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

std::string rateText(double rate) { return format(rate < 10 ? "%.2f" : "%.1f", rate); }
std::string percentText(double share) { return format("%.0f %%", 100 * share); }

double shareOf(const KernelResult &result) { return result.peak > 0 ? result.rate / result.peak : 0; }
double liveShareOf(const KernelResult &result) { return shareOf(result) / result.liveLanes; }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// `group` empty: all of that limit.
void printSummary(const std::vector<KernelResult> &results, const std::string &group) {
  std::vector<double> shares;
  const KernelResult *smallest = nullptr, *slowest = nullptr;
  double logs = 0;
  int compared = 0;
  for (const KernelResult &result : results) {
    if (group.empty() ? result.limit != Limit::Arithmetic : result.group != group)
      continue;
    shares.push_back(liveShareOf(result));
    if (!smallest || liveShareOf(result) < liveShareOf(*smallest))
      smallest = &result;
    double best = result.bestLibrary();
    if (best <= 0)
      continue;
    logs += std::log(result.rate / best);
    ++compared;
    if (!slowest || result.rate / best < slowest->rate / slowest->bestLibrary())
      slowest = &result;
  }
  if (shares.empty())
    return;
  std::printf("| %s | %zu | %s | %s %s | ", group.empty() ? "all products and convolutions" : group.c_str(),
              shares.size(), percentText(median(shares)).c_str(), percentText(liveShareOf(*smallest)).c_str(),
              smallest->name.c_str());
  if (compared)
    std::printf("%.2f | %.2f %s |\n", std::exp(logs / compared), slowest->rate / slowest->bestLibrary(),
                slowest->name.c_str());
  else
    std::printf("| |\n");
}

} // namespace

std::string tableRow(const KernelResult &result) {
  const char *units[] = {"GF", "GB/s", "GB/s"}, *peaks[] = {"", " of copy", " of triad"};
  std::string line = "| " + result.name + " | " + rateText(result.rate) + " " + units[int(result.limit)] +
                     " | " + percentText(shareOf(result)) + peaks[int(result.limit)] + " | " +
                     (result.liveLanes < 1 ? percentText(liveShareOf(result)) : "") + " | ";
  for (const char *column : {kDnnl, kDnnlPlain, kOpenBlas}) {
    auto found = result.libraries.find(column);
    line += (found == result.libraries.end() ? "" : rateText(found->second)) + " | ";
  }
  double best = result.bestLibrary();
  return line + (best > 0 ? format("%.2f", result.rate / best) : "") + " |";
}

void printTable(const std::vector<KernelResult> &results) {
  std::printf("\n| kernel | ortc | share of peak | of live lanes | %s | %s | %s | ortc / best library |\n"
              "| --- | --- | --- | --- | --- | --- | --- | --- |\n",
              kDnnl, kDnnlPlain, kOpenBlas);
  for (const KernelResult &result : results)
    std::printf("%s\n", tableRow(result).c_str());

  std::printf("\n| kernels | number | median share | smallest share | geometric mean, ortc / best library | "
              "smallest |\n| --- | --- | --- | --- | --- | --- |\n");
  std::vector<std::string> groups;
  for (const KernelResult &result : results)
    if (std::find(groups.begin(), groups.end(), result.group) == groups.end())
      groups.push_back(result.group);
  for (const std::string &group : groups)
    printSummary(results, group);
  printSummary(results, "");
}

} // namespace ortc::benchmarks
