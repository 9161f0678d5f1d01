// Texture and surface instructions as kernels have them: what each operand means, and what becomes
// of numbers that are no objects. How texels are found and blended is tests/emulator/exec/texture.
#include <array>
#include <bit>
#include <string>

#include "emulator/exec/texture/texture_table.h"
#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

// Of an array of 8 x 4 x 3 texels of four bytes each; byte i of the memory is i.
class TextureInstructionsTest : public KernelTest {
 protected:
  static constexpr std::uint32_t kWidth = 8;
  static constexpr std::uint32_t kHeight = 4;
  static constexpr std::uint32_t kSlices = 3;
  static constexpr Bytes kRowBytes = Bytes{4} * kWidth;

  void SetUp() override {
    for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<std::uint8_t>(i);
    const TextureLevel level = {bytes_.data(), kWidth,    kHeight,
                                kSlices,       kRowBytes, kRowBytes * kHeight};
    Surface surface;
    surface.format = {ChannelType::kUnsigned8, 4};
    surface.level = level;
    surface_ = Add(surface);
    Texture texture;
    texture.format = {ChannelType::kUnsigned8, 4};
    texture.levels = {level};
    texture_ = Add(texture);
    texture.format = {ChannelType::kUnsigned32, 1};
    words_ = Add(texture);
  }
  void TearDown() override {
    for (const std::uint64_t handle : handles_) TextureTable::Instance().Remove(handle);
  }
  template <typename Object>
  std::uint64_t Add(Object object) {
    handles_.push_back(
        TextureTable::Instance().Add(std::make_shared<const TextureObject>(std::move(object))));
    return handles_.back();
  }

  // A kernel of (handle, out): `body` has the handle in %h, the lane in %r1 and as a float in %f1,
  // and leaves a result a lane in %r0.
  void LoadTextureBody(const std::string& body) {
    LoadText(std::string(kPtxHeader) +
             ".visible .entry k(.param .u64 handle, .param .u64 out)\n{\n"
             ".reg .b64 %h, %out, %at; .reg .b32 %r<20>; .reg .f32 %f<20>; .reg .b16 %s<9>;\n"
             ".reg .b64 %rd<9>; .reg .pred %p<9>;\n"
             "ld.param.u64 %h, [handle];\nld.param.u64 %out, [out];\nmov.u32 %r1, %tid.x;\n"
             "cvt.rn.f32.u32 %f1, %r1;\nmov.u32 %r0, 0;\nmov.u32 %r2, 1;\nmov.u32 %r3, 2;\n"
             "mov.f32 %f2, 0f3FC00000;\nmov.f32 %f3, 0f40200000;\n" +  // 1.5, 2.5
             body +
             "\nmul.wide.u32 %at, %r1, 4;\nadd.u64 %at, %out, %at;\nst.global.u32 [%at], %r0;\n"
             "ret;\n}\n");
  }
  std::vector<std::uint32_t> Run(std::uint64_t handle, std::uint32_t lanes) {
    DeviceArray<std::uint32_t> out(memory_, 32);
    MustRun("k", {}, {lanes, 1, 1}, handle, out.data());
    return {out.data(), out.data() + lanes};
  }
  // The number of the byte that a texel begins with.
  static std::uint32_t ByteOf(std::uint32_t x, std::uint32_t y, std::uint32_t slice) {
    return ((slice * kHeight + y) * kWidth + x) * 4;
  }
  static std::uint32_t WordOf(std::uint32_t byte) { return byte * 0x01010101U + 0x03020100U; }

  std::array<std::uint8_t, std::size_t{kWidth}* kHeight* kSlices* 4> bytes_ = {};
  std::vector<std::uint64_t> handles_;
  std::uint64_t surface_ = 0;
  std::uint64_t texture_ = 0;
  std::uint64_t words_ = 0;  // the same texels as one channel
};

TEST_F(TextureInstructionsTest, CoordinatesAndLayers) {
  struct Line {
    const char* instruction;
    std::uint32_t byte;  // of lane 0
  };
  for (const Line& line :
       {Line{"tex.1d.v4.u32.f32 {%r0,%r4,%r5,%r6}, [%h, {%f1}];", 0},
        Line{"tex.1d.v4.u32.s32 {%r0,%r4,%r5,%r6}, [%h, {%r1}];", 0},
        Line{"tex.2d.v4.u32.f32 {%r0,%r4,%r5,%r6}, [%h, {%f1,%f2}];", ByteOf(0, 1, 0)},
        Line{"tex.2d.v4.u32.s32 {%r0,%r4,%r5,%r6}, [%h, {%r1,%r2}];", ByteOf(0, 1, 0)},
        Line{"tex.3d.v4.u32.f32 {%r0,%r4,%r5,%r6}, [%h, {%f1,%f2,%f3,%f3}];", ByteOf(0, 1, 2)},
        Line{"tex.a1d.v4.u32.f32 {%r0,%r4,%r5,%r6}, [%h, {%r3,%f1}];", ByteOf(0, 0, 2)},
        Line{"tex.a2d.v4.u32.f32 {%r0,%r4,%r5,%r6}, [%h, {%r3,%f1,%f2,%f2}];", ByteOf(0, 1, 2)},
        Line{"tex.level.2d.v4.u32.f32 {%r0,%r4,%r5,%r6}, [%h, {%f1,%f2}], %f3;", ByteOf(0, 1, 0)},
        Line{"tex.grad.2d.v4.u32.f32 {%r0,%r4,%r5,%r6}, [%h, {%f1,%f2}],"
             " {%f1,%f1}, {%f2,%f3};",
             ByteOf(0, 1, 0)},
        Line{"tex.2d.v4.u32.f32 {%r0,%r4,%r5,%r6}|%p1, [%h, {%f1,%f2}];"
             " @!%p1 mov.u32 %r0, 99;",
             ByteOf(0, 1, 0)}}) {
    ASSERT_NO_FATAL_FAILURE(LoadTextureBody(line.instruction));
    const std::vector<std::uint32_t> got = Run(texture_, kWidth);
    for (std::uint32_t x = 0; x < kWidth; ++x) {
      EXPECT_EQ(got[x], (line.byte + 4 * x) & 0xff) << line.instruction;
    }
  }
}

TEST_F(TextureInstructionsTest, AllFourComponentsAndUnusedOnes) {
  LoadTextureBody(
      "tex.2d.v4.u32.f32 {%r4,%r5,_,%r7}, [%h, {%f1,%f2}];\n"
      "shl.b32 %r5, %r5, 8; shl.b32 %r7, %r7, 24; or.b32 %r0, %r4, %r5;\n"
      "or.b32 %r0, %r0, %r7;");
  const std::vector<std::uint32_t> got = Run(texture_, kWidth);
  for (std::uint32_t x = 0; x < kWidth; ++x) {
    EXPECT_EQ(got[x], WordOf(ByteOf(x, 1, 0)) & 0xff00ffff);
  }
}

TEST_F(TextureInstructionsTest, LanesThatAreOffReadNothing) {
  LoadTextureBody(
      "setp.gt.u32 %p1, %r1, 2;\nmov.u32 %r0, 77;\nmov.u64 %rd1, %h;\n"
      "@%p1 mov.u64 %rd1, 0;\n"
      "@!%p1 tex.1d.v4.u32.s32 {%r0,%r4,%r5,%r6}, [%rd1, {%r1}];");
  const std::vector<std::uint32_t> got = Run(words_, 5);
  EXPECT_EQ(got, (std::vector<std::uint32_t>{WordOf(0), WordOf(4), WordOf(8), 77, 77}));
}

TEST_F(TextureInstructionsTest, Gathers) {
  const char* const components[] = {"r", "g", "b", "a"};
  for (std::uint32_t i = 0; i < 4; ++i) {
    LoadTextureBody(std::string("mov.f32 %f4, 0f40400000;\ntld4.") + components[i] +
                    ".2d.v4.u32.f32 {%r0,%r4,%r5,%r6}, [%h, {%f4,%f4}];\n"
                    "shl.b32 %r4, %r4, 8; shl.b32 %r5, %r5, 16; shl.b32 %r6, %r6, 24;\n"
                    "or.b32 %r0, %r0, %r4; or.b32 %r0, %r0, %r5; or.b32 %r0, %r0, %r6;");
    const auto byte = [&](std::uint32_t x, std::uint32_t y) {
      return (ByteOf(x, y, 0) + i) & 0xff;
    };
    EXPECT_EQ(Run(texture_, 1)[0],
              byte(2, 3) | byte(3, 3) << 8 | byte(3, 2) << 16 | byte(2, 2) << 24);
  }
}

TEST_F(TextureInstructionsTest, Queries) {
  const std::pair<const char*, std::uint32_t> queries[] = {
      {"txq.width.b32 %r0, [%h];", kWidth},        {"txq.height.b32 %r0, [%h];", kHeight},
      {"txq.depth.b32 %r0, [%h];", kSlices},       {"txq.array_size.b32 %r0, [%h];", kSlices},
      {"txq.num_mipmap_levels.b32 %r0, [%h];", 1}, {"txq.normalized_coords.b32 %r0, [%h];", 0}};
  for (const auto& [text, wanted] : queries) {
    LoadTextureBody(text);
    EXPECT_EQ(Run(texture_, 3), std::vector<std::uint32_t>(3, wanted)) << text;
  }
  LoadTextureBody("suq.width.b32 %r0, [%h];");
  EXPECT_EQ(Run(surface_, 1)[0], kWidth);
}

TEST_F(TextureInstructionsTest, SurfaceLoadsOfAllWidths) {
  LoadTextureBody("shl.b32 %r4, %r1, 2;\nsuld.b.2d.b32.trap {%r0}, [%h, {%r4,%r2}];");
  EXPECT_EQ(Run(surface_, 2)[1], WordOf(ByteOf(1, 1, 0)));
  LoadTextureBody("suld.b.3d.b8.trap {%s1}, [%h, {%r1,%r2,%r3,%r3}];\ncvt.u32.u16 %r0, %s1;");
  EXPECT_EQ(Run(surface_, 6)[5], (ByteOf(0, 1, 2) + 5) & 0xff);
  LoadTextureBody(
      "shl.b32 %r4, %r1, 3;\nsuld.b.a2d.v2.b16.trap {%s1,%s2}, [%h, {%r3,%r4,%r2,%r2}];\n"
      "cvt.u32.u16 %r0, %s1; cvt.u32.u16 %r5, %s2; shl.b32 %r5, %r5, 16;\n"
      "or.b32 %r0, %r0, %r5;");
  EXPECT_EQ(Run(surface_, 4)[3], WordOf(ByteOf(6, 1, 2) & 0xff));
  LoadTextureBody(
      "shl.b32 %r4, %r1, 4;\nsuld.b.1d.v2.b64.trap {%rd1,%rd2}, [%h, {%r4}];\n"
      "shr.u64 %rd2, %rd2, 32; cvt.u32.u64 %r0, %rd2;");
  EXPECT_EQ(Run(surface_, 2)[1], WordOf(28));
  LoadTextureBody("mov.u32 %r4, 400;\nmov.u32 %r0, 5;\nsuld.b.1d.b32.zero {%r0}, [%h, {%r4}];");
  EXPECT_EQ(Run(surface_, 1)[0], 0U);
}

TEST_F(TextureInstructionsTest, SurfaceStores) {
  LoadTextureBody(
      "shl.b32 %r4, %r1, 2;\nadd.u32 %r5, %r1, 0xaabbcc00;\n"
      "sust.b.2d.b32.trap [%h, {%r4,%r2}], {%r5};\n"
      "cvt.u16.u32 %s1, %r1;\nsust.b.1d.v4.b8.zero [%h, {%r4}], {%s1,%s1,%s1,%s1};\n"
      // In texels, and each component is limited to what a channel holds.
      "mov.u32 %r6, 300;\nsust.p.a2d.v4.b32.trap [%h, {%r3,%r1,%r3,%r3}],"
      " {%r1,%r6,%r2,%r3};");
  Run(surface_, kWidth);
  for (std::uint32_t x = 0; x < kWidth; ++x) {
    std::uint32_t word = 0;
    std::memcpy(&word, &bytes_[ByteOf(x, 1, 0)], sizeof word);
    EXPECT_EQ(word, 0xaabbcc00 + x);
    std::memcpy(&word, &bytes_[ByteOf(x, 0, 0)], sizeof word);
    EXPECT_EQ(word, x * 0x01010101U);
    std::memcpy(&word, &bytes_[ByteOf(x, 2, 2)], sizeof word);
    EXPECT_EQ(word, x | 0xff00U | 0x01'0000U | 0x0200'0000U);
  }
}

TEST_F(TextureInstructionsTest, SurfaceReductionsAreAtomic) {
  std::memset(bytes_.data(), 0, bytes_.size());
  LoadTextureBody(
      "mov.u32 %r4, 0; mov.u32 %r5, 4; mov.u32 %r6, 8; mov.u32 %r7, 16;\n"
      "neg.s32 %r8, %r1;\ncvt.s64.s32 %rd1, %r8;\n"
      "sured.b.add.1d.u32.trap [%h, {%r4}], %r2;\n"
      "sured.b.min.1d.s32.trap [%h, {%r5}], %r8;\n"
      "sured.b.max.1d.u32.trap [%h, {%r6}], %r1;\n"
      "sured.b.add.1d.u64.trap [%h, {%r7}], %rd1;");
  LaunchConfig config;
  config.grid = {50, 1, 1};
  config.block = {32, 1, 1};
  DeviceArray<std::uint32_t> out(memory_, 32);
  const auto ran = Launch("k", config, surface_, out.data());
  ASSERT_TRUE(ran) << ran.failure().message;
  const auto word = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, &bytes_[at], sizeof value);
    return value;
  };
  EXPECT_EQ(word(0), 50U * 32);
  EXPECT_EQ(word(4), static_cast<std::uint32_t>(-31));
  EXPECT_EQ(word(8), 31U);
  std::int64_t sum = 0;
  std::memcpy(&sum, &bytes_[16], sizeof sum);
  EXPECT_EQ(sum, -50 * 31 * 16);
}

TEST_F(TextureInstructionsTest, NumbersThatAreNoObjectsAreIllegal) {
  DeviceArray<std::uint32_t> out(memory_, 32);
  LoadTextureBody("tex.1d.v4.u32.s32 {%r0,%r4,%r5,%r6}, [%h, {%r1}];");
  for (const std::uint64_t wild :
       {std::uint64_t{0}, std::uint64_t{1}, texture_ ^ 0x100000, surface_, ~std::uint64_t{0}}) {
    MustFail(ExecError::kIllegalAddress, "k", {4, 1, 1}, wild, out.data());
  }
  LoadTextureBody("sust.b.1d.b32.zero [%h, {%r1}], {%r1};");
  MustFail(ExecError::kIllegalAddress, "k", {4, 1, 1}, texture_, out.data());
  LoadTextureBody("txq.width.b32 %r0, [%h];");
  MustFail(ExecError::kIllegalAddress, "k", {4, 1, 1}, std::uint64_t{12345}, out.data());
}

TEST_F(TextureInstructionsTest, AccessesOutsideOfASurfaceTrap) {
  DeviceArray<std::uint32_t> out(memory_, 32);
  LoadTextureBody("shl.b32 %r4, %r1, 2;\nsuld.b.2d.b32.trap {%r0}, [%h, {%r4,%r2}];");
  MustFail(ExecError::kIllegalAddress, "k", {kWidth + 1, 1, 1}, surface_, out.data());
}

TEST_F(TextureInstructionsTest, FreedLinearMemoryIsIllegal) {
  Texture texture;
  texture.format = {ChannelType::kUnsigned32, 1};
  texture.is_linear_memory = true;
  {
    DeviceArray<std::uint32_t> texels(memory_, 4096);
    texels[5] = 55;
    TextureLevel level;
    level.data = reinterpret_cast<std::uint8_t*>(texels.data());
    level.width = 4096;
    texture.levels = {level};
    const std::uint64_t handle = Add(texture);
    LoadTextureBody("tex.1d.v4.u32.s32 {%r0,%r4,%r5,%r6}, [%h, {%r1}];");
    EXPECT_EQ(Run(handle, 6)[5], 55U);
  }
  DeviceArray<std::uint32_t> out(memory_, 32);
  LaunchConfig config;
  config.block = {4, 1, 1};
  const auto ran = Launch("k", config, handles_.back(), out.data());
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.failure().code, ExecError::kIllegalAddress);
}

TEST_F(TextureInstructionsTest, WhatIsNotKnownIsNamed) {
  for (const char* text :
       {"tex.2dms.v4.u32.s32 {%r0,%r4,%r5,%r6}, [%h, {%r1,%r1,%r1,%r1}];",
        "tex.2d.v2.f16x2.f32 {%r0,%r4}, [%h, {%f1,%f2}];",
        "tex.2d.v4.u32.f32 {%r0,%r4,%r5,%r6}, [%h, {%f1}];",
        "tex.level.2d.v4.u32.f32 {%r0,%r4,%r5,%r6}, [%h, {%f1,%f2}];",
        "tld4.r.3d.v4.u32.f32 {%r0,%r4,%r5,%r6}, [%h, {%f1,%f1,%f1,%f1}];",
        "suld.b.2d.v4.b64.trap {%rd1,%rd2,%rd3,%rd4}, [%h, {%r1,%r2}];",
        "sust.b.cube.b32.trap [%h, {%r1,%r1,%r1,%r1}], {%r1};",
        "sured.b.xor.1d.b32.trap [%h, {%r1}], %r2;", "txq.filter_mode.b32 %r0, [%h];"}) {
    LoadTextureBody(text);
    const auto loaded = program_->Preload("k", {32, 1, 1});
    ASSERT_FALSE(loaded) << text;
    EXPECT_EQ(loaded.failure().code, ExecError::kUnsupported) << text;
    const std::string name = std::string(text).substr(0, std::string(text).find(' '));
    EXPECT_NE(loaded.failure().message.find(name), std::string::npos) << loaded.failure().message;
  }
}

}  // namespace
}  // namespace torpor::emulator
