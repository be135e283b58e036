// Objects as a cache of kernels keeps them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/object/StoredObject.h"

#include <nlohmann/json.hpp>

namespace ortc::cpu {

using Json = nlohmann::json;

std::string writeObject(const Object &object) {
  Json frames = Json::object();
  for (const auto &[name, frame] : object.frames) {
    Json &row = frames[name] = {{"calls", frame.calls}, {"callsPointers", frame.callsPointers}};
    if (frame.bytes)
      row["bytes"] = *frame.bytes;
  }
  const Json whole = {{"frames", std::move(frames)}, {"object", Json::binary(object.bytes)}};
  std::string text;
  Json::to_cbor(whole, text);
  return text;
}

std::optional<Object> readObject(llvm::StringRef text, const Architecture &architecture) {
  const Json whole = Json::from_cbor(text, /*strict=*/true, /*allow_exceptions=*/false);
  if (!whole.is_object())
    return std::nullopt;
  Object object;
  object.architecture = &architecture;
  try {
    object.bytes = whole.at("object").get_binary();
    for (const auto &[name, row] : whole.at("frames").items()) {
      StackFrame &frame = object.frames[name];
      frame.calls = row.at("calls").get<std::set<std::string>>();
      frame.callsPointers = row.at("callsPointers").get<bool>();
      if (row.contains("bytes"))
        frame.bytes = row.at("bytes").get<uint64_t>();
    }
  } catch (const Json::exception &) {
    return std::nullopt;
  }
  return object;
}

} // namespace ortc::cpu
