// Which handler legalises an operator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/legalize/Table.h"

#include "dialects/onnx/OnnxOperators.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <tuple>

using namespace mlir;

namespace ortc::legalize {

namespace handlers {
#define ORTC_OPERATOR(domain, name, first, last, handler) LogicalResult handler(Node &);
#define ORTC_FLOATS ORTC_OPERATOR
#define ORTC_MOVEMENT ORTC_OPERATOR
#define ORTC_SPREAD ORTC_OPERATOR
#define ORTC_SEQUENCES ORTC_OPERATOR
#include "compiler/legalize/Operators.inc"
} // namespace handlers

static constexpr int64_t kNewest = onnx::kNewestOpset;

ArrayRef<Operator> getOperators() {
  static const auto table = [] {
    llvm::SmallVector<Operator> entries = {
#define ORTC_OPERATOR(domain, name, first, last, handler)                                                    \
  {domain, name, first, last, handlers::handler, OperandKind::any},
#define ORTC_FLOATS(domain, name, first, last, handler)                                                      \
  {domain, name, first, last, handlers::handler, OperandKind::floats},
#define ORTC_MOVEMENT(domain, name, first, last, handler)                                                    \
  {domain, name, first, last, handlers::handler, OperandKind::moved},
#define ORTC_SEQUENCES(domain, name, first, last, handler)                                                   \
  {domain, name, first, last, handlers::handler, OperandKind::sequences},
#define ORTC_SPREAD(domain, name, first, last, handler)                                                      \
  {domain, name, first, last, handlers::handler, OperandKind::spread},
#include "compiler/legalize/Operators.inc"
    };
    llvm::sort(entries, [](const Operator &a, const Operator &b) {
      return std::tie(a.domain, a.name, a.first) < std::tie(b.domain, b.name, b.first);
    });
    return entries;
  }();
  return table;
}

const Operator *findOperator(StringRef domain, StringRef name, int64_t since, bool &known) {
  known = false;
  for (const Operator &entry : getOperators()) {
    if (entry.domain != domain || entry.name != name)
      continue;
    known = true;
    if (entry.first <= since && since <= entry.last)
      return &entry;
  }
  return nullptr;
}

} // namespace ortc::legalize
