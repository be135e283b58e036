// What can go wrong with a delta: a status, and a text with '#' for the name of the tensor.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "ortc/ortc.h"

#define ORTC_DELTA_INCOMPLETE "\1the size, the kind or a callback is missing"
#define ORTC_DELTA_NO_CHECKPOINT "\2the base is no checkpoint"
#define ORTC_DELTA_DAMAGED "\5the artifact does not match its hash"
#define ORTC_DELTA_READ "\7the base cannot be read at '#'"
#define ORTC_DELTA_SESSION "\7the session cannot be read"
#define ORTC_DELTA_SINK "\7sink failed"
#define ORTC_DELTA_ABSENT "\10the base has no '#'"
#define ORTC_DELTA_DIFFERS "\11'#' has another size or type in the base"
#define ORTC_DELTA_NOT_FINITE "\13the change of '#' is not finite"
static_assert(ORTC_E_ARGUMENT == 1 && ORTC_E_FORMAT == 2 && ORTC_E_HASH == 5 && ORTC_E_IO == 7 &&
              ORTC_E_NOT_FOUND == 010 && ORTC_E_SHAPE == 011 && ORTC_E_NOT_FINITE == 013);
