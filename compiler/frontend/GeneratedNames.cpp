// Names that exporters make up.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/GeneratedNames.h"

#include <algorithm>
#include <iterator>
#include <regex>
#include <string_view>

namespace ortc::frontend {

bool isGeneratedName(const std::string &name) {
  static const std::regex pattern(
      R"(\d+|onnx::.*|/.*|.*Constant(_\d+)?(_output_\d+)?|_?(val|tmp|const|constant|int64|float32)_?\d*)"
      R"(|scalar_tensor_default.*|.*_(output|cast|to_copy)(_\d+)?|_inlfunc_.*|ortshared_.*)"
      R"(|.*__\d+(:\d+)?|.*/(x|y|Const(_\d+)?)(:\d+)?|unity\d*)"); // of tf2onnx, of TensorFlow and of skl2onnx
  return std::regex_match(name, pattern);
}

bool isParameterName(const std::string &name) {
  auto has = [&](const char *part) { return name.find(part) != std::string::npos; };
  auto endsWith = [&](std::string_view part) {
    return name.size() >= part.size() && name.compare(name.size() - part.size(), part.size(), part) == 0;
  };
  if (has("/") || has(":") || has("_output_") || endsWith("_output"))
    return false;
  return has(".") || endsWith("weight") || endsWith("bias");
}

bool isViewName(const std::string &name) {
  static const char *const kViews[] = {
      "transpose", "permute", "t",     "view",       "reshape", "unsqueeze", "squeeze", "flatten",
      "unflatten", "detach",  "clone", "contiguous", "alias",   "_to_copy",  "slice",   "select",
      "split",     "chunk",   "flip",  "getitem",    "narrow",  "movedim"};
  std::string base = name.substr(0, name.find_last_not_of("0123456789") + 1);
  if (base.size() > 1 && base.size() < name.size() && base.back() == '_')
    base.pop_back();
  return std::any_of(std::begin(kViews), std::end(kViews), [&](const char *view) { return base == view; });
}

} // namespace ortc::frontend
