// Averages of parameters in place of these.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/session/averages.h"

#include "support/Convert.h"

namespace ortc::engine {

Status checkWeightsName(const std::string &name) {
  if (name == "ema" || name == "swa")
    return Status();
  return Status::refusal("'" + name + "' is no kind of averages; there are ema and swa");
}

/// Writes the average `from` to the parameter `to`, of which channels may be trained alone: then the average has fewer.
static Status copyAverage(Session &session, const ortc_tensor_info &from, const ortc_tensor_info &to) {
  auto bad = [&](ortc_status status) {
    return Status::failure(std::string("the average '") + from.name +
                           "' cannot be copied: " + ortc_status_name(status));
  };
  Array average{from.name,
                static_cast<DataType>(from.dtype),
                Shape(from.dims, from.dims + from.rank),
                nullptr,
                size_t(from.bytes),
                nullptr};
  std::vector<uint8_t> values(from.bytes), whole(to.bytes);
  if (ortc_status status = ortc_read(session.get(), from.name, values.data(), values.size());
      status != ORTC_OK)
    return bad(status);
  average.data = values.data();
  auto type = static_cast<DataType>(to.dtype);
  Conversion conversion;
  ORTC_TRY(planConversion(average, type, std::string("the average '") + from.name + "'", conversion));
  if (conversion.convert) {
    std::vector<uint8_t> converted(average.bytes / getElementBytes(average.type) * getElementBytes(type));
    conversion.convert(values.data(), converted.data(), average.bytes / getElementBytes(average.type));
    values = std::move(converted);
  }
  if (ortc_status status = ortc_read(session.get(), to.name, whole.data(), whole.size()); status != ORTC_OK)
    return bad(status);
  // The first channels along one axis: runs of bytes, each at the beginning of a longer one.
  size_t axis = 0, inner = getElementBytes(type);
  while (axis + 1 < to.rank && from.dims[axis] == to.dims[axis])
    ++axis;
  for (size_t i = axis + 1; i < to.rank; ++i)
    inner *= size_t(to.dims[i]);
  size_t part = to.rank ? size_t(from.dims[axis]) * inner : inner,
         all = to.rank ? size_t(to.dims[axis]) * inner : inner;
  for (size_t read = 0, written = 0; read < values.size(); read += part, written += all)
    std::copy_n(values.begin() + int64_t(read), part, whole.begin() + int64_t(written));
  ortc_status status = ortc_write(session.get(), to.name, whole.data(), whole.size());
  return status == ORTC_OK ? Status() : bad(status);
}

static std::string counterOf(const std::string &kind) { return kind + ".n_averaged"; }

bool hasAverages(const Artifact &artifact, const std::string &kind) {
  ortc_tensor_info counter = ORTC_INIT(ortc_tensor_info);
  return ortc_tensor_find(artifact.getProgram(), counterOf(kind).c_str(), &counter) == ORTC_OK;
}

Status countAveraged(Session &session, const std::string &kind, double &count) {
  return session.getScalar(counterOf(kind), count);
}

Status checkAverages(const Artifact &artifact, const std::string &flag, const std::string &kind) {
  if (kind.empty() || hasAverages(artifact, kind))
    return Status();
  return Status::refusal(flag + " " + kind + ": " + artifact.getPath() +
                         " has no such averages; compile it with --" + kind);
}

/// Calls `use` for every average and its parameter.
template <typename Use>
static Status forEachAverage(const Artifact &artifact, const std::string &kind, Use use) {
  ortc_tensor_info from = ORTC_INIT(ortc_tensor_info), to = from;
  for (uint32_t i = 0; ortc_tensor_get(artifact.getProgram(), i, &from) == ORTC_OK; ++i)
    if (from.role == ORTC_ROLE_STATE && from.owner != ORTC_NONE &&
        ortc_tensor_get(artifact.getProgram(), from.owner, &to) == ORTC_OK &&
        from.name == std::string(to.name) + "." + kind)
      ORTC_TRY(use(from, to));
  return Status();
}

Status takeAverages(const Artifact &artifact, Session &session, const std::string &kind) {
  if (kind.empty())
    return Status();
  ORTC_TRY(checkAverages(artifact, "--weights", kind));
  double averaged = 0;
  ORTC_TRY(countAveraged(session, kind, averaged));
  if (averaged == 0)
    return Status::refusal("--weights " + kind +
                           ": nothing was averaged yet; give --load with a checkpoint of a "
                           "training that has come so far");
  return forEachAverage(artifact, kind, [&](const ortc_tensor_info &from, const ortc_tensor_info &to) {
    return copyAverage(session, from, to);
  });
}

Status AveragesInPlace::take(const Artifact &artifact, Session &session, const std::string &kind) {
  double averaged = 0;
  if (!kind.empty())
    ORTC_TRY(countAveraged(session, kind, averaged));
  if (averaged == 0)
    return Status();
  return forEachAverage(artifact, kind, [&](const ortc_tensor_info &from, const ortc_tensor_info &to) {
    auto &[name, values] = kept.emplace_back(to.name, std::vector<uint8_t>(to.bytes));
    ortc_status status = ortc_read(session.get(), to.name, values.data(), values.size());
    return status == ORTC_OK ? copyAverage(session, from, to)
                             : Status::failure("'" + name + "' cannot be read: " + ortc_status_name(status));
  });
}

Status AveragesInPlace::giveBack(Session &session) {
  for (const auto &[name, values] : kept)
    if (ortc_status status = ortc_write(session.get(), name.c_str(), values.data(), values.size());
        status != ORTC_OK)
      return Status::failure("'" + name + "' cannot be written: " + ortc_status_name(status));
  kept.clear();
  return Status();
}

} // namespace ortc::engine
