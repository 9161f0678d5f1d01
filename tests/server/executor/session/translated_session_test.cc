// A session whose memory the GPU knows by other addresses than the client.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/server/executor/session/batch_test.h"

namespace torpor::executor {
namespace {

using ::testing::ElementsAre;

constexpr Bytes kChunk = FakeCuda::kChunk;

class TranslatedSessionTest : public BatchTest {
 protected:
  TranslatedSessionTest() : BatchTest(AddressMode::kTranslate) {}

  std::uint8_t* gpu(Bytes offset) {
    return reinterpret_cast<std::uint8_t*>(s_.memory->Resolve(base() + offset, 1));
  }
  wire::TextureCreate TextureOfMemory() const {
    wire::TextureCreate texture;
    texture.texture = 4;
    texture.resource = wire::TextureResource::kLinear;
    texture.source = base();
    texture.width = 1024;
    texture.format = CU_AD_FORMAT_FLOAT;
    texture.channels = 1;
    return texture;
  }
  // Leaves the GPU and comes back to another place.
  void Move() {
    ASSERT_TRUE(s_.session->EndLease({kLease}, SteadyClock().Now() + std::chrono::seconds(9)).ok());
    ASSERT_TRUE(s_.session->SwapOut({.drop = true}, s_.stream, s_.findings).ok());
    auto& arena = dynamic_cast<ArenaMemory&>(*s_.gpu_memory);
    const ArenaMemory::Place taken = *arena.Take({2}, 2 * kChunk);
    ASSERT_TRUE(s_.session->SwapIn({{{0, 4 * kMiB}}}, /*is_whole=*/true).ok());
    ASSERT_TRUE(arena.Give(taken).ok());
    ASSERT_TRUE(s_.session->BeginLease({kLease}).ok());
  }
};

TEST_F(TranslatedSessionTest, CallsReachTheMemoryWhereverItLies) {
  ASSERT_NE(s_.memory->Resolve(base(), 1), base());
  wire::MemcpyHtoD upload;
  const std::vector<std::uint8_t> bytes = {1, 2, 3, 4, 5, 6, 7, 8};
  upload.dst = base() + 16;
  upload.bytes = bytes.size();
  upload.payload = wire::Payload::kInline;
  upload.data = bytes;
  EXPECT_EQ(ErrorOf(upload), cudaSuccess);
  EXPECT_EQ(*gpu(18), 3);
  wire::Memset fill;
  fill.dst = base() + 4 * kMiB - 16;
  fill.element_bytes = 1;
  fill.count = 16;
  fill.value = 9;
  EXPECT_EQ(ErrorOf(fill), cudaSuccess);
  EXPECT_EQ(*gpu(4 * kMiB - 1), 9);
  fill.count = 17;
  EXPECT_EQ(ErrorOf(fill), cudaErrorInvalidValue) << "what is behind it is another's";
  wire::MemcpyDtoD copy;
  copy.dst = base();
  copy.src = base() + 16;
  copy.bytes = 8;
  EXPECT_EQ(ErrorOf(copy), cudaSuccess);
  EXPECT_EQ(*gpu(7), 8);
}

TEST_F(TranslatedSessionTest, KernelsGetTheAddressesThatTheGpuKnows) {
  LoadKernel();
  const CUdeviceptr here = s_.memory->Resolve(base(), 1);
  const std::vector<std::uint64_t> words = {base(),
                                            base() + 4 * kMiB - 1,
                                            base() + 4 * kMiB,  // one past the end
                                            base() + 32 * kMiB,
                                            base() - 1,
                                            7,
                                            ~std::uint64_t{0}};
  for (const std::uint64_t& word : words) EXPECT_EQ(ErrorOf(Launch(word)), cudaSuccess);
  EXPECT_THAT(s_.cuda.launches(),
              ElementsAre(here, here + 4 * kMiB - 1, here + 4 * kMiB, base() + 32 * kMiB,
                          base() - 1, 7, ~std::uint64_t{0}));
}

TEST_F(TranslatedSessionTest, ALaunchKnowsWhatHasComeAndGoneSinceTheLast) {
  LoadKernel();
  const std::uint64_t pointer = base() + 8 * kMiB + 16;
  EXPECT_EQ(ErrorOf(Launch(pointer)), cudaSuccess);
  ASSERT_TRUE(s_.session->Grow({8 * kMiB, 10 * kMiB}, s_.stream).ok());
  const CUdeviceptr here = s_.memory->Resolve(pointer, 1);
  EXPECT_EQ(ErrorOf(Launch(pointer)), cudaSuccess);
  memory::ExtentSet live;
  live.Add({0, 4 * kMiB});
  ASSERT_TRUE(s_.session->Shrink({8 * kMiB, 10 * kMiB}, live).ok());
  EXPECT_EQ(ErrorOf(Launch(pointer)), cudaSuccess);
  EXPECT_THAT(s_.cuda.launches(), ElementsAre(pointer, here, pointer));
}

TEST_F(TranslatedSessionTest, PointersAreTranslatedWhileOtherMemoryComesAndGoes) {
  const CUdeviceptr here = s_.memory->Resolve(base(), 1);
  std::atomic<bool> is_over{false};
  std::thread calls([&] {
    bool was_right = true;
    while (!is_over) {
      s_.memory->RefreshAddresses();
      was_right = was_right && s_.memory->Translate(base()) == here;
    }
    EXPECT_TRUE(was_right);
  });
  memory::ExtentSet live;
  live.Add({0, 4 * kMiB});
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(s_.session->Grow({8 * kMiB, 8 * kMiB + 512}, s_.stream).ok());
    EXPECT_TRUE(s_.session->Shrink({8 * kMiB, 8 * kMiB + 512}, live).ok());
  }
  is_over = true;
  calls.join();
}

TEST_F(TranslatedSessionTest, APairOfNumbersIsNoPointer) {
  s_.cuda.SetParameters({{0, 4}, {4, 4}});
  LoadKernel();
  const std::uint64_t looks_like_one = base() + 64;
  EXPECT_EQ(ErrorOf(Launch(looks_like_one)), cudaSuccess);
  EXPECT_THAT(s_.cuda.launches(), ElementsAre(looks_like_one));
}

TEST_F(TranslatedSessionTest, APointerInAStructureIsOne) {
  s_.cuda.SetParameters({{0, 24}});
  LoadKernel();
  const std::vector<std::uint64_t> fields = {base() + 64, 5, 6};
  wire::LaunchKernel launch = Launch(fields[0]);
  launch.parameters = {reinterpret_cast<const std::uint8_t*>(fields.data()), 24};
  EXPECT_EQ(ErrorOf(launch), cudaSuccess);
  EXPECT_THAT(s_.cuda.launches(), ElementsAre(s_.memory->Resolve(base() + 64, 1)));
}

TEST_F(TranslatedSessionTest, PinnedMemoryIsWhereItIs) {
  LoadKernel();
  ASSERT_TRUE(s_.session->MapHost({0, 8 * kKiB}).ok());
  const std::uint64_t pinned = s_.identity.host_base + 8;
  EXPECT_EQ(ErrorOf(Launch(pinned)), cudaSuccess);
  EXPECT_THAT(s_.cuda.launches(), ElementsAre(pinned));
}

TEST_F(TranslatedSessionTest, ContentsFollowWhenTheMemoryIsElsewhere) {
  LoadKernel();
  std::memset(gpu(0), 5, 4 * kMiB);
  s_.memory->image().MarkDirty();
  const CUdeviceptr before = s_.memory->Resolve(base(), 1);
  Move();
  const CUdeviceptr after = s_.memory->Resolve(base(), 1);
  ASSERT_NE(before, after);
  EXPECT_EQ(*gpu(4 * kMiB - 1), 5);
  const std::uint64_t pointer = base() + 4;
  EXPECT_EQ(ErrorOf(Launch(pointer)), cudaSuccess);
  EXPECT_THAT(s_.cuda.launches(), ElementsAre(after + 4));
}

TEST_F(TranslatedSessionTest, NobodySeesWhatWasInThePlace) {
  std::memset(gpu(0), 5, 4 * kMiB);
  ASSERT_TRUE(s_.session->Grow({8 * kMiB, 8 * kMiB + 512}, s_.stream).ok());
  EXPECT_EQ(*gpu(8 * kMiB), 0);
  memory::ExtentSet live;
  live.Add({8 * kMiB, 8 * kMiB + 512});
  ASSERT_TRUE(s_.session->Shrink({0, 4 * kMiB}, live).ok());
  EXPECT_EQ(s_.memory->Resolve(base(), 1), 0u);
  // The arena gives the same place again.
  ASSERT_TRUE(s_.session->Grow({4 * kMiB, 8 * kMiB}, s_.stream).ok());
  EXPECT_EQ(*gpu(4 * kMiB), 0);
  EXPECT_EQ(*gpu(8 * kMiB - 1), 0);
}

TEST_F(TranslatedSessionTest, ATextureOfMemoryIsMadeAgainUnderItsValue) {
  s_.cuda.NumberImageObjectsFrom(100);
  EXPECT_EQ(ErrorOf(TextureOfMemory()), cudaSuccess);
  EXPECT_THAT(s_.cuda.image_objects(), ElementsAre(100));
  s_.cuda.NumberImageObjectsFrom(98);
  Move();
  EXPECT_THAT(s_.cuda.image_objects(), ElementsAre(100)) << "others were made on the way";
}

TEST_F(TranslatedSessionTest, ATextureThatGetsAnotherValueIsAnError) {
  EXPECT_EQ(ErrorOf(TextureOfMemory()), cudaSuccess);
  ASSERT_TRUE(s_.session->EndLease({kLease}, SteadyClock().Now() + std::chrono::seconds(9)).ok());
  ASSERT_TRUE(s_.session->SwapOut({.drop = true}, s_.stream, s_.findings).ok());
  auto& arena = dynamic_cast<ArenaMemory&>(*s_.gpu_memory);
  const ArenaMemory::Place taken = *arena.Take({2}, 2 * kChunk);
  EXPECT_TRUE(absl::IsFailedPrecondition(
      s_.session->SwapIn({{{0, 4 * kMiB}}}, /*is_whole=*/true).status()));
  ASSERT_TRUE(arena.Give(taken).ok());
}

TEST_F(TranslatedSessionTest, AddressesInMemoryAreFound) {
  const std::uint64_t client = base() + 64;
  std::vector<std::uint8_t> bytes(sizeof client);
  std::memcpy(bytes.data(), &client, sizeof client);
  EXPECT_TRUE(s_.memory->image().uploads().Note(base(), bytes));
  const std::uint64_t number = 64;
  std::memcpy(bytes.data(), &number, sizeof number);
  EXPECT_FALSE(s_.memory->image().uploads().Note(base(), bytes));
  // A kernel stores the address that the launch passed.
  const std::uint64_t gpus_own = s_.memory->Resolve(base() + 128, 1);
  std::memcpy(gpu(256), &gpus_own, sizeof gpus_own);
  s_.memory->image().MarkDirty();
  ASSERT_TRUE(s_.memory->image().WriteBack(s_.stream).ok());
  EXPECT_THAT(s_.memory->image().AddressHolders(s_.memory->image().resident()), ElementsAre(0));
}

}  // namespace
}  // namespace torpor::executor
