// The test artifact with code for a device, whose kernels the stand-in driver (fake_driver.cpp) has.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "ortc/cuda.h"
#include "ortc/device.h"
#include "ortc/hip.h"
#include "test/runtime/TestArtifact.h"
#include "test/runtime/fake_driver.h"

namespace ortc::test {

/// Whose driver the stand-in is.
enum class Maker { Nvidia, Amd };
inline constexpr Maker kMakers[] = {Maker::Nvidia, Maker::Amd};
inline const char *nameOf(Maker maker) { return maker == Maker::Nvidia ? "Nvidia" : "Amd"; }

/// Puts device code together.
class DeviceCode {
public:
  struct Kernel {
    std::string name;
    uint32_t threads = 32, shared = 0, arguments = 0;
  };
  struct Image {
    uint32_t kind, processor;
    std::string text;
  };
  struct List {
    ortc_blob_entry entry;
    std::vector<ortc_launch> launches;
    std::vector<ortc_launch_argument> arguments;
  };
  std::vector<Kernel> kernels;
  std::vector<Image> images;
  std::vector<List> lists;

  /// Adds a list for an entry; what follows goes there.
  void begin(ortc_entry_role role, uint32_t binding = 0);
  void launch(const std::string &kernel, uint32_t blocks, std::vector<ortc_launch_argument> arguments);
  void loop(uint32_t count, bool isReverse = false);
  void end();
  Bytes make() const;
};

ortc_launch_argument argument(ortc_argument_kind kind, uint64_t offset, uint64_t bytes,
                              std::vector<int64_t> strides = {});

/// PTX for sm_80 that has all kernels of the stand-in.
DeviceCode::Image makePtx(uint32_t processor = 80, const std::string &version = "8.0");
/// What stands for machine code of an AMD GPU, with the same kernels.
DeviceCode::Image makeHsaco(const std::string &processor = "gfx90a");
/// Code that does what steps.c does.
DeviceCode makeDeviceCode(Maker maker = Maker::Nvidia);
artifact::Code makeSection(ortc_ptx_feature feature, const std::string &name, const DeviceCode &code);
artifact::Code makeSection(ortc_amdgpu_feature feature, const std::string &name, const DeviceCode &code);
/// The test artifact with this code behind its own, as "sm_80".
Artifact makeDeviceArtifact(const DeviceCode &code = makeDeviceCode());
/// The same for this maker, as "sm_80" or "gfx90a".
Artifact makeDeviceArtifact(Maker maker);

/// Opens a device on the stand-in, whose settings are those of `fake`, and sets them back.
class FakeDevice {
public:
  explicit FakeDevice(Maker maker = Maker::Nvidia);
  ~FakeDevice();
  /// Opens it; once.
  ortc_status open(uint32_t ordinal = 0);
  /// The log since the last call, without the lines of `wait` and `await` if so asked.
  std::string takeLog();

  const Maker maker;
  FakeDriver &fake;
  ortc_message message{};
  ortc_host host{};
};

} // namespace ortc::test
