// Forward, backward and update entries with a loss of the host's, against PyTorch: what a framework, or a loop in C,
// does.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Goldens and tolerances are those of ZooTest.cpp. Losses and their gradients are computed here, in double, from what
// the forward entry gives.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <memory>

#include "test/e2e/Session.h"

using namespace ortc;
using namespace ortc::test;

namespace {

struct Loss {
  double value = 0;
  std::vector<double> cotangent;
};

/// Negative log-likelihood of labels: of log-probabilities, or of logits. Label -100 counts for nothing.
Loss likelihood(const std::vector<double> &output, const std::vector<int64_t> &dims, size_t axis,
                bool areLogits, const std::vector<double> &labels) {
  size_t classes = dims[axis], inner = 1;
  for (size_t i = axis + 1; i < dims.size(); ++i)
    inner *= dims[i];
  Loss loss;
  loss.cotangent.resize(output.size());
  double counted = labels.size() - std::count(labels.begin(), labels.end(), -100.0);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == -100)
      continue;
    size_t first = i / inner * classes * inner + i % inner;
    double sum = 0;
    for (size_t c = 0; c < classes; ++c)
      sum += areLogits ? std::exp(output[first + c * inner]) : 0;
    for (size_t c = 0; c < classes; ++c) {
      double share = areLogits ? std::exp(output[first + c * inner]) / sum : 0;
      loss.cotangent[first + c * inner] = (share - (c == size_t(labels[i]))) / counted;
    }
    loss.value += ((areLogits ? std::log(sum) : 0) - output[first + size_t(labels[i]) * inner]) / counted;
  }
  return loss;
}

Loss computeLoss(const std::string &spec, const std::vector<double> &output, const std::vector<int64_t> &dims,
                 const std::vector<double> &labels) {
  if (spec == "cross_entropy" || spec == "nll")
    return likelihood(output, dims, dims.size() > 1, spec == "cross_entropy", labels);
  if (spec == "cross_entropy:axis=-1")
    return likelihood(output, dims, dims.size() - 1, true, labels);
  Loss loss;
  double count = output.size();
  for (size_t i = 0; i < output.size(); ++i) {
    double x = output[i];
    if (spec == "mse") {
      loss.value += (x - labels[i]) * (x - labels[i]) / count;
      loss.cotangent.push_back(2 * (x - labels[i]) / count);
    } else if (spec == "bce_with_logits") {
      loss.value += (std::max(x, 0.0) - x * labels[i] + std::log1p(std::exp(-std::fabs(x)))) / count;
      loss.cotangent.push_back((1 / (1 + std::exp(-x)) - labels[i]) / count);
    } else { // output:NAME
      EXPECT_EQ(spec, "output:loss");
      loss.value = x;
      loss.cotangent.push_back(1);
    }
  }
  return loss;
}

/// What a flag of the recipe says, taken out of its flags; `otherwise` without it.
std::string takeFlag(std::vector<std::string> &flags, const std::string &name, const std::string &otherwise) {
  auto found = std::find(flags.begin(), flags.end(), name);
  if (found == flags.end())
    return otherwise;
  std::string value = found[1];
  flags.erase(found, found + 2);
  return value;
}

class CutTest : public testing::TestWithParam<std::string> {
protected:
  CutTest() : entry(GetParam()), flags(entry.flags), golden(loadValues(entry.folder + "/golden.npz")) {
    loss = takeFlag(flags, "--loss", "");
    output = takeFlag(flags, "--loss-input", entry.predict);
  }

  void compile(const std::string &name, const std::vector<std::string> &extra) {
    std::vector<std::string> arguments{"train",        entry.model(), "-o",
                                       folder / name,  "--optimizer", entry.optimizers["adamw"],
                                       "--cotangents", output,        "--quiet"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    mustRun(arguments);
  }

  static ortc_tensor_info find(const Session &session, const std::string &name) {
    auto info = ORTC_INIT(ortc_tensor_info);
    EXPECT_EQ(ortc_tensor_find(session.getProgram(), name.c_str(), &info), ORTC_OK) << name;
    return info;
  }

  using Read = ortc_status (*)(ortc_session *, const char *, void *, size_t);
  static std::vector<double> readDense(const Session &session, const std::string &name, Read read) {
    ortc_tensor_info info = find(session, name);
    std::vector<float> values(info.bytes / sizeof(float));
    EXPECT_EQ(read(session.get(), name.c_str(), values.data(), info.bytes), ORTC_OK)
        << name << ": " << session.message();
    return {values.begin(), values.end()};
  }

  void agree(Session &session, const std::function<std::vector<double>(const std::string &, bool)> &read);

  /// The `step`-th of the slices of this many elements, which are repeated.
  static std::vector<double> slice(const Values &whole, size_t elements, size_t step) {
    size_t first = step % (whole.data.size() / elements) * elements;
    return {whole.data.begin() + first, whole.data.begin() + first + elements};
  }

  void compare(const std::string &key, const std::vector<double> &got, double floor) {
    const std::vector<double> &wanted = golden.at(key).data;
    ASSERT_EQ(got.size(), wanted.size()) << key;
    double scale = floor, off = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      scale = std::max(scale, std::fabs(wanted[i]));
      off = std::isfinite(got[i]) ? std::max(off, std::fabs(wanted[i] - got[i])) : INFINITY;
    }
    EXPECT_LE(off / scale, entry.tolerance.at(key)) << key;
    worst = std::max(worst, off / scale / entry.tolerance.at(key));
    ++compared;
  }

  TemporaryFolder folder;
  ZooEntry entry;
  std::vector<std::string> flags;
  std::string loss, output;
  std::map<std::string, Values> golden;
  double worst = 0; ///< share of its tolerance
  size_t compared = 0;
};

/// Steps with a loss of the host's, and compares.
void CutTest::agree(Session &session,
                    const std::function<std::vector<double>(const std::string &, bool)> &read) {
  std::unique_ptr<engine::DataSource> data;
  ASSERT_TRUE(engine::openData(entry.data(), data).isOk());
  std::map<std::string, Values> arrays = loadValues(entry.data());
  const ortc_tensor_info info = find(session, output);
  const std::vector<int64_t> dims(info.dims, info.dims + info.rank);
  std::vector<double> losses;
  for (int step = 0; step < entry.steps; ++step) {
    for (const auto &[name, array] : arrays) {
      auto input = ORTC_INIT(ortc_tensor_info);
      Array bytes;
      if (ortc_tensor_find(session.getProgram(), name.c_str(), &input) != ORTC_OK)
        continue; // the label
      ASSERT_TRUE(data->load(name, bytes).isOk());
      ASSERT_EQ(int(bytes.type), input.dtype) << name;
      ASSERT_EQ(ortc_write(session.get(), name.c_str(),
                           bytes.data + step % (bytes.bytes / input.bytes) * input.bytes, input.bytes),
                ORTC_OK);
    }
    ASSERT_EQ(ortc_step(session.get(), ORTC_ENTRY_FORWARD, nullptr), ORTC_OK) << session.message();
    std::vector<double> labels;
    if (loss.rfind("output:", 0) != 0) {
      size_t classes = 1;
      if (loss.rfind("cross_entropy", 0) == 0 || loss == "nll")
        classes = loss == "cross_entropy:axis=-1" ? dims.back() : dims[dims.size() > 1];
      labels = slice(arrays.at("label"), info.bytes / sizeof(float) / classes, step);
    }
    Loss result = computeLoss(loss, readDense(session, output, ortc_read), dims, labels);
    losses.push_back(result.value);
    std::vector<float> cotangent(result.cotangent.begin(), result.cotangent.end());
    ASSERT_EQ(ortc_write(session.get(), (output + ".cotangent").c_str(), cotangent.data(), info.bytes),
              ORTC_OK)
        << session.message();
    ASSERT_EQ(ortc_step(session.get(), ORTC_ENTRY_BACKWARD, nullptr), ORTC_OK) << session.message();
    if (step == 0) {
      double largest = 0;
      for (const auto &[key, values] : golden)
        for (double value : key.starts_with("grad/") ? values.data : std::vector<double>())
          largest = std::max(largest, std::fabs(value));
      for (const auto &[key, values] : golden)
        if (key.starts_with("grad/"))
          compare(key, read(key.substr(5), true), 1e-4 * largest);
    }
    ASSERT_EQ(ortc_update_step(session.get()), ORTC_OK) << session.message();
    EXPECT_EQ(ortc_step(session.get(), ORTC_ENTRY_BACKWARD, nullptr), ORTC_E_STATE);
  }
  compare("loss/adamw", losses, 1e-3);
  for (const auto &[key, values] : golden)
    if (key.starts_with("adamw/"))
      compare(key, read(key.substr(6), false), 1e-6);
  std::printf("%s: %zu arrays, worst %.2f of its tolerance\n", GetParam().c_str(), compared, worst);
}

TEST_P(CutTest, AgreesWithPyTorch) {
  ASSERT_NO_FATAL_FAILURE(compile("cut", {"--target", "native"}));
  Session session(folder / "cut");
  agree(session, [&](const std::string &name, bool isGradient) {
    return readDense(session, name, isGradient ? ortc_read_gradient : ortc_read);
  });
}

/// Calls `visit(dense index, bytes from the first element)` for every element.
void forElements(const ortc_tensor_info &info, const std::function<void(size_t, size_t)> &visit) {
  size_t count = info.bytes / sizeof(float);
  for (size_t i = 0; i < count; ++i) {
    size_t rest = i, place = 0;
    for (uint32_t axis = info.rank; axis-- > 0; rest /= info.dims[axis])
      place += rest % info.dims[axis] * info.strides[axis];
    visit(i, place);
  }
}

/// Parameters, running statistics and gradients of the host's, where nothing but elements is aligned.
struct BoundMemory {
  explicit BoundMemory(const Session &session) {
    auto entry = ORTC_INIT(ortc_entry_info);
    for (uint32_t i = 0; ortc_entry_get(session.getProgram(), i, &entry) == ORTC_OK; ++i)
      for (uint32_t n = 0; n < entry.value_count; ++n) {
        auto info = ORTC_INIT(ortc_tensor_info);
        EXPECT_EQ(ortc_entry_value(session.getProgram(), i, n, &info), ORTC_OK);
        bool isGradient = info.role == ORTC_ROLE_OUTPUT && info.owner != ORTC_NONE;
        if (entry.role == ORTC_ENTRY_BACKWARD && isGradient)
          gradients.push_back(info.name);
        if ((isGradient || info.flags & ORTC_TENSOR_BOUND) && places.try_emplace(info.name, info).second)
          bytes[info.name].resize(info.bytes + sizeof(float));
      }
    for (auto &[name, info] : places)
      EXPECT_EQ(ortc_bind(session.get(), name.c_str(), at(name), info.bytes), ORTC_OK) << session.message();
  }

  uint8_t *at(const std::string &name) { return bytes.at(name).data() + sizeof(float); }
  void fill(const std::string &name, const std::vector<double> &values) {
    forElements(places.at(name), [&](size_t i, size_t place) {
      float value = float(values[i]);
      std::memcpy(at(name) + place, &value, sizeof value);
    });
  }
  std::vector<double> read(const std::string &name) {
    std::vector<double> values(places.at(name).bytes / sizeof(float));
    forElements(places.at(name), [&](size_t i, size_t place) {
      float value;
      std::memcpy(&value, at(name) + place, sizeof value);
      values[i] = value;
    });
    return values;
  }

  std::map<std::string, ortc_tensor_info> places;
  std::map<std::string, Bytes> bytes;
  std::vector<std::string> gradients; ///< in the order of the entry
};

void ORTC_STEP_ABI noteReady(void *context, uint32_t value, uint32_t phase) {
  if (phase == ORTC_TRACE_READY)
    static_cast<std::vector<uint32_t> *>(context)->push_back(value);
}

TEST_P(CutTest, AgreesWithPyTorchInMemoryOfTheHost) {
  ASSERT_NO_FATAL_FAILURE(compile("cut", {"--target", "native"}));
  ASSERT_NO_FATAL_FAILURE(
      compile("bound", {"--target", "native", "--bind",
                        GetParam() < "lenet" ? "parameters,gradients" : "parameters,gradients,strided"}));
  std::vector<uint32_t> ready;
  Session initial(folder / "cut"), session(folder / "bound", nullptr, 0, noteReady, &ready);
  BoundMemory memory(session);
  EXPECT_FALSE(memory.gradients.empty());
  for (const auto &[name, info] : memory.places)
    if (info.flags & ORTC_TENSOR_BOUND)
      memory.fill(name, readDense(initial, name, ortc_read));
  agree(session, [&](const std::string &name, bool isGradient) {
    return memory.read(isGradient ? name + ".gradient" : name);
  });
  // Of each step: all gradients, in the order of the entry's values.
  ASSERT_EQ(ready.size(), entry.steps * memory.gradients.size());
  for (size_t i = 0; i < ready.size(); ++i)
    EXPECT_EQ(ready[i] - ready[0], i % memory.gradients.size());
}

INSTANTIATE_TEST_SUITE_P(Zoo, CutTest, testing::ValuesIn(listEntries()),
                         [](const auto &info) { return caseName(info.param); });

} // namespace
