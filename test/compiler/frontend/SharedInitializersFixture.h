// A model with shared initializers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/InitializerOrigins.h"
#include "compiler/frontend/SharedInitializers.h"
#include "test/compiler/frontend/ModelBuilder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace ortc::frontend::test {

class SharedInitializersTest : public testing::Test {
protected:
  SharedInitializersTest() { startModel(); }

  /// A model without nodes, from x to y.
  void startModel() {
    message.Clear();
    message.set_ir_version(8);
    message.add_opset_import()->set_version(17);
    graph = message.mutable_graph();
    graph->set_name("g");
    setType(graph->add_input(), "x", {2, 3});
    setType(graph->add_output(), "y", {2, 3});
  }

  void addValues(const std::string &name, std::initializer_list<int64_t> dims,
                 const std::vector<float> &values) {
    std::string bytes(values.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    addInitializer(graph, name, dims)->set_raw_data(bytes);
  }
  /// Two norms, one after the other, that read these.
  void addNorms(const std::string &scale, const std::string &otherScale, const std::string &bias) {
    addNode(graph, "LayerNormalization", {"x", scale, bias}, {"h"}, "first");
    addNode(graph, "LayerNormalization", {"h", otherScale, bias}, {"y"}, "second");
  }
  std::string resolve(const SharingOptions &options = {}) {
    EXPECT_EQ(Model::parse(message.SerializeAsString(), "m.onnx", ".", model).getMessage(), "");
    report = {};
    return resolveSharedInitializers(model, options, report).getMessage();
  }
  const proto::NodeProto &node(int i) const { return model->getProto().graph().node(i); }
  /// The data of an initializer; fails where there is none.
  std::string bytes(const std::string &name) const {
    for (const auto &tensor : model->getProto().graph().initializer())
      if (tensor.name() == name)
        return tensor.raw_data();
    ADD_FAILURE() << "no initializer " << name;
    return "";
  }

  proto::ModelProto message;
  proto::GraphProto *graph;
  std::shared_ptr<const Model> model;
  SharingReport report;
};

/// What PyTorch's exporter writes down about `name`.
inline void annotate(proto::GraphProto *graph, const std::string &name, const std::string &key,
                     const std::string &value) {
  auto *info = graph->add_value_info();
  info->set_name(name);
  auto *entry = info->add_metadata_props();
  entry->set_key(key);
  entry->set_value(value);
}
inline constexpr char kKind[] = "pkg.torch.export.graph_signature.InputSpec.kind";
inline constexpr char kFoldedFrom[] = "pkg.onnxscript.optimizer.folded_from";

/// Values as a random initialization gives them.
inline std::vector<float> randomValues(size_t count, unsigned seed) {
  std::vector<float> values(count);
  for (float &value : values)
    value = static_cast<float>((seed = seed * 1664525 + 1013904223) >> 8) / 16777216.0f - 0.5f;
  return values;
}

/// The ones and zeros that legalisation will not train.
inline std::set<std::string> listConstants(const Model &model) {
  std::set<std::string> names;
  for (const auto &[name, origin] : findOrigins(model.getProto().graph()))
    if (origin.origin == Origin::constant)
      names.insert(name);
  return names;
}

} // namespace ortc::frontend::test
