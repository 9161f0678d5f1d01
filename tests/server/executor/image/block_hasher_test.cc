// On the emulated GPU, in this process.
#include "server/executor/image/block_hasher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <vector>

namespace torpor::executor {
namespace {

constexpr std::size_t kWordsPerBlock = wire::kImageBlockBytes / sizeof(std::uint32_t);
constexpr unsigned kColumns = 256;

// The hash as block_hash.cu describes it, one word after the other.
std::uint64_t Reference(const std::uint32_t* block) {
  std::uint64_t sum = 0;
  for (unsigned column = 0; column < kColumns; ++column) {
    std::uint32_t low = column;
    std::uint32_t high = ~column;
    for (std::size_t vector = column; vector < kWordsPerBlock / 4; vector += kColumns) {
      for (std::size_t word = 4 * vector; word < 4 * vector + 4; word += 2) {
        low = (low ^ block[word]) * 0x9E3779B1u;
        high = (high ^ block[word + 1]) * 0x85EBCA77u;
        low += std::rotl(high, 7);
        high ^= std::rotl(low, 13);
      }
    }
    std::uint64_t hash = std::uint64_t{high} << 32 | low;
    hash = (hash ^ hash >> 33) * 0xFF51AFD7ED558CCDull;
    hash = (hash ^ hash >> 33) * 0xC4CEB9FE1A85EC53ull;
    sum += hash ^ hash >> 33;
  }
  return sum;
}

class BlockHasherTest : public testing::Test {
 protected:
  static constexpr std::size_t kBlocks = 70;

  void SetUp() override {
    driver_ = *LoadCudaDriver(EMULATOR_DIR);
    device_ = *Device::Open(driver_, 0);
    stream_ = *device_->CreateStream();
    hasher_ = *KernelBlockHasher::Open(*device_);
    // Memory that the host sees at the same address serves as the GPU's.
    void* memory = nullptr;
    ASSERT_EQ(driver_.MemHostAlloc(&memory, kBlocks * wire::kImageBlockBytes, 0), CUDA_SUCCESS);
    words_ = static_cast<std::uint32_t*>(memory);
    std::generate_n(words_, kBlocks * kWordsPerBlock, std::mt19937(7));
  }

  void TearDown() override {
    driver_.MemFreeHost(words_);
    driver_.StreamDestroy(stream_);
  }

  BlockRun Run(std::size_t first, std::size_t blocks) const {
    return {reinterpret_cast<std::uint64_t>(words_ + first * kWordsPerBlock), blocks};
  }

  CudaDriver driver_;
  std::unique_ptr<Device> device_;
  CUstream stream_ = nullptr;
  std::unique_ptr<KernelBlockHasher> hasher_;
  std::uint32_t* words_ = nullptr;
};

TEST_F(BlockHasherTest, HashesAreAsDescribed) {
  const BlockRun runs[] = {Run(1, 2), Run(10, 60)};
  const auto hashes = hasher_->Hash(runs, stream_);
  ASSERT_TRUE(hashes.ok()) << hashes.status();
  ASSERT_EQ(hashes->size(), 62u);
  for (std::size_t i = 0; i < hashes->size(); ++i) {
    const std::size_t block = i < 2 ? 1 + i : 8 + i;
    EXPECT_EQ((*hashes)[i], Reference(words_ + block * kWordsPerBlock)) << block;
  }
}

TEST_F(BlockHasherTest, OneBitShows) {
  const BlockRun run[] = {Run(0, 1)};
  const std::uint64_t before = hasher_->Hash(run, stream_)->front();
  std::mt19937 random(3);
  for (int i = 0; i < 100; ++i) {
    const std::size_t word = random() % kWordsPerBlock;
    const std::uint32_t bit = 1u << random() % 32;
    words_[word] ^= bit;
    EXPECT_NE(hasher_->Hash(run, stream_)->front(), before) << word;
    words_[word] ^= bit;
  }
  EXPECT_EQ(hasher_->Hash(run, stream_)->front(), before);
}

TEST_F(BlockHasherTest, ZerosAreKnown) {
  const std::vector<std::uint32_t> zeros(kWordsPerBlock);
  EXPECT_EQ(hasher_->zero_hash(), Reference(zeros.data()));
}

TEST_F(BlockHasherTest, NothingHasNoHashes) { EXPECT_TRUE(hasher_->Hash({}, stream_)->empty()); }

}  // namespace
}  // namespace torpor::executor
