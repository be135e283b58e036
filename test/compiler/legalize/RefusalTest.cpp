// Attributes and sizes that no program can have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each case is one node with what a damaged or hostile file may hold. It must be refused with its reason, at
// once: no loop, division or allocation may depend on a value before it is checked.
#include "compiler/legalize/Legalize.h"
#include "dialects/onnx/OnnxDialect.h"
#include "dialects/train/TrainDialect.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace ortc;
using namespace ortc::legalize;

namespace {

struct Refusal {
  const char *name;
  const char *op;
  int since;
  /// Types of graph inputs, or initializers ("dense<..> : type"); "" is absent.
  std::vector<std::string> operands;
  std::string attributes;
  const char *reason;
  const char *domain = "";
};

void PrintTo(const Refusal &refusal, std::ostream *stream) { *stream << refusal.name; }

const std::string kImage = "tensor<1x2x8x8xf32>", kFilter = "dense<0.5> : tensor<2x2x3x3xf32>",
                  kNone = "dense<> : tensor<0xf32>";

/// GroupQueryAttention of 2 heads of size 4, 4 places, and what each case has besides: `rest` from operand 3
/// on (past_key, past_value, seqlens_k, total_sequence_length, cos_cache, ..).
Refusal groupQuery(const char *name, const std::vector<std::string> &rest, const std::string &attributes,
                   const char *reason) {
  const std::string sequence = "tensor<1x4x8xf32>", heads = "num_heads = 2 : i64, kv_num_heads = 2 : i64";
  std::vector<std::string> operands = {sequence, sequence, sequence};
  operands.insert(operands.end(), rest.begin(), rest.end());
  return {name,   "GroupQueryAttention", 0, operands, attributes.empty() ? heads : heads + ", " + attributes,
          reason, "com.microsoft"};
}

const std::string kLengths = "dense<3> : tensor<1xi32>", kTotal = "dense<4> : tensor<1xi32>",
                  kPast = "tensor<1x2x6x4xf32>", kAngles = "tensor<8x2xf32>";

const Refusal kRefusals[] = {
    {"ConvStride",
     "Conv",
     11,
     {kImage, kFilter},
     "strides = array<i64: 4611686018427387904, 1>",
     "strides holds 4611686018427387904, which is not from 1 to 1048576"},
    {"ConvDilation",
     "Conv",
     11,
     {kImage, kFilter},
     "dilations = array<i64: 1, 4611686018427387904>",
     "dilations holds 4611686018427387904"},
    {"ConvPads",
     "Conv",
     11,
     {kImage, kFilter},
     "pads = array<i64: 9223372036854775807, 0, 9223372036854775807, 0>",
     "pads holds 9223372036854775807"},
    {"ConvNegativePads", "Conv", 11, {kImage, kFilter}, "pads = array<i64: -1, 0, 0, 0>", "pads holds -1"},
    {"ConvShortList",
     "Conv",
     11,
     {kImage, kFilter},
     "strides = array<i64: 2>",
     "strides has 1 entries instead of 2"},
    {"ConvGroups",
     "Conv",
     11,
     {kImage, kFilter},
     "group = 4611686018427387905 : i64",
     "4611686018427387905 groups"},
    {"ConvNoGroup", "Conv", 11, {kImage, kFilter}, "group = 0 : i64", "0 groups"},
    {"ConvAutoPad", "Conv", 11, {kImage, kFilter}, "auto_pad = \"same\"", "auto_pad 'same' is not known"},
    {"ConvKernelShape",
     "Conv",
     11,
     {kImage, kFilter},
     "kernel_shape = array<i64: 5, 5>",
     "kernel_shape 5x5 for a filter of 3x3"},
    {"ConvTransposeStride",
     "ConvTranspose",
     11,
     {kImage, kFilter},
     "strides = array<i64: 0, 1>",
     "strides holds 0"},
    {"ConvTransposeDilation",
     "ConvTranspose",
     11,
     {kImage, kFilter},
     "dilations = array<i64: -1, 1>",
     "dilations holds -1"},
    {"ConvTransposeShortList",
     "ConvTranspose",
     11,
     {kImage, kFilter},
     "strides = array<i64: 2>",
     "strides has 1 entries instead of 2"},
    {"ConvTransposeBias",
     "ConvTranspose",
     11,
     {kImage, kFilter, "dense<0.5> : tensor<3xf32>"},
     "",
     "a bias of shape 3 for 2 features"},
    {"ConvTransposeOutputPadding",
     "ConvTranspose",
     11,
     {kImage, kFilter},
     "output_padding = array<i64: -1, 0>",
     "output_padding holds -1"},
    {"ConvTransposeOutputShape",
     "ConvTranspose",
     11,
     {kImage, kFilter},
     "output_shape = array<i64: 8>",
     "output_shape has 1 entries instead of 2"},
    {"SplitOutputs", "Split", 18, {kImage}, "num_outputs = 3 : i64", "it has 1 outputs, but num_outputs = 3"},
    {"TriluEmptyK", "Trilu", 14, {kImage, "dense<> : tensor<0xi64>"}, "", "its k has 0 elements, not one"},
    {"AttentionContradictingHeads",
     "Attention",
     23,
     {kImage, kImage, kImage},
     "q_num_heads = 4 : i64, kv_num_heads = 2 : i64",
     "q_num_heads = 4 and kv_num_heads = 2 contradict query 1x2x8x8"},
    {"QuantizeToFloat8",
     "QuantizeLinear",
     21,
     {kImage, "dense<0.5> : tensor<f32>"},
     "output_dtype = 17 : i64",
     "quantising to ONNX element type 17 is not supported"},
    {"QuantizeScale",
     "QuantizeLinear",
     13,
     {kImage, "dense<0.5> : tensor<3xf32>"},
     "axis = 1 : i64",
     "operand 1 of shape 3 does not fit an input of shape 1x2x8x8"},
    {"QuantizeBlock",
     "QuantizeLinear",
     21,
     {kImage, "dense<0.5> : tensor<3xf32>"},
     "block_size = 9223372036854775807 : i64",
     "a block_size of 9223372036854775807"},
    {"DftAxis", "DFT", 17, {kImage}, "axis = 3 : i64", "is no real or complex signal"},
    {"StftFrames",
     "STFT",
     17,
     {"tensor<1x8x1xf32>", "dense<1> : tensor<i64>", "dense<0.5> : tensor<9xf32>"},
     "",
     "frames of length 9 of a signal of shape 1x8x1"},
    {"ConvTransposeHuge",
     "ConvTranspose",
     11,
     {kImage, kFilter},
     "output_shape = array<i64: 1099511627776, 1099511627776>",
     "which has more than 1099511627776 elements"},
    {"MaxPoolKernel",
     "MaxPool",
     12,
     {kImage},
     "kernel_shape = array<i64: 1073741824, 1>",
     "kernel_shape holds 1073741824"},
    {"MaxPoolPadding",
     "MaxPool",
     12,
     {kImage},
     "kernel_shape = array<i64: 1, 1>, pads = array<i64: 1, 0, 0, 0>",
     "window 0 of spatial dimension 0 lies in the padding alone"},
    {"MaxPoolPaddingBehind",
     "MaxPool",
     12,
     {kImage},
     "kernel_shape = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 1048576>",
     "window 1048583 of spatial dimension 1 lies in the padding alone"},
    {"LpPoolPower",
     "LpPool",
     11,
     {kImage},
     "kernel_shape = array<i64: 2, 2>, p = 0 : i64",
     "p is 0, which is below 1"},
    {"GlobalLpPoolPower", "GlobalLpPool", 2, {kImage}, "p = -2 : i64", "p is -2, which is below 1"},
    {"LpNormalizationPower", "LpNormalization", 1, {kImage}, "p = 0 : i64", "p is 0, not 1 or 2"},
    {"GlobalPoolOfNothing", "GlobalAveragePool", 1, {"tensor<1x2x0x8xf32>"}, "", "without elements"},
    {"LrnSize", "LRN", 13, {kImage}, "size = 1000000000 : i64", "a size of 1000000000"},
    {"DepthToSpaceNoBlock", "DepthToSpace", 13, {kImage}, "blocksize = 0 : i64", "blocks of 0"},
    {"DepthToSpaceBlock",
     "DepthToSpace",
     13,
     {kImage},
     "blocksize = 4294967296 : i64",
     "blocks of 4294967296"},
    {"SpaceToDepthBlock",
     "SpaceToDepth",
     13,
     {"tensor<1x2x0x0xf32>"},
     "blocksize = 4611686018427387904 : i64",
     "blocks of 4611686018427387904"},
    {"ResizeOfNothing",
     "Resize",
     13,
     {"tensor<1x0xf32>", kNone, kNone, "dense<[1, 4]> : tensor<2xi64>"},
     "",
     "dimension 1 has no elements to resize"},
    {"ResizeScale",
     "Resize",
     13,
     {"tensor<1x4xf32>", kNone, "dense<[1.0, 1.0e30]> : tensor<2xf32>"},
     "",
     "a scale that is not from 0"},
    {"ResizeNaN",
     "Resize",
     13,
     {"tensor<1x4xf32>", kNone, "dense<[1.0, 0x7FC00000]> : tensor<2xf32>"},
     "",
     "a scale that is not from 0"},
    {"ResizeAxesTwice",
     "Resize",
     18,
     {"tensor<1x4xf32>", kNone, kNone, "dense<[8, 8]> : tensor<2xi64>"},
     "axes = array<i64: 1, 1>",
     "axis 1 is given twice"},
    {"ResizeMode",
     "Resize",
     13,
     {"tensor<1x4xf32>", kNone, kNone, "dense<[1, 8]> : tensor<2xi64>"},
     "coordinate_transformation_mode = \"half\"",
     "coordinate_transformation_mode 'half' is not known"},
    {"AffineGridSize",
     "AffineGrid",
     20,
     {"tensor<1x2x3xf32>", "dense<[1, 1, 1048576, 1048576]> : tensor<4xi64>"},
     "",
     "it needs 1099511627777 numbers at compile time; a model may need 41943040"},
    {"RangeFloat",
     "Range",
     11,
     {"dense<0.0> : tensor<f32>", "dense<2.0e10> : tensor<f32>", "dense<1.0> : tensor<f32>"},
     "",
     "it needs 20000000000 numbers at compile time; a model may need 41943040, of which 41943040 are left: "
     "make it smaller, "
     "or compute its result outside the model and feed it as an input"},
    {"RangeFloatHuge",
     "Range",
     11,
     {"dense<0.0> : tensor<f32>", "dense<1.0e30> : tensor<f32>", "dense<1.0> : tensor<f32>"},
     "",
     "it needs 1099511627776 numbers at compile time"},
    {"RangeInfinite",
     "Range",
     11,
     {"dense<0.0> : tensor<f32>", "dense<0x7F800000> : tensor<f32>", "dense<1.0> : tensor<f32>"},
     "",
     "is not finite"},
    {"RangeWhole",
     "Range",
     11,
     {"dense<-9223372036854775808> : tensor<i64>", "dense<9223372036854775807> : tensor<i64>",
      "dense<1> : tensor<i64>"},
     "",
     "it needs 1099511627776 numbers at compile time"},
    {"ConstantOfShapeHuge", "ConstantOfShape", 9, {"dense<4294967296> : tensor<2xi64>"}, "", "is too large"},
    {"ExpandHuge",
     "Expand",
     13,
     {"tensor<1xf32>", "dense<4611686018427387904> : tensor<2xi64>"},
     "",
     "which has more than 1099511627776 elements"},
    {"TileWide",
     "Tile",
     13,
     {"tensor<4194304xf32>", "dense<1099511627776> : tensor<1xi64>"},
     "",
     "repeated 1099511627776 times"},
    {"TileHuge",
     "Tile",
     13,
     {"tensor<4xf32>", "dense<4611686018427387904> : tensor<1xi64>"},
     "",
     "a repeat of"},
    {"TileOverflow",
     "Tile",
     13,
     {"tensor<1024x1024xf32>", "dense<1000000000> : tensor<2xi64>"},
     "",
     "which has more than 1099511627776 elements"},
    {"OneHotDepth",
     "OneHot",
     11,
     {"tensor<2xi64>", "dense<1.0e30> : tensor<f32>", "dense<[0.0, 1.0]> : tensor<2xf32>"},
     "",
     "a depth that is not one number"},
    {"PadHuge",
     "Pad",
     13,
     {"tensor<2x2xf32>", "dense<2147483648> : tensor<4xi64>"},
     "",
     "which has more than 1099511627776 elements"},
    {"PadWrap",
     "Pad",
     19,
     {"tensor<2xf32>", "dense<2000000000> : tensor<2xi64>"},
     "mode = \"wrap\"",
     "it needs 4000000002 numbers at compile time"},
    {"ReshapeOverflow",
     "Reshape",
     14,
     {"tensor<4xf32>", "dense<4294967296> : tensor<2xi64>"},
     "",
     "cannot be reshaped"},
    {"SplitOverflow",
     "Split",
     13,
     {"tensor<4xf32>", "dense<9223372036854775807> : tensor<1xi64>"},
     "",
     "its sizes exceed"},
    {"GatherNDBatch",
     "GatherND",
     12,
     {"tensor<2x3xf32>", "tensor<2x1xi64>"},
     "batch_dims = 9223372036854775807 : i64",
     "do not fit"},
    {"GatherNDDepth", "GatherND", 12, {"tensor<2x3xf32>", "tensor<2x3xi64>"}, "", "do not fit"},
    {"GatherFloatIndices",
     "Gather",
     13,
     {"tensor<3xf32>", "dense<1.0> : tensor<1xf32>"},
     "",
     "operand 1 has element type float, where Gather takes int32, int64"},
    {"ScatterNDUpdates",
     "ScatterND",
     18,
     {"tensor<4x6xf32>", "dense<[[0], [1]]> : tensor<2x1xi64>", "tensor<6x2xf32>"},
     "",
     "updates of shape 6x2 do not fit indices of shape 2x1"},
    {"CompressFloatCondition",
     "Compress",
     11,
     {"tensor<3xf32>", "dense<1.0> : tensor<1xf32>"},
     "",
     "operand 1 has element type float, where Compress takes bool"},
    {"SuppressionOfIntegers",
     "NonMaxSuppression",
     11,
     {"dense<1> : tensor<1x2x4xi32>", "dense<1> : tensor<1x1x2xi32>"},
     "",
     "operand 0 has element type int32, where NonMaxSuppression takes float"},
    {"ReduceLogOfIntegers",
     "ReduceLogSumExp",
     18,
     {"tensor<3xi32>"},
     "noop_with_empty_axes = 1 : i64",
     "integers are not supported"},
    {"MeanOfIntegers",
     "Mean",
     13,
     {"tensor<3xi32>", "tensor<3xi32>"},
     "",
     "where Mean takes float, float16, double, bfloat16"},
    {"MatMulRank",
     "MatMul",
     13,
     {"tensor<1x1x1x1x1x1x1x1x1x1x1x1x2x2xf32>", "tensor<2x2xf32>"},
     "",
     "more than 8 dimensions"},
    {"EinsumDot", "Einsum", 12, {"tensor<2x2xf32>"}, "equation = \".i->i\"", "more than letters"},
    {"EinsumTwice", "Einsum", 12, {"tensor<2xf32>"}, "equation = \"i->ii\"", "a label twice"},
    {"ArgMaxOfNothing", "ArgMax", 13, {"tensor<2x0xf32>"}, "axis = 1 : i64", "axis 1 has no elements"},
    {"AttentionPast",
     "Attention",
     23,
     {"tensor<1x2x4x8xf32>", "tensor<1x2x4x8xf32>", "tensor<1x2x4x8xf32>", "tensor<2x4xi1>", "tensor<8xf32>",
      "tensor<8xf32>"},
     "",
     "a past of shape 8 does not fit"},
    {"AttentionHeads",
     "Attention",
     23,
     {"tensor<1x2x4x8xf32>", "tensor<1x2x4x8xf32>", "tensor<1x3x4x8xf32>"},
     "",
     "do not fit"},
    {"RecurrentWeights",
     "LSTM",
     14,
     {"tensor<2x2x3xf32>", "dense<0.5> : tensor<1x8x3xf32>", "dense<0.5> : tensor<1x7x2xf32>"},
     "",
     "R has shape 1x7x2, not 1x8x2"},
    {"RecurrentActivation",
     "RNN",
     14,
     {"tensor<2x2x3xf32>", "dense<0.5> : tensor<1x2x3xf32>", "dense<0.5> : tensor<1x2x2xf32>"},
     "activations = [\"Sinc\"]",
     "activation 'Sinc'"},
    {"TypesOfOneParameter",
     "Less",
     13,
     {"tensor<2xi8>", "tensor<2xui8>"},
     "",
     "operands 0 and 1 have different element types, int8 and uint8"},
    {"PadOfNothing",
     "Pad",
     19,
     {"tensor<0x3xf32>", "dense<[1, 0, 0, 0]> : tensor<4xi64>"},
     "mode = \"wrap\"",
     "its pads leave nothing of dimension 0"},
    {"InputHuge",
     "Relu",
     14,
     {"tensor<4294967296x4294967296xf32>"},
     "",
     "has more than 1099511627776 elements"},
    groupQuery("GroupQueryPlaces", {"", "", kLengths, kTotal, "", "", "tensor<1x4xi64>"}, "",
               "operand 9 is not supported"),
    groupQuery("GroupQueryBias", {"", "", kLengths, kTotal, "", "", "", "tensor<1x2x4x4xf32>"}, "",
               "operand 10 is not supported"),
    groupQuery("GroupQuerySink", {"", "", kLengths, kTotal, "", "", "", "", "tensor<2xf32>"}, "",
               "operand 11 is not supported"),
    groupQuery("GroupQuerySmoothSoftmax", {"", "", kLengths, kTotal}, "smooth_softmax = 1 : i64",
               "attribute 'smooth_softmax' is not supported"),
    groupQuery("GroupQueryScores", {"", "", kLengths, kTotal}, "qk_output = 1 : i64",
               "attribute 'qk_output' is not supported"),
    groupQuery("GroupQuerySlidingCache", {"", "", kLengths, kTotal}, "sliding_window_cache = 1 : i64",
               "attribute 'sliding_window_cache' is not supported"),
    groupQuery("GroupQueryNotCausal", {"", "", kLengths, kTotal}, "causal = 0 : i64",
               "causal = 0 is not supported"),
    groupQuery("GroupQueryQuantizedKeys", {"", "", kLengths, kTotal}, "k_quant_type = \"PER_TENSOR\"",
               "attribute 'k_quant_type' is not supported"),
    groupQuery("GroupQueryQuantizedValues", {"", "", kLengths, kTotal}, "v_quant_type = \"PER_CHANNEL\"",
               "attribute 'v_quant_type' is not supported"),
    groupQuery("GroupQueryHalfAPast", {kPast, "", "dense<9> : tensor<1xi32>", "dense<10> : tensor<1xi32>"},
               "", "only one of past_key and past_value is there"),
    groupQuery("GroupQueryOtherPast",
               {kPast, "tensor<1x2x5x4xf32>", "dense<9> : tensor<1xi32>", "dense<10> : tensor<1xi32>"}, "",
               "a past of shape 1x2x5x4 does not fit"),
    groupQuery("GroupQueryPartOfPast", {kPast, kPast, kLengths, kTotal}, "",
               "a past that is not known to be full (seqlens_k) is not supported"),
    groupQuery("GroupQueryUnknownPast", {kPast, kPast, "tensor<1xi32>", "dense<10> : tensor<1xi32>"}, "",
               "a past that is not known to be full (seqlens_k) is not supported"),
    groupQuery("GroupQueryNoAngles", {"", "", kLengths, kTotal}, "do_rotary = 1 : i64",
               "do_rotary without cos_cache and sin_cache"),
    groupQuery("GroupQueryFewAngles",
               {kPast, kPast, "dense<9> : tensor<1xi32>", "dense<10> : tensor<1xi32>", kAngles, kAngles},
               "do_rotary = 1 : i64", "a cos_cache of 8 rows for 10 places"),
    groupQuery("GroupQueryOtherType", {"", "", "dense<3> : tensor<1xi64>", kTotal}, "",
               "operand 5 has element type int64, where GroupQueryAttention takes int32"),
    {"GroupQueryHeads",
     "GroupQueryAttention",
     0,
     {"tensor<1x4x8xf32>", "tensor<1x4x8xf32>", "tensor<1x4x8xf32>", "", "", kLengths, kTotal},
     "num_heads = 3 : i64, kv_num_heads = 2 : i64",
     "a query of shape 1x4x8 with 3 heads and 2 of keys",
     "com.microsoft"},
    {"GroupQueryPacked",
     "GroupQueryAttention",
     0,
     {"tensor<1x4x8xf32>", "", "", "", "", kLengths, kTotal},
     "num_heads = 2 : i64, kv_num_heads = 2 : i64",
     "8 features for 6 heads",
     "com.microsoft"},
};

class RefusalTest : public testing::TestWithParam<Refusal> {};

/// The case as a graph of the onnx dialect.
std::string graphOf(const Refusal &refusal) {
  std::string names, inputs, inputDims, initializers, operands, types;
  for (size_t i = 0; i < refusal.operands.size(); ++i) {
    std::string name = "x" + std::to_string(i), text = refusal.operands[i], separator = i ? ", " : "";
    if (text.empty()) {
      operands += separator + "%none";
      types += separator + "none";
      continue;
    }
    size_t colon = text.find(" : ");
    std::string type = colon == std::string::npos ? text : text.substr(colon + 3);
    operands += separator + "%" + name;
    types += separator + type;
    if (colon != std::string::npos) {
      initializers += "  %" + name + " = onnx.initializer \"" + name + "\" " + text + "\n";
      continue;
    }
    separator = names.empty() ? "" : ", ";
    names += separator + "\"" + name + "\"";
    inputDims += separator + "[]";
    inputs += separator + "%" + name + ": " + type;
  }
  std::string domain = *refusal.domain ? std::string(" of \"") + refusal.domain + "\"" : "";
  std::string body = "  %none = onnx.none\n" + initializers + "  %y = onnx.node \"" + refusal.op + "\"" +
                     domain + " since " + std::to_string(refusal.since) + " (" + operands + ") {" +
                     refusal.attributes + "} -> [\"y\"] : (" + types + ") -> !onnx.any\n" +
                     "  onnx.return %y : !onnx.any\n";
  return "onnx.graph \"g\" [" + names + "] [" + inputDims + "] -> [\"y\"] [!onnx.any] [[]] {\n" +
         (inputs.empty() ? "" : "^bb0(" + inputs + "):\n") + body + "}\n";
}

TEST_P(RefusalTest, SaysWhy) {
  MLIRContext context;
  context.loadDialect<onnx::OnnxDialect>();
  auto source = parseSourceString<ModuleOp>(graphOf(GetParam()), ParserConfig(&context));
  ASSERT_TRUE(source) << graphOf(GetParam());
  OwningOpRef<ModuleOp> target = ModuleOp::create(UnknownLoc::get(&context));
  LegalizeOptions options;
  options.freeze.emplace_back();
  std::string error;
  ASSERT_TRUE(NamePattern::parse(".*", options.freeze.back(), error)) << error;
  for (Mode mode : {Mode::train, Mode::eval}) {
    options.mode = mode;
    LegalizeReport report;
    EXPECT_TRUE(failed(ortc::legalize::legalize(*source, *target, options, report)));
    EXPECT_NE(report.message().find(GetParam().reason), std::string::npos) << report.message();
  }
}

INSTANTIATE_TEST_SUITE_P(Refusals, RefusalTest, testing::ValuesIn(kRefusals),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
