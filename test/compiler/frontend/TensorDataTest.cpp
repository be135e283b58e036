// All the ways ONNX stores a tensor.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ModelBuilder.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace ortc;
using namespace ortc::frontend;
using namespace ortc::frontend::test;
using proto::TensorProto;

namespace {

class TensorDataTest : public testing::Test {
protected:
  TensorDataTest() { EXPECT_TRUE(Model::parse(smallModel().SerializeAsString(), "m", ".", model).isOk()); }

  TensorProto tensorOf(TensorProto::DataType type, int64_t elements) {
    TensorProto tensor;
    tensor.set_data_type(type);
    tensor.add_dims(elements);
    return tensor;
  }
  std::vector<int> bytesOf(const TensorProto &tensor) {
    TensorData data;
    Status status = model->tensor(tensor, data);
    EXPECT_EQ(status.getMessage(), "");
    std::vector<int> out;
    for (char c : data.bytes)
      out.push_back(static_cast<unsigned char>(c));
    return out;
  }

  std::shared_ptr<const Model> model;
};

using Bytes = std::vector<int>;

TEST_F(TensorDataTest, ViewsRawDataInPlace) {
  TensorProto tensor = tensorOf(TensorProto::FLOAT, 2000);
  tensor.set_raw_data(std::string(8000, 'x'));
  TensorData data;
  ASSERT_TRUE(model->tensor(tensor, data).isOk());
  EXPECT_EQ(static_cast<const void *>(data.bytes.data()), tensor.raw_data().data());
}

TEST_F(TensorDataTest, ViewsTypedDataOfFullWidthInPlace) {
  TensorProto tensor = tensorOf(TensorProto::INT64, 2);
  tensor.add_int64_data(1);
  tensor.add_int64_data(-1);
  TensorData data;
  ASSERT_TRUE(model->tensor(tensor, data).isOk());
  EXPECT_EQ(static_cast<const void *>(data.bytes.data()), tensor.int64_data().data());
  EXPECT_EQ(data.bytes.size(), 16u);
}

TEST_F(TensorDataTest, NarrowsInt32Data) {
  TensorProto int8 = tensorOf(TensorProto::INT8, 3);
  for (int value : {-128, 127, -1})
    int8.add_int32_data(value);
  EXPECT_EQ(bytesOf(int8), (Bytes{0x80, 0x7f, 0xff}));
  TensorProto half = tensorOf(TensorProto::FLOAT16, 1);
  half.add_int32_data(0x3c00);
  EXPECT_EQ(bytesOf(half), (Bytes{0x00, 0x3c}));
  TensorProto boolean = tensorOf(TensorProto::BOOL, 2);
  boolean.add_int32_data(0);
  boolean.add_int32_data(1);
  EXPECT_EQ(bytesOf(boolean), (Bytes{0, 1}));
  TensorProto uint32 = tensorOf(TensorProto::UINT32, 1);
  uint32.add_uint64_data(0xfffffffe);
  EXPECT_EQ(bytesOf(uint32), (Bytes{0xfe, 0xff, 0xff, 0xff}));
}

TEST_F(TensorDataTest, PairsComplexNumbers) {
  TensorProto tensor = tensorOf(TensorProto::COMPLEX64, 1);
  tensor.add_float_data(1);
  tensor.add_float_data(0);
  EXPECT_EQ(bytesOf(tensor), (Bytes{0, 0, 0x80, 0x3f, 0, 0, 0, 0}));
}

TEST_F(TensorDataTest, UnpacksSmallTypesLowestFirst) {
  TensorProto uint4 = tensorOf(TensorProto::UINT4, 3);
  uint4.set_raw_data("\x21\x03");
  EXPECT_EQ(bytesOf(uint4), (Bytes{1, 2, 3}));
  TensorProto int4 = tensorOf(TensorProto::INT4, 2); // -1, 7: the bytes are zero-extended
  int4.add_int32_data(0x7f);
  EXPECT_EQ(bytesOf(int4), (Bytes{15, 7}));
  TensorProto uint2 = tensorOf(TensorProto::UINT2, 5);
  uint2.set_raw_data("\xe4\x01");
  EXPECT_EQ(bytesOf(uint2), (Bytes{0, 1, 2, 3, 1}));
  // Four elements of 6 bits in three bytes: 0b000001, 0b000010, 0b000011, 0b111111.
  TensorProto float6 = tensorOf(TensorProto::FLOAT6E2M3, 4);
  float6.set_raw_data(std::string("\x81\x30\xfc", 3));
  EXPECT_EQ(bytesOf(float6), (Bytes{1, 2, 3, 63}));
  TensorProto float6Typed = tensorOf(TensorProto::FLOAT6E3M2, 2);
  float6Typed.add_int32_data(1);
  float6Typed.add_int32_data(63);
  EXPECT_EQ(bytesOf(float6Typed), (Bytes{1, 63}));
}

TEST_F(TensorDataTest, ReadsStrings) {
  TensorProto tensor = tensorOf(TensorProto::STRING, 2);
  tensor.add_string_data("a");
  tensor.add_string_data(std::string("b\0c", 3));
  TensorData data;
  ASSERT_TRUE(model->tensor(tensor, data).isOk());
  ASSERT_EQ(data.strings.size(), 2u);
  EXPECT_EQ(data.strings[1], std::string_view("b\0c", 3));
}

TEST_F(TensorDataTest, ReadsScalarsAndEmptyTensors) {
  TensorProto scalar;
  scalar.set_data_type(TensorProto::INT32);
  scalar.add_int32_data(5);
  EXPECT_EQ(bytesOf(scalar), (Bytes{5, 0, 0, 0}));
  TensorProto none = tensorOf(TensorProto::FLOAT, 0);
  none.add_dims(int64_t(1) << 62); // no elements, whatever the other dimensions are
  EXPECT_EQ(bytesOf(none), Bytes{});
}

TEST_F(TensorDataTest, MakesSparseTensorsDense) {
  proto::SparseTensorProto sparse;
  sparse.add_dims(2);
  sparse.add_dims(3);
  *sparse.mutable_values() = tensorOf(TensorProto::UINT8, 2);
  sparse.mutable_values()->set_raw_data("\7\x9");
  *sparse.mutable_indices() = tensorOf(TensorProto::INT64, 2);
  sparse.mutable_indices()->add_int64_data(1);
  sparse.mutable_indices()->add_int64_data(5);
  TensorData data;
  ASSERT_TRUE(model->sparseTensor(sparse, data).isOk());
  EXPECT_EQ(data.bytes, std::string_view("\0\7\0\0\0\x9", 6));
  // The same by coordinates.
  sparse.mutable_indices()->add_dims(2);
  sparse.mutable_indices()->clear_int64_data();
  for (int64_t index : {0, 1, 1, 2})
    sparse.mutable_indices()->add_int64_data(index);
  ASSERT_TRUE(model->sparseTensor(sparse, data).isOk());
  EXPECT_EQ(data.bytes, std::string_view("\0\7\0\0\0\x9", 6));
}

} // namespace
