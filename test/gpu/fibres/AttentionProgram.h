// Programs of attention and its gradients.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace ortc::fibres {

struct AttentionShape {
  const char *name;
  int64_t batch, keyHeads, groups, rows, keys, depth, columns;
  bool isCausal = false, hasMask = false, dropsOut = false; ///< a mask is a sum with an input, [batch, keys]
  const char *element = "f32";
  /// Of the largest result: as in test/e2e/DeviceAttentionTest.cpp, which has why.
  double tolerance = 1e-5;
  bool hasColumnsOfKeys = false; ///< keys lie across their depth
};
inline void PrintTo(const AttentionShape &shape, std::ostream *stream) { *stream << shape.name; }

inline std::string join(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// The text of a kernel of attention.
class AttentionProgram {
public:
  explicit AttentionProgram(const AttentionShape &s) : s(s) {}

  std::string forward() {
    begin();
    std::string m = let(rows(), "nn.reduce max " + score + " axes = [4] : " + all() + " -> " + rows());
    std::string e = let(all(), "math.exp " + let(all(), "arith.subf " + score + ", " + alongRows(m)));
    std::string l = let(rows(), "nn.reduce sum " + e + " axes = [4] : " + all() + " -> " + rows());
    std::string i = let(rows(), "arith.divf " + constant("1.0", rows()) + ", " + l);
    std::string p = drop(let(all(), "arith.mulf " + e + ", " + alongRows(i)));
    std::string y = mix(p, "v", keyType(s.columns), "contract = [4] x [2]", rowType(s.columns));
    return finish({{y, rowType(s.columns)}, {m, rows()}, {i, rows()}});
  }

  std::string queryGradient() {
    std::string change = changeOfScores();
    std::string how = s.hasColumnsOfKeys ? "contract = [4] x [3]" : "contract = [4] x [2]";
    std::string q = mix(change, "k", typeOfKeys(), how, rowType(s.depth));
    return finish({{q, rowType(s.depth)}});
  }

  std::string keyGradients() {
    std::string change = changeOfScores();
    std::string k = mix(change, "q", rowType(s.depth), "contract = [2, 3] x [2, 3]", keyType(s.depth));
    std::string v = mix(weights, "g", rowType(s.columns), "contract = [2, 3] x [2, 3]", keyType(s.columns));
    return finish({{k, keyType(s.depth)}, {v, keyType(s.columns)}});
  }

private:
  using Sizes = std::vector<int64_t>;

  static std::string tensor(const Sizes &sizes, const std::string &element = "f32") {
    std::string text = "tensor<";
    for (int64_t size : sizes)
      text += std::to_string(size) + "x";
    return text + element + ">";
  }
  std::string all(const char *element = "f32") const {
    return tensor({s.batch, s.keyHeads, s.groups, s.rows, s.keys}, element);
  }
  std::string rows() const { return tensor({s.batch, s.keyHeads, s.groups, s.rows}); }
  std::string rowType(int64_t size) const { return tensor({s.batch, s.keyHeads, s.groups, s.rows, size}); }
  std::string keyType(int64_t size) const { return tensor({s.batch, s.keyHeads, s.keys, size}); }
  std::string typeOfKeys() const {
    return s.hasColumnsOfKeys ? tensor({s.batch, s.keyHeads, s.depth, s.keys}) : keyType(s.depth);
  }
  std::string narrow(std::string type) const { return type.replace(type.rfind("f32"), 3, s.element); }
  bool isNarrow() const { return std::string(s.element) != "f32"; }

  std::string let(const std::string &type, const std::string &operation) {
    std::string name = "%v" + std::to_string(values++);
    code += name + " = " + operation + (operation.rfind("nn.", 0) == 0 ? "" : " : " + type) + "\n";
    return name;
  }
  std::string constant(const std::string &value, const std::string &type) {
    return let(type, "arith.constant dense<" + value + ">");
  }
  std::string alongRows(const std::string &row) {
    return let(all(), "nn.broadcast " + row + " dims = [0, 1, 2, 3] : " + rows() + " -> " + all());
  }
  /// An argument, extended where numbers are narrow.
  std::string input(const std::string &name, const std::string &type) {
    std::string stored = isNarrow() ? narrow(type) : type;
    if (std::find(names.begin(), names.end(), "%" + name) == names.end())
      names.push_back("%" + name), types.push_back(stored);
    return isNarrow() ? let(stored + " to " + type, "arith.extf %" + name) : "%" + name;
  }
  std::string rounded(const std::string &value, const std::string &type) {
    if (!isNarrow())
      return value;
    std::string small = let(type + " to " + narrow(type), "arith.truncf " + value);
    return let(narrow(type) + " to " + type, "arith.extf " + small);
  }
  std::string ofRows(const std::string &name) {
    names.push_back("%" + name), types.push_back(rows());
    return "%" + name;
  }

  std::string dot(const std::string &a, const std::string &aType, const std::string &b,
                  const std::string &bType, const std::string &how, const std::string &type) {
    return let(type, "nn.dot " + a + ", " + b + " batch = [0, 1] x [0, 1] " + how + " : " + aType + ", " +
                         bType + " -> " + type);
  }
  std::string mix(const std::string &scores, const std::string &name, const std::string &type,
                  const std::string &how, const std::string &result) {
    std::string left = rounded(scores, all());
    return dot(left, all(), input(name, type), type, how, result);
  }

  /// Scores, and what hides them.
  void begin() {
    std::string q = input("q", rowType(s.depth)), k = input("k", typeOfKeys());
    score = rounded(dot(q, rowType(s.depth), k, typeOfKeys(),
                        s.hasColumnsOfKeys ? "contract = [4] x [2]" : "contract = [4] x [3]", all()),
                    all());
    score = let(all(), "arith.mulf " + score + ", " + constant("0.25", all()));
    if (s.hasMask) {
      std::string type = tensor({s.batch, s.keys});
      names.push_back("%mask"), types.push_back(type);
      std::string wide = let(all(), "nn.broadcast %mask dims = [0, 4] : " + type + " -> " + all());
      score = let(all(), "arith.addf " + score + ", " + wide);
    }
    if (s.isCausal) {
      std::string type = all("i64");
      std::string i = let(type, "nn.iota axis = 3 : " + type), j = let(type, "nn.iota axis = 4 : " + type);
      std::string isSeen = let(type, "arith.cmpi sle, " + j + ", " + i);
      score = let(all("i1") + ", " + all(),
                  "arith.select " + isSeen + ", " + score + ", " + constant("0xFF800000", all()));
    }
    if (s.dropsOut) {
      names.push_back("%step"), types.push_back("tensor<i64>");
      std::string bits = "%v" + std::to_string(values++), type = all("i32");
      code += bits + ", " + bits + "x = nn.random %step key = 7 : tensor<i64> -> " + type + "\n";
      isKept = let(type, "arith.cmpi uge, " + bits + ", " + constant("536870912", type));
    }
  }

  std::string drop(const std::string &value) {
    if (!s.dropsOut)
      return value;
    std::string scaled = let(all(), "arith.mulf " + value + ", " + constant("1.125", all()));
    return let(all("i1") + ", " + all(),
               "arith.select " + isKept + ", " + scaled + ", " + constant("0.0", all()));
  }

  /// The gradient of scores, from the maxima, the reciprocal sums and the sums of gradients of the rows; sets the
  /// weights that are mixed.
  std::string changeOfScores() {
    begin();
    std::string m = ofRows("m"), i = ofRows("i"), t = ofRows("t");
    std::string e = let(all(), "math.exp " + let(all(), "arith.subf " + score + ", " + alongRows(m)));
    std::string p = let(all(), "arith.mulf " + e + ", " + alongRows(i));
    weights = drop(p);
    std::string g = input("g", rowType(s.columns)), v = input("v", keyType(s.columns));
    std::string dp = dot(g, rowType(s.columns), v, keyType(s.columns), "contract = [4] x [3]", all());
    std::string less = let(all(), "arith.subf " + drop(rounded(dp, all())) + ", " + alongRows(t));
    return let(all(), "arith.mulf " + p + ", " + less);
  }

  std::string finish(const std::vector<std::pair<std::string, std::string>> &results) {
    std::vector<std::string> given, typed, made, returned, returnedTypes, random;
    for (size_t i = 0; i < names.size(); ++i) {
      typed.push_back(names[i] + ": " + types[i]);
      bool isStep = names[i] == "%step";
      if (!isStep)
        random.push_back(names[i] + ": " + types[i]);
      made.push_back(names[i] == "%mask" ? "%hidden" : names[i]);
    }
    for (const auto &[name, type] : results)
      returned.push_back(name), returnedTypes.push_back(type);
    std::string inputs = "func.func @inputs(" + join(random) + ") -> (" + join(types) + ") {\n";
    if (s.dropsOut)
      inputs += "%step = arith.constant dense<3> : tensor<i64>\n";
    if (s.hasMask) { // the last keys are hidden
      std::string type = tensor({s.batch, s.keys}), whole = tensor({s.batch, s.keys}, "i64");
      inputs += "%low = arith.constant dense<0xFF800000> : " + type + "\n%end = arith.constant dense<" +
                std::to_string(s.keys - 7) + "> : " + whole + "\n%j = nn.iota axis = 1 : " + whole +
                "\n%is = arith.cmpi slt, %j, %end : " + whole +
                "\n%hidden = arith.select %is, %mask, %low : " + tensor({s.batch, s.keys}, "i1") + ", " +
                type + "\n";
    }
    inputs += "return " + join(made) + " : " + join(types) + "\n}\n";
    return inputs + "func.func @k(" + join(typed) + ") -> (" + join(returnedTypes) + ") {\n" + code +
           "return " + join(returned) + " : " + join(returnedTypes) + "\n}";
  }

  const AttentionShape &s;
  std::string code, score, isKept, weights;
  std::vector<std::string> names, types;
  int values = 0;
};

} // namespace ortc::fibres
