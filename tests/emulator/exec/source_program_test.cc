// Programs whose kernels become PTX one by one.
#include <gmock/gmock.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "emulator/exec/kernel_source.h"
#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FakeSource : public KernelSource {
 public:
  void Add(const std::string& name, const std::string& ptx) {
    kernels_.push_back({.name = name, .parameters = {{0, 8}}, .parameter_bytes = 8});
    texts_.push_back(ptx);
  }

  const std::vector<KernelInfo>& kernels() const override { return kernels_; }
  const std::vector<Memory>& memories() const override { return memories_; }
  const std::vector<Variable>& variables() const override { return variables_; }
  ExecResult<std::string> KernelPtx(std::size_t index) const override {
    asked_.push_back(kernels_[index].name);
    if (!texts_[index].empty()) return kPtxHeader + texts_[index];
    return Failure<ExecError>{ExecError::kUnsupported, kernels_[index].name + " is a secret"};
  }

  std::vector<Memory> memories_;
  std::vector<Variable> variables_;
  mutable std::vector<std::string> asked_;

 private:
  std::vector<KernelInfo> kernels_;
  std::vector<std::string> texts_;
};

// A kernel that stores the word that `address` names in out[0].
std::string Reader(const std::string& name, const std::string& declarations,
                   const std::string& load) {
  return declarations + ".visible .entry " + name +
         "(.param .align 8 .b8 p[8])\n{\n.reg .b32 %r<2>; .reg .b64 %rd<3>;\n"
         "ld.param.u64 %rd1, [p];\n" +
         load + "\nst.global.u32 [%rd1], %r1;\nret;\n}\n";
}

class SourceProgramTest : public KernelTest {
 protected:
  void LoadSource() {
    auto loaded =
        Program::Load(std::shared_ptr<const KernelSource>(source_), memory_, DeviceTraits{});
    ASSERT_TRUE(loaded) << loaded.failure().message;
    program_ = std::move(*loaded);
  }

  ExecResult<void> Run(const std::string& kernel, int* out) {
    return Launch(kernel, LaunchConfig{}, out);
  }

  static std::vector<std::byte> Words(const std::vector<std::uint64_t>& words) {
    std::vector<std::byte> bytes(words.size() * 8);
    std::memcpy(bytes.data(), words.data(), bytes.size());
    return bytes;
  }

  const std::shared_ptr<FakeSource> source_ = std::make_shared<FakeSource>();
};

TEST_F(SourceProgramTest, AsksForAKernelWhenItIsFirstLaunched) {
  source_->Add("one", Reader("one", "", "mov.u32 %r1, 1;"));
  source_->Add("two", Reader("two", "", "mov.u32 %r1, 2;"));
  LoadSource();
  EXPECT_THAT(source_->asked_, IsEmpty());
  EXPECT_EQ(program_->kernels().size(), 2U);
  DeviceArray<int> out(memory_, 1);
  MustRun("two", {1, 1, 1}, {1, 1, 1}, out.data());
  MustRun("two", {1, 1, 1}, {1, 1, 1}, out.data());
  EXPECT_EQ(out[0], 2);
  EXPECT_THAT(source_->asked_, ElementsAre("two"));
}

TEST_F(SourceProgramTest, PtxOfAnotherKernelIsAnError) {
  source_->Add("k ", Reader("k", "", "mov.u32 %r1, 1;"));
  source_->Add("wide", ".visible .entry wide(.param .align 8 .b8 p[16])\n{\nret;\n}\n");
  LoadSource();
  DeviceArray<int> out(memory_, 1);
  for (const char* name : {"k ", "wide"}) {
    const auto result = Launch(name, LaunchConfig{}, out.data());
    ASSERT_FALSE(result) << name;
    EXPECT_EQ(result.failure().code, ExecError::kInvalidPtx) << name;
  }
}

TEST_F(SourceProgramTest, KernelsShareMemory) {
  source_->memories_ = {{.name = "$a", .size = 64, .initial = Words({5, 7})},
                        {.name = "$c", .size = 16, .constant = true, .initial = Words({9})}};
  source_->variables_ = {{.name = "seven", .memory = 0, .offset = 8, .size = 4},
                         {.name = "nine", .memory = 1, .offset = 0, .size = 8}};
  source_->Add("global", Reader("global", ".extern .global .align 8 .b8 $a[64];\n",
                                "ld.global.u32 %r1, [$a+8];"));
  source_->Add("constant", Reader("constant", ".extern .const .align 8 .b8 $c[16];\n",
                                  "ld.const.u32 %r1, [$c];"));
  LoadSource();
  ASSERT_EQ(program_->variables().size(), 2U);
  const GlobalVariable& seven = program_->variables()[0];
  EXPECT_EQ(seven.name, "seven");
  EXPECT_EQ(seven.size, 4U);
  EXPECT_FALSE(seven.constant);
  EXPECT_TRUE(program_->variables()[1].constant);
  DeviceArray<int> out(memory_, 1);
  MustRun("global", {1, 1, 1}, {1, 1, 1}, out.data());
  EXPECT_EQ(out[0], 7);
  *reinterpret_cast<int*>(seven.address) = 70;
  MustRun("global", {1, 1, 1}, {1, 1, 1}, out.data());
  EXPECT_EQ(out[0], 70);
  MustRun("constant", {1, 1, 1}, {1, 1, 1}, out.data());
  EXPECT_EQ(out[0], 9);
}

TEST_F(SourceProgramTest, MemoryMayHoldAddressesOfMemory) {
  source_->memories_ = {{.name = "$a", .size = 64, .initial = Words({5, 7})},
                        {.name = "$p",
                         .size = 16,
                         .initial = Words({0, 0}),
                         .addresses = {{.offset = 8, .memory = 0, .addend = 8}}}};
  source_->Add("k", Reader("k", ".extern .global .align 8 .b8 $p[16];\n",
                           "ld.global.u64 %rd2, [$p+8]; ld.global.u32 %r1, [%rd2];"));
  LoadSource();
  DeviceArray<int> out(memory_, 1);
  MustRun("k", {1, 1, 1}, {1, 1, 1}, out.data());
  EXPECT_EQ(out[0], 7);
}

TEST_F(SourceProgramTest, MemoryIsAligned) {
  source_->memories_ = {{.name = "$a", .size = 8},
                        {.name = "$b", .size = 4096, .align = 4096},
                        {.name = "$c", .size = 8, .align = 1024}};
  source_->variables_ = {
      {.name = "a", .memory = 0}, {.name = "b", .memory = 1}, {.name = "c", .memory = 2}};
  LoadSource();
  const auto& variables = program_->variables();
  ASSERT_EQ(variables.size(), 3U);
  EXPECT_EQ(variables[1].address % 4096, 0U);
  EXPECT_EQ(variables[2].address % 1024, 0U);
  EXPECT_GT(variables[1].address, variables[0].address + 8);
  EXPECT_GT(variables[2].address, variables[1].address + 4096);
}

TEST_F(SourceProgramTest, AKernelThatCannotBePtxHarmsNoOther) {
  source_->Add("secret", "");
  source_->Add("broken", ".visible .entry broken(\n");
  source_->Add("good", Reader("good", "", "mov.u32 %r1, 3;"));
  LoadSource();
  DeviceArray<int> out(memory_, 1);
  const auto secret = Run("secret", out.data());
  ASSERT_FALSE(secret);
  EXPECT_EQ(secret.failure().code, ExecError::kUnsupported);
  EXPECT_THAT(secret.failure().message, HasSubstr("secret"));
  const auto broken = Run("broken", out.data());
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.failure().code, ExecError::kInvalidPtx);
  EXPECT_THAT(broken.failure().message, HasSubstr("kernel broken"));
  MustRun("good", {1, 1, 1}, {1, 1, 1}, out.data());
  EXPECT_EQ(out[0], 3);
  EXPECT_EQ(program_->Launch("absent", LaunchConfig{}).failure().code, ExecError::kNotFound);
}

}  // namespace
}  // namespace torpor::emulator
