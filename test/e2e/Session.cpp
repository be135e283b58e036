// A session over the C interface, with the inputs of a zoo entry.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/e2e/Session.h"

#include <cstring>
#include <gtest/gtest.h>

namespace ortc::test {

Session::Session(const std::string &folder, const ortc_host *host, uint32_t flags, ortc_trace_fn trace,
                 void *traceContext) {
  ortc_message why{};
  EXPECT_EQ(ortc_program_open_file((folder + "/model.ortc").c_str(), host, &program, &why), ORTC_OK)
      << why.text;
  auto options = ORTC_INIT(ortc_session_options);
  options.flags = flags;
  options.trace = trace;
  options.trace_context = traceContext;
  if (program)
    EXPECT_EQ(ortc_session_create(program, &options, &session, &why), ORTC_OK) << why.text;
}

Session::~Session() {
  ortc_session_destroy(session);
  ortc_program_close(program);
}

void Session::writeSlice(const engine::DataSource &source, size_t step) {
  for (const std::string &name : source.getNames()) {
    ortc_tensor_info info{};
    info.size = sizeof(info);
    ASSERT_EQ(ortc_tensor_find(program, name.c_str(), &info), ORTC_OK) << name;
    Array array;
    ASSERT_TRUE(source.load(name, array).isOk()) << name;
    ASSERT_EQ(int(array.type), info.dtype) << name << ": the test converts nothing";
    ASSERT_GE(array.bytes, (step + 1) * info.bytes) << name;
    ASSERT_EQ(ortc_write(session, name.c_str(), array.data + step * info.bytes, info.bytes), ORTC_OK)
        << message();
  }
}

std::map<std::string, Bytes> Session::readPersistent() const {
  std::map<std::string, Bytes> result;
  ortc_tensor_info info{};
  info.size = sizeof(info);
  for (uint32_t i = 0; ortc_tensor_get(program, i, &info) == ORTC_OK; ++i) {
    if (info.region != ORTC_REGION_PERSISTENT)
      continue;
    Bytes &bytes = result[info.name];
    bytes.resize(info.bytes);
    EXPECT_EQ(ortc_read(session, info.name, bytes.data(), bytes.size()), ORTC_OK) << message();
  }
  return result;
}

void expectSameInTwoSegments(Session &whole, Session &cut, const engine::DataSource &data, int steps) {
  for (int step = 0; step < steps; ++step) {
    double wholeLoss = 0, cutLoss = 0;
    whole.writeSlice(data, step);
    cut.writeSlice(data, step);
    ASSERT_EQ(ortc_train_step(whole.get(), &wholeLoss), ORTC_OK) << whole.message();
    auto before = cut.readPersistent();
    ASSERT_EQ(ortc_gradients_step(cut.get(), &cutLoss), ORTC_OK) << cut.message();
    // Running statistics and counters of the forward part may move; parameters may not.
    auto between = cut.readPersistent();
    for (const auto &[name, bytes] : before) {
      ortc_tensor_info info{};
      info.size = sizeof(info);
      ASSERT_EQ(ortc_tensor_find(cut.getProgram(), name.c_str(), &info), ORTC_OK);
      if (info.role == ORTC_ROLE_PARAMETER)
        EXPECT_TRUE(bytes == between[name]) << name;
    }
    ASSERT_EQ(ortc_update_step(cut.get()), ORTC_OK) << cut.message();
    EXPECT_EQ(std::memcmp(&wholeLoss, &cutLoss, sizeof(double)), 0) << wholeLoss << " and " << cutLoss;
    auto wanted = whole.readPersistent(), got = cut.readPersistent();
    for (const auto &[name, bytes] : wanted)
      ASSERT_TRUE(bytes == got[name]) << name << " in step " << step;
  }
}

} // namespace ortc::test
