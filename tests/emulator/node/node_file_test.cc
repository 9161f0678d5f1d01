#include "emulator/node/node_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "emulator/node/memory_budget.h"
#include "emulator/node/route.h"
#include "tests/emulator/node/four_gpus.h"
#include "tests/emulator/node/process.h"

namespace torpor::emulator {
namespace {

using testing::HasSubstr;

constexpr TimePoint kStart = TimePoint(std::chrono::hours(1));
constexpr Bytes kPiece = 12'000;  // takes 1 us of a GPU's link
constexpr Duration kPieceTime = std::chrono::microseconds(1);
constexpr int kPieces = 1000;

class NodeFileTest : public testing::Test {
 protected:
  ~NodeFileTest() override { unlink(path_.c_str()); }

  std::unique_ptr<NodeFile> Join() const {
    auto node = NodeFile::Join(path_, "a node");
    EXPECT_TRUE(node.ok()) << node.failure().message;
    return std::move(*node);
  }

  const std::string path_ = testing::TempDir() + "node-" + std::to_string(getpid());
  const Topology topology_ = FourGpus();
};

TEST_F(NodeFileTest, SaysWhatIsWrongWithAFile) {
  EXPECT_EQ(NodeFile::Observe(path_).failure().code, NodeError::kUnreadable);
  std::ofstream(path_) << "something else";
  EXPECT_THAT(NodeFile::Join(path_, "a node").failure().message, HasSubstr("remove it"));
  EXPECT_THAT(NodeFile::Join("/nonexistent/node", "a node").failure().message,
              HasSubstr("/nonexistent/node"));
}

TEST_F(NodeFileTest, AnotherTopologyIsRefused) {
  const auto node = Join();
  EXPECT_THAT(NodeFile::Join(path_, "another node").failure().message,
              HasSubstr("another topology"));
}

TEST_F(NodeFileTest, AsManyProcessesAsThereAreSlots) {
  std::vector<std::unique_ptr<NodeFile>> nodes;
  for (unsigned i = 0; i < kMaxProcesses; ++i) nodes.push_back(Join());
  EXPECT_EQ(nodes.back()->slot(), kMaxProcesses - 1);
  EXPECT_THAT(NodeFile::Join(path_, "a node").failure().message, HasSubstr("256 processes"));
  nodes[7].reset();
  EXPECT_EQ(Join()->slot(), 7U);
}

// Two processes copy to one GPU by turns, as they do when they sleep until their pieces have
// passed.
TEST_F(NodeFileTest, ProcessesShareALinkFairly) {
  const Pipe to_child;
  const Pipe to_parent;
  // The end of the last of kPieces, each ready when the one before has passed.
  const auto copy = [&](const Pipe& my_turn, const Pipe& others_turn) {
    const auto node = Join();
    const Route route = RouteBetween(topology_, node->state(), std::nullopt, 0);
    TimePoint end = kStart;
    for (int i = 0; i < kPieces; ++i) {
      my_turn.Await();
      end = route.Reserve(end, kPiece);
      others_turn.Send();
    }
    return end - kStart;
  };
  const Process child([&] { EXPECT_EQ(copy(to_child, to_parent), 2 * kPieces * kPieceTime); });
  to_parent.Send();
  EXPECT_EQ(copy(to_parent, to_child), (2 * kPieces - 1) * kPieceTime);
}

TEST_F(NodeFileTest, NothingIsLostWhenProcessesReserveAtOnce) {
  const auto copy = [&] {
    const auto node = Join();
    const Route route = RouteBetween(topology_, node->state(), std::nullopt, 0);
    for (int i = 0; i < kPieces; ++i) route.Reserve(kStart, kPiece);
  };
  {
    const Process first(copy);
    const Process second(copy);
  }
  const auto node = Join();
  EXPECT_EQ(RouteBetween(topology_, node->state(), std::nullopt, 0).Reserve(kStart, kPiece),
            kStart + (2 * kPieces + 1) * kPieceTime);
}

TEST_F(NodeFileTest, AKilledProcessHoldsNoLinkAndNoMemory) {
  const Pipe done;
  Process child([&] {
    const auto node = Join();
    MemoryBudget budget(*node, 0, kGiB);
    EXPECT_TRUE(budget.Take(kGiB));
    RouteBetween(topology_, node->state(), std::nullopt, 0).Reserve(kStart, kPiece);
    done.Send();
    pause();
  });
  done.Await();
  const auto node = Join();
  MemoryBudget budget(*node, 0, kGiB);
  EXPECT_EQ(budget.free(), 0U);
  EXPECT_FALSE(budget.Take(1));
  child.Kill();
  EXPECT_TRUE(budget.Take(kGiB));
  EXPECT_EQ(RouteBetween(topology_, node->state(), std::nullopt, 0).Reserve(kStart, kPiece),
            kStart + 2 * kPieceTime);
}

TEST_F(NodeFileTest, AForkedChildKeepsNothingOfItsKilledParent) {
  const Pipe forked;
  const Pipe end;
  Process child([&] {
    const auto node = Join();
    MemoryBudget budget(*node, 0, kGiB);
    EXPECT_TRUE(budget.Take(kGiB));
    if (fork() == 0) {
      node->LeaveToParent();
      budget.Return(kGiB);  // nobody sees it
      forked.Send();
      end.Await();
      std::_Exit(0);
    }
    pause();
  });
  forked.Await();
  const auto node = Join();
  MemoryBudget budget(*node, 0, kGiB);
  EXPECT_FALSE(budget.Take(1));
  child.Kill();
  EXPECT_TRUE(budget.Take(kGiB));
  end.Send();
}

TEST_F(NodeFileTest, AProcessKilledWhileItTakesMemoryBlocksNobody) {
  const Pipe locked;
  Process child([&] {
    const auto node = Join();
    pthread_mutex_lock(&node->state().memory.mutex);
    locked.Send();
    pause();
  });
  locked.Await();
  child.Kill();
  const auto node = Join();
  MemoryBudget budget(*node, 0, kGiB);
  EXPECT_TRUE(budget.Take(kMiB));
  EXPECT_TRUE(budget.Take(kMiB));
  EXPECT_EQ(budget.free(), kGiB - 2 * kMiB);
}

TEST_F(NodeFileTest, ProcessesShareAGpusMemoryButNotThatOfOthers) {
  const auto mine = Join();
  const auto others = Join();
  MemoryBudget my_budget(*mine, 0, kGiB);
  MemoryBudget same_gpu(*others, 0, kGiB);
  MemoryBudget other_gpu(*others, 1, kGiB);
  EXPECT_TRUE(my_budget.Take(kGiB - kMiB));
  EXPECT_FALSE(same_gpu.Take(2 * kMiB));
  EXPECT_TRUE(same_gpu.Take(kMiB));
  EXPECT_TRUE(other_gpu.Take(kGiB));
  my_budget.Return(kGiB - kMiB);
  EXPECT_EQ(same_gpu.free(), kGiB - kMiB);
}

TEST_F(NodeFileTest, AProcessOfItsOwnNeedsNoFile) {
  const auto node = NodeFile::Private();
  ASSERT_TRUE(node.ok());
  MemoryBudget budget(**node, 0, kMiB);
  EXPECT_TRUE(budget.Take(kMiB));
  EXPECT_FALSE(budget.Take(1));
  budget.Return(kMiB);
  EXPECT_EQ(budget.free(), kMiB);
}

}  // namespace
}  // namespace torpor::emulator
