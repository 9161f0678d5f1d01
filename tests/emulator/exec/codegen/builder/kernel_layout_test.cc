#include "emulator/exec/codegen/builder/kernel_layout.h"

#include "tests/emulator/exec/codegen/builder/builder_test.h"

namespace torpor::emulator {
namespace {

using KernelLayoutTest = BuilderTest;

TEST_F(KernelLayoutTest, PlacesDynamicSharedMemoryBehindTheStaticPart) {
  Open("ld.shared.u32 %r1, [a];\nld.shared.u32 %r2, [d];\nret;",
       ".shared .align 4 .b8 a[20];\n.extern .shared .align 16 .b8 d[];\n"
       ".shared .align 4 .b8 unused[64];\n");
  EXPECT_EQ(layout_.static_shared_bytes, 20U);
  EXPECT_EQ(layout_.dynamic_shared_offset, 32U);
  EXPECT_EQ(layout_.shared_offsets.size(), 2U);
}

TEST_F(KernelLayoutTest, FindsTheFunctionsThatAKernelReaches) {
  Open("call f;\nret;", ".func f()\n{\nret;\n}\n.func g()\n{\nret;\n}\n");
  EXPECT_EQ(layout_.functions.size(), 2U);
  EXPECT_FALSE(layout_.resumable);
}

TEST_F(KernelLayoutTest, AKernelWithoutCallsIsResumable) {
  Open("ret;");
  EXPECT_TRUE(layout_.resumable);
}

}  // namespace
}  // namespace torpor::emulator
