// Atomic operations on what CUDA's built-in functions only reach with vectors and 16-bit floats.
#include <string>

#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

class AtomicTest : public KernelTest {
 protected:
  // Runs `body` in 8 blocks of 64 threads; %rd is the array, %i the thread's number in the grid.
  void RunGrid(const std::string& body, void* data) {
    LoadText(std::string(kPtxHeader) +
             ".visible .entry k(.param .u64 data)\n{\n"
             ".reg .b64 %rd, %x<9>; .reg .b32 %i, %t, %w<9>; .reg .b16 %h<9>; .reg .b128 %q<4>;\n"
             ".reg .pred %p<4>; .reg .f32 %f<9>; ld.param.u64 %rd, [data];\n"
             "mov.u32 %t, %tid.x; mov.u32 %i, %ctaid.x; mad.lo.u32 %i, %i, 64, %t;\n" +
             body + "\nret;\n}\n");
    MustRun("k", {8, 1, 1}, {64, 1, 1}, data);
  }
};

TEST_F(AtomicTest, HalvesAddUp) {
  DeviceArray<std::uint32_t> data(memory_, 8);
  RunGrid(
      "mov.b16 %h1, 0x3c00; red.global.add.noftz.f16 [%rd], %h1;\n"
      "mov.b32 %w1, 0x3c004000; atom.global.add.noftz.f16x2 %w2, [%rd+4], %w1;\n"
      "mov.b16 %h2, 0x3f80; and.b32 %w3, %i, 3; setp.eq.u32 %p1, %w3, 0;\n"
      "@%p1 atom.global.add.noftz.bf16 %h3, [%rd+8], %h2;\n"
      "cvt.rn.f16.u32 %h4, %i; red.global.max.noftz.f16 [%rd+12], %h4;\n"
      "cvt.rn.bf16.u32 %h5, %t; neg.bf16 %h5, %h5; atom.global.min.noftz.bf16 %h6, [%rd+14], %h5;",
      data.data());
  EXPECT_EQ(data[0], 0x6000U);      // 512
  EXPECT_EQ(data[1], 0x60006400U);  // 512 and 1024
  EXPECT_EQ(data[2], 0x4300U);      // 128
  EXPECT_EQ(data[3], 0xc27c5ffcU);  // -63 and 511
}

TEST_F(AtomicTest, VectorsAddUpElementByElement) {
  DeviceArray<float> data(memory_, 8);
  RunGrid(
      "cvt.rn.f32.u32 %f1, %t; mov.f32 %f2, 0f3F800000; mov.f32 %f3, 0f40000000;\n"
      "red.global.add.v4.f32 [%rd], {%f1, %f2, %f3, %f2};\n"
      "atom.global.v2.f32.add {%f5, %f6}, [%rd+16], {%f2, %f3};",
      data.data());
  const float expected[] = {8 * 2016.0F, 512, 1024, 512, 512, 1024};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(data[i], expected[i]) << i;
}

// Every thread adds to both halves at once, until nobody came in between.
TEST_F(AtomicTest, SixteenBytesAreExchanged) {
  DeviceArray<std::uint64_t> data(memory_, 4);
  RunGrid(
      "ld.global.v2.u64 {%x1, %x2}, [%rd];\n"
      "AGAIN: add.u64 %x3, %x1, 1; add.u64 %x4, %x2, 2; mov.b128 %q1, {%x1, %x2};\n"
      "mov.b128 %q2, {%x3, %x4}; atom.global.cas.b128 %q3, [%rd], %q1, %q2;\n"
      "mov.b128 {%x5, %x6}, %q3; setp.ne.u64 %p1, %x5, %x1; mov.u64 %x1, %x5; mov.u64 %x2, %x6;\n"
      "@%p1 bra AGAIN;\n"
      "mov.b128 %q1, {%x3, %x4}; atom.global.exch.b128 %q3, [%rd+16], %q1;",
      data.data());
  EXPECT_EQ(data[0], 512U);
  EXPECT_EQ(data[1], 1024U);
  EXPECT_EQ(data[3], 2 * data[2]);
}

// Half of the blocks write pairs of equal numbers, the others must never see two that differ. The
// lanes of a warp go downwards, as in a look-back.
TEST_F(AtomicTest, OrderedVectorsAreSeenWhole) {
  DeviceArray<std::uint64_t> data(memory_, 32 * 2 + 1);
  RunGrid(
      "and.b32 %w1, %t, 31; sub.u32 %w1, 31, %w1; mul.wide.u32 %x1, %w1, 16;\n"
      "add.u64 %x1, %x1, %rd; shr.u32 %w2, %i, 6; and.b32 %w2, %w2, 1; setp.eq.u32 %p1, %w2, 0;\n"
      "mov.u64 %x2, 0; mov.u64 %x3, 0; mov.u64 %x4, 0;\n"
      "AGAIN: @%p1 st.relaxed.gpu.global.v2.u64 [%x1], {%x2, %x2};\n"
      "@!%p1 ld.relaxed.gpu.global.v2.u64 {%x3, %x4}, [%x1];\n"
      "setp.ne.u64 %p2, %x3, %x4; @%p2 red.global.add.u32 [%rd+512], 1;\n"
      "add.u64 %x2, %x2, 1; setp.lt.u64 %p3, %x2, 50000; @%p3 bra AGAIN;",
      data.data());
  EXPECT_EQ(data[64], 0U);
  EXPECT_EQ(data[0], 49999U);
}

}  // namespace
}  // namespace torpor::emulator
