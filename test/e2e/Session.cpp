// A session over the C interface, with the inputs of a zoo entry.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/e2e/Session.h"

#include <gtest/gtest.h>

namespace ortc::test {

Session::Session(const std::string &folder) {
  ortc_message why{};
  EXPECT_EQ(ortc_program_open_file((folder + "/model.ortc").c_str(), nullptr, &program, &why), ORTC_OK)
      << why.text;
  if (program)
    EXPECT_EQ(ortc_session_create(program, nullptr, &session, &why), ORTC_OK) << why.text;
}

Session::~Session() {
  ortc_session_destroy(session);
  ortc_program_close(program);
}

void Session::writeSlice(const host::DataSource &source, size_t step) {
  for (const std::string &name : source.getNames()) {
    ortc_tensor_info info{};
    info.size = sizeof(info);
    ASSERT_EQ(ortc_tensor_find(program, name.c_str(), &info), ORTC_OK) << name;
    host::Array array;
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

} // namespace ortc::test
