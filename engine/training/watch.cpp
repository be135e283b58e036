// What `ortc run --watch` says of tensors while they are trained.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/training/watch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <regex>

#include "support/Elements.h"
#include "support/Spec.h"
#include "support/Text.h"

namespace ortc::engine {

struct Watch::Expression {
  std::regex regex;
};

static constexpr size_t kMostBytes = 4096; // std::regex recurses for every character

Status Watch::parse(const std::string &text, Watch &watch) {
  if (text.empty() || text.size() > kMostBytes)
    return Status::refusal("the regular expression has " + formatCount(int64_t(text.size()), "byte") +
                           ", but it must have 1 to " + std::to_string(kMostBytes));
  watch = Watch();
  watch.text = text;
  try {
    watch.expression = std::make_shared<Expression>(Expression{std::regex(text, std::regex::ECMAScript)});
  } catch (const std::regex_error &) {
    return Status::refusal("'" + text + "' is not a regular expression (ECMAScript); a plain dot is '\\.'");
  }
  return Status();
}

Status Watch::open(const ortc_program *program) {
  ortc_program_info info = ORTC_INIT(ortc_program_info);
  ortc_program_get_info(program, &info);
  std::map<uint32_t, size_t> places; // of parameters, by their number
  std::vector<std::string> names;
  tensors.clear();
  for (uint8_t role : {ORTC_ROLE_PARAMETER, ORTC_ROLE_STATE, ORTC_ROLE_GRADIENT})
    for (uint32_t i = 0; i < info.tensor_count; ++i) {
      ortc_tensor_info tensor = ORTC_INIT(ortc_tensor_info);
      auto isRead = [&] { return ortc_tensor_get(program, i, &tensor) == ORTC_OK && tensor.role == role; };
      if (!isRead() || !isFloat(static_cast<DataType>(tensor.dtype)))
        continue;
      if (role == ORTC_ROLE_GRADIENT) {
        if (auto place = places.find(tensor.owner); place != places.end()) {
          tensors[place->second].gradientType = static_cast<DataType>(tensor.dtype);
          tensors[place->second].gradientBytes = tensor.bytes;
        }
        continue;
      }
      names.push_back(tensor.name);
      if (!std::regex_match(names.back(), expression->regex))
        continue;
      if (role == ORTC_ROLE_PARAMETER)
        places[i] = tensors.size();
      tensors.push_back({tensor.name, static_cast<DataType>(tensor.dtype), DataType::None, tensor.bytes, 0});
    }
  size_t largest = 0;
  for (const Tensor &tensor : tensors)
    largest = std::max({largest, tensor.bytes, tensor.gradientBytes});
  copy.resize(largest);
  if (!tensors.empty())
    return Status();
  names.resize(std::min<size_t>(names.size(), 8));
  return Status::refusal("--watch '" + text + "' matches no tensor; " + describeNames(text, names));
}

TensorStatistics TensorStatistics::of(DataType type, const uint8_t *data, size_t bytes) {
  TensorStatistics found;
  double sum = 0;
  size_t element = getElementBytes(type);
  for (size_t at = 0; at < bytes; at += element) {
    double value = 0;
    if (type == DataType::Float32) { // nearly always
      float narrow = 0;
      std::memcpy(&narrow, data + at, sizeof(narrow));
      value = double(narrow);
    } else {
      value = loadAsDouble(type, data + at);
    }
    if (std::isnan(value)) {
      ++found.notNumbers;
      continue;
    }
    found.least = found.numbers ? std::min(found.least, value) : value;
    found.most = found.numbers ? std::max(found.most, value) : value;
    ++found.numbers;
    sum += value;
  }
  found.mean = found.numbers ? sum / double(found.numbers) : 0;
  return found;
}

std::string TensorStatistics::format() const {
  auto show = [this](double value) { return numbers ? formatJsonNumber(value) : std::string("null"); };
  return "{\"min\":" + show(least) + ",\"max\":" + show(most) + ",\"mean\":" + show(mean) +
         ",\"nan\":" + std::to_string(notNumbers) + "}";
}

Status Watch::step(Session &session, const Entry &gradientsEntry, const Entry &update, bool stopOnNotFinite,
                   double &loss, ortc_status *told) {
  ORTC_TRY(session.step(gradientsEntry, loss, told));
  if (stopOnNotFinite && !std::isfinite(loss)) {
    *told = ORTC_E_NOT_FINITE;
    return Status::failure("the loss is not finite");
  }
  gradients = "{";
  for (const Tensor &tensor : tensors) {
    if (tensor.gradientType == DataType::None)
      continue;
    ortc_status status =
        ortc_read_gradient(session.get(), tensor.name.c_str(), copy.data(), tensor.gradientBytes);
    if (status != ORTC_OK)
      return Status::failure("gradient of '" + tensor.name + "': " + ortc_session_message(session.get()));
    gradients += (gradients == "{" ? "" : ",") + formatJsonString(tensor.name) + ":" +
                 TensorStatistics::of(tensor.gradientType, copy.data(), tensor.gradientBytes).format();
  }
  gradients += "}";
  double none = 0;
  return session.step(update, none, told);
}

Status Watch::describe(Session &session, EventFields &fields) {
  std::string values;
  for (const Tensor &tensor : tensors) {
    if (ortc_read(session.get(), tensor.name.c_str(), copy.data(), tensor.bytes) != ORTC_OK)
      return Status::failure("'" + tensor.name + "': " + ortc_session_message(session.get()));
    values += (values.empty() ? "" : ",") + formatJsonString(tensor.name) + ":" +
              TensorStatistics::of(tensor.type, copy.data(), tensor.bytes).format();
  }
  fields.push_back({"values", RawJson{"{" + values + "}"}});
  if (!gradients.empty())
    fields.push_back({"gradients", RawJson{std::move(gradients)}});
  gradients.clear();
  return Status();
}

} // namespace ortc::engine
