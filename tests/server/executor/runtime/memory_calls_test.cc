#include "server/executor/runtime/memory_calls.h"

#include <driver_types.h>
#include <gmock/gmock.h>

#include "tests/server/executor/runtime/runtime_fixture.h"

namespace torpor::executor {
namespace {

using ::testing::ElementsAre;

class MemoryCallsTest : public RuntimeTest {
 protected:
  std::vector<std::uint8_t> Gpu(Bytes offset, std::size_t bytes) const {
    return {s_.Gpu(offset), s_.Gpu(offset) + bytes};
  }

  MemoryCalls calls_{{*s_.device, *s_.memory, memory_, streams_, marks_, downloads_}};
};

TEST_F(MemoryCallsTest, BytesGoUpAndComeDown) {
  const std::vector<std::uint8_t> bytes = {1, 2, 3, 4};
  wire::MemcpyHtoD up;
  up.dst = base() + 16;
  up.bytes = bytes.size();
  up.data = bytes;
  up.slot = 3;
  up.value = 7;
  EXPECT_TRUE(calls_.MemcpyHtoD(up).ok());
  EXPECT_EQ(s_.memory->window().Slot(3)->load(), 7u);
  wire::MemcpyDtoD across;
  across.dst = base() + kMiB;
  across.src = base() + 16;
  across.bytes = bytes.size();
  EXPECT_TRUE(calls_.MemcpyDtoD(across).ok());
  wire::MemcpyDtoH down;
  down.src = base() + kMiB;
  down.bytes = bytes.size();
  down.window_offset = wire::kReplyInline;
  wire::MemcpyDtoHResult result;
  ASSERT_TRUE(calls_.MemcpyDtoH(down, result).ok());
  EXPECT_EQ(result.data, bytes);
  wire::MemcpyDtoHArena to_arena;
  to_arena.src = base() + kMiB;
  to_arena.bytes = bytes.size();
  to_arena.arena_offset = 64;
  ASSERT_TRUE(calls_.MemcpyDtoHArena(to_arena).ok());
  EXPECT_EQ(std::memcmp(s_.memory->Arena(64, 4), bytes.data(), 4), 0);
}

TEST_F(MemoryCallsTest, RowsAreCopiedAndFilled) {
  wire::Memset2D fill;
  fill.dst = base();
  fill.pitch = 8;
  fill.value = 5;
  fill.element_bytes = 2;
  fill.width = 1;
  fill.height = 2;
  EXPECT_TRUE(calls_.Memset2D(fill).ok());
  EXPECT_THAT(Gpu(0, 12), ElementsAre(5, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0));
  wire::Memcpy2D copy;
  copy.dst = base() + 64;
  copy.dst_pitch = 2;
  copy.src = base();
  copy.src_pitch = 8;
  copy.width = 2;
  copy.height = 2;
  EXPECT_TRUE(calls_.Memcpy2D(copy).ok());
  EXPECT_THAT(Gpu(64, 4), ElementsAre(5, 0, 5, 0));
  copy.height = ~std::uint64_t{0};
  EXPECT_EQ(calls_.Memcpy2D(copy).code, cudaErrorInvalidValue);
}

TEST_F(MemoryCallsTest, MemoryOfOthersIsRefused) {
  wire::Memset fill;
  fill.dst = base() + 4 * kMiB - 8;
  fill.element_bytes = 4;
  fill.count = 2;
  fill.value = 9;
  EXPECT_TRUE(calls_.Memset(fill).ok());
  fill.count = 3;
  EXPECT_EQ(calls_.Memset(fill).code, cudaErrorInvalidValue);
  fill.count = ~std::uint64_t{0} / 2;
  EXPECT_EQ(calls_.Memset(fill).code, cudaErrorInvalidValue);
  wire::MemcpyDtoD copy;
  copy.dst = base();
  copy.src = base() + 4 * kMiB;
  copy.bytes = 1;
  EXPECT_EQ(calls_.MemcpyDtoD(copy).code, cudaErrorInvalidValue);
}

TEST_F(MemoryCallsTest, AnElementHasOneTwoOrFourBytes) {
  wire::Memset fill;
  fill.dst = base();
  fill.element_bytes = 3;
  fill.count = 1;
  EXPECT_EQ(calls_.Memset(fill).code, cudaErrorInvalidValue);
}

}  // namespace
}  // namespace torpor::executor
