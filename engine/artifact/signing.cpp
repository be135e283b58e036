// Ed25519 keys and signatures, of tools: files of keys, and libsodium around them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/artifact/signing.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include <sodium.h>

#include "support/HalfMade.h"
#include "support/Hex.h"
#include "support/MappedFile.h"

namespace ortc::engine {
namespace {

constexpr size_t kLargestFile = 1 << 16;
constexpr const char *kPrivate = "PRIVATE KEY", *kPublic = "PUBLIC KEY";

/// What comes before the 32 bytes in the only DER that says Ed25519 (RFC 8410; versions with attributes are not read).
constexpr uint8_t kPrivateHead[] = {0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20};
constexpr uint8_t kPublicHead[] = {0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0};

using Key = std::array<uint8_t, 32>;

/// A text that is overwritten when it goes.
struct Secret {
  std::string text;
  ~Secret() { sodium_memzero(text.data(), text.size()); }
};

Status initialise() {
  return sodium_init() < 0 ? Status::failure("libsodium finds no source of random numbers") : Status();
}

Status readText(const std::string &path, std::string &text) {
  ORTC_TRY(checkRegularFile(path));
  std::ifstream file(path, std::ios::binary);
  text.resize(kLargestFile + 1);
  file.read(text.data(), std::streamsize(text.size()));
  text.resize(size_t(file.gcount()));
  if (text.empty() && (!file.is_open() || file.bad()))
    return Status::failure("cannot read " + path);
  return text.size() > kLargestFile ? Status::refusal(path + ": is too large for a key") : Status();
}

/// Base64 with any white space between. Empty where it is something else, or more than `most` bytes.
std::string decodeBase64(std::string_view text, size_t most) {
  std::string bytes(most, 0);
  size_t count = 0;
  if (sodium_base642bin(reinterpret_cast<uint8_t *>(bytes.data()), most, text.data(), text.size(), " \t\r\n",
                        &count, nullptr, sodium_base64_VARIANT_ORIGINAL) != 0)
    count = 0;
  sodium_memzero(bytes.data() + count, most - count);
  bytes.resize(count);
  return bytes;
}

/// The 32 bytes behind `head` in the PEM block that begins at `begin`.
Status readPem(const std::string &path, std::string_view text, const char *wanted, std::string_view head,
               Key &key) {
  constexpr std::string_view kBegin = "-----BEGIN ", kDashes = "-----";
  size_t labelAt = text.find(kBegin) + kBegin.size(), labelEnd = text.find(kDashes, labelAt);
  std::string label(text.substr(labelAt, labelEnd == text.npos ? 0 : labelEnd - labelAt));
  if (label != wanted)
    return Status::refusal(
        path + ": holds " + (label.size() > 40 || label.empty() ? "no key" : "'" + label + "'") + ", but '" +
        wanted + "' is needed" +
        (label == "ENCRYPTED PRIVATE KEY" ? "; openssl pkey -in KEY -out PLAIN takes the password off"
         : label == kPrivate ? "; openssl pkey -in KEY -pubout -out PUBLIC writes the public half"
                             : ""));
  size_t begin = labelEnd + kDashes.size(), end = text.find("-----END " + label + "-----", begin);
  Secret der;
  if (end != text.npos)
    der.text = decodeBase64(text.substr(begin, end - begin), 4096);
  if (der.text.empty())
    return Status::refusal(path + ": is damaged: no base64 between BEGIN and END of '" + label + "'");
  if (der.text.size() != head.size() + key.size() ||
      std::string_view(der.text).substr(0, head.size()) != head)
    return Status::refusal(path +
                           ": holds another kind of key than Ed25519 (openssl genpkey -algorithm ed25519)");
  std::memcpy(key.data(), der.text.data() + head.size(), key.size());
  return Status();
}

Status readKey(const std::string &path, const char *wanted, std::string_view head, Key &key) {
  ORTC_TRY(initialise());
  Secret file;
  ORTC_TRY(readText(path, file.text));
  std::string_view text = file.text;
  if (text.find("-----BEGIN ") != text.npos)
    return readPem(path, text, wanted, head, key);
  size_t first = text.find_first_not_of(" \t\r\n"), last = text.find_last_not_of(" \t\r\n"), count = 0;
  text = first == text.npos ? "" : text.substr(first, last + 1 - first);
  if (text.size() == 2 * key.size() &&
      sodium_hex2bin(key.data(), key.size(), text.data(), text.size(), nullptr, &count, nullptr) == 0)
    return Status();
  Secret bytes{decodeBase64(text, key.size())};
  if (bytes.text.size() != key.size())
    return Status::refusal(path + ": is no key: neither PEM nor 32 bytes in hexadecimal digits or base64");
  std::memcpy(key.data(), bytes.text.data(), key.size());
  return Status();
}

template <size_t N> std::string_view asText(const uint8_t (&bytes)[N]) {
  return {reinterpret_cast<const char *>(bytes), N};
}

std::string makePem(const char *label, std::string_view head, const uint8_t key[32]) {
  Secret der{std::string(head) + std::string(reinterpret_cast<const char *>(key), 32)};
  char text[sodium_base64_ENCODED_LEN(64, sodium_base64_VARIANT_ORIGINAL)];
  sodium_bin2base64(text, sizeof text, reinterpret_cast<const uint8_t *>(der.text.data()), der.text.size(),
                    sodium_base64_VARIANT_ORIGINAL);
  std::string pem = std::string("-----BEGIN ") + label + "-----\n" + text + "\n-----END " + label + "-----\n";
  sodium_memzero(text, sizeof text);
  return pem;
}

/// A file that was not there before; it goes again unless it is kept.
class NewFile {
public:
  explicit NewFile(std::string path) : path(std::move(path)) {}
  ~NewFile() {
    guard.forget();
    if (descriptor >= 0 && !isKept)
      ::unlink(path.c_str());
    if (descriptor >= 0)
      ::close(descriptor);
  }
  Status write(const std::string &text, mode_t mode) {
    {
      SignalsWait signals;
      descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
      if (descriptor >= 0)
        guard.remember(path.c_str(), descriptor);
    }
    if (descriptor < 0 && errno == EEXIST)
      return Status::refusal(path + ": is there already; a key is never replaced");
    bool isWritten = descriptor >= 0 && ::fchmod(descriptor, mode) == 0 &&
                     ::write(descriptor, text.data(), text.size()) == ssize_t(text.size()) &&
                     ::fsync(descriptor) == 0;
    return isWritten ? Status() : Status::failure(path + ": cannot be written: " + std::strerror(errno));
  }
  void keep() { isKept = true; }

private:
  std::string path;
  int descriptor = -1;
  bool isKept = false;
  HalfMade guard;
};

} // namespace

Expected<SigningKey> SigningKey::make(const uint8_t seed[32]) {
  ORTC_TRY(initialise());
  SigningKey key;
  PublicKey half;
  crypto_sign_ed25519_seed_keypair(half.data(), key.secret.data(), seed);
  return key;
}

SigningKey::~SigningKey() { sodium_memzero(secret.data(), secret.size()); }

PublicKey SigningKey::getPublicKey() const {
  PublicKey key;
  crypto_sign_ed25519_sk_to_pk(key.data(), secret.data());
  return key;
}

Signature SigningKey::sign(const void *message, size_t bytes) const {
  Signature signature;
  crypto_sign_ed25519_detached(signature.data(), nullptr, static_cast<const uint8_t *>(message), bytes,
                               secret.data());
  return signature;
}

Expected<SigningKey> readSigningKey(const std::string &path) {
  Key seed{};
  Status status = readKey(path, kPrivate, asText(kPrivateHead), seed);
  Expected<SigningKey> key = status.isOk() ? SigningKey::make(seed.data()) : status;
  sodium_memzero(seed.data(), seed.size());
  return key;
}

Expected<PublicKey> readPublicKey(const std::string &path) {
  PublicKey key{};
  ORTC_TRY(readKey(path, kPublic, asText(kPublicHead), key));
  return key;
}

Status makeKeyFiles(const std::string &path) {
  ORTC_TRY(initialise());
  Key seed;
  randombytes_buf(seed.data(), seed.size());
  Expected<SigningKey> key = SigningKey::make(seed.data());
  Secret text{makePem(kPrivate, asText(kPrivateHead), seed.data())};
  sodium_memzero(seed.data(), seed.size());
  if (!key)
    return key.getStatus();
  NewFile secretFile(path), publicFile(path + ".pub");
  ORTC_TRY(secretFile.write(text.text, 0600));
  ORTC_TRY(publicFile.write(makePem(kPublic, asText(kPublicHead), key->getPublicKey().data()), 0644));
  secretFile.keep();
  publicFile.keep();
  return Status();
}

bool isSignedBy(const PublicKey &key, const void *message, size_t bytes, const Signature &signature) {
  return crypto_sign_ed25519_verify_detached(signature.data(), static_cast<const uint8_t *>(message), bytes,
                                             key.data()) == 0;
}

std::string formatKey(const PublicKey &key) { return formatHex(key.data(), key.size()); }

} // namespace ortc::engine
