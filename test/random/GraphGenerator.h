// Small random ONNX models that can be trained: compositions of operators with random shapes, weights and attributes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/frontend/onnx.pb.h"

namespace ortc::test {

/// A model with output `y`, and the arrays to feed: the inputs, and `label` for the mean squared error.
struct RandomModel {
  struct Array {
    std::vector<int64_t> shape;
    std::vector<float> data; ///< multiples of 1/1024: exact in every floating-point type that computes
  };

  proto::ModelProto model;
  std::map<std::string, Array> feeds;
  std::vector<std::string> operators; ///< in the order of the nodes
};

/// The same model for the same seed, on every machine. It has 3 to 12 operators besides those that prepare operands.
RandomModel generateModel(unsigned seed);

} // namespace ortc::test
