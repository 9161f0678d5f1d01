#include "emulator/sass/kernel_ptx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "emulator/ptx/parser.h"
#include "tests/emulator/sass/test_cubin.h"

namespace torpor::sass {
namespace {

using testing::HasSubstr;

// The one kernel of a module.
const ptx::Function& KernelOf(const ptx::Module& module) {
  const auto found = std::ranges::find(module.functions, true, &ptx::Function::is_kernel);
  EXPECT_NE(found, module.functions.end());
  return *found;
}

TEST(KernelPtxTest, DeclaresWhatTheBodyKnowsByName) {
  const std::string file = ReadTestCubin("variables");
  const auto cubin = ReadCubin(BytesOf(file));
  ASSERT_TRUE(cubin.ok());
  const std::string text = KernelPtx(*cubin, *cubin->FindKernel("_Z3Sum5LargePix"), "ret;\n");
  const auto module = ptx::Parse(text);
  ASSERT_TRUE(module.ok()) << module.failure().message << "\n" << text;
  EXPECT_EQ(module->target, 75U);
  const ptx::Function& kernel = KernelOf(*module);
  EXPECT_EQ(kernel.name, "_Z3Sum5LargePix");
  EXPECT_EQ(kernel.parameter_bytes, 104U);
  EXPECT_THAT(text, HasSubstr(".param .align 16 .b8 $parameters[104]"));
  EXPECT_THAT(text, HasSubstr(".shared .align 16 .b8 $shared[256];"));
  for (std::uint32_t i = 0; i < cubin->memories.size(); ++i) {
    EXPECT_THAT(text, HasSubstr(MemoryName(i) + "["));
  }
}

TEST(KernelPtxTest, AllSharedMemoryIsDynamicWhereNoneIsStatic) {
  const std::string file = ReadTestCubin("variables");
  const auto cubin = ReadCubin(BytesOf(file));
  ASSERT_TRUE(cubin.ok());
  const std::string text = KernelPtx(*cubin, *cubin->FindKernel("Nothing"), "ret;\n");
  ASSERT_TRUE(ptx::Parse(text).ok());
  EXPECT_THAT(text, HasSubstr(".extern .shared .align 16 .b8 $shared[];"));
  EXPECT_THAT(text, HasSubstr(".entry Nothing()"));
}

TEST(KernelPtxTest, DeclaresFunctionsOfTheSystem) {
  const std::string file = ReadTestCubin("variables");
  const auto cubin = ReadCubin(BytesOf(file));
  ASSERT_TRUE(cubin.ok());
  const auto module = ptx::Parse(KernelPtx(*cubin, *cubin->FindKernel("Nothing"), "ret;\n"));
  ASSERT_TRUE(module.ok()) << module.failure().message;
  EXPECT_NE(module->FindFunction("vprintf"), ptx::kNoIndex);
  EXPECT_EQ(module->FindFunction("malloc"), ptx::kNoIndex);
}

TEST(KernelPtxTest, LimitsTheThreadsOfABlock) {
  const std::string file = ReadTestCubin("variables");
  const auto cubin = ReadCubin(BytesOf(file));
  ASSERT_TRUE(cubin.ok());
  const auto module = ptx::Parse(KernelPtx(*cubin, *cubin->FindKernel("_Z5PrintPi"), "ret;\n"));
  ASSERT_TRUE(module.ok()) << module.failure().message;
  EXPECT_EQ(KernelOf(*module).max_threads, 256U);
}

}  // namespace
}  // namespace torpor::sass
