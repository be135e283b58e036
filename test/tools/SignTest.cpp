// ortc sign and ortc verify --public-key: keys in files, signatures, and what is refused.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "engine/artifact/signing.h"
#include "test/engine/data_files.h"
#include "test/runtime/ArtifactEditor.h"
#include "test/tools/Process.h"

using namespace ortc;
using namespace ortc::engine::test;
using ortc::test::Arguments;
using ortc::test::Bytes;

namespace {

// The key pair of RFC 8410, 10.3, as openssl pkey writes it, too.
constexpr char kPrivatePem[] = "-----BEGIN PRIVATE KEY-----\n"
                               "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n"
                               "-----END PRIVATE KEY-----\n";
constexpr char kPublicPem[] = "-----BEGIN PUBLIC KEY-----\n"
                              "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n"
                              "-----END PUBLIC KEY-----\n";
constexpr char kPrivateHex[] = "d4ee72dbf913584ad5b6d8f1f769f8ad3afe7c28cbf1d4fbe097a88f44755842";
constexpr char kPublicHex[] = "19bf44096984cdfe8541bac167dc3b96c85086aa30b6b6cb0c5c38ad703166e1";

class SignTest : public testing::Test {
protected:
  SignTest()
      : path(folder / "model.ortc"), key(folder.write("key", kPrivatePem)),
        publicKey(folder.write("key.pub", kPublicPem)) {
    Bytes bytes = ortc::test::makeFile();
    unsigned_ = std::string(bytes.begin(), bytes.end());
    folder.write("model.ortc", unsigned_);
  }
  ortc::test::Ended run(const Arguments &arguments) {
    return ortc::test::Process(ORTC_TOOL, arguments).wait();
  }
  /// The command is refused with this text, and the artifact stays as it is.
  void expectRefused(const Arguments &arguments, const std::string &message, int status = 2) {
    std::string before = readFile(path);
    ortc::test::Ended ended = run(arguments);
    EXPECT_EQ(ended.status, status) << ended.text;
    EXPECT_EQ(ended.text, "ortc: error: " + message + "\n");
    EXPECT_EQ(readFile(path), before);
    EXPECT_FALSE(std::filesystem::exists(path + ".ortc-a.tmp"));
  }

  TemporaryFolder folder;
  std::string path, key, publicKey, unsigned_;
};

TEST_F(SignTest, SignsAndVerifies) {
  std::string place = path.substr(0, path.rfind('/'));
  ortc::test::Ended ended = run({"sign", path, "--key", key});
  EXPECT_EQ(ended.status, 0) << ended.text;
  std::string digest = ended.text.substr(ended.text.find("digest     ") + 11, 64);
  EXPECT_EQ(ended.text,
            "signed     " + path + "\ndigest     " + digest + "\npublic key " + kPublicHex + "\n");
  EXPECT_NE(run({"inspect", path}).text.find("\nartifact   " + digest + "\n"), std::string::npos);
  ended = run({"verify", path, "--public-key", publicKey});
  EXPECT_EQ(ended.status, 0) << ended.text;
  EXPECT_NE(ended.text.find(path + ": 13 sections, all digests are right, signed by " + kPublicHex + "\n"),
            std::string::npos)
      << ended.text;
  EXPECT_EQ(run({"verify", path, "--public-key", publicKey, "--quiet"}).text, "");
  EXPECT_EQ(run({"verify", path, "--quiet"}).status, 0);
  std::string once = readFile(path);
  ended = run({"sign", path, "--key", key, "--quiet"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.text, "");
  EXPECT_EQ(readFile(path), once) << "signing again changes nothing";
}

TEST_F(SignTest, KeysInEveryFormSignTheSame) {
  std::string expected;
  for (const std::string &text :
       {std::string(kPrivatePem), std::string(kPrivateHex), std::string(kPrivateHex) + "\n",
        std::string("1O5y2/kTWErVttjx92n4rTr+fCjL8dT74Jeoj0R1WEI=\n"),
        "a comment\n" + std::string(kPrivatePem)}) {
    folder.write("model.ortc", unsigned_);
    ortc::test::Ended ended = run({"sign", path, "--quiet", "--key", folder.write("other", text)});
    ASSERT_EQ(ended.status, 0) << ended.text;
    expected = expected.empty() ? readFile(path) : expected;
    EXPECT_EQ(readFile(path), expected);
  }
  for (const std::string &text : {std::string(kPublicPem), std::string(kPublicHex),
                                  std::string("Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=")})
    EXPECT_EQ(run({"verify", path, "--quiet", "--public-key", folder.write("other", text)}).text, "");
}

TEST_F(SignTest, NewKeysAreForTheirOwnerAlone) {
  std::string made = folder / "made";
  umask(0);
  ortc::test::Ended ended = run({"sign", path, "--new-key", made});
  EXPECT_EQ(ended.status, 0) << ended.text;
  struct stat state{};
  ASSERT_EQ(stat(made.c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0600u);
  ASSERT_EQ(stat((made + ".pub").c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0644u);
  EXPECT_EQ(run({"verify", path, "--quiet", "--public-key", made + ".pub"}).text, "");
  std::string text = readFile(made);
  EXPECT_EQ(text.substr(0, 28), "-----BEGIN PRIVATE KEY-----\n");
  EXPECT_EQ(text.size(), sizeof kPrivatePem - 1);
  EXPECT_EQ(readFile(made + ".pub").size(), sizeof kPublicPem - 1);
  expectRefused({"sign", path, "--new-key", made}, made + ": is there already; a key is never replaced");
  EXPECT_EQ(readFile(made), text);
  std::string other = folder / "other"; // without DIR
  EXPECT_EQ(run({"sign", "--new-key", other}).text, "");
  EXPECT_NE(readFile(other), text);
  std::string half = folder / "half"; // the public half is there: neither is written
  folder.write("half.pub", "x");
  expectRefused({"sign", "--new-key", half}, half + ".pub: is there already; a key is never replaced");
  EXPECT_FALSE(std::filesystem::exists(half));
  expectRefused({"sign", "--new-key", folder / "no/such"},
                (folder / "no/such") + ": cannot be written: No such file or directory", 1);
}

TEST_F(SignTest, KeyFilesDoNotDependOnTheMask) {
  umask(0777);
  std::string made = folder / "made";
  ortc::test::Ended ended = run({"sign", "--new-key", made});
  umask(022);
  EXPECT_EQ(ended.status, 0) << ended.text;
  struct stat state{};
  ASSERT_EQ(stat(made.c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0600u);
  ASSERT_EQ(stat((made + ".pub").c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0644u);
}

TEST_F(SignTest, NoKeyIsMadeForWhatCannotBeSigned) {
  std::string made = folder / "made", damaged = unsigned_;
  damaged.back() ^= 1;
  folder.write("model.ortc", damaged);
  EXPECT_EQ(run({"sign", path, "--new-key", made}).status, 1);
  EXPECT_EQ(run({"sign", folder / "none", "--new-key", made}).status, 1);
  EXPECT_FALSE(std::filesystem::exists(made));
  EXPECT_FALSE(std::filesystem::exists(made + ".pub"));
}

TEST_F(SignTest, VerifySaysWhetherASignatureWasChecked) {
  auto getLast = [&] {
    std::string text = run({"verify", path}).text;
    return text.substr(text.rfind('\n', text.size() - 2) + 1);
  };
  EXPECT_EQ(getLast(),
            path +
                ": 12 sections, all digests are right; it has no signature, so nothing says whose it is\n");
  ASSERT_EQ(run({"sign", path, "--key", key, "--quiet"}).status, 0);
  EXPECT_EQ(getLast(), path +
                           ": 13 sections, all digests are right; its signature was not checked, which takes "
                           "--public-key FILE\n");
}

TEST_F(SignTest, OtherKeysAndMissingSignaturesAreRefused) {
  expectRefused({"verify", path, "--quiet", "--public-key", publicKey},
                path + ": has no signature; ortc sign makes one");
  ASSERT_EQ(run({"sign", path, "--key", key, "--quiet"}).status, 0);
  std::string other =
      folder.write("other", "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
  expectRefused(
      {"verify", path, "--quiet", "--public-key", other},
      path + ": is not signed by 3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c: another "
             "key, or a damaged signature");
  std::string file = readFile(path), damaged = file;
  damaged.back() ^= 1;
  folder.write("model.ortc", damaged);
  expectRefused({"verify", path, "--quiet", "--public-key", publicKey},
                path + ": is not signed by " + kPublicHex + ": another key, or a damaged signature");
  // A section that is cut, all other hashes right.
  ortc::test::Editor editor;
  editor.file.assign(file.begin(), file.end() - 1);
  editor.header().file_bytes--;
  editor.section(ORTC_SECTION_SIGNATURE).bytes--;
  editor.sealHeader();
  folder.write("model.ortc", std::string(editor.file.begin(), editor.file.end()));
  expectRefused({"verify", path, "--quiet", "--public-key", publicKey},
                path + ": has a signature of 63 bytes, but one of Ed25519 has 64");
}

TEST_F(SignTest, ChangedArtifactsWithHashesMadeRightAreRefused) {
  ASSERT_EQ(run({"sign", path, "--key", key, "--quiet"}).status, 0);
  std::string file = readFile(path);
  ortc::test::Editor editor;
  editor.file.assign(file.begin(), file.end());
  ortc_file_section &source = editor.section(ORTC_SECTION_SOURCE);
  editor.file[source.offset] ^= 1;
  ortc::sha256(editor.file.data() + source.offset, source.bytes, source.sha256);
  editor.sealHeader();
  folder.write("model.ortc", std::string(editor.file.begin(), editor.file.end()));
  EXPECT_EQ(run({"verify", path, "--quiet"}).status, 0);
  expectRefused({"verify", path, "--quiet", "--public-key", publicKey},
                path + ": is not signed by " + kPublicHex + ": another key, or a damaged signature");
}

TEST_F(SignTest, DamagedArtifactsAreNotSigned) {
  std::string damaged = unsigned_;
  damaged[sizeof(ortc_file_header) + 1] ^= 1;
  folder.write("model.ortc", damaged);
  expectRefused({"sign", path, "--key", key}, path + ": header and section table do not match their hash", 1);
}

TEST_F(SignTest, FilesThatHoldNoSuchKeyAreRefused) {
  std::string prefix = std::string(kPrivatePem).substr(0, 28), suffix = "-----END PRIVATE KEY-----\n";
  const std::string noKey = ": is no key: neither PEM nor 32 bytes in hexadecimal digits or base64";
  const std::string noBase64 = ": is damaged: no base64 between BEGIN and END of 'PRIVATE KEY'";
  const std::string otherKind =
      ": holds another kind of key than Ed25519 (openssl genpkey -algorithm ed25519)";
  const std::pair<std::string, std::string> cases[] = {
      {"", noKey},
      {"hello", noKey},
      {std::string(kPrivateHex).substr(1), noKey},
      {std::string(kPrivateHex) + "00", noKey},
      {std::string(62, '0') + "0g", noKey},
      {std::string(3, '\0'), noKey},
      {"1O5y2/kTWErVttjx92n4rTr+fCjL8dT74Jeoj0R1WA==", noKey},
      {std::string(1 << 17, 'x'), ": is too large for a key"},
      {kPublicPem, ": holds 'PUBLIC KEY', but 'PRIVATE KEY' is needed"},
      {"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
       ": holds 'ENCRYPTED PRIVATE KEY', but 'PRIVATE KEY' is needed; openssl pkey -in KEY -out PLAIN takes "
       "the "
       "password off"},
      {"-----BEGIN ", ": holds no key, but 'PRIVATE KEY' is needed"},
      {"-----BEGIN " + std::string(100, 'x') + "-----", ": holds no key, but 'PRIVATE KEY' is needed"},
      {prefix, noBase64},
      {prefix + suffix, noBase64},
      {prefix + "!!!!\n" + suffix, noBase64},
      {prefix + std::string(8000, 'A') + "\n" + suffix, noBase64},
      {prefix + "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVh\n" + suffix, noBase64},
      // X25519 (1.3.101.110), and one byte more or less.
      {prefix + "MC4CAQAwBQYDK2VuBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n" + suffix, otherKind},
      {prefix + "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhCAA==\n" + suffix, otherKind},
      {prefix + "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVg=\n" + suffix, otherKind},
  };
  for (const auto &[text, message] : cases) {
    std::string file = folder.write("bad", text);
    expectRefused({"sign", path, "--key", file}, file + message);
  }
  std::string file = folder.write("bad", kPrivatePem);
  expectRefused(
      {"verify", path, "--public-key", file},
      file + ": holds 'PRIVATE KEY', but 'PUBLIC KEY' is needed; openssl pkey -in KEY -pubout -out PUBLIC "
             "writes the public half");
  expectRefused({"sign", path, "--key", folder / "none"},
                (folder / "none") + ": cannot be opened: No such file or directory", 1);
}

TEST_F(SignTest, ArgumentsThatDoNotFitAreRefused) {
  const std::string message = "sign needs DIR with --key FILE, or --new-key FILE";
  expectRefused({"sign"}, message);
  expectRefused({"sign", path}, message);
  expectRefused({"sign", "--key", key}, message);
  expectRefused({"sign", path, "--key", key, "--new-key", folder / "new"}, message);
  EXPECT_FALSE(std::filesystem::exists(folder / "new"));
}

} // namespace
