#include "server/controller/memory/freed_pages.h"

#include "tests/server/controller/node_world.h"

namespace torpor::server {
namespace {

class FreedPagesTest : public NodeWorld {
 protected:
  // The extent that the executor is to let go of.
  memory::Block Asked(int gpu) {
    const v1::Extent& extent = Operation(gpu).release_image().extent();
    return {extent.offset(), extent.bytes()};
  }
  void AnswerBoth(const absl::Status& second = absl::OkStatus()) {
    Answer(0);
    Answer(1, second);
    loop_.RunAll();
  }
  Bytes Freed() const { return session_->memory.freed.chunks.total_bytes(); }

  FreedPages pages_{tables_.sessions, tables_.executors, loop_};
  const SessionPtr session_ = AddSession("a");
};

TEST_F(FreedPagesTest, GoPieceByPieceAndLetOthersBetween) {
  pages_.Add(*session_, {60 * kMiB, 100 * kMiB});
  pages_.GiveBack();
  EXPECT_EQ(Asked(0), (memory::Block{60 * kMiB, 4 * kMiB}));
  bool has_run = false;
  session_->steps.Add([&](const StepQueue::Finish& finish) {
    has_run = true;
    finish();
  });
  pages_.GiveBack();
  AnswerBoth();
  EXPECT_TRUE(has_run) << "a request that waits for the session";
  EXPECT_EQ(Asked(1), (memory::Block{64 * kMiB, 64 * kMiB}));
  AnswerBoth();
  EXPECT_EQ(Asked(0), (memory::Block{128 * kMiB, 32 * kMiB}));
  AnswerBoth();
  EXPECT_EQ(Freed(), 0u);
  EXPECT_TRUE(IsQuiet(0) && IsQuiet(1)) << "asked once a piece";
}

TEST_F(FreedPagesTest, StayUntilTheLastExecutorHasLetGo) {
  pages_.Add(*session_, {0, kChunk});
  pages_.GiveBack();
  AnswerBoth(absl::AbortedError("a session works"));
  EXPECT_EQ(Freed(), kChunk);
  EXPECT_TRUE(IsQuiet(0));
  pages_.GiveBack();
  AnswerBoth();
  EXPECT_EQ(Freed(), 0u);
}

TEST_F(FreedPagesTest, AreAskedForWhateverWorksAfterAWhile) {
  pages_.Add(*session_, {0, kChunk});
  session_->lease.id = LeaseId{7};
  loop_.Advance(std::chrono::seconds(29));
  pages_.GiveBack();
  EXPECT_TRUE(IsQuiet(0));
  loop_.Advance(std::chrono::seconds(1));
  pages_.GiveBack();
  EXPECT_FALSE(Operation(0).release_image().only_when_idle());
}

TEST_F(FreedPagesTest, ANewAllocationTakesItsChunksBack) {
  pages_.Add(*session_, {0, 4 * kChunk});
  bool is_clear = false;
  pages_.Reuse(*session_, {kChunk + 512, kChunk}, [&] { is_clear = true; });
  EXPECT_FALSE(is_clear);
  loop_.RunAll();
  EXPECT_TRUE(is_clear);
  EXPECT_EQ(session_->memory.freed.chunks.extents(),
            (std::vector<memory::Extent>{{0, kChunk}, {3 * kChunk, 4 * kChunk}}));
  is_clear = false;
  pages_.Reuse(*session_, {kChunk, kChunk}, [&] { is_clear = true; });
  EXPECT_TRUE(is_clear) << "nothing to clear";
}

}  // namespace
}  // namespace torpor::server
