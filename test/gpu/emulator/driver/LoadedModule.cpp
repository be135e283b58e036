// Loads modules: what the driver would refuse is refused, variables get their memory, kernels are decoded.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/driver/LoadedModule.h"

#include <cstdlib>
#include <cstring>

#include "test/gpu/emulator/count/CountPlan.h"
#include "test/gpu/emulator/decode/Decoder.h"
#include "test/gpu/emulator/decode/Mutation.h"
#include "test/gpu/emulator/parse/Ptx.h"

namespace ortc::emulator {
namespace {

constexpr uint32_t kUsualShared = 48 << 10;

/// The newest version of PTX that a driver knows: 90 for 9.0.
int newestPtx(int driver) {
  static constexpr struct {
    int driver, ptx;
  } kVersions[] = {{13000, 90}, {12090, 88}, {12080, 87}, {12070, 86}, {12050, 85}, {12040, 84}, {12030, 83},
                   {12020, 82}, {12010, 81}, {12000, 80}, {11080, 78}, {11070, 77}, {11060, 76}, {11050, 75},
                   {11040, 74}, {11030, 73}, {11020, 72}, {11010, 71}, {11000, 70}};
  for (const auto &version : kVersions)
    if (driver >= version.driver)
      return version.ptx;
  return 65;
}

void checkTarget(const Module &module, const Options &options) {
  auto name = [](int version) { return std::to_string(version / 10) + "." + std::to_string(version % 10); };
  const int newest = newestPtx(options.driver);
  if (module.version > newest)
    throw LoadError{ORTC_CU_UNSUPPORTED_PTX_VERSION,
                    "PTX " + name(module.version) + " is newer than the driver's " + name(newest)};
  const std::string target = "sm_" + std::to_string(module.target) +
                             (module.targetSuffix ? std::string(1, module.targetSuffix) : "");
  const std::string device = "sm_" + std::to_string(options.capability);
  // Suffix a: this device only; f: devices of its generation.
  const bool isFitting = module.targetSuffix == 'a'   ? module.target == options.capability
                         : module.targetSuffix == 'f' ? module.target <= options.capability &&
                                                            module.target / 10 == options.capability / 10
                                                      : module.target <= options.capability;
  if (!isFitting)
    throw LoadError{ORTC_CU_NO_BINARY_FOR_GPU, "code for " + target + " does not run on " + device};
}

/// Gives variables of global and constant memory their place and their initial values.
AddressMap placeVariables(const Module &module, DeviceMemory &memory, std::vector<uint64_t> &allocations) {
  AddressMap places;
  for (const Variable &v : module.variables) {
    if ((v.space != Space::Global && v.space != Space::Const) || v.isExtern)
      continue;
    uint64_t address = memory.allocate(std::max<uint64_t>(v.bytes, 1));
    if (!address)
      throw LoadError{ORTC_CU_OUT_OF_MEMORY, "no memory for variable '" + v.name + "'"};
    allocations.push_back(address);
    places[&v] = address;
  }
  for (const Variable &v : module.variables) {
    auto place = places.find(&v);
    if (place == places.end())
      continue;
    std::byte *data = memory.find(place->second, v.bytes);
    std::memset(data, 0, v.bytes); // as PTX has it without initial values
    std::memcpy(data, v.initial.data(), v.initial.size());
    for (const Variable::Relocation &relocation : v.relocations) {
      auto target = places.find(relocation.target);
      if (target == places.end())
        throw LoadError{ORTC_CU_INVALID_PTX, "unresolved variable '" + relocation.target->name + "'"};
      uint64_t value;
      std::memcpy(&value, data + relocation.offset, sizeof value);
      value += target->second;
      std::memcpy(data + relocation.offset, &value, sizeof value);
    }
    if (v.space == Space::Const)
      memory.markConstant(place->second, v.bytes);
    else
      memory.markWritten(place->second, v.bytes);
  }
  return places;
}

void checkApproximations(const Kernel &kernel, const Options &options) {
  if (options.approximate == Options::Approximate::Allow)
    return;
  for (uint32_t statement : kernel.approximations) {
    const SourceLine &source = kernel.statements[statement];
    std::string text = "kernel '" + kernel.name + "', PTX line " + std::to_string(source.line) + " '" +
                       source.text + "' is approximate";
    if (options.approximate == Options::Approximate::Refuse)
      throw LoadError{ORTC_CU_INVALID_PTX, text};
    say("%s", text.c_str());
  }
}

} // namespace

uint32_t sharedLimit(int capability, bool isAskedFor) {
  if (!isAskedFor)
    return kUsualShared;
  switch (capability) {
  case 75:
    return 64 << 10;
  case 80:
  case 87:
    return 163 << 10;
  case 86:
  case 89:
  case 120:
  case 121:
    return 99 << 10;
  default:
    return capability >= 90 ? 227 << 10 : 96 << 10;
  }
}

std::unique_ptr<ortc_cu_module_s> loadModule(const char *image, const Options &options,
                                             DeviceMemory &memory) {
  static const unsigned char kElf[] = {0x7f, 'E', 'L', 'F'}, kFat[] = {0x50, 0xed, 0x55, 0xba};
  if (!std::memcmp(image, kElf, 4) || !std::memcmp(image, kFat, 4))
    throw LoadError{ORTC_CU_NO_BINARY_FOR_GPU, "only PTX can be run, and this is machine code"};
  auto loaded = std::make_unique<ortc_cu_module_s>();
  try {
    checkTarget(*parseModule(image, true), options);
    std::unique_ptr<Module> module = parseModule(image);
    if (const char *mutations = std::getenv("ORTC_EMULATOR_MUTATE"))
      mutate(*module, mutations);
    AddressMap places = placeVariables(*module, memory, loaded->allocations);
    for (const auto &[name, function] : module->functions) {
      if (!function->isEntry || !function->isDefined)
        continue;
      auto handle = std::make_shared<ortc_cu_kernel_s>();
      handle->kernel = Decoder(*module, places, options.capability).decode(*function);
      if (!options.countFile.empty())
        handle->kernel.plan = planCounts(handle->kernel);
      handle->ptxVersion = module->version;
      const uint32_t shared = handle->kernel.sharedBytes;
      if (shared > kUsualShared)
        throw ParseError{function->line, "kernel '" + name + "' has " + std::to_string(shared) +
                                             " bytes of static shared memory, at most " +
                                             std::to_string(kUsualShared)};
      handle->mostDynamicShared = kUsualShared - shared;
      checkApproximations(handle->kernel, options);
      loaded->kernels[name] = std::move(handle);
    }
  } catch (const ParseError &error) {
    for (uint64_t address : loaded->allocations)
      memory.release(address);
    throw LoadError{ORTC_CU_INVALID_PTX, error.line
                                             ? "PTX line " + std::to_string(error.line) + ": " + error.message
                                             : error.message};
  } catch (const LoadError &) {
    for (uint64_t address : loaded->allocations)
      memory.release(address);
    throw;
  }
  return loaded;
}

} // namespace ortc::emulator
