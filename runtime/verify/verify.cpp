// Ed25519 after RFC 8032, 5.1.7: the check of a signature.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ortc/verify.h"

#include <string.h>

#include "runtime/verify/point.h"
#include "runtime/verify/sha512.h"

using namespace ortc::verify;

/// The number of 512 bits, least significant byte first, by the order of the base point.
static Number reduceDigest(const uint8_t digest[64]) {
  Number rest = {};
  for (unsigned i = 512; i-- > 0;) {
    uint32_t carry = digest[i / 8] >> i % 8 & 1;
    for (uint32_t &word : rest.at) {
      uint32_t top = word >> 31;
      word = word << 1 | carry;
      carry = top;
    }
    reduce(rest, kOrder);
  }
  return rest;
}

extern "C" {

int32_t ortc_verify_ed25519(const uint8_t signature[64], const void *message, size_t bytes,
                            const uint8_t public_key[32]) {
  Point key;
  Number s = load(signature + 32), rest = s;
  if (reduce(rest, kOrder) || !decode(key, public_key) || hasSmallOrder(key))
    return 1;
  uint8_t digest[64];
  Sha512 hash;
  hash.put(signature, 32);
  hash.put(public_key, 32);
  hash.put(message, bytes);
  hash.finish(digest);
  // R = s B - k A. Its encoding is the only one, so comparing bytes refuses every other.
  subtract(key.x, kPrime, key.x);
  subtract(key.t, kPrime, key.t);
  Point r = addMultiples(s, kBase, reduceDigest(digest), key);
  encode(digest, r);
  return hasSmallOrder(r) || memcmp(digest, signature, 32) != 0;
}

int32_t ortc_verify_signature(void *context, const uint8_t digest[32], const void *signature, size_t bytes) {
  return bytes != ORTC_SIGNATURE_BYTES ||
         ortc_verify_ed25519((const uint8_t *)signature, digest, 32, (const uint8_t *)context);
}
}
