// Low-rank adapters beside weights that stay as they are.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/LoraAdapters.h"

#include "compiler/frontend/GraphEdits.h"
#include "compiler/frontend/InitializerGraph.h"
#include "compiler/frontend/OwnOperators.h"
#include "support/Plural.h"
#include "support/Random.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

namespace ortc::frontend {

namespace {

/// A node that computes with a weight.
struct Layer {
  int node;
  LoraKind kind;
  bool isTransposed; ///< it sees the weight of the file as [in, out]
};

/// Finds the layers of weights, and says why a weight has none.
class LayerFinder {
public:
  explicit LayerFinder(const InitializerGraph &g) : g(g), readers(listReaders(g.graph)) {}

  Status find(const proto::TensorProto &weight, std::vector<Layer> &layers) const;

private:
  Status follow(const std::string &value, bool isTurned, std::vector<Layer> &layers) const;
  std::optional<Layer> layerOf(const Reader &reader, bool isTurned) const;

  const InitializerGraph &g;
  std::map<std::string, std::vector<Reader>> readers;
};

/// Writes the nodes beside the layers.
class AdapterWriter {
public:
  AdapterWriter(proto::GraphProto &graph, uint64_t seed) : graph(graph), names(graph), seed(seed) {}

  LoraAdapter add(const proto::TensorProto &weight, const std::vector<Layer> &layers,
                  const LoraSettings &settings);
  /// Puts the new nodes where they belong: in front of who reads them.
  void finish() { insertNodes(graph, nodes); }

private:
  std::string addTensor(const std::string &name, const std::vector<int64_t> &dims,
                        const std::vector<double> &values, int32_t type);
  std::string addNode(int before, const char *type, const std::vector<std::string> &inputs,
                      const std::function<void(proto::NodeProto &)> &fill = {});
  std::string addScalar(int before, double value, int32_t type);
  std::string transposed(int before, const std::string &value);
  void addBranch(const Layer &layer, const LoraAdapter &adapter, const LoraSettings &settings, int32_t type);

  proto::GraphProto &graph;
  NewNames names;
  uint64_t seed;
  std::string branch;                                 ///< begins the names of the nodes of a branch
  std::map<int, std::vector<proto::NodeProto>> nodes; ///< new ones, by the node that they stand in front of
};

} // namespace

static bool swapsTwo(const proto::NodeProto &transpose) {
  const auto *permutation = findAttribute(transpose, "perm");
  return !permutation || (permutation->ints_size() == 2 && permutation->ints(0) == 1);
}

std::optional<Layer> LayerFinder::layerOf(const Reader &reader, bool isTurned) const {
  const proto::NodeProto &node = g.graph.node(reader.node);
  if (g.isNode(node, "MatMul") && reader.input == 1)
    return Layer{reader.node, LoraKind::linear, !isTurned};
  if (g.isNode(node, "Gemm") && reader.input == 1 && intOf(node, "transA", 0) == 0)
    return Layer{reader.node, LoraKind::linear, (intOf(node, "transB", 0) == 0) != isTurned};
  bool isLookup = isOwn(node, kEmbedding) || (g.isNode(node, "Gather") && intOf(node, "axis", 0) == 0);
  if (isLookup && reader.input == 0 && !isTurned)
    return Layer{reader.node, LoraKind::embedding, true};
  if (g.isNode(node, "Conv") && reader.input == 1 && intOf(node, "group", 1) == 1 && !isTurned)
    return Layer{reader.node, LoraKind::conv, false};
  return std::nullopt;
}

Status LayerFinder::follow(const std::string &value, bool isTurned, std::vector<Layer> &layers) const {
  if (g.outputs.count(value) || g.readInside.count(value))
    return Status::refusal(g.outputs.count(value) ? "it is an output of the model"
                                                  : "a branch or a loop body reads it");
  auto found = readers.find(value);
  if (found == readers.end())
    return Status();
  for (const Reader &reader : found->second) {
    const proto::NodeProto &node = g.graph.node(reader.node);
    if (g.isIdentity(node) || (g.isNode(node, "Transpose") && swapsTwo(node))) {
      ORTC_TRY(follow(node.output(0), isTurned != g.isNode(node, "Transpose"), layers));
      continue;
    }
    std::optional<Layer> layer = layerOf(reader, isTurned);
    if (!layer)
      return Status::refusal(
          describe(node) + " reads it as input " + std::to_string(reader.input) +
          "; adapters stand beside MatMul and Gemm with the weight on the right, Gather along the "
          "first axis, and Conv of one group");
    if (!layers.empty() && (layers[0].kind != layer->kind || layers[0].isTransposed != layer->isTransposed))
      return Status::refusal(describe(node) + " reads it otherwise than " +
                             describe(g.graph.node(layers[0].node)));
    layers.push_back(*layer);
  }
  return Status();
}

Status LayerFinder::find(const proto::TensorProto &weight, std::vector<Layer> &layers) const {
  ORTC_TRY(follow(weight.name(), false, layers));
  if (layers.empty())
    return Status::refusal("no node computes with it");
  bool isConv = layers[0].kind == LoraKind::conv;
  if (isConv ? weight.dims_size() < 3 : weight.dims_size() != 2)
    return Status::refusal("it has " + formatCount(weight.dims_size(), "dimension") + ", not " +
                           (isConv ? "3 or more" : "2"));
  return Status();
}

/// Float32, or float64 where the weight is; booleans as they are.
static void fillTensor(proto::TensorProto &tensor, const std::vector<int64_t> &dims,
                       const std::vector<double> &values, int32_t type) {
  bool isDouble = type == proto::TensorProto::DOUBLE, isBool = type == proto::TensorProto::BOOL;
  tensor.set_data_type(isDouble || isBool ? type : int32_t(proto::TensorProto::FLOAT));
  for (int64_t dim : dims)
    tensor.add_dims(dim);
  std::string bytes;
  for (double value : values) {
    auto narrow = static_cast<float>(value);
    if (isBool)
      bytes.push_back(value != 0);
    else if (isDouble)
      bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
    else
      bytes.append(reinterpret_cast<const char *>(&narrow), sizeof narrow);
  }
  tensor.set_raw_data(std::move(bytes));
}

std::string AdapterWriter::addTensor(const std::string &name, const std::vector<int64_t> &dims,
                                     const std::vector<double> &values, int32_t type) {
  auto *tensor = graph.add_initializer();
  tensor->set_name(names.make(name));
  fillTensor(*tensor, dims, values, type);
  return tensor->name();
}

std::string AdapterWriter::addNode(int before, const char *type, const std::vector<std::string> &inputs,
                                   const std::function<void(proto::NodeProto &)> &fill) {
  proto::NodeProto node;
  node.set_op_type(type);
  node.set_name(names.make(branch + "." + type));
  for (const std::string &input : inputs)
    node.add_input(input);
  node.add_output(names.make(node.name() + ".value"));
  if (fill)
    fill(node);
  nodes[before].push_back(node);
  return node.output(0);
}

/// A scalar that no flag can take for a weight.
std::string AdapterWriter::addScalar(int before, double value, int32_t type) {
  return addNode(before, "Constant", {}, [&](proto::NodeProto &node) {
    auto *attribute = node.add_attribute();
    attribute->set_name("value");
    attribute->set_type(proto::AttributeProto::TENSOR);
    fillTensor(*attribute->mutable_t(), {}, {value}, type);
  });
}

std::string AdapterWriter::transposed(int before, const std::string &value) {
  return addNode(before, "Transpose", {value}, [](proto::NodeProto &node) {
    auto *permutation = node.add_attribute();
    permutation->set_name("perm");
    permutation->set_type(proto::AttributeProto::INTS);
    permutation->add_ints(1);
    permutation->add_ints(0);
  });
}

/// A seed for the numbers of one tensor: FNV-1a (Fowler, Noll and Vo) of its name.
static uint64_t seedOf(uint64_t seed, const std::string &name) { return mixBits(hashName(name)) ^ seed; }

/// Uniform in [-bound, bound).
static std::vector<double> drawUniform(size_t count, uint64_t seed, double bound) {
  Random random(seed);
  std::vector<double> values(count);
  for (double &value : values)
    value = (2 * random.uniform() - 1) * bound;
  return values;
}

static std::vector<double> drawNormal(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<double> values(count);
  for (double &value : values)
    value = random.normal();
  return values;
}

/// The layer gives the sum of what it gave and of the branch.
void AdapterWriter::addBranch(const Layer &layer, const LoraAdapter &adapter, const LoraSettings &settings,
                              int32_t type) {
  proto::NodeProto &node = *graph.mutable_node(layer.node);
  int after = layer.node + 1;
  branch = "lora." + nameOf(node);
  bool isEmbedding = layer.kind == LoraKind::embedding, isConv = layer.kind == LoraKind::conv;
  // Factors of the weight's type: a model in float16 computes in it.
  auto typed = [&](const std::string &value) {
    if (type == proto::TensorProto::FLOAT || type == proto::TensorProto::DOUBLE)
      return value;
    return addNode(after, "Cast", {value}, [&](proto::NodeProto &cast) {
      auto *to = cast.add_attribute();
      to->set_name("to");
      to->set_type(proto::AttributeProto::INT);
      to->set_i(type);
    });
  };
  std::string a = typed(adapter.a), b = typed(adapter.b), x = node.input(isEmbedding ? 1 : 0);
  if (settings.dropout > 0 && !isEmbedding) {
    std::string ratio = addScalar(after, settings.dropout, proto::TensorProto::FLOAT);
    x = addNode(after, "Dropout", {x, ratio, addScalar(after, 1, proto::TensorProto::BOOL)});
  }
  // A padding row is not trained in the adapter either, as in PEFT.
  auto likeLookup = [&](proto::NodeProto &lookup) {
    lookup.set_domain(node.domain());
    lookup.set_op_type(node.op_type());
    *lookup.mutable_attribute() = node.attribute();
  };
  std::string narrow, wide;
  if (isConv) {
    narrow = addNode(after, "Conv", {x, a}, [&](proto::NodeProto &conv) {
      for (const auto &attribute : node.attribute())
        *conv.add_attribute() = attribute;
    });
    wide = addNode(after, "Conv", {narrow, b});
  } else {
    narrow = isEmbedding ? addNode(after, "Gather", {transposed(after, a), x}, likeLookup)
                         : addNode(after, "MatMul", {x, transposed(after, a)});
    wide = addNode(after, "MatMul", {narrow, transposed(after, b)});
  }
  const auto *alpha = findAttribute(node, "alpha"); // of Gemm
  std::string scale = addScalar(after, settings.scale * (alpha ? double(alpha->f()) : 1.0), type);
  std::string scaled = addNode(after, "Mul", {wide, typed(scale)}), plain = names.make(branch + ".plain");
  std::string output = node.output(0);
  node.set_output(0, plain);
  addNode(after, "Add", {plain, scaled}, [&](proto::NodeProto &sum) { sum.set_output(0, output); });
}

/// What PEFT calls the factors beside a weight.
static std::pair<std::string, std::string> namesOf(const std::string &weight, LoraKind kind) {
  std::string module = weight.ends_with(".weight") ? weight.substr(0, weight.size() - 7) : weight;
  if (kind == LoraKind::embedding)
    return {module + ".lora_embedding_A", module + ".lora_embedding_B"};
  return {module + ".lora_A.weight", module + ".lora_B.weight"};
}

LoraAdapter AdapterWriter::add(const proto::TensorProto &weight, const std::vector<Layer> &layers,
                               const LoraSettings &settings) {
  LoraAdapter adapter;
  adapter.weight = weight.name();
  adapter.kind = layers[0].kind;
  adapter.isTransposed = layers[0].isTransposed;
  int32_t type = weight.data_type();
  std::vector<int64_t> dims(weight.dims().begin(), weight.dims().end());
  int64_t out = adapter.isTransposed ? dims[1] : dims[0], in = adapter.isTransposed ? dims[0] : dims[1];
  std::vector<int64_t> aDims{settings.rank, in}, bDims{out, settings.rank};
  int64_t window = 1;
  for (size_t i = 2; i < dims.size(); ++i) {
    aDims.push_back(dims[i]);
    bDims.push_back(1);
    window *= dims[i];
  }
  auto [aName, bName] = namesOf(weight.name(), adapter.kind);
  auto aCount = static_cast<size_t>(settings.rank * in * window),
       bCount = static_cast<size_t>(out * settings.rank);
  if (adapter.kind == LoraKind::embedding) {
    adapter.a = addTensor(aName, aDims,
                          settings.beginsRandom ? drawUniform(aCount, seedOf(seed, aName), 1)
                                                : std::vector<double>(aCount),
                          type);
    adapter.b = addTensor(bName, bDims, drawNormal(bCount, seedOf(seed, weight.name())), type);
  } else {
    double bound = 1 / std::sqrt(static_cast<double>(in * window));
    adapter.a = addTensor(aName, aDims, drawUniform(aCount, seedOf(seed, weight.name()), bound), type);
    adapter.b = addTensor(bName, bDims,
                          settings.beginsRandom ? drawUniform(bCount, seedOf(seed, bName), bound)
                                                : std::vector<double>(bCount),
                          type);
  }
  for (const Layer &layer : layers)
    addBranch(layer, adapter, settings, type);
  return adapter;
}

Status addLoraAdapters(std::shared_ptr<const Model> &model, const std::vector<LoraSettings> &settings,
                       const std::function<int(const std::string &name)> &choose, uint64_t seed,
                       std::vector<LoraAdapter> &adapters) {
  InitializerGraph graph(*model);
  LayerFinder finder(graph);
  struct Chosen {
    const proto::TensorProto *weight;
    std::vector<Layer> layers;
    size_t setting;
  };
  std::vector<Chosen> chosen;
  int64_t opset = opsetOf(model->getProto().opset_import(), "");
  std::set<size_t> used;
  std::set<std::string> taken = listNames(graph.graph);
  for (const auto &tensor : model->getProto().graph().initializer()) {
    int number = choose(tensor.name());
    if (number < 0)
      continue;
    auto setting = static_cast<size_t>(number);
    const std::string &flag = settings[setting].flag;
    std::string begin = flag + ": '" + tensor.name() + "' cannot have an adapter: ";
    if (!InitializerGraph::isFloat(tensor))
      return Status::refusal(begin + "it is " + dataTypeName(tensor.data_type()));
    std::vector<Layer> layers;
    if (Status found = finder.find(tensor, layers); !found.isOk())
      return Status::refusal(begin + found.getMessage());
    int64_t rows = tensor.dims(0), least = 1;
    for (int i = 1; i < tensor.dims_size(); ++i)
      least *= tensor.dims(i);
    least = std::min(least, rows);
    if (settings[setting].rank > least)
      return Status::refusal(flag + ": rank is " + std::to_string(settings[setting].rank) + ", but '" +
                             tensor.name() + "' has rank " + std::to_string(least) + " at most");
    if (opset < 7)
      return Status::refusal(flag + ": adapters need opset 7, and the model has opset " +
                             std::to_string(opset));
    if (settings[setting].dropout > 0 && opset < 12)
      return Status::refusal(flag + ": dropout needs opset 12, and the model has opset " +
                             std::to_string(opset));
    auto [a, b] = namesOf(tensor.name(), layers[0].kind);
    for (const std::string &name : {a, b})
      if (!taken.insert(name).second)
        return Status::refusal(begin + "the name '" + name + "' is taken");
    used.insert(setting);
    chosen.push_back({&tensor, layers, setting});
  }
  for (size_t i = 0; i < settings.size(); ++i)
    if (!used.count(i))
      return Status::refusal(
          settings[i].flag +
          ": no initializer has a name that it matches whole; an earlier --lora may take those that "
          "do, or they are tied to equal ones (--untie NAME)");
  std::shared_ptr<const Model> edited;
  ORTC_TRY(model->edit(
      [&](proto::ModelProto &proto) {
        AdapterWriter writer(*proto.mutable_graph(), seed);
        for (const Chosen &each : chosen) {
          adapters.push_back(writer.add(*each.weight, each.layers, settings[each.setting]));
          adapters.back().setting = each.setting;
        }
        writer.finish();
      },
      edited));
  model = std::move(edited);
  return Status();
}

} // namespace ortc::frontend
