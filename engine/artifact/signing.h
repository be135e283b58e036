// Ed25519 keys and signatures, of tools: files of keys, and libsodium around them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "support/Expected.h"

namespace ortc::engine {

using PublicKey = std::array<uint8_t, 32>;
using Signature = std::array<uint8_t, 64>;

/// What signs. Its bytes are overwritten when it goes.
class SigningKey {
public:
  /// From the 32 bytes that RFC 8032 calls the private key.
  static Expected<SigningKey> make(const uint8_t seed[32]);
  SigningKey(const SigningKey &) = default;
  SigningKey &operator=(const SigningKey &) = default;
  ~SigningKey();

  PublicKey getPublicKey() const;
  Signature sign(const void *message, size_t bytes) const;

private:
  SigningKey() = default;
  std::array<uint8_t, 64> secret{}; ///< as libsodium has it: the seed, and the public key
};

/// Keys in files: PEM as `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout` write it (PKCS#8, SPKI; RFC
/// 8410), or the 32 bytes alone, in hexadecimal digits or base64. Refuse everything else and say what it is.
Expected<SigningKey> readSigningKey(const std::string &path);
Expected<PublicKey> readPublicKey(const std::string &path);

/// Makes a key: `path` with the private half, which nobody else may read, and `path`.pub with the public one. Refuses
/// where one of them is there already, and leaves neither where it fails.
Status makeKeyFiles(const std::string &path);

bool isSignedBy(const PublicKey &key, const void *message, size_t bytes, const Signature &signature);

/// In hexadecimal digits.
std::string formatKey(const PublicKey &key);

} // namespace ortc::engine
