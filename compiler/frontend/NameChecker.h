// The text of a model.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/Status.h"

#include <string>
#include <string_view>

namespace ortc::proto {
class ModelProto;
} // namespace ortc::proto

namespace ortc::frontend {

/// Whether the bytes are UTF-8 as Unicode defines it (no surrogates, nothing longer than needed) without a zero byte.
bool isText(std::string_view bytes);

/// Bytes as a message may show them: what is no text, and control characters, as \xNN.
std::string printable(std::string_view bytes);

/// No name of a model is longer. What is matched with regular expressions has to end somewhere: std::regex
/// recurses for every character, and 100,000 of them take more than a stack of 8 MiB.
inline constexpr size_t kMostNameBytes = 4096;

/// Refuses a model with a name, an attribute, a symbolic dimension or metadata that is no text: reports, manifests,
/// checkpoints and the C interface could not hold it. Refuses names, which values of metadata and strings of
/// attributes are not, of more than `kMostNameBytes`. Descriptions (doc_string), paths of external data, and
/// elements of tensors are read by nobody or are bytes, and may be anything.
Status checkNames(const proto::ModelProto &model);

} // namespace ortc::frontend
