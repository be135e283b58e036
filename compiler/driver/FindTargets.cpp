// The targets that --target names.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/FindTargets.h"

using namespace llvm;

namespace ortc::driver {

bool findTargets(const CompileOptions &options, bool measures, std::vector<cpu::Target> &targets,
                 std::string &error) {
  auto fail = [&](const std::string &why) {
    error = why;
    return false;
  };
  auto add = [&](StringRef name) {
    auto target = cpu::findTarget(name);
    if (!target)
      return false;
    for (const cpu::Target &other : targets)
      if (other.name == target->name)
        return true;
    target->workers = options.maxWorkers;
    targets.push_back(*target);
    return true;
  };
  for (const std::string &name : options.targets) {
    if (name == "host") {
      for (StringRef level : cpu::targetNames())
        add(level);
    } else if (!add(name)) {
      std::string known;
      for (StringRef level : cpu::targetNames())
        known += ", " + level.str();
      return fail("--target '" + name + "' is not known; known are host, native" + known);
    }
  }
  for (const cpu::Target &target : targets)
    if (measures && !cpu::canRunHere(target))
      return fail("--tune measures on this machine, which cannot run code for " + target.name +
                  "; give --target native, or a level that it can run");
  return true;
}

} // namespace ortc::driver
