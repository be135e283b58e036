//===- NameChecker.h - the text of a model --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/Status.h"

#include <string_view>

namespace ortc::proto {
class ModelProto;
} // namespace ortc::proto

namespace ortc::frontend {

/// Whether the bytes are UTF-8 as Unicode defines it (no surrogates, nothing longer than needed) without a zero byte.
bool isText(std::string_view bytes);

/// Bytes as a message may show them: what is no text, and control characters, as \xNN.
std::string printable(std::string_view bytes);

/// Refuses a model with a name, an attribute, a symbolic dimension or metadata that is no text: reports, manifests,
/// checkpoints and the C interface could not hold it. Descriptions (doc_string), paths of external data, and elements of
/// tensors are read by nobody or are bytes, and may be anything.
Status checkNames(const proto::ModelProto &model);

} // namespace ortc::frontend
