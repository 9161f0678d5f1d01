#include "memory/write_back_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace torpor::memory {
namespace {

using testing::ElementsAre;

constexpr Bytes kBlock = 64;
constexpr std::uint64_t kZeros = 8;
constexpr std::uint64_t kOnes = 16;

ExtentSet Live(std::initializer_list<Extent> extents) {
  ExtentSet set;
  for (const Extent& extent : extents) set.Add(extent);
  return set;
}

class WriteBackPlanTest : public testing::Test {
 protected:
  std::vector<BlockRecord> records_ = std::vector<BlockRecord>(16);
  CheckpointRecord checkpoint_;
  BlockStates states_{records_, checkpoint_, kBlock};
};

TEST(FirstPartTest, EndsWithTheBlockInWhichItComesToItsBytes) {
  ExtentSet live;
  live.Add({10, 150});
  live.Add({190, 450});
  const WriteBackPart first = FirstPart(live, 0, 100, 100);
  EXPECT_EQ(first.live.extents(), (std::vector<Extent>{{10, 150}, {190, 200}}));
  EXPECT_EQ(first.end, 200u);
  const WriteBackPart second = FirstPart(live, first.end, 150, 100);
  EXPECT_EQ(second.live.extents(), (std::vector<Extent>{{200, 400}}));
  const WriteBackPart last = FirstPart(live, second.end, 150, 100);
  EXPECT_EQ(last.live.extents(), (std::vector<Extent>{{400, 450}}));
  EXPECT_EQ(last.end, WriteBackPart::kEndOfAll);
}

TEST(FirstPartTest, WithNothingBehindItIsTheLast) {
  ExtentSet live;
  live.Add({0, 200});
  EXPECT_EQ(FirstPart(live, 0, 200, 100).end, WriteBackPart::kEndOfAll);
  EXPECT_EQ(FirstPart(live, 0, WriteBackPart::kEndOfAll, 100).live.total_bytes(), 200u);
  EXPECT_EQ(FirstPart({}, 0, 1, 100).end, WriteBackPart::kEndOfAll);
}

TEST_F(WriteBackPlanTest, CopiesTheLiveBytesOfBlocksThatDiffer) {
  states_.SetInStep(0, kOnes);
  states_.SetInStep(1, kOnes);
  const std::vector<HashedBlock> hashes = {{0, kOnes}, {1, kOnes + 8}, {2, kOnes}};
  const WriteBackPlan plan = PlanWriteBack(Live({{0, 100}, {120, 150}}), hashes, kZeros, states_);
  EXPECT_THAT(plan.copies, ElementsAre(Extent{64, 100}, Extent{120, 150}));
  ASSERT_EQ(plan.stale.size(), 2u);
  EXPECT_EQ(plan.stale[0].block, 1u);
  EXPECT_EQ(plan.stale[1].block, 2u);
  BeginWriteBackInPlace(plan, states_);
  EXPECT_FALSE(states_.IsInStep(1, kOnes)) << "until the copy has arrived";
}

TEST_F(WriteBackPlanTest, ZerosThatNobodyWroteAreNotCopied) {
  const std::vector<HashedBlock> hashes = {{0, kZeros}, {1, kZeros}};
  states_.NoteUpload({kBlock, 2 * kBlock});
  const WriteBackPlan plan = PlanWriteBack(Live({{0, 2 * kBlock}}), hashes, kZeros, states_);
  EXPECT_THAT(plan.copies, ElementsAre(Extent{kBlock, 2 * kBlock})) << "the upload's may be other";
  EXPECT_EQ(states_.origin(0), BlockOrigin::kUntouched);
  EXPECT_TRUE(states_.IsInStep(0, kZeros));
}

TEST_F(WriteBackPlanTest, BlocksWithoutLiveBytesStayUnknown) {
  const std::vector<HashedBlock> hashes = {{4, kOnes}};
  const WriteBackPlan plan = PlanWriteBack(Live({{0, kBlock}}), hashes, kZeros, states_);
  EXPECT_TRUE(plan.stale.empty());
  EXPECT_EQ(states_.origin(4), BlockOrigin::kUntouched);
}

TEST_F(WriteBackPlanTest, BlocksOfACheckpointGoToTheAnnex) {
  states_.NoteUpload({0, 3 * kBlock});
  states_.NoteChanged(2, 5);
  states_.Commit(1);
  states_.Retire(2);
  const std::vector<HashedBlock> hashes = {{0, kOnes}, {1, kOnes}, {2, kOnes}};
  const WriteBackPlan plan = PlanWriteBack(Live({{0, 3 * kBlock}}), hashes, kZeros, states_);
  EXPECT_EQ(plan.stale.size(), 3u);
  EXPECT_EQ(plan.annex, 2u) << "the third's own place is free";
  const std::vector<BlockHome> homes = {8, 9};
  BeginWriteBack(plan, homes, states_);
  EXPECT_EQ(states_.home(0), 8u);
  EXPECT_EQ(states_.home(1), 9u);
  EXPECT_EQ(states_.home(2), kOwnPlace);
}

// Whatever is uploaded, written, freed and written back, the image is the GPU's memory afterwards.
TEST_F(WriteBackPlanTest, NothingIsLost) {
  std::mt19937 random(11);
  const auto extent = [&] {
    const Bytes begin = random() % 1000;
    return Extent{begin, begin + 1 + random() % (1024 - begin)};
  };
  const auto hash = [](const std::vector<std::uint8_t>& memory, std::size_t block) {
    std::uint64_t sum = 0;
    for (Bytes i = 0; i < kBlock; ++i)
      sum = (sum ^ memory[block * kBlock + i]) * 0x9E3779B97F4A7C15;
    return sum;
  };
  std::vector<std::uint8_t> gpu(1024);
  std::vector<std::uint8_t> image(1024);
  const std::uint64_t zero_hash = hash(gpu, 0);
  ExtentSet live;
  for (int step = 0; step < 20'000; ++step) {
    const Extent where = extent();
    const auto fill = [&](std::vector<std::uint8_t>& memory, int value) {
      for (const Extent& part : live.Within(where)) {
        std::fill(memory.begin() + static_cast<std::ptrdiff_t>(part.begin),
                  memory.begin() + static_cast<std::ptrdiff_t>(part.end), value);
      }
    };
    const int value = static_cast<int>(random() % 3);
    switch (random() % 5) {
      case 0:  // an allocation, zeroed, as free bytes of the image are
        for (const Extent& gap : live.Gaps(where)) {
          for (Bytes i = gap.begin; i < gap.end; ++i) gpu[i] = 0;
          ResetBlocks(records_, gap, kBlock);
        }
        live.Add(where);
        break;
      case 1:
        fill(image, 0);
        for (const Extent& part : live.Within(where)) ResetBlocks(records_, part, kBlock);
        live.Remove(where);
        break;
      case 2:
        states_.NoteUpload(where);
        fill(gpu, value);
        fill(image, value);
        break;
      case 3:
        fill(gpu, value);
        break;
      default: {
        std::vector<HashedBlock> hashes;
        for (std::size_t block = 0; block < 16; ++block)
          hashes.push_back({block, hash(gpu, block)});
        const WriteBackPlan plan = PlanWriteBack(live, hashes, zero_hash, states_);
        BeginWriteBackInPlace(plan, states_);
        for (const Extent& copy : plan.copies) {
          std::copy_n(gpu.begin() + static_cast<std::ptrdiff_t>(copy.begin), copy.bytes(),
                      image.begin() + static_cast<std::ptrdiff_t>(copy.begin));
        }
        for (const HashedBlock& block : plan.stale) states_.SetInStep(block.block, block.hash);
        for (const Extent& part : live.extents()) {
          for (Bytes i = part.begin; i < part.end; ++i) {
            ASSERT_EQ(image[i], gpu[i]) << "step " << step << ", byte " << i;
          }
        }
      }
    }
  }
}

// A GPU's memory and its image with homes for blocks, whose writer may die at any moment.
class CrashTest : public WriteBackPlanTest {
 protected:
  static constexpr std::size_t kBlocks = 16;
  using Block = std::vector<std::uint8_t>;

  static std::uint64_t HashOf(const Block& block) {
    std::uint64_t sum = 0;
    for (const std::uint8_t byte : block) sum = (sum ^ byte) * 0x9E37'79B9'7F4A'7C15;
    return sum;
  }

  Block& AtHome(std::size_t block) {
    const BlockHome home = states_.home(block);
    return (home == kOwnPlace ? own_ : annex_)[PlaceOfHome(block, home)];
  }

  std::vector<Block> Image() {
    std::vector<Block> image;
    for (std::size_t block = 0; block < kBlocks; ++block) image.push_back(AtHome(block));
    return image;
  }

  std::vector<Block> gpu_ = std::vector<Block>(kBlocks, Block(kBlock));
  std::vector<Block> own_ = gpu_;
  std::vector<Block> annex_ = gpu_;
};

TEST_F(CrashTest, ADeadWriterLeavesTheLastCheckpoint) {
  std::mt19937 random(5);
  const ExtentSet live = Live({{0, kBlocks * kBlock}});
  const std::uint64_t zero_hash = HashOf(Block(kBlock));
  const ExtentSet blocks = Live({{0, kBlocks}});
  std::vector<Block> checkpoint = Image();
  for (std::uint64_t step = 1; step < 5'000; ++step) {
    for (Block& block : gpu_) {
      if (random() % 4 == 0) block[random() % kBlock] = static_cast<std::uint8_t>(random());
    }
    std::vector<HashedBlock> hashes;
    for (std::size_t block = 0; block < kBlocks; ++block) {
      hashes.push_back({block, HashOf(gpu_[block])});
    }
    const WriteBackPlan plan = PlanWriteBack(live, hashes, zero_hash, states_);
    const std::vector<BlockHome> homes = FreeAnnexHomes(states_, blocks, plan.annex);
    ASSERT_EQ(homes.size(), plan.annex);
    BeginWriteBack(plan, homes, states_);
    const std::size_t copied = random() % (2 * kBlocks);  // of the copies, before the death
    for (std::size_t i = 0; i < std::min(copied, plan.stale.size()); ++i) {
      AtHome(plan.stale[i].block) = gpu_[plan.stale[i].block];
      states_.SetInStep(plan.stale[i].block, plan.stale[i].hash);
    }
    if (copied < plan.stale.size()) {
      for (std::size_t block = 0; block < kBlocks; ++block) {
        if (states_.RollBack(block)) own_[block] = Block(kBlock);
      }
      states_.EndRollBack();
      ASSERT_EQ(Image(), checkpoint) << "step " << step;
      gpu_ = checkpoint;
      continue;
    }
    states_.Commit(step);
    for (const HashedBlock& block : plan.stale) states_.Retire(block.block);
    ASSERT_EQ(Image(), gpu_) << "step " << step;
    ASSERT_EQ(states_.committed_command(), step);
    checkpoint = gpu_;
  }
}

}  // namespace
}  // namespace torpor::memory
