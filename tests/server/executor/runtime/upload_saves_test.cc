#include "server/executor/runtime/upload_saves.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "server/executor/runtime/memory_calls.h"
#include "tests/server/executor/runtime/runtime_fixture.h"

namespace torpor::executor {
namespace {

constexpr std::uint64_t kStream = 7;
constexpr std::uint64_t kOtherStream = 8;
constexpr Bytes kAt = 64;  // of uploads
constexpr Bytes kElsewhere = 2 * kMiB;

class UploadSavesTest : public RuntimeTest {
 protected:
  UploadSavesTest() {
    EXPECT_EQ(streams_.Create(kStream, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(streams_.Create(kOtherStream, 0, 0), CUDA_SUCCESS);
  }

  void UploadPinned(std::uint64_t value, std::uint64_t stream) {
    std::memcpy(s_.memory->Arena(0, sizeof value), &value, sizeof value);
    wire::MemcpyHtoD up;
    up.dst = base() + kAt;
    up.stream = stream;
    up.bytes = sizeof value;
    up.payload = wire::Payload::kArena;
    EXPECT_TRUE(calls_.MemcpyHtoD(up).ok());
  }
  // `value` stays where it is until the streams go on.
  template <typename Value>
  void UploadInline(const Value& value, std::uint64_t stream, Bytes at = kAt) {
    wire::MemcpyHtoD up;
    up.dst = base() + at;
    up.stream = stream;
    up.bytes = sizeof value;
    up.data = {reinterpret_cast<const std::uint8_t*>(&value), sizeof value};
    EXPECT_TRUE(calls_.MemcpyHtoD(up).ok());
  }
  std::uint64_t OnGpu() const {
    std::uint64_t word = 0;
    std::memcpy(&word, s_.Gpu(kAt), sizeof word);
    return word;
  }
  std::uint64_t InImage(Bytes at = kAt) { return image().HostWord(base() + at); }
  void WriteBack(Bytes max_bytes = DeviceImage::kAll) {
    CUstream stream = nullptr;
    ASSERT_EQ(streams_.Use(kStream, stream), CUDA_SUCCESS);
    EXPECT_TRUE(image().WriteBack(stream, max_bytes).ok());
  }
  void Fill() {
    wire::Memset fill;
    fill.dst = base() + kMiB;
    fill.stream = kStream;
    fill.element_bytes = 1;
    fill.count = 1;
    EXPECT_TRUE(calls_.Memset(fill).ok());
  }

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
  s_.cuda.HoldStreams();
  Fill();  // may be what the pinned bytes wait for
  UploadPinned(2, kStream);
  EXPECT_EQ(InImage(), 0u);
  const std::uint64_t last = 3;
  std::memcpy(s_.memory->Arena(0, sizeof last), &last, sizeof last);
  s_.cuda.Release();
  EXPECT_EQ(OnGpu(), last);
  EXPECT_EQ(InImage(), last);
}

// An earlier save of older bytes must not come last.
TEST_F(UploadSavesTest, SavesStayInOrderBehindOneThatWaits) {
  s_.cuda.HoldStreams();
  Fill();
  UploadPinned(2, kStream);
  const std::array<std::uint64_t, 2> last = {3, 4};  // over the first bytes and beyond
  UploadInline(last, kStream);
  EXPECT_EQ(InImage(), 0u);
  s_.cuda.Release();
  EXPECT_EQ(OnGpu(), last[0]);
  EXPECT_EQ(InImage(), last[0]);
  // With nothing left to come, the next one is saved at once again.
  s_.cuda.HoldStreams();
  const std::uint64_t next = 5;
  UploadInline(next, kOtherStream, kElsewhere);
  EXPECT_EQ(InImage(kElsewhere), next);
  s_.cuda.Release();
}

TEST_F(UploadSavesTest, ALaterUploadToTheRangeIsTheWriteBacks) {
  UploadInline(std::uint64_t{1}, kStream);
  EXPECT_FALSE(image().dirty());
  UploadInline(std::uint64_t{2}, kStream);
  UploadPinned(3, kOtherStream);
  EXPECT_EQ(OnGpu(), 3u);
  EXPECT_EQ(InImage(), 1u);
  EXPECT_TRUE(image().dirty());
  WriteBack();
  EXPECT_EQ(InImage(), 3u);
  EXPECT_FALSE(image().dirty());
}

TEST_F(UploadSavesTest, AnUploadThatGoesBeyondTheSavedRangeIsSaved) {
  UploadInline(std::uint64_t{1}, kStream);
  UploadInline(std::array<std::uint64_t, 2>{2, 3}, kStream);
  EXPECT_EQ(InImage(), 2u);
  UploadInline(std::uint64_t{4}, kStream, kAt + sizeof(std::uint64_t));
  EXPECT_EQ(InImage(kAt + sizeof(std::uint64_t)), 3u);
}

// The block's hash is known by then, and the write-back must not trust the hash.
TEST_F(UploadSavesTest, AnUnsavedUploadToAnExaminedBlockIsWrittenBack) {
  UploadInline(std::uint64_t{1}, kStream);
  Fill();
  WriteBack(wire::kImageBlockBytes);
  ASSERT_TRUE(image().is_partly_saved());
  UploadInline(std::uint64_t{2}, kStream);
  EXPECT_EQ(InImage(), 1u);
  WriteBack();
  EXPECT_EQ(InImage(), 2u);
}

TEST_F(UploadSavesTest, AnEraSavesAnew) {
  UploadInline(std::uint64_t{1}, kStream);
  Fill();
  WriteBack();
  UploadInline(std::uint64_t{2}, kStream);
  EXPECT_EQ(InImage(), 2u) << "after a write-back";
  CUstream stream = nullptr;
  ASSERT_EQ(streams_.Use(kStream, stream), CUDA_SUCCESS);
  ASSERT_TRUE(image().Shrink({0, 4 * kMiB}, {}).ok());
  ASSERT_TRUE(image().Grow({0, 4 * kMiB}, stream).ok());
  UploadInline(std::uint64_t{3}, kStream);
  EXPECT_EQ(InImage(), 3u) << "in new memory";
  ASSERT_TRUE(image().Drop().ok());
  ASSERT_TRUE(image().SwapIn({{{0, 4 * kMiB}}}).ok());
  UploadInline(std::uint64_t{4}, kStream);
  EXPECT_EQ(InImage(), 4u) << "after a swap-in";
}

TEST_F(UploadSavesTest, AStatelessSessionSavesEveryUpload) {
  CUstream stream = nullptr;
  ASSERT_EQ(streams_.Use(kStream, stream), CUDA_SUCCESS);
  UploadSaves saves(*s_.device, image(), /*is_stateless=*/true);
  for (std::uint64_t value = 1; value < 4; ++value) {
    const auto saver = saves.SaverOf(base(), sizeof value, wire::Payload::kInline, stream);
    EXPECT_EQ(saver, UploadSaves::Saver::kProcessor);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&value);
    ASSERT_TRUE(saves.Save(saver, base(), {bytes, sizeof value}, stream).ok());
    EXPECT_EQ(InImage(0), value);
  }
  EXPECT_FALSE(image().dirty());
}

// A program with uploads in more places than are remembered loses no save.
TEST_F(UploadSavesTest, TheRangesAreBounded) {
  for (std::uint64_t i = 0; i <= UploadSaves::kMostRanges; ++i) {
    UploadInline(i, kStream, i * 2 * sizeof i);
  }
  UploadInline(std::uint64_t{1} << 40, kStream, 0);
  EXPECT_EQ(InImage(0), std::uint64_t{1} << 40);
}

TEST_F(UploadSavesTest, LongPinnedUploadsAreTheGpus) {
  CUstream stream = nullptr;
  ASSERT_EQ(streams_.Use(kStream, stream), CUDA_SUCCESS);
  UploadSaves saves(*s_.device, image(), /*is_stateless=*/false);
  const auto saver_of = [&](Bytes bytes) {
    return saves.SaverOf(base(), bytes, wire::Payload::kArena, stream);
  };
  ASSERT_TRUE(image().Grow({4 * kMiB, 10 * kMiB}, stream).ok());
  EXPECT_EQ(saver_of(UploadSaves::kLongestPinned), UploadSaves::Saver::kProcessor);
  EXPECT_EQ(saver_of(UploadSaves::kLongestPinned + 1), UploadSaves::Saver::kGpu);
}

}  // namespace
}  // namespace torpor::executor
