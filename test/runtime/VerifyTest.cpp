// Ed25519 of the device: against the vectors of RFC 8032, and against libsodium. What one accepts the other does, too.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ortc/verify.h"

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sodium.h>

#include "runtime/verify/point.h"
#include "runtime/verify/sha512.h"
#include "support/Random.h"

namespace ortc::test {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes fromHex(const std::string &text) {
  Bytes bytes(text.size() / 2);
  if (text.empty())
    return bytes;
  EXPECT_EQ(sodium_hex2bin(bytes.data(), bytes.size(), text.data(), text.size(), nullptr, nullptr, nullptr),
            0);
  return bytes;
}

/// `first`, zeros or `fill`, and `last`.
Bytes point(uint8_t first, uint8_t fill, uint8_t last) {
  Bytes bytes(32, fill);
  bytes.front() = first;
  bytes.back() = last;
  return bytes;
}

struct Signed {
  Bytes key = Bytes(32), message, signature = Bytes(64);

  bool isGood() const {
    return ortc_verify_ed25519(signature.data(), message.data(), message.size(), key.data()) == 0;
  }
  bool isGoodForSodium() const {
    return crypto_sign_ed25519_verify_detached(signature.data(), message.data(), message.size(),
                                               key.data()) == 0;
  }
};

class VerifyTest : public testing::Test {
protected:
  VerifyTest() { EXPECT_GE(sodium_init(), 0); }
  Bytes draw(size_t bytes) {
    Bytes result(bytes);
    for (uint8_t &byte : result)
      byte = uint8_t(random.next());
    return result;
  }
  Signed makeSigned(size_t bytes) {
    Signed s;
    s.message = draw(bytes);
    Bytes secret(64);
    crypto_sign_ed25519_seed_keypair(s.key.data(), secret.data(), draw(32).data());
    crypto_sign_ed25519_detached(s.signature.data(), nullptr, s.message.data(), bytes, secret.data());
    return s;
  }
  Random random{20261126};
};

TEST_F(VerifyTest, VectorsOfRfc8032AreGood) { // 7.1: tests 1, 2, 3 and SHA(abc)
  const char *vectors[][3] = {{"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
                               "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33"
                               "bacc61e39701cf9b46bd25bf5f0595b"
                               "be24655141438e7a100b"},
                              {"3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
                               "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e159"
                               "96e458f3613d0f11d8c387b2eaeb430"
                               "2aeeb00d291612bb0c00"},
                              {"fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
                               "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f"
                               "290ae67f760984dc6594a7c15e9716e"
                               "d28dc027beceea1ec40a"},
                              {"ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
                               "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc"
                               "1a836ba3c23a3feebbd454d4423643c"
                               "e80e2a9ac94fa54ca49f",
                               "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b"
                               "3ecfdfbc7c66431e0303dca179c138a"
                               "c17ad9bef1177331a704"}};
  for (auto &[key, message, signature] : vectors) {
    Signed s{fromHex(key), fromHex(message), fromHex(signature)};
    EXPECT_TRUE(s.isGood()) << key;
    s.message.push_back(0);
    EXPECT_FALSE(s.isGood()) << key;
  }
}

TEST_F(VerifyTest, HashesAsSodiumDoes) {
  for (size_t bytes : {0, 1, 111, 112, 113, 127, 128, 129, 239, 240, 256, 1000}) {
    Bytes text = draw(bytes), own(64), other(64);
    verify::Sha512 hash;
    size_t first = bytes / 3;
    hash.put(text.data(), first);
    hash.put(text.data() + first, bytes - first);
    hash.finish(own.data());
    crypto_hash_sha512(other.data(), text.data(), bytes);
    EXPECT_EQ(own, other) << bytes;
  }
}

TEST_F(VerifyTest, SignaturesOfSodiumAreGood) {
  for (size_t i = 0; i < 300; i++)
    EXPECT_TRUE(makeSigned(i).isGood()) << i;
}

TEST_F(VerifyTest, EveryFlippedBitIsRefused) {
  Signed s = makeSigned(32);
  for (Bytes *part : {&s.signature, &s.message, &s.key})
    for (size_t bit = 0; bit < part->size() * 8; bit++) {
      (*part)[bit / 8] ^= uint8_t(1 << bit % 8);
      EXPECT_FALSE(s.isGood()) << part->size() << " bytes, bit " << bit;
      EXPECT_FALSE(s.isGoodForSodium());
      (*part)[bit / 8] ^= uint8_t(1 << bit % 8);
    }
  EXPECT_TRUE(s.isGood());
}

TEST_F(VerifyTest, NumbersOfTheGroupsOrderAndMoreAreRefused) {
  const Bytes order = fromHex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
  Signed s = makeSigned(32);
  for (int i = 1; i < 15; i++) { // s + i L is the same number to who does not look; below 2^256
    unsigned carry = 0;
    for (size_t k = 0; k < 32; k++) {
      carry += unsigned(s.signature[32 + k]) + order[k];
      s.signature[32 + k] = uint8_t(carry);
      carry >>= 8;
    }
    ASSERT_EQ(carry, 0u);
    EXPECT_FALSE(s.isGood()) << i;
    EXPECT_FALSE(s.isGoodForSodium()) << i;
  }
}

/// Every way to write a point of small order: eight points, and other encodings of those whose y is below 19 or whose
/// x is 0.
std::vector<Bytes> smallOrderPoints() {
  std::vector<Bytes> points;
  for (uint8_t sign : {0, 0x80}) {
    points.push_back(point(0, 0, sign));
    points.push_back(point(1, 0, sign));
    for (uint8_t first : {0xec, 0xed, 0xee}) // p - 1, p, p + 1
      points.push_back(point(first, 0xff, uint8_t(0x7f | sign)));
    for (const char *text : {"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
                             "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"}) {
      points.push_back(fromHex(text));
      points.back().back() |= sign;
    }
  }
  return points;
}

TEST_F(VerifyTest, KeysOfSmallOrderAreRefused) {
  // R = s B, for s = 1: fits every message of which k times the key is zero.
  Bytes base = fromHex("5866666666666666666666666666666666666666666666666666666666666666");
  for (const Bytes &key : smallOrderPoints())
    for (uint8_t message = 0; message < 64; message++) {
      Signed s{key, {message}, base};
      s.signature.resize(64);
      s.signature[32] = 1;
      EXPECT_FALSE(s.isGood()) << int(key[0]) << " " << int(message);
      EXPECT_FALSE(s.isGoodForSodium());
    }
}

/// The digest k of a signature, as a number below the order.
Bytes challenge(const Signed &s) {
  Bytes digest(64), k(32);
  crypto_hash_sha512_state state;
  crypto_hash_sha512_init(&state);
  crypto_hash_sha512_update(&state, s.signature.data(), 32);
  crypto_hash_sha512_update(&state, s.key.data(), 32);
  crypto_hash_sha512_update(&state, s.message.data(), s.message.size());
  crypto_hash_sha512_final(&state, digest.data());
  crypto_core_ed25519_scalar_reduce(k.data(), digest.data());
  return k;
}

/// A key whose secret number is at hand: a signature is made of it by hand, with any R.
struct HandSigned : Signed {
  Bytes secret = Bytes(32), nonce = Bytes(32);

  /// s = r + k a, for an R that is in the signature.
  void fill() {
    Bytes product(32), k = challenge(*this);
    crypto_core_ed25519_scalar_mul(product.data(), k.data(), secret.data());
    crypto_core_ed25519_scalar_add(signature.data() + 32, nonce.data(), product.data());
  }
};

TEST_F(VerifyTest, PointsOfSmallOrderInSignaturesAreRefused) {
  int accepted = 0;
  for (const Bytes &r : smallOrderPoints()) {
    HandSigned s;
    crypto_core_ed25519_scalar_reduce(s.secret.data(), draw(64).data());
    crypto_scalarmult_ed25519_base_noclamp(s.key.data(), s.secret.data());
    s.message = draw(32);
    std::copy(r.begin(), r.end(), s.signature.begin());
    s.fill(); // r = 0: holds for R = 0
    accepted += s.isGood() + s.isGoodForSodium();
    // With R = r B + T the equation holds times the cofactor alone.
    crypto_core_ed25519_scalar_reduce(s.nonce.data(), draw(64).data());
    Bytes plain(32);
    crypto_scalarmult_ed25519_base_noclamp(plain.data(), s.nonce.data());
    std::copy(plain.begin(), plain.end(), s.signature.begin());
    s.fill();
    EXPECT_TRUE(s.isGood()); // the way by hand is right
    if (r == point(1, 0, 0) || crypto_core_ed25519_add(s.signature.data(), plain.data(), r.data()) != 0 ||
        std::equal(plain.begin(), plain.end(), s.signature.begin()))
      continue;
    s.fill();
    EXPECT_FALSE(s.isGood());
    EXPECT_FALSE(s.isGoodForSodium());
  }
  EXPECT_EQ(accepted, 0);
}

TEST_F(VerifyTest, PointsHaveOneEncoding) {
  verify::Point p;
  for (uint8_t sign : {0, 0x80})
    for (unsigned first = 0xed; first < 0x100; first++) // y = p, ..., 2^255 - 1
      EXPECT_FALSE(decode(p, point(uint8_t(first), 0xff, uint8_t(0x7f | sign)).data())) << first;
  EXPECT_TRUE(decode(p, point(1, 0, 0).data()));
  EXPECT_FALSE(decode(p, point(1, 0, 0x80).data())) << "x = -0";
  EXPECT_FALSE(decode(p, point(0xec, 0xff, 0xff).data())) << "x = -0";
  int onCurve = 0;
  for (int i = 0; i < 400; i++) {
    Bytes bytes = draw(32), again(32), sum(32), zero = point(1, 0, 0);
    bool isPoint = crypto_core_ed25519_add(sum.data(), bytes.data(), zero.data()) == 0;
    ASSERT_EQ(decode(p, bytes.data()), isPoint);
    if (!isPoint)
      continue;
    onCurve++;
    encode(again.data(), p);
    EXPECT_EQ(again, bytes);
    EXPECT_EQ(sum, bytes);
  }
  EXPECT_GT(onCurve, 150);
  EXPECT_LT(onCurve, 250);
}

TEST_F(VerifyTest, FieldCarriesAtItsEdges) {
  using verify::Number;
  Number most, zero = {}, result;
  memset(&most, 0xff, sizeof most); // 2^256 - 1, which is 37
  auto expect = [&](uint32_t value) {
    normalise(result);
    Number wanted = {{value}};
    EXPECT_EQ(memcmp(&result, &wanted, sizeof result), 0) << value;
  };
  add(result, most, most);
  expect(74);
  multiply(result, most, most);
  expect(37 * 37);
  subtract(result, zero, most);
  add(result, result, most);
  expect(0);
  subtract(result, zero, verify::kPrime);
  expect(0);
  multiply(result, verify::kPrime, most);
  expect(0);
  add(result, verify::kPrime, verify::kPrime);
  add(result, result, most);
  expect(37);
  power(result, most, 255, 20);
  multiply(result, result, most);
  expect(1);
}

TEST_F(VerifyTest, TheHookTakesSignaturesOfTheirSizeOnly) {
  Signed s = makeSigned(32);
  void *key = s.key.data();
  EXPECT_EQ(ortc_verify_signature(key, s.message.data(), s.signature.data(), 64), 0);
  EXPECT_NE(ortc_verify_signature(key, s.message.data(), s.signature.data(), 63), 0);
  s.signature.push_back(0);
  EXPECT_NE(ortc_verify_signature(key, s.message.data(), s.signature.data(), 65), 0);
  EXPECT_NE(ortc_verify_signature(key, s.message.data(), nullptr, 0), 0);
}

} // namespace
} // namespace ortc::test
