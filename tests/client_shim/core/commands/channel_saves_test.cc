// The daemon's requests for a checkpoint (wire::SaveMemory).
#include "tests/client_shim/core/commands/channel_that_loses.h"

namespace torpor::shim {
namespace {

using Reply = wire::SaveMemoryReply;

class ChannelSavesTest : public ChannelThatLoses {
 protected:
  explicit ChannelSavesTest(std::size_t replay_bytes = 1 << 20) : ChannelThatLoses(replay_bytes) {}

  std::vector<Reply> Replies() const { return daemon_.All<Reply>(); }
  // A save whose checkpoint the executor has, and does not answer.
  void BeginSave(std::uint64_t id) {
    ASSERT_TRUE(Grant(0));
    executors_[0]->Await(kAttach);
    executors_[0]->Pause();
    channel_->OnSaveMemory({id});
    channel_->OnTimers();
    executors_[0]->Await(kCheckpoint);
  }
};

TEST_F(ChannelSavesTest, AreOfAllThatCameBefore) {
  ASSERT_TRUE(Grant(0));
  ASSERT_EQ(Launch(), cudaSuccess);
  channel_->OnSaveMemory({7});
  channel_->OnTimers();
  channel_->OnSaveMemory({8});
  ASSERT_EQ(Launch(), cudaSuccess);
  Serve([this] { return Replies().size() == 2; });
  EXPECT_EQ(executors_[0]->Await(kCheckpoint, 2).size(), 5u)
      << "the second came when the first checkpoint was on its way";
  EXPECT_EQ(Replies()[0].save_id, 7u);
  EXPECT_EQ(Replies()[0].outcome, Reply::kSaved);
  EXPECT_EQ(Replies()[1].save_id, 8u);
  EXPECT_GE(saved_, 1u);
}

TEST_F(ChannelSavesTest, WithoutALeaseAreTheDaemons) {
  channel_->OnSaveMemory({7});
  channel_->OnTimers();
  ASSERT_EQ(Replies().size(), 1u);
  EXPECT_EQ(Replies()[0].outcome, Reply::kNoLease);
}

TEST_F(ChannelSavesTest, WhoseExecutorDiesAreAnsweredAfterTheLoss) {
  ASSERT_NO_FATAL_FAILURE(BeginSave(7));
  executors_[0]->Die();
  AwaitNoLink();
  channel_->OnTimers();
  EXPECT_TRUE(Replies().empty()) << "torpord may not know of the loss";
  Die(0);
  channel_->OnTimers();
  ASSERT_EQ(Replies().size(), 1u);
  EXPECT_EQ(Replies()[0].outcome, Reply::kNoLease);
}

TEST_F(ChannelSavesTest, OfATorpordThatHasGoneAreForgotten) {
  ASSERT_NO_FATAL_FAILURE(BeginSave(7));
  channel_->OnDaemonGone();
  executors_[0]->Die();
  channel_->OnResumed({});
  channel_->OnTimers();
  EXPECT_TRUE(Replies().empty());
}

class SavesWithoutARecord : public ChannelSavesTest {
 protected:
  SavesWithoutARecord() : ChannelSavesTest(0) {}
};

TEST_F(SavesWithoutARecord, AreCheckpointsAllTheSame) {
  ASSERT_TRUE(Grant(0));
  ASSERT_EQ(Launch(), cudaSuccess);
  channel_->OnSaveMemory({7});
  Serve([this] { return !Replies().empty(); });
  EXPECT_EQ(Replies()[0].outcome, Reply::kSaved);
}

}  // namespace
}  // namespace torpor::shim
