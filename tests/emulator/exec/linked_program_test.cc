// Programs of several translation units.
#include <string>
#include <vector>

#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

class LinkedProgramTest : public KernelTest {
 protected:
  static std::vector<PtxPart> Parts(const std::vector<std::string>& texts) {
    std::vector<PtxPart> parts;
    parts.reserve(texts.size());
    for (const std::string& text : texts) {
      parts.push_back({"part " + std::to_string(parts.size() + 1), kPtxHeader + text});
    }
    return parts;
  }
  void LoadParts(const std::vector<std::string>& texts) {
    auto loaded = Program::Load(Parts(texts), memory_, DeviceTraits{});
    ASSERT_TRUE(loaded) << loaded.failure().message;
    program_ = std::move(*loaded);
  }
};

// A kernel `name` that stores in out[0] what a device function of one word makes of `argument`.
std::string KernelThatCalls(const std::string& name, const std::string& callee, int argument,
                            const std::string& prototype = "") {
  return ".visible .entry " + name +
         "(.param .u64 out)\n{\n.reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
         ".param .b32 a; .param .b32 b;\nst.param.b32 [a], " +
         std::to_string(argument) + ";\n" + prototype + "call (b), " + callee + ", (a)" +
         (prototype.empty() ? "" : ", p") +
         ";\nld.param.b32 %r1, [b];\nld.param.u64 %rd1, [out];\nst.global.u32 [%rd1], %r1;\n"
         "ret;\n}\n";
}

// A device function that returns the sum of its argument and the variable.
std::string Adder(const std::string& name, const std::string& variable) {
  return ".visible .func (.param .b32 r) " + name +
         "(.param .b32 p)\n{\n.reg .b32 %r<4>;\nld.param.b32 %r1, [p];\nld.global.u32 %r2, [" +
         variable + "];\nadd.u32 %r3, %r1, %r2;\nst.param.b32 [r], %r3;\nret;\n}\n";
}

constexpr char kPrototype[] = ".extern .func (.param .b32 r) add(.param .b32 p);\n";

TEST_F(LinkedProgramTest, CallsAndReadsWhatOtherPartsDefine) {
  LoadParts({kPrototype + KernelThatCalls("k", "add", 5),
             ".extern .global .u32 x;\n" + Adder("add", "x"), ".visible .global .u32 x = 30;\n"});
  DeviceArray<int> out(memory_, 1);
  MustRun("k", {1, 1, 1}, {1, 1, 1}, out.data());
  EXPECT_EQ(out[0], 35);
  ASSERT_EQ(program_->variables().size(), 1U);
  EXPECT_EQ(program_->variables()[0].name, "x");
}

TEST_F(LinkedProgramTest, CallsThroughATableOfAnotherPart) {
  LoadParts({".extern .global .u64 table[2];\n" +
                 KernelThatCalls("k", "%rd2", 5,
                                 "ld.global.u64 %rd2, [table+8];\n"
                                 "p: .callprototype (.param .b32 _) _ (.param .b32 _);\n"),
             kPrototype + std::string(".visible .global .u64 table[2] = {0, add};\n"),
             ".global .u32 own = 100;\n" + Adder("add", "own")});
  DeviceArray<int> out(memory_, 1);
  MustRun("k", {1, 1, 1}, {1, 1, 1}, out.data());
  EXPECT_EQ(out[0], 105);
}

TEST_F(LinkedProgramTest, PartsThatDoNotLinkAreRefused) {
  const auto parts = Parts({kPrototype + KernelThatCalls("k", "add", 5)});
  for (const auto& failure :
       {Program::Load(parts, memory_, DeviceTraits{}).failure(), CheckLink(parts).failure()}) {
    EXPECT_EQ(failure.code, ExecError::kInvalidPtx);
    EXPECT_EQ(failure.message, "undefined reference to 'add' in part 1");
  }
}

TEST_F(LinkedProgramTest, ALaunchFromAKernelIsNotSupported) {
  LoadParts({".extern .func (.param .b32 r) cudaLaunchDeviceV2(.param .b32 p);\n" +
             KernelThatCalls("parent", "cudaLaunchDeviceV2", 0) +
             ".visible .entry child() { ret; }\n"});
  const auto result = program_->Preload("parent", {32, 1, 1});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.failure().code, ExecError::kUnsupported);
  EXPECT_EQ(result.failure().message,
            "kernel parent: launches from kernels (dynamic parallelism) are not supported: parent "
            "calls cudaLaunchDeviceV2");
  EXPECT_TRUE(program_->Preload("child", {32, 1, 1}));
}

}  // namespace
}  // namespace torpor::emulator
