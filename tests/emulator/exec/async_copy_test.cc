// cp.async with a fourth operand: how much of the source is read, or none of it.
#include <algorithm>
#include <string>

#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

using AsyncCopyTest = KernelTest;

// Copies `bytes` bytes with a fourth operand over a shared word of ones, and loads the word `at`.
std::string AsyncCopy(const std::string& bytes, const std::string& fourth, unsigned at) {
  std::string body =
      ".shared .align 16 .b8 s[1024]; mov.u32 %r3, %laneid; mov.u32 %r4, -1; mov.u32 %r5, s;\n"
      "shl.b32 %r6, %r3, 4; add.u32 %r5, %r5, %r6; mov.u64 %rd4, source;\n"
      "setp.lt.u32 %p1, %r3, 16; and.b32 %r7, %r3, 7;\n";
  for (unsigned i = 0; i < 4; ++i) {
    body += "st.shared.u32 [%r5+" + std::to_string(4 * i) + "], %r4;\n";
  }
  return body + "cp.async.ca.shared.global [%r5], [%rd4], " + bytes + ", " + fourth +
         "; cp.async.wait_all; ld.shared.u32 %r1, [%r5+" + std::to_string(at) + "];";
}

constexpr char kSource[] =
    ".global .align 16 .b32 source[4] = {0x44332211, 0x88776655, 0xccbbaa99, 0x00ffeedd};\n";

TEST_F(AsyncCopyTest, AnAsyncCopyFillsUpWithZeros) {
  const std::uint32_t words[] = {0x44332211, 0x88776655};
  for (unsigned word = 0; word < 2; ++word) {
    const auto out = RunWarp(AsyncCopy("8", "%r7", 4 * word), kSource);
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned size = lane & 7;
      const unsigned here = size <= 4 * word ? 0 : std::min(size - 4 * word, 4U);
      const auto keep = static_cast<std::uint32_t>((std::uint64_t{1} << (8 * here)) - 1);
      EXPECT_EQ(out[lane], words[word] & keep) << lane;
    }
  }
  EXPECT_EQ(RunWarp(AsyncCopy("4", "2", 0), kSource)[0], 0x2211U);
}

TEST_F(AsyncCopyTest, AnAsyncCopyMayIgnoreItsSource) {
  const auto out = RunWarp(AsyncCopy("16", "%p1", 12), kSource);
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], lane < 16 ? 0U : 0x00ffeeddU);
  // Nothing is read: the address may be anything.
  std::string wild = AsyncCopy("16", "%p1", 8);
  wild.replace(wild.find("setp.lt.u32"), 0, "mov.u64 %rd4, 16;\n");
  wild.replace(wild.find("%r3, 16;"), 8, "%r3, 32;");
  EXPECT_EQ(RunWarp(wild, kSource)[31], 0U);
}

}  // namespace
}  // namespace torpor::emulator
