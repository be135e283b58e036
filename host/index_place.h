// Where an index that is out of range comes from.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "host/session.h"

namespace ortc::host {

/// For the message of a step that failed for an index out of range in one of its inputs: "; it is from sample 3 of
/// FILE, ...". "" where it is no such message, or an index that the model computes.
std::string describeIndex(const std::string &message, Session &session, const Entry &entry,
                          const Batches &batches, int64_t slice, const Order *order);

} // namespace ortc::host
