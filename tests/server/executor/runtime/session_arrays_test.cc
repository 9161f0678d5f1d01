// Arrays, three-dimensional copies, textures and surfaces of a session.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/server/executor/session/batch_test.h"

namespace torpor::executor {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kArray = 11;
constexpr Bytes kWidth = 8;
constexpr Bytes kRowBytes = kWidth * 4;
constexpr Bytes kHeight = 4;
constexpr Bytes kArrayBytes = kRowBytes * kHeight;

class SessionArraysTest : public BatchTest {
 protected:
  wire::ArrayCreate Create() const {
    wire::ArrayCreate create;
    create.array = kArray;
    create.width = kWidth;
    create.height = kHeight;
    create.format = CU_AD_FORMAT_FLOAT;
    create.channels = 1;
    create.block = base() + 4096;
    return create;
  }
  // All of the array from device memory.
  wire::Memcpy3D Upload() const {
    wire::Memcpy3D copy;
    copy.dst_side = wire::MemorySide::kArray;
    copy.dst = kArray;
    copy.src = base() + kMiB;
    copy.src_pitch = kRowBytes;
    copy.src_rows = kHeight;
    copy.width = kRowBytes;
    copy.height = kHeight;
    copy.depth = 1;
    return copy;
  }
  void Leave() {
    ASSERT_TRUE(s_.session->EndLease({kLease}, TimePoint::max()).ok());
    ASSERT_TRUE(s_.session->SwapOut({.drop = true}, s_.stream, s_.findings).ok());
  }
  void Return() { ASSERT_TRUE(s_.session->SwapIn({{{0, 4 * kMiB}}}, /*is_whole=*/false).ok()); }
  std::uint8_t* Memory(std::uint64_t offset) const {
    return reinterpret_cast<std::uint8_t*>(base() + offset);
  }
  std::uint64_t ValueOf(std::uint64_t object) {
    const wire::Reply reply = Call(BatchBuilder().Add(wire::ImageObjectValue{object}));
    EXPECT_EQ(reply.status, 0) << reply.message;
    wire::ImageObjectValueResult result;
    wire::Reader reader(reply.result);
    reader(result);
    return result.known_as;
  }
};

TEST_F(SessionArraysTest, ANewArrayHoldsTheZeroesOfItsBlock) {
  EXPECT_EQ(ErrorOf(Create()), cudaSuccess);
  EXPECT_THAT(s_.cuda.texels(0), Each(0));
  EXPECT_EQ(Call(BatchBuilder().Add(wire::ArrayCheck{kArray})).status, cudaSuccess);
  EXPECT_EQ(ErrorOf(wire::ArrayDestroy{kArray}), cudaSuccess);
  EXPECT_EQ(s_.cuda.live_arrays(), 0U);
  EXPECT_EQ(Call(BatchBuilder().Add(wire::ArrayCheck{kArray})).status,
            cudaErrorInvalidResourceHandle);
}

TEST_F(SessionArraysTest, InvalidDescriptionsMakeNoArray) {
  wire::ArrayCreate create = Create();
  create.block = base() + 4 * kMiB - kArrayBytes + 1;
  EXPECT_EQ(ErrorOf(create), cudaErrorInvalidValue) << "the block ends outside of the memory";
  for (const auto spoil : std::initializer_list<void (*)(wire::ArrayCreate&)>{
           [](wire::ArrayCreate& c) { c.width = 0; },
           [](wire::ArrayCreate& c) { c.height = ~std::uint64_t{0}; },
           [](wire::ArrayCreate& c) { c.format = 0x7fff; },
           [](wire::ArrayCreate& c) { c.channels = 3; },
           [](wire::ArrayCreate& c) { c.flags = CUDA_ARRAY3D_SPARSE; },
           [](wire::ArrayCreate& c) { c.levels = 40; }}) {
    create = Create();
    spoil(create);
    EXPECT_EQ(ErrorOf(create), cudaErrorInvalidValue);
  }
  EXPECT_EQ(s_.cuda.live_arrays(), 0U);
}

TEST_F(SessionArraysTest, AnArrayThatFindsNoRoomIsTold) {
  s_.cuda.RefuseArrays();
  EXPECT_EQ(ErrorOf(Create()), cudaErrorMemoryAllocation);
}

TEST_F(SessionArraysTest, CopiesAreCheckedOnBothSides) {
  ASSERT_EQ(ErrorOf(Create()), cudaSuccess);
  for (Bytes i = 0; i < kArrayBytes; ++i) Memory(kMiB)[i] = static_cast<std::uint8_t>(i);
  EXPECT_EQ(ErrorOf(Upload()), cudaSuccess);
  EXPECT_EQ(s_.cuda.texels(0)[kArrayBytes - 1], kArrayBytes - 1);
  for (const auto spoil : std::initializer_list<void (*)(wire::Memcpy3D&)>{
           [](wire::Memcpy3D& c) { c.dst_position[0] = 1; },
           [](wire::Memcpy3D& c) { c.dst_position[2] = 1; },
           [](wire::Memcpy3D& c) { c.dst_position[1] = ~std::uint64_t{0}; },
           [](wire::Memcpy3D& c) { c.depth = 2; }, [](wire::Memcpy3D& c) { c.dst_level = 1; },
           [](wire::Memcpy3D& c) { c.dst = 12; },
           [](wire::Memcpy3D& c) { c.src_pitch = kRowBytes - 1; },
           [](wire::Memcpy3D& c) { c.src_pitch = ~std::uint64_t{0}; },
           [](wire::Memcpy3D& c) { c.src_rows = kHeight - 1; },
           [](wire::Memcpy3D& c) { c.src -= 2 * kMiB; },
           [](wire::Memcpy3D& c) { c.src_side = static_cast<wire::MemorySide>(9); }}) {
    wire::Memcpy3D copy = Upload();
    spoil(copy);
    EXPECT_EQ(ErrorOf(copy), cudaErrorInvalidValue);
  }
}

TEST_F(SessionArraysTest, TexelsAreInTheImageWhileTheSessionIsElsewhere) {
  ASSERT_EQ(ErrorOf(Create()), cudaSuccess);
  for (Bytes i = 0; i < kArrayBytes; ++i) Memory(kMiB)[i] = static_cast<std::uint8_t>(i + 1);
  ASSERT_EQ(ErrorOf(Upload()), cudaSuccess);
  ASSERT_NO_FATAL_FAILURE(Leave());
  std::vector<std::uint8_t>& texels = s_.cuda.texels(0);
  const std::vector<std::uint8_t> before = texels;
  std::fill(texels.begin(), texels.end(), std::uint8_t{0xee});  // as if it had run elsewhere
  ASSERT_NO_FATAL_FAILURE(Return());
  EXPECT_EQ(texels, before);
  EXPECT_EQ(std::vector<std::uint8_t>(Memory(4096), Memory(4096) + kArrayBytes), before);
}

// The test gives each level its own value, in every slice.
TEST_F(SessionArraysTest, EveryLevelAndLayerGoesAlong) {
  wire::ArrayCreate layered = Create();
  layered.depth = 3;
  layered.flags = CUDA_ARRAY3D_LAYERED;
  layered.levels = 3;
  ASSERT_EQ(ErrorOf(layered), cudaSuccess);
  ASSERT_EQ(s_.cuda.live_arrays(), 3U);
  wire::ArrayCreate volume = Create();
  volume.array = kArray + 1;
  volume.depth = 4;
  volume.levels = 2;
  volume.block = layered.block + 4096;
  ASSERT_EQ(ErrorOf(volume), cudaSuccess);
  const std::vector<Bytes> sizes = {3 * kArrayBytes, 3 * kArrayBytes / 4, 3 * kArrayBytes / 16,
                                    4 * kArrayBytes, 4 * kArrayBytes / 8};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::vector<std::uint8_t>& texels = s_.cuda.texels(i);
    ASSERT_EQ(texels.size(), sizes[i]);
    for (std::size_t at = 0; at < texels.size(); ++at)
      texels[at] = static_cast<std::uint8_t>(40 * i + at % 37);
  }
  s_.memory->image().MarkDirty();
  ASSERT_NO_FATAL_FAILURE(Leave());
  std::vector<std::vector<std::uint8_t>> before;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    before.push_back(s_.cuda.texels(i));
    s_.cuda.texels(i).assign(sizes[i], 0xee);
  }
  ASSERT_NO_FATAL_FAILURE(Return());
  for (std::size_t i = 0; i < sizes.size(); ++i) EXPECT_EQ(s_.cuda.texels(i), before[i]) << i;
  // One level's texels lie behind the other's.
  std::uint64_t at = layered.block - base();
  for (std::size_t i = 0; i < 3; at += sizes[i++]) {
    EXPECT_EQ(std::vector<std::uint8_t>(Memory(at), Memory(at) + sizes[i]), before[i]) << i;
  }

  // The journal makes it on another GPU from the filled block.
  ASSERT_TRUE(s_.session->BeginLease({kLease}).ok());
  ASSERT_TRUE(s_.session->ResetObjects().ok());
  ASSERT_EQ(ErrorOf(layered), cudaSuccess);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(s_.cuda.texels(5 + i), before[i]) << i;
}

TEST_F(SessionArraysTest, AnArrayWithoutALevelIsNone) {
  s_.cuda.RefuseLevels();
  wire::ArrayCreate create = Create();
  create.levels = 2;
  EXPECT_NE(ErrorOf(create), cudaSuccess);
  EXPECT_EQ(s_.cuda.live_arrays(), 0U);
}

TEST_F(SessionArraysTest, ATextureThatCouldNotBeMadeIsToldToWhoAsksForItsValue) {
  wire::TextureCreate create;
  create.texture = 21;
  create.source = kArray;
  EXPECT_EQ(ErrorOf(create), cudaSuccess) << "its array may be gone by now, and nobody uses it";
  EXPECT_EQ(Call(BatchBuilder().Add(wire::ImageObjectValue{21})).status, cudaErrorInvalidValue);
  EXPECT_EQ(Call(BatchBuilder().Add(wire::ImageObjectValue{22})).status,
            cudaErrorInvalidResourceHandle);
  EXPECT_THAT(s_.cuda.image_objects(), IsEmpty());
  EXPECT_EQ(ErrorOf(wire::ImageObjectDestroy{21}), cudaSuccess);
}

TEST_F(SessionArraysTest, TexturesReadOnlyTheSessionsMemory) {
  wire::TextureCreate create;
  create.texture = 21;
  create.resource = wire::TextureResource::kLinear;
  create.source = base();
  create.width = 4 * kMiB;
  create.format = CU_AD_FORMAT_UNSIGNED_INT8;
  create.channels = 1;
  ASSERT_EQ(ErrorOf(create), cudaSuccess);
  EXPECT_EQ(ValueOf(21), 100U);
  create.texture = 22;
  create.width += 1;
  ASSERT_EQ(ErrorOf(create), cudaSuccess);
  EXPECT_NE(Call(BatchBuilder().Add(wire::ImageObjectValue{22})).status, 0);
  create.texture = 23;
  create.resource = wire::TextureResource::kPitched;
  create.width = 1024;
  create.pitch = 1024;
  create.height = ~std::uint64_t{0} / 1024 + 3;
  ASSERT_EQ(ErrorOf(create), cudaSuccess);
  EXPECT_NE(Call(BatchBuilder().Add(wire::ImageObjectValue{23})).status, 0);
}

TEST_F(SessionArraysTest, ParametersNameTheObjectsOfThisGpu) {
  constexpr std::uint64_t kMark = std::uint64_t{1} << 40;  // no plain number
  s_.cuda.NumberImageObjectsFrom(kMark);
  ASSERT_EQ(ErrorOf(Create()), cudaSuccess);
  const wire::SurfaceCreate surface{31, kArray, 0};
  ASSERT_EQ(ErrorOf(surface), cudaSuccess);
  ASSERT_EQ(ValueOf(31), kMark);
  // The program has known it since it ran on another GPU.
  const std::uint64_t known_as = kMark + 555;
  const std::uint64_t other = kMark + 556;
  ASSERT_EQ(ErrorOf(wire::ImageObjectPublish{31, known_as}), cudaSuccess);
  LoadKernel();
  ASSERT_EQ(ErrorOf(Launch(known_as)), cudaSuccess);
  ASSERT_EQ(ErrorOf(Launch(other)), cudaSuccess);
  EXPECT_THAT(s_.cuda.launches(), ElementsAre(kMark, other));
  ASSERT_EQ(ErrorOf(wire::SurfaceCreate{32, kArray, 0}), cudaSuccess);
  EXPECT_NE(ErrorOf(wire::ImageObjectPublish{32, known_as}), cudaSuccess)
      << "which one would it be?";
  ASSERT_EQ(ErrorOf(wire::ImageObjectDestroy{31}), cudaSuccess);
  ASSERT_EQ(ErrorOf(Launch(known_as)), cudaSuccess);
  EXPECT_THAT(s_.cuda.launches(), ElementsAre(kMark, other, known_as));
}

// Any count or size may be the same number.
TEST_F(SessionArraysTest, AnObjectOfASmallValueKeepsItAndNoParameterIsChanged) {
  s_.cuda.NumberImageObjectsFrom(1);
  ASSERT_EQ(ErrorOf(Create()), cudaSuccess);
  ASSERT_EQ(ErrorOf(wire::SurfaceCreate{31, kArray, 0}), cudaSuccess);
  ASSERT_EQ(ErrorOf(wire::SurfaceCreate{32, kArray, 0}), cudaSuccess);
  EXPECT_EQ(ErrorOf(wire::ImageObjectPublish{31, 5}), cudaSuccess);
  EXPECT_THAT(s_.cuda.image_objects(), ElementsAre(2, 5));
  EXPECT_EQ(ValueOf(31), 5U);
  LoadKernel();
  for (const std::uint64_t number : {1, 2, 5, 6}) EXPECT_EQ(ErrorOf(Launch(number)), cudaSuccess);
  EXPECT_THAT(s_.cuda.launches(), ElementsAre(1, 2, 5, 6));

  EXPECT_NE(ErrorOf(wire::ImageObjectPublish{32, 3}), cudaSuccess) << "the driver does not give it";
  EXPECT_THAT(s_.cuda.image_objects(), ElementsAre(2, 5));
  const std::uint64_t number = 3;
  EXPECT_EQ(ErrorOf(Launch(number)), cudaSuccess);
  EXPECT_EQ(s_.cuda.launches().back(), 3U);
}

TEST_F(SessionArraysTest, TheValueOfADiscardedObjectIsToBeHad) {
  s_.cuda.NumberImageObjectsFrom(1);
  s_.cuda.ReuseImageObjects();
  ASSERT_EQ(ErrorOf(Create()), cudaSuccess);
  ASSERT_EQ(ErrorOf(wire::SurfaceCreate{31, kArray, 0}), cudaSuccess);
  ASSERT_TRUE(s_.session->ResetObjects().ok());
  EXPECT_THAT(s_.cuda.image_objects(), ElementsAre(1)) << "until the executor is idle";
  ASSERT_EQ(ErrorOf(Create()), cudaSuccess);
  ASSERT_EQ(ErrorOf(wire::SurfaceCreate{32, kArray, 0}), cudaSuccess);
  EXPECT_EQ(ErrorOf(wire::ImageObjectPublish{32, 1}), cudaSuccess);
  EXPECT_THAT(s_.cuda.image_objects(), ElementsAre(1));
}

// Whatever the session leaves may be slow to destroy, and others may hold leases.
TEST_F(SessionArraysTest, AnEndedStreamsObjectsStayUntilTheExecutorIsIdle) {
  ASSERT_EQ(ErrorOf(Create()), cudaSuccess);
  ASSERT_EQ(ErrorOf(wire::SurfaceCreate{31, kArray, 0}), cudaSuccess);
  ASSERT_TRUE(s_.Run(BatchBuilder()
                         .Add(wire::StreamCreate{10, 0, 0})
                         .Add(wire::EventCreate{5, 0})
                         .Frame(kLease))
                  .ok());
  const std::size_t streams = s_.cuda.live_streams();
  const std::size_t events = s_.cuda.live_events();
  ASSERT_TRUE(s_.session->ResetObjects().ok());
  EXPECT_EQ(s_.cuda.live_arrays(), 1U);
  EXPECT_THAT(s_.cuda.image_objects(), SizeIs(1));
  EXPECT_GE(s_.cuda.live_streams(), streams);
  EXPECT_GE(s_.cuda.live_events(), events);
  const std::atomic<bool> is_wanted = false;
  while (*s_.device->discarded().Step(nullptr, is_wanted)) {
  }
  EXPECT_EQ(s_.cuda.live_arrays(), 0U);
  EXPECT_THAT(s_.cuda.image_objects(), IsEmpty());
  EXPECT_LT(s_.cuda.live_streams(), streams);
  EXPECT_LT(s_.cuda.live_events(), events);
}

}  // namespace
}  // namespace torpor::executor
