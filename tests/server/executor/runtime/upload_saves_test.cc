#include "server/executor/runtime/upload_saves.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "server/executor/runtime/memory_calls.h"
#include "tests/server/executor/runtime/runtime_fixture.h"

namespace torpor::executor {
namespace {

constexpr std::uint64_t kStream = 7;
constexpr std::uint64_t kOtherStream = 8;

class UploadSavesTest : public RuntimeTest {
 protected:
  UploadSavesTest() {
    EXPECT_EQ(streams_.Create(kStream, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(streams_.Create(kOtherStream, 0, 0), CUDA_SUCCESS);
  }

  void UploadPinned(std::uint64_t value, std::uint64_t stream) {
    std::memcpy(s_.memory->Arena(0, sizeof value), &value, sizeof value);
    wire::MemcpyHtoD up;
    up.dst = base();
    up.stream = stream;
    up.bytes = sizeof value;
    up.payload = wire::Payload::kArena;
    EXPECT_TRUE(calls_.MemcpyHtoD(up).ok());
  }
  // `value` stays where it is until the streams go on.
  void UploadInline(const std::uint64_t& value, std::uint64_t stream) {
    wire::MemcpyHtoD up;
    up.dst = base();
    up.stream = stream;
    up.bytes = sizeof value;
    up.data = {reinterpret_cast<const std::uint8_t*>(&value), sizeof value};
    EXPECT_TRUE(calls_.MemcpyHtoD(up).ok());
  }
  std::uint64_t OnGpu() const {
    std::uint64_t word = 0;
    std::memcpy(&word, s_.Gpu(0), sizeof word);
    return word;
  }
  std::uint64_t InImage() { return image().HostWord(base()); }

  MemoryCalls calls_{{*s_.device, *s_.memory, memory_, streams_, marks_, downloads_}};
};

TEST_F(UploadSavesTest, BytesOfACommandAreSavedBeforeTheGpuHasThem) {
  s_.cuda.HoldStreams();
  const std::uint64_t value = 42;
  UploadInline(value, kStream);
  EXPECT_EQ(InImage(), value);
  EXPECT_NE(OnGpu(), value);
  s_.cuda.Release();
  EXPECT_EQ(OnGpu(), value);
}

TEST_F(UploadSavesTest, PinnedBytesBehindOtherWorkAreSavedInStreamOrder) {
  UploadPinned(1, kStream);
  EXPECT_EQ(InImage(), 1u);
  s_.cuda.HoldStreams();
  wire::Memset fill;  // may be what the pinned bytes wait for
  fill.dst = base() + kMiB;
  fill.stream = kStream;
  fill.element_bytes = 1;
  fill.count = 1;
  EXPECT_TRUE(calls_.Memset(fill).ok());
  UploadPinned(2, kStream);
  EXPECT_EQ(InImage(), 1u);
  const std::uint64_t last = 3;
  std::memcpy(s_.memory->Arena(0, sizeof last), &last, sizeof last);
  s_.cuda.Release();
  EXPECT_EQ(OnGpu(), last);
  EXPECT_EQ(InImage(), last);
}

// An earlier save of older bytes must not come last.
TEST_F(UploadSavesTest, SavesStayInOrderBehindOneThatWaits) {
  s_.cuda.HoldStreams();
  wire::Memset fill;
  fill.dst = base() + kMiB;
  fill.stream = kStream;
  fill.element_bytes = 1;
  fill.count = 1;
  EXPECT_TRUE(calls_.Memset(fill).ok());
  UploadPinned(2, kStream);
  const std::uint64_t last = 3;
  UploadInline(last, kStream);
  EXPECT_EQ(InImage(), 0u);
  s_.cuda.Release();
  EXPECT_EQ(OnGpu(), last);
  EXPECT_EQ(InImage(), last);
  // With nothing left to come, the next one is saved at once again.
  s_.cuda.HoldStreams();
  const std::uint64_t next = 4;
  UploadInline(next, kOtherStream);
  EXPECT_EQ(InImage(), next);
  s_.cuda.Release();
}

TEST_F(UploadSavesTest, LongPinnedUploadsAreTheGpus) {
  CUstream stream = nullptr;
  ASSERT_EQ(streams_.Use(kStream, stream), CUDA_SUCCESS);
  UploadSaves saves(*s_.device, image());
  EXPECT_TRUE(saves.MayCopyNow(wire::Payload::kArena, UploadSaves::kLongestPinned, stream));
  EXPECT_FALSE(saves.MayCopyNow(wire::Payload::kArena, UploadSaves::kLongestPinned + 1, stream));
}

}  // namespace
}  // namespace torpor::executor
