#include "server/executor/image/peer_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "server/executor/gpu/device_mapping.h"
#include "server/executor/image/physical_pool.h"
#include "tests/server/executor/gpu/fake_cuda.h"

namespace torpor::executor {
namespace {

class PeerPoolTest : public testing::Test {
 protected:
  static constexpr Bytes kChunk = FakeCuda::kChunk;
  static constexpr std::uint32_t kChunks = 6;
  using Numbers = std::vector<PeerPool::Number>;

  // The other executor's chunks.
  PeerPoolTest() : chunks_(*owner_->Take(kChunks)) {}
  ~PeerPoolTest() override { owner_->Return(chunks_); }

  std::map<PeerPool::Number, UniqueFd> DescriptorsOf(const std::vector<PeerPool::Number>& numbers) {
    std::map<PeerPool::Number, UniqueFd> descriptors;
    for (const PeerPool::Number i : numbers) {
      descriptors.emplace(i, *ExportMemory(*device_, chunks_[i]));
    }
    return descriptors;
  }
  bool Has(const std::vector<PeerPool::Number>& numbers) { return *pool_->Has(numbers); }
  std::uint8_t& At(PeerPool::Number chunk) {
    return *reinterpret_cast<std::uint8_t*>(pool_->AddressOf(chunk));
  }

  FakeCuda cuda_;
  std::unique_ptr<Device> device_ = *Device::Open(cuda_.driver(), 0);
  std::unique_ptr<PhysicalPool> owner_ = *PhysicalPool::Create(*device_, kChunks* kChunk, kChunk);
  std::vector<CUmemGenericAllocationHandle> chunks_;
  std::shared_ptr<PeerPool> pool_ = *PeerPool::Reserve(*device_, {1, kChunk, kChunks});
};

TEST_F(PeerPoolTest, AChunkHasItsOwnPlace) {
  EXPECT_FALSE(Has({0}));
  ASSERT_TRUE(pool_->Import(DescriptorsOf({0, 1, 4})).ok());
  EXPECT_TRUE(Has({0, 1, 4}));
  EXPECT_FALSE(Has({0, 2}));
  EXPECT_EQ(pool_->mapped_chunks(), 3u);
  EXPECT_EQ(pool_->AddressOf(4), pool_->AddressOf(0) + 4 * kChunk);
  for (const PeerPool::Number i : {0, 1, 4}) At(i) = static_cast<std::uint8_t>(i + 1);
  EXPECT_EQ(At(4), 5);
}

TEST_F(PeerPoolTest, WhatIsMappedIsNotImportedAgain) {
  ASSERT_TRUE(pool_->Import(DescriptorsOf({0, 1})).ok());
  ASSERT_TRUE(pool_->Import(DescriptorsOf({0, 1, 2})).ok());
  EXPECT_EQ(cuda_.chunks_imported(), 3u);
}

TEST_F(PeerPoolTest, AllIsUnmappedInTheEnd) {
  ASSERT_TRUE(pool_->Import(DescriptorsOf({0, 2, 3, 5})).ok());
  EXPECT_EQ(cuda_.mapped_chunks(), 4u);
  pool_.reset();
  EXPECT_EQ(cuda_.mapped_chunks(), 0u);
}

TEST_F(PeerPoolTest, AfterAFailureNothingOfTheChunksIsMapped) {
  cuda_.LimitMappings(2);
  EXPECT_FALSE(pool_->Import(DescriptorsOf({0, 1, 2})).ok());
  EXPECT_EQ(cuda_.mapped_chunks(), 0u);
  EXPECT_FALSE(Has({0}));
  cuda_.LimitMappings(3);
  EXPECT_TRUE(pool_->Import(DescriptorsOf({0, 1, 2})).ok());
}

TEST_F(PeerPoolTest, SwapInsAtOnceImportAChunkOnce) {
  std::vector<std::map<PeerPool::Number, UniqueFd>> all(4);
  for (auto& descriptors : all) descriptors = DescriptorsOf({0, 1, 2, 3, 4, 5});
  std::vector<std::thread> threads;
  threads.reserve(all.size());
  for (const auto& descriptors : all) {
    threads.emplace_back([&] {
      EXPECT_TRUE(pool_->Import(descriptors).ok());
      EXPECT_TRUE(Has({0, 1, 2, 3, 4, 5}));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cuda_.chunks_imported(), kChunks);
}

TEST_F(PeerPoolTest, MappingsAreKeptWithoutUsers) {
  ASSERT_TRUE(pool_->Use(Numbers{0, 1}).ok());
  ASSERT_TRUE(pool_->Import(DescriptorsOf({0, 1})).ok());
  pool_->LetGo(Numbers{0, 1});
  EXPECT_TRUE(Has({0, 1}));
}

TEST_F(PeerPoolTest, TheLastUserUnmapsAfterUse) {
  pool_->UnmapAfterUse();
  ASSERT_TRUE(pool_->Use(Numbers{0, 1, 4}).ok());
  ASSERT_TRUE(pool_->Import(DescriptorsOf({0, 1, 4})).ok());
  ASSERT_TRUE(pool_->Use(Numbers{1, 4}).ok());
  pool_->LetGo(Numbers{4, 0, 1});
  EXPECT_FALSE(Has({0}));
  EXPECT_TRUE(Has({1, 4}));
  EXPECT_EQ(cuda_.mapped_chunks(), 2u);
  pool_->LetGo(Numbers{4, 1});
  EXPECT_EQ(cuda_.mapped_chunks(), 0u);
  ASSERT_TRUE(pool_->Use(Numbers{1}).ok());
  ASSERT_TRUE(pool_->Import(DescriptorsOf({1})).ok()) << "once more";
  EXPECT_TRUE(Has({1}));
  pool_->LetGo(Numbers{1});
}

TEST_F(PeerPoolTest, WhatIsUnusedIsUnmappedAtOnce) {
  ASSERT_TRUE(pool_->Use(Numbers{0, 1}).ok());
  ASSERT_TRUE(pool_->Use(Numbers{1}).ok());
  ASSERT_TRUE(pool_->Import(DescriptorsOf({0, 1})).ok());
  pool_->LetGo(Numbers{0, 1});
  pool_->UnmapAfterUse();
  EXPECT_FALSE(Has({0}));
  EXPECT_TRUE(Has({1}));
  pool_->LetGo(Numbers{1});
  EXPECT_EQ(cuda_.mapped_chunks(), 0u);
}

TEST_F(PeerPoolTest, UsersAtOnceHaveWhatTheyUse) {
  pool_->UnmapAfterUse();
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        ASSERT_TRUE(pool_->Use(Numbers{1, 2}).ok());
        ASSERT_TRUE(pool_->Import(DescriptorsOf({1, 2})).ok());
        EXPECT_TRUE(Has({1, 2}));
        pool_->LetGo(Numbers{1, 2});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cuda_.mapped_chunks(), 0u);
}

TEST_F(PeerPoolTest, RefusesWhatNoGpuHas) {
  EXPECT_TRUE(absl::IsInvalidArgument(PeerPool::Reserve(*device_, {1, 0, 4}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(PeerPool::Reserve(*device_, {1, kChunk, 0}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      PeerPool::Reserve(*device_, {1, kChunk, ~std::uint64_t{0} / kChunk}).status()));
  const PeerPool::Number outside = kChunks;
  EXPECT_TRUE(absl::IsInvalidArgument(pool_->Has({&outside, 1}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(pool_->Use(Numbers{0, outside})));
  std::map<PeerPool::Number, UniqueFd> descriptors;
  descriptors.emplace(outside, UniqueFd());
  EXPECT_TRUE(absl::IsInvalidArgument(pool_->Import(descriptors)));
}

}  // namespace
}  // namespace torpor::executor
