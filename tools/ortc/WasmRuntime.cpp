// Where the runtime for WebAssembly is, as objects.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/WasmRuntime.h"

#include <filesystem>

namespace fs = std::filesystem;

namespace ortc::tool {

Expected<std::string> findWasmRuntime() {
  std::error_code code;
  fs::path prefix = fs::read_symlink("/proc/self/exe", code).parent_path().parent_path();
  std::string places;
  for (const char *folder : {"lib/ortc/wasm32", "share/ortc/wasm32", "js"}) { // installed, by pip, built
    std::string place = (prefix / folder / "libortc_wasm.a").string();
    if (fs::is_regular_file(place, code))
      return place;
    places += (places.empty() ? "'" : ", nor '") + place + "'";
  }
  return Status::refusal("--emit wasm needs the runtime for WebAssembly, which is not at " + places +
                         "; build ortc with Clang and lld, or leave --emit wasm out");
}

} // namespace ortc::tool
