/* Ed25519 signatures of artifacts, checked on the device.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Usage: `ortc sign DIR --key K` signs an artifact; a program has the public key and says so when it opens one:
 *   ortc_host host = ORTC_INIT(ortc_host);
 *   host.context = (void *)kPublicKey;
 *   host.verify = ortc_verify_signature;
 * Nothing here allocates, keeps globals or calls an operating system. The code is not for secrets: how long it takes
 * depends on what it is given, all of which is public. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ortc/export.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ORTC_VERIFY_API ORTC_EXPORT

#define ORTC_SIGNATURE_BYTES 64u
#define ORTC_PUBLIC_KEY_BYTES 32u

/* An ortc_host.verify: 0 when `signature` is an Ed25519 signature of `digest` by the public key of 32 bytes that
 * `context` points to. */
ORTC_VERIFY_API int32_t ortc_verify_signature(void *context, const uint8_t digest[32], const void *signature,
                                              size_t bytes);

/* 0 when `signature` is one of `message` by `public_key`: Ed25519 of RFC 8032 without a context, and strict. Refused
 * are numbers and points that are not encoded as they should be (s of the group's order and more, y of the field's
 * prime and more), public keys and R of small order, and what holds only times the cofactor. */
ORTC_VERIFY_API int32_t ortc_verify_ed25519(const uint8_t signature[64], const void *message, size_t bytes,
                                            const uint8_t public_key[32]);

#ifdef __cplusplus
}
#endif
