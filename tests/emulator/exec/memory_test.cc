#include <sys/mman.h>

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/exec/runtime/arena.h"
#include "emulator/exec/runtime/block_runner.h"
#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {
namespace {

class MemoryTest : public KernelTest {
 protected:
  void SetUp() override { Load("memory"); }
};

TEST_F(MemoryTest, GridsOfAnyLengthAddVectors) {
  constexpr int kCount = 10007;
  DeviceArray<float> a(memory_, kCount);
  DeviceArray<float> b(memory_, kCount);
  DeviceArray<float> c(memory_, kCount + 1);
  for (int i = 0; i < kCount; ++i) {
    a[i] = static_cast<float>(i);
    b[i] = static_cast<float>(i * 2);
  }
  for (const unsigned block : {1U, 7U, 32U, 100U, 256U, 1024U}) {
    std::fill_n(c.data(), kCount + 1, -1.0F);
    MustRun("vector_add", {(kCount + block - 1) / block, 1, 1}, {block, 1, 1}, a.data(), b.data(),
            c.data(), kCount);
    for (int i = 0; i < kCount; ++i) ASSERT_EQ(c[i], static_cast<float>(3 * i)) << i;
    EXPECT_EQ(c[kCount], -1.0F);
  }
}

TEST_F(MemoryTest, BytesAndShortsKeepTheirNeighbours) {
  constexpr int kCount = 1000;  // coprime to 7 and 3
  DeviceArray<std::uint8_t> in(memory_, kCount);
  DeviceArray<std::uint8_t> out(memory_, kCount);
  DeviceArray<std::int16_t> shorts(memory_, kCount);
  DeviceArray<std::int16_t> shorts_out(memory_, kCount);
  for (int i = 0; i < kCount; ++i) {
    in[i] = static_cast<std::uint8_t>(i * 11);
    shorts[i] = static_cast<std::int16_t>(i - 500);
  }
  MustRun("small_types", {8, 1, 1}, {128, 1, 1}, in.data(), out.data(), shorts.data(),
          shorts_out.data(), kCount);
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ(out[kCount - 1 - i], static_cast<std::uint8_t>(in[(i * 7) % kCount] + 1)) << i;
    ASSERT_EQ(shorts_out[(i * 3) % kCount], shorts[i] * 2) << i;
  }
}

TEST_F(MemoryTest, VectorsOfTwoAndFourElements) {
  DeviceArray<std::array<float, 4>> a(memory_, 64);
  DeviceArray<std::array<float, 4>> b(memory_, 64);
  DeviceArray<std::array<double, 2>> c(memory_, 64);
  DeviceArray<std::array<double, 2>> d(memory_, 64);
  DeviceArray<std::array<std::uint8_t, 4>> e(memory_, 64);
  for (unsigned i = 0; i < 64; ++i) {
    const auto f = static_cast<float>(i);
    a[i] = {f, f + 100, f + 200, f + 300};
    c[i] = {i * 1.5, -static_cast<double>(i)};
  }
  MustRun("vectors", {1, 1, 1}, {64, 1, 1}, a.data(), b.data(), c.data(), d.data(), e.data());
  for (unsigned i = 0; i < 64; ++i) {
    const float x = a[i][0] + 1;
    const float y = a[i][1] * 2;
    EXPECT_EQ(b[i], (std::array<float, 4>{x, y, a[i][2] - 3, x + y}));
    EXPECT_EQ(d[i], (std::array<double, 2>{c[i * 3 % 64][1], c[i * 3 % 64][0]}));
    for (unsigned k = 0; k < 4; ++k) EXPECT_EQ(e[i][k], i + k);
  }
}

TEST_F(MemoryTest, EachLaneHasLocalMemory) {
  constexpr int kCount = 100;
  DeviceArray<int> in(memory_, kCount);
  DeviceArray<int> out(memory_, 128);
  for (int i = 0; i < kCount; ++i) in[i] = i * i % 71;
  MustRun("local_array", {2, 1, 1}, {64, 1, 1}, in.data(), out.data(), kCount);
  for (int i = 0; i < 128; ++i) {
    int expected = 0;
    for (int k = 0; k < kCount; ++k) expected += in[(i + ((in[k] + i) & 15)) % kCount] * k;
    ASSERT_EQ(out[i], expected) << i;
  }
}

TEST_F(MemoryTest, StructuresArePassedByValue) {
  struct Aggregate {
    int values[20];
    double scale;
    char tag;
  };
  Aggregate value = {};
  for (int i = 0; i < 20; ++i) value.values[i] = i * i;
  value.scale = 1000;
  value.tag = 7;
  DeviceArray<int> out(memory_, 64);
  MustRun("aggregate", {1, 1, 1}, {64, 1, 1}, value, out.data());
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[i], (i % 20) * (i % 20) + 1007);
}

TEST_F(MemoryTest, VariablesAreInitialisedAndVisible) {
  DeviceArray<int> out(memory_, 34);
  LaunchConfig config;
  config.block = {32, 1, 1};
  config.dynamic_shared_bytes = 32 * sizeof(float);
  const auto result = Launch("globals", config, out.data(), 2);
  ASSERT_TRUE(result) << result.failure().message;
  EXPECT_EQ(out[0], 5 + 30);
  EXPECT_EQ(out[1], -30);
  const float weights[] = {1.0F, 2.5F, -3.0F, 4.0F};
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(out[2 + i], static_cast<int>(weights[(31 - i) % 4] * 2));
  }
  bool found = false;
  for (const GlobalVariable& variable : program_->variables()) {
    if (variable.name == "counter") {
      found = true;
      EXPECT_EQ(variable.size, 4U);
      EXPECT_FALSE(variable.constant);
      EXPECT_EQ(*reinterpret_cast<int*>(variable.address), 99);
    }
    if (variable.name == "weights") {
      EXPECT_TRUE(variable.constant);
    }
  }
  EXPECT_TRUE(found);
}

TEST_F(MemoryTest, GenericPointersReachEverySpace) {
  DeviceArray<int> global(memory_, 64);
  DeviceArray<int> out(memory_, 64);
  for (int i = 0; i < 64; ++i) global[i] = 5000 + i;
  out[0] = 0;
  MustRun("generic", {1, 1, 1}, {64, 1, 1}, global.data(), out.data());
  for (int i = 0; i < 64; ++i) {
    const int expected = i % 3 == 0 ? 5000 + i + 7 : i % 3 == 1 ? 101000 + 63 - i + 7 : i + 7;
    ASSERT_EQ(out[i], expected) << i;
  }
}

TEST_F(MemoryTest, IndicesMayWrapWithinAWarp) {
  DeviceArray<int> in(memory_, 64);
  DeviceArray<int> out(memory_, 64);
  for (int i = 0; i < 64; ++i) in[i] = i * 3;
  MustRun("wrapping", {1, 1, 1}, {64, 1, 1}, in.data(), out.data(), 50U);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[i], i == 0 || i > 50 ? -5 : 3 * (i - 1)) << i;
}

TEST_F(MemoryTest, BlocksAndGridsHaveThreeDimensions) {
  for (const Dim3 block : {Dim3{32, 4, 2}, Dim3{16, 16, 1}, Dim3{8, 3, 5}, Dim3{64, 2, 1}}) {
    const Dim3 grid = {2, 3, 2};
    const std::size_t width = std::size_t{block.x} * grid.x;
    const std::size_t height = std::size_t{block.y} * grid.y;
    const std::size_t depth = std::size_t{block.z} * grid.z;
    DeviceArray<int> out(memory_, width * height * depth);
    MustRun("dimensions", grid, block, out.data(), static_cast<int>(width));
    for (std::size_t z = 0; z < depth; ++z) {
      for (std::size_t y = 0; y < height; ++y) {
        for (std::size_t x = 0; x < width; ++x) {
          ASSERT_EQ(out[(z * height + y) * width + x], static_cast<int>(x + 1000 * y + 100000 * z));
        }
      }
    }
  }
}

TEST_F(MemoryTest, NoPointerCrashesTheProcess) {
  DeviceArray<int> array(memory_, 1024);
  const Dim3 block = {64, 1, 1};
  // Null, small, one past, far, below the window, non-canonical.
  const std::int64_t base = reinterpret_cast<std::int64_t>(array.data());
  const auto window = static_cast<std::int64_t>(memory_.window_begin());
  int on_stack = 0;
  const auto stack = reinterpret_cast<std::int64_t>(&on_stack);
  for (const std::int64_t target : {std::int64_t{0}, std::int64_t{8}, base + 8192, base - 4096,
                                    window - (std::int64_t{1} << 30), window,
                                    stack & ~std::int64_t{3}, std::int64_t{1} << 62}) {
    const std::int64_t offset = (target - base) / 4;
    MustFail(ExecError::kIllegalAddress, "wild", block, array.data(), offset);
    MustFail(ExecError::kIllegalAddress, "wild_read", block, array.data(), offset);
    MustFail(ExecError::kIllegalAddress, "wild_uniform", block, array.data(), offset);
    MustFail(ExecError::kIllegalAddress, "wild_atomic", block, array.data(), offset);
  }
  EXPECT_EQ(on_stack, 0);
  MustRun("wild", {1, 1, 1}, block, array.data(), std::int64_t{0});
}

TEST_F(MemoryTest, SharedMemoryIsBounded) {
  DeviceArray<int> out(memory_, 1);
  const Dim3 block = {64, 1, 1};
  for (const int offset : {1 << 20, -(1 << 20), 0x1fffffff, -0x20000000, 1000}) {
    MustFail(ExecError::kIllegalAddress, "wild_shared", block, out.data(), offset);
  }
  MustRun("wild_shared", {1, 1, 1}, block, out.data(), 2);
}

TEST_F(MemoryTest, MisalignedAccessesAreReported) {
  DeviceArray<int> out(memory_, 256);
  MustFail(ExecError::kMisalignedAddress, "misaligned", {32, 1, 1},
           reinterpret_cast<char*>(out.data()));
  MustFail(ExecError::kMisalignedAddress, "misaligned_shared", {32, 1, 1}, out.data(), 6);
  MustRun("misaligned_shared", {1, 1, 1}, {32, 1, 1}, out.data(), 8);
}

TEST_F(MemoryTest, GenericPointersIntoTheHostAreReported) {
  DeviceArray<int*> pointer(memory_, 1);
  int target = 0;
  pointer[0] = &target;
  MustFail(ExecError::kIllegalAddress, "wild_generic", {32, 1, 1}, pointer.data());
  EXPECT_EQ(target, 0);
  memory_.Register(&target, sizeof(target));
  MustRun("wild_generic", {1, 1, 1}, {32, 1, 1}, pointer.data());
  EXPECT_EQ(target, 1);
}

// Lane 16 writes to `first` + 16 * `stride`.
std::string SteppingStore(std::uint64_t stride) {
  return std::string(kPtxHeader) +
         ".visible .entry step(.param .u64 first)\n{\n"
         ".reg .b32 %r<2>; .reg .b64 %rd<4>; .reg .pred %p<2>;\n"
         "ld.param.u64 %rd1, [first];\nmov.u32 %r1, %tid.x;\ncvt.u64.u32 %rd2, %r1;\n"
         "mad.lo.u64 %rd3, %rd2, " +
         Hex(stride) + ", %rd1;\nsetp.eq.u32 %p1, %r1, 16;\n@%p1 st.u32 [%rd3], 1;\nret;\n}\n";
}

// Lanes between one that lies in the device's memory and one in a block's.
TEST_F(MemoryTest, StridesFromRangeToRangeReachNothingBetween) {
  const std::uint64_t first = memory_.window_begin() + 4096;
  const std::uint64_t last = Arena::Instance().begin() + Arena::Instance().bytes() / 2;
  const std::uint64_t stride = RoundDown((last - first) / 31, 4096);
  const std::uint64_t between = first + 16 * stride;
  void* const page = mmap(reinterpret_cast<void*>(between), 4096, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(reinterpret_cast<std::uint64_t>(page), between);
  LoadText(SteppingStore(stride));
  MustFail(ExecError::kIllegalAddress, "step", {32, 1, 1}, first);
  EXPECT_EQ(*static_cast<std::uint32_t*>(page), 0U);
  munmap(page, 4096);
}

// Dynamic shared memory behind an array of 144 bytes: out[0] is where it begins, modulo its
// alignment, out[1] what its last word holds.
std::string DynamicSharedMemory(unsigned align, unsigned bytes) {
  const std::string last = "[%r2+" + std::to_string(bytes - 4) + "]";
  return std::string(kPtxHeader) + ".extern .shared .align " + std::to_string(align) +
         " .b8 behind[];\n.visible .entry dynamic(.param .u64 out)\n{\n"
         ".reg .b32 %r<9>; .reg .b64 %rd<3>;\n.shared .align 4 .b8 fixed[144];\n"
         "mov.u32 %r1, fixed; st.shared.u32 [%r1+140], %r1;\n"
         "mov.u32 %r2, behind; mov.u32 %r3, 9; st.shared.u32 " +
         last +
         ", %r3;\n"
         "ld.shared.u32 %r4, " +
         last +
         ";\n"
         "cvt.u64.u32 %rd2, %r2; cvta.shared.u64 %rd2, %rd2; cvt.u32.u64 %r5, %rd2;\n"
         "and.b32 %r5, %r5, " +
         std::to_string(align - 1) +
         ";\n"
         "ld.param.u64 %rd1, [out]; st.global.v2.u32 [%rd1], {%r5, %r4};\nret;\n}\n";
}

TEST_F(MemoryTest, DynamicSharedMemoryIsAlignedAndWhole) {
  constexpr unsigned kBytes = 880;
  DeviceArray<int> out(memory_, 2);
  for (const unsigned align : {4U, 128U, 1024U, 4096U}) {
    LoadText(DynamicSharedMemory(align, kBytes));
    LaunchConfig config;
    config.dynamic_shared_bytes = kBytes;
    const auto result = Launch("dynamic", config, out.data());
    ASSERT_TRUE(result) << align << ": " << result.failure().message;
    EXPECT_EQ(out[0], 0) << align;
    EXPECT_EQ(out[1], 9) << align;
  }
}

// In rows of 16 threads: each thread adds four words that its row shares to two of its own, which
// lie next to those of its neighbours, and the last of four words that it copies to shared memory
// from a place of its own.
constexpr char kVectorsInRows[] =
    ".visible .entry rows(.param .u64 in, .param .u64 out, .param .u32 limit)\n{\n"
    ".reg .b64 %rd<8>; .reg .b32 %r<20>; .reg .pred %p; .shared .align 16 .b8 tile[4096];\n"
    "ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [limit];\n"
    "mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y; mov.u32 %r4, %ntid.x;\n"
    "mad.lo.u32 %r5, %r3, %r4, %r2;\n"
    "mul.wide.u32 %rd3, %r3, 16; add.u64 %rd3, %rd1, %rd3;\n"
    "mad.lo.s32 %r7, %r3, 40, %r2; mul.wide.s32 %rd4, %r7, 8; add.u64 %rd4, %rd1, %rd4;\n"
    "mul.lo.u32 %r8, %r5, %r5; and.b32 %r8, %r8, 63;\n"
    "mul.wide.u32 %rd5, %r8, 16; add.u64 %rd5, %rd1, %rd5;\n"
    "shl.b32 %r9, %r5, 4; mov.u32 %r10, tile; add.u32 %r9, %r9, %r10;\n"
    "mul.wide.u32 %rd6, %r5, 4; add.u64 %rd6, %rd2, %rd6;\n"
    "setp.ge.u32 %p, %r2, %r1; @%p bra done;\n"
    "ld.global.v4.u32 {%r11, %r12, %r13, %r14}, [%rd3];\n"
    "ld.global.v2.u32 {%r15, %r16}, [%rd4];\n"
    "cp.async.cg.shared.global [%r9], [%rd5], 16, 16; cp.async.wait_all;\n"
    "ld.shared.u32 %r17, [%r9+12];\n"
    "mad.lo.u32 %r11, %r12, 3, %r11; mad.lo.u32 %r11, %r13, 5, %r11;\n"
    "mad.lo.u32 %r11, %r14, 7, %r11; mad.lo.u32 %r11, %r15, 11, %r11;\n"
    "mad.lo.u32 %r11, %r16, 13, %r11; mad.lo.u32 %r11, %r17, 17, %r11;\n"
    "st.global.u32 [%rd6], %r11;\ndone: ret;\n}\n";

TEST_F(MemoryTest, VectorsInShortRows) {
  LoadText(std::string(kPtxHeader) + kVectorsInRows);
  DeviceArray<std::uint32_t> in(memory_, 4096);
  DeviceArray<std::uint32_t> out(memory_, 256);
  for (std::uint32_t i = 0; i < 4096; ++i) in[i] = i * 2654435761U;
  for (const std::uint32_t width : {1U, 2U, 4U, 8U, 16U, 32U}) {
    for (const std::uint32_t limit : {1U, 3U, 32U}) {
      const std::uint32_t height = 128 / width;
      if (height * 40 > 2000) continue;
      std::fill_n(out.data(), 256, 0U);
      MustRun("rows", {1, 1, 1}, {width, height, 1}, in.data(), out.data(), limit);
      for (std::uint32_t i = 0; i < 128; ++i) {
        const std::uint32_t x = i % width;
        const std::uint32_t y = i / width;
        const std::uint32_t* const shared = &in[std::size_t{4} * y];
        const std::uint32_t* const own = &in[2 * (std::size_t{40} * y + x)];
        const std::uint32_t copied = in[4 * (i * i % 64) + 3];
        const std::uint32_t sum = shared[0] + 3 * shared[1] + 5 * shared[2] + 7 * shared[3] +
                                  11 * own[0] + 13 * own[1] + 17 * copied;
        ASSERT_EQ(out[i], x < limit ? sum : 0) << width << " " << limit << " " << i;
      }
    }
  }
}

TEST_F(MemoryTest, FreedMemoryFaults) {
  DeviceArray<int> keep(memory_, 64);
  std::int64_t offset = 0;
  {
    DeviceArray<int> gone(memory_, 64);
    offset = gone.data() - keep.data();
  }
  MustFail(ExecError::kIllegalAddress, "wild", {32, 1, 1}, keep.data(), offset);
}

}  // namespace
}  // namespace torpor::emulator
