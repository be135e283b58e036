// The role of each tensor of a checkpoint.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/session/tensor_roles.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <functional>
#include <string_view>

#include "runtime/src/role_names.h"

namespace ortc::engine {

const char *getRoleName(TensorRole role) {
  if (role == TensorRole::Parameter)
    return "parameter";
  const char *name = ORTC_SAVED_ROLES;
  for (TensorRole each = TensorRole::State; each != role; each = TensorRole(int(each) + 1))
    name += std::strlen(name) + 1;
  return name;
}

static Status parseRole(const std::string &path, const std::string &key, const std::string &name,
                        TensorRole &role) {
  for (TensorRole known : {TensorRole::Parameter, TensorRole::State, TensorRole::Scalar, TensorRole::Buffer})
    if (name == getRoleName(known)) {
      role = known;
      return Status();
    }
  return Status::failure(path + ": its metadata has '" + key + "' = '" + name +
                         "', and this version knows parameter, buffer, state and scalar");
}

/// "NAME" of "NAME.exp_avg", where the file has both and the last word could be a variable's; "" for others.
static std::string findOwner(const DataSource &checkpoint, const std::string &name) {
  size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot + 1 == name.size() || !checkpoint.has(name.substr(0, dot)))
    return "";
  std::string_view word = std::string_view(name).substr(dot + 1);
  auto isDigit = [](unsigned char c) { return std::isdigit(c) != 0; };
  bool isWord =
      !isDigit(static_cast<unsigned char>(word[0])) &&
      std::all_of(word.begin(), word.end(), [&](unsigned char c) { return c == '_' || std::isalnum(c); });
  return isWord ? name.substr(0, dot) : "";
}

/// The largest numbers of the blocks of a state in bytes.
static bool isScaleOfBytes(const DataSource &checkpoint, const std::string &name) {
  constexpr std::string_view kSuffix = "_absmax";
  if (!name.ends_with(kSuffix))
    return false;
  std::string of = name.substr(0, name.size() - kSuffix.size());
  Array bytes;
  return checkpoint.has(of) && checkpoint.describe(of, bytes).isOk() && bytes.type == DataType::UInt8;
}

/// In a file that says no roles. A state has its tensor's shape, or fewer channels where some are trained, or ones in
/// place of dimensions that a mean was taken over; or it is one number, or the scales of a state in bytes.
static TensorRole judge(const DataSource &checkpoint, const std::string &name) {
  Array array, owner;
  if (!checkpoint.describe(name, array).isOk())
    return TensorRole::Parameter; // of a type that no training here has
  if (array.shape.empty() && array.type == DataType::Float64)
    return TensorRole::Scalar;
  if (name == "loss_scale")
    return TensorRole::State;
  std::string of = findOwner(checkpoint, name);
  if (of.empty() || !checkpoint.describe(of, owner).isOk())
    return TensorRole::Parameter;
  bool isNumber = std::all_of(array.shape.begin(), array.shape.end(), [](int64_t size) { return size == 1; });
  bool fits = array.shape.size() == owner.shape.size() &&
              std::equal(array.shape.begin(), array.shape.end(), owner.shape.begin(), std::less_equal<>());
  return isNumber || fits || isScaleOfBytes(checkpoint, name) ? TensorRole::State : TensorRole::Parameter;
}

Status readRoles(const DataSource &checkpoint, TensorRoles &roles) {
  roles.clear();
  for (const auto &[key, value] : checkpoint.getMetadata())
    if (key.starts_with(kRoleKey))
      ORTC_TRY(parseRole(checkpoint.getPath(), key, value, roles[key.substr(sizeof kRoleKey - 1)]));
  bool isSaid = !roles.empty();
  for (const std::string &name : checkpoint.getNames())
    roles.emplace(name, isSaid ? TensorRole::Parameter : judge(checkpoint, name));
  return Status();
}

} // namespace ortc::engine
