// What is refused when a module is loaded, and faults that are put in for mutation tests.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/gpu/emulator/tests/Emulator.h"

namespace ortc::emulator::test {
namespace {

class ModuleTest : public EmulatorTest {
protected:
  /// Loads what must be refused so, and that log and stderr say why.
  void expectRefusal(ortc_cu_result expected, const std::string &ptx, const std::string &reason) {
    open();
    ortc_cu_module module = nullptr;
    std::string log;
    testing::internal::CaptureStderr();
    ortc_cu_result result = load(ptx, &module, &log);
    std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(result, expected) << log;
    EXPECT_NE(log.find(reason), log.npos) << log << " lacks " << reason;
    EXPECT_NE(said.find(log), said.npos) << said;
  }
  void expectInvalid(const std::string &body, const std::string &reason) {
    expectRefusal(ORTC_CU_INVALID_PTX, makeKernel({"b64"}, body), reason);
  }
  static std::string head(const char *version, const char *target) {
    return std::string(".version ") + version + "\n.target " + target +
           "\n.address_size 64\n.entry k() { ret; }\n";
  }
};

TEST_F(ModuleTest, NewerCodeIsRefused) {
  set("DRIVER", "12000");
  kernel(head("8.0", "sm_80"));
  kernel(head("7.0", "sm_52"));
  expectRefusal(ORTC_CU_UNSUPPORTED_PTX_VERSION, head("8.1", "sm_80"),
                "PTX 8.1 is newer than the driver's 8.0");
  expectRefusal(ORTC_CU_NO_BINARY_FOR_GPU, head("8.0", "sm_86"), "code for sm_86 does not run on sm_80");
  expectRefusal(ORTC_CU_NO_BINARY_FOR_GPU, head("8.0", "sm_90a"), "code for sm_90a does not run on sm_80");
  close();
  set("SM", "90");
  kernel(head("8.0", "sm_90a"));
  expectRefusal(ORTC_CU_NO_BINARY_FOR_GPU, "\177ELF", "machine code");
}

TEST_F(ModuleTest, ErrorsNameTheLine) {
  expectInvalid("frobnicate.u32 %r1, %r2;", "PTX line 18: unknown instruction 'frobnicate.u32'");
  expectInvalid("add.u32 %r1, %r2;", "'add.u32' has the wrong number of operands");
  expectInvalid("add.u32 %r1, %rd2, %r3;", "register '%rd2' has 64 bits where 32 are needed");
  expectInvalid("add.u32 %r1, %r40, %r3;", "unknown register '%r40'");
  expectInvalid("bra $nowhere;", "there is no label '$nowhere'");
  expectInvalid("call f;", "unresolved function 'f'");
  expectInvalid("ld.shared.u32 %r1, [a0];", "'a0' is not in the space that 'ld.shared.u32' accesses");
  expectInvalid("mov.u32 %r1, undeclared;", "unknown name 'undeclared'");
  expectInvalid("add.u32 %r1, %r2, 7", "';' expected before 'ret'");
  expectInvalid("$a: $a:", "label '$a' is defined twice");
  expectInvalid(".shared .b8 s[49153]; st.shared.b8 [s], 1;",
                "49153 bytes of static shared memory, at most 49152");
  expectRefusal(ORTC_CU_INVALID_PTX, std::string(kHead) + ".entry k() {\n ret;",
                "PTX line 5: function 'k' has no end");
  expectRefusal(ORTC_CU_INVALID_PTX, "nonsense", "PTX line 1: directive expected before 'nonsense'");
  expectRefusal(ORTC_CU_INVALID_PTX, "", ".version is missing");
}

TEST_F(ModuleTest, UnknownKernelsAreNotFound) {
  ortc_cu_module module;
  ortc_cu_kernel found;
  ASSERT_EQ(load(makeKernel({}, ""), &module), ORTC_CU_SUCCESS);
  EXPECT_EQ(driver.cuModuleGetFunction(&found, module, "other"), ORTC_CU_NOT_FOUND);
  ASSERT_EQ(driver.cuModuleGetFunction(&found, module, "k"), ORTC_CU_SUCCESS);
  ASSERT_EQ(driver.cuModuleUnload(module), ORTC_CU_SUCCESS);
  EXPECT_EQ(driver.cuModuleUnload(module), ORTC_CU_INVALID_HANDLE);
  EXPECT_EQ(launch(found, 1, 1, {}), ORTC_CU_INVALID_HANDLE);
}

TEST_F(ModuleTest, ApproximationsAreReportedOrRefused) {
  const std::string body = "add.f32 %f1, %f2, %f3;\nex2.approx.f32 %f1, %f2;";
  kernel(makeKernel({"b64"}, body));
  close();
  set("APPROXIMATE", "report");
  open();
  testing::internal::CaptureStderr();
  kernel(makeKernel({"b64"}, body));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ortc emulator: kernel 'k', PTX line 19 'ex2.approx.f32 %f1, %f2' is approximate\n");
  close();
  set("APPROXIMATE", "refuse");
  expectInvalid(body, "is approximate");
}

TEST_F(ModuleTest, MutationsAreFound) {
  const std::string ptx = readPtx("kernels.ptx");
  const int columns = 256;
  auto rowSum = [&](const char *mutation) {
    set("MUTATE", mutation);
    ortc_cu_pointer from = upload(std::vector<float>(columns * 3, 1)), to = allocate(3 * 4);
    ortc_cu_kernel k = kernel(ptx, "rowSum");
    testing::internal::CaptureStderr();
    ortc_cu_result result = launch(k, 3, 128, {from, to, columns});
    std::string said = testing::internal::GetCapturedStderr();
    close();
    return result == ORTC_CU_SUCCESS ? std::string("passes") : said;
  };
  EXPECT_EQ(rowSum(""), "passes");
  EXPECT_NE(rowSum("rowSum:barrier:1").find("of shared memory is of bytes that were never written"),
            std::string::npos);
  EXPECT_EQ(rowSum("product:barrier:2"), "passes");
  EXPECT_NE(rowSum("product:barrier:1;rowSum:access:1:4096").find("out of bounds"), std::string::npos);
  EXPECT_NE(rowSum("rowSum:access:1:2").find("misaligned"), std::string::npos);
  EXPECT_EQ(rowSum("elsewhere:barrier:1"), "passes");
  set("MUTATE", "rowSum:barrier:2");
  expectRefusal(ORTC_CU_INVALID_PTX, ptx, "mutation 'rowSum:barrier:2' finds no such instruction");
  set("MUTATE", "rowSum");
  expectRefusal(ORTC_CU_INVALID_PTX, ptx, "is none of");
  set("MUTATE", "rowSum:mma:1");
  expectRefusal(ORTC_CU_INVALID_PTX, ptx, "finds no such instruction");
  set("MUTATE", "rowSum:barrier:1:pass");
  expectRefusal(ORTC_CU_INVALID_PTX, ptx, "cannot change 'bar");
  set("MUTATE", "k:19:remove");
  ortc_cu_pointer out = upload(std::vector<uint32_t>{1});
  run(kernel(makeKernel({"b64"}, "mov.b32 %r1, 5;\nmov.b32 %r1, 6;\nst.global.b32 [%a0], %r1;")), 1, 1,
      {out});
  EXPECT_EQ(download<uint32_t>(out, 1)[0], 5u);
  close();
  const std::pair<const char *, uint32_t> changes[] = {{"k:mul", 0},
                                                       {"k:mul.lo.u32:1:pass", 5 + 7},
                                                       {"k:add:1:-3", 5 * 5 + 4},
                                                       {"k:19:3", 5 * 8 + 7},
                                                       {"k:20:pass", 5 * 5}};
  for (const auto &[change, expected] : changes) {
    const bool isBad = !std::strchr(change + 2, ':');
    set("MUTATE", change);
    const std::string body =
        "mov.b32 %r1, 5;\nmul.lo.u32 %r1, %r1, 5;\nadd.u32 %r1, %r1, 7;\nst.global.b32 [%a0], %r1;";
    if (isBad) {
      expectRefusal(ORTC_CU_INVALID_PTX, makeKernel({"b64"}, body), "is none of");
      continue;
    }
    out = upload(std::vector<uint32_t>{1});
    run(kernel(makeKernel({"b64"}, body)), 1, 1, {out});
    EXPECT_EQ(download<uint32_t>(out, 1)[0], expected) << change;
    close();
  }
}

TEST_F(ModuleTest, EveryRemovedBarrierOfTheProductIsNoticed) {
  const std::string ptx = readPtx("kernels.ptx");
  for (const char *mutation : {"product:barrier:1", "product:barrier:2"})
    for (const char *order : {"forward", "reverse", "random:7"}) {
      set("MUTATE", mutation);
      set("ORDER", order);
      ortc_cu_pointer a = upload(std::vector<float>(32 * 32, 1)), b = upload(std::vector<float>(32 * 32, 1)),
                      c = allocate(4096);
      std::string said = fail(ORTC_CU_LAUNCH_FAILED, kernel(ptx, "product"), {2, 2}, {16, 16}, {a, b, c, 32});
      EXPECT_TRUE(said.find("race in shared memory") != said.npos || said.find("never written") != said.npos)
          << said;
      close();
    }
}

} // namespace
} // namespace ortc::emulator::test
