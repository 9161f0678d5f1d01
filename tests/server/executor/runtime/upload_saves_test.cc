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
constexpr Bytes kBlock = wire::kImageBlockBytes;

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
  // As the client sends longer uploads, which a replay leaves out if they were final.
  wire::MemcpyHtoD WindowUpload(Bytes offset, std::uint64_t value) {
    constexpr std::uint64_t kPlace = wire::kCompletionPageBytes;
    std::memcpy(s_.memory->window().Payload(kPlace, sizeof value), &value, sizeof value);
    wire::MemcpyHtoD up;
    up.dst = base() + offset;
    up.stream = kStream;
    up.bytes = sizeof value;
    up.payload = wire::Payload::kWindow;
    up.offset = kPlace;
    return up;
  }
  void UploadThroughWindow(std::uint64_t value) {
    EXPECT_TRUE(calls_.MemcpyHtoD(WindowUpload(0, value)).ok());
  }
  // Makes the upload; whether the client learns that it need not keep the bytes.
  bool IsFinal(wire::MemcpyHtoD up) {
    constexpr std::uint32_t kSlot = 70;
    up.slot = kSlot;
    up.value = ++marks_made_;
    EXPECT_TRUE(calls_.MemcpyHtoD(up).ok());
    return s_.memory->window().IsSavedUpload(kSlot);
  }
  bool IsFinalUpload(Bytes offset, std::uint64_t value) {
    return IsFinal(WindowUpload(offset, value));
  }
  // A command other than an upload, which may use any memory.
  void UseMemory() { image().uploads().fresh().UseAll(); }
  void WriteBack() {
    CUstream stream = nullptr;
    ASSERT_EQ(streams_.Use(kStream, stream), CUDA_SUCCESS);
    EXPECT_TRUE(image().WriteBack(stream).ok());
    image().CommitCheckpoint(++checkpoints_);
  }
  std::uint64_t OnGpu() const {
    std::uint64_t word = 0;
    std::memcpy(&word, s_.Gpu(0), sizeof word);
    return word;
  }
  std::uint64_t InImage() { return image().HostWord(base()); }

  std::uint64_t checkpoints_ = 0;
  std::uint64_t marks_made_ = 0;
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

TEST_F(UploadSavesTest, UploadsToMemoryInUseAreTheWriteBacks) {
  UploadThroughWindow(1);
  UploadThroughWindow(2);
  EXPECT_EQ(InImage(), 2u) << "final uploads alone leave it fresh";
  UseMemory();
  UploadInline(std::uint64_t{3}, kStream);
  UploadPinned(4, kOtherStream);
  EXPECT_EQ(OnGpu(), 4u);
  EXPECT_EQ(InImage(), 2u) << "a replay begins with that";
  EXPECT_TRUE(image().dirty());
  WriteBack();
  EXPECT_EQ(InImage(), 4u);
  UploadInline(std::uint64_t{5}, kStream);
  EXPECT_EQ(InImage(), 5u) << "all is fresh after a checkpoint";
}

// Otherwise a replay would make the earlier upload again, and not the later one.
TEST_F(UploadSavesTest, AnUploadOverOneThatAReplayRepeatsIsNotFinal) {
  UploadInline(std::uint64_t{1}, kStream);
  UploadThroughWindow(2);
  EXPECT_EQ(InImage(), 1u) << "the client repeats the bytes of commands";
  WriteBack();
  UploadPinned(3, kStream);
  UploadThroughWindow(4);
  EXPECT_EQ(InImage(), 3u) << "and pinned bytes";
  WriteBack();
  UploadThroughWindow(5);
  EXPECT_EQ(InImage(), 5u);
}

TEST_F(UploadSavesTest, AnUploadOverOneDuringAnArrivalIsNotFinal) {
  WriteBack();
  ASSERT_TRUE(image().Drop().ok());
  s_.cuda.HoldStreams();
  ASSERT_TRUE(image().SwapIn({{{0, 4 * kMiB}}}).ok());
  UploadThroughWindow(1);
  EXPECT_EQ(InImage(), 0u) << "the arrival reads the image";
  s_.cuda.Release();
  ASSERT_TRUE(image().arrival().Wait().ok());
  UploadThroughWindow(2);
  EXPECT_EQ(InImage(), 0u) << "a replay repeats the first, so the second must come again, too";
  s_.cuda.Release();
  EXPECT_EQ(OnGpu(), 2u);
}

TEST_F(UploadSavesTest, NewMemoryIsFreshUntilACommandMayUseIt) {
  WriteBack();
  UseMemory();
  UploadInline(std::uint64_t{1}, kStream);
  EXPECT_EQ(InImage(), 0u);
  CUstream stream = nullptr;
  ASSERT_EQ(streams_.Use(kStream, stream), CUDA_SUCCESS);
  ASSERT_TRUE(image().Shrink({0, 4 * kMiB}, {}).ok());
  ASSERT_TRUE(image().Grow({0, 4 * kMiB}, stream).ok());
  UploadInline(std::uint64_t{2}, kStream);
  EXPECT_EQ(InImage(), 2u);
}

TEST_F(UploadSavesTest, TheClientLearnsWhichUploadsAreSaved) {
  EXPECT_TRUE(IsFinalUpload(0, 1));
  UseMemory();
  EXPECT_FALSE(IsFinalUpload(0, 2));
}

// A replay sends a long upload as several commands, and the last one carries the slot.
TEST_F(UploadSavesTest, OfTheBytesOfCommandsTheClientLearnsNothing) {
  const std::uint64_t value = 42;
  wire::MemcpyHtoD up = WindowUpload(0, 0);
  up.payload = wire::Payload::kInline;
  up.offset = 0;
  up.data = {reinterpret_cast<const std::uint8_t*>(&value), sizeof value};
  EXPECT_FALSE(IsFinal(up));
  EXPECT_EQ(InImage(), value);
}

// Two small allocations share a block.
TEST_F(UploadSavesTest, UploadsToABlockWrittenBackSinceTheCheckpointAreNotFinal) {
  CUstream stream = nullptr;
  ASSERT_EQ(streams_.Use(kStream, stream), CUDA_SUCCESS);
  ASSERT_TRUE(image().Shrink({0, 4 * kMiB}, {}).ok());
  ASSERT_TRUE(image().Grow({0, kBlock + 512}, stream).ok());
  WriteBack();
  UseMemory();
  s_.Gpu(kBlock)[0] = 9;
  image().MarkDirty();
  ASSERT_TRUE(image().WriteBack(stream).ok());
  ASSERT_TRUE(image().Grow({kBlock + 512, 2 * kBlock + 512}, stream).ok());
  EXPECT_FALSE(IsFinalUpload(kBlock + 512, 1));
  EXPECT_FALSE(IsFinalUpload(2 * kBlock - 4, 2)) << "half of it is in the block";
  EXPECT_TRUE(IsFinalUpload(2 * kBlock + 8, 3));
  // The executor dies, and another goes on from the checkpoint.
  image().ForgetChanges();
  ASSERT_TRUE(image().Drop().ok());
  ASSERT_TRUE(image().SwapIn({{{0, kBlock + 512}}, {{kBlock + 512, 2 * kBlock + 512}}}).ok());
  ASSERT_TRUE(image().arrival().Wait().ok());
  EXPECT_EQ(s_.Gpu(kBlock)[0], 0);
  EXPECT_EQ(s_.Gpu(kBlock + 512)[0], 0) << "the client must send it again";
  EXPECT_EQ(s_.Gpu(2 * kBlock + 8)[0], 3);
  EXPECT_TRUE(IsFinalUpload(kBlock + 512, 1)) << "the block is as of the checkpoint";
}

// The changes of a stateless session may be forgotten: then its uploads must be in the image.
class StatelessUploadSavesTest : public UploadSavesTest {
 protected:
  std::uint64_t Save(std::uint64_t value, wire::Payload payload, std::uint64_t stream_id) {
    CUstream stream = nullptr;
    EXPECT_EQ(streams_.Use(stream_id, stream), CUDA_SUCCESS);
    const auto saver = saves_.SaverOf(base(), sizeof value, payload, stream);
    std::memcpy(s_.memory->Arena(0, sizeof value), &value, sizeof value);
    const std::uint8_t* const source = s_.memory->Arena(0, sizeof value);
    EXPECT_EQ(s_.device->driver().MemcpyHtoDAsync(image().Resolve(base(), sizeof value), source,
                                                  sizeof value, stream),
              CUDA_SUCCESS);
    EXPECT_TRUE(saves_.Save(saver, base(), {source, sizeof value}, stream).ok());
    return InImage();
  }

  UploadSaves saves_{*s_.device, image(), /*is_stateless=*/true};
};

TEST_F(StatelessUploadSavesTest, SavesUploadsToMemoryInUse) {
  UseMemory();
  EXPECT_EQ(Save(1, wire::Payload::kInline, kStream), 1u);
  EXPECT_EQ(Save(2, wire::Payload::kArena, kStream), 2u);
}

// An earlier save of older bytes must not come last, and pinned bytes may be written by earlier
// work.
TEST_F(StatelessUploadSavesTest, SavesPinnedBytesBehindOtherWorkInStreamOrder) {
  s_.cuda.HoldStreams();
  wire::Memset fill;
  fill.dst = base() + kMiB;
  fill.stream = kStream;
  fill.element_bytes = 1;
  fill.count = 1;
  EXPECT_TRUE(calls_.Memset(fill).ok());
  EXPECT_EQ(Save(2, wire::Payload::kArena, kStream), 0u);
  EXPECT_EQ(Save(3, wire::Payload::kInline, kStream), 0u);
  s_.cuda.Release();
  EXPECT_EQ(InImage(), 3u);
}

TEST_F(UploadSavesTest, LongPinnedUploadsAreTheGpus) {
  CUstream stream = nullptr;
  ASSERT_EQ(streams_.Use(kStream, stream), CUDA_SUCCESS);
  UploadSaves saves(*s_.device, image(), /*is_stateless=*/true);
  const auto saver_of = [&](Bytes bytes) {
    return saves.SaverOf(base(), bytes, wire::Payload::kArena, stream);
  };
  ASSERT_TRUE(image().Grow({4 * kMiB, 10 * kMiB}, stream).ok());
  EXPECT_EQ(saver_of(UploadSaves::kLongestPinned), UploadSaves::Saver::kProcessor);
  EXPECT_EQ(saver_of(UploadSaves::kLongestPinned + 1), UploadSaves::Saver::kGpu);
}

}  // namespace
}  // namespace torpor::executor
