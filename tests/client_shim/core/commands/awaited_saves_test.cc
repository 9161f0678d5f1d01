#include "client_shim/core/commands/awaited_saves.h"

#include <gtest/gtest.h>

#include "tests/client_shim/fake_daemon_port.h"

namespace torpor::shim {
namespace {

using Outcome = wire::SaveMemoryReply::Outcome;

class AwaitedSavesTest : public ::testing::Test {
 protected:
  std::vector<std::uint64_t> Answered() const {
    std::vector<std::uint64_t> ids;
    for (const auto& reply : daemon_.All<wire::SaveMemoryReply>()) ids.push_back(reply.save_id);
    return ids;
  }

  FakeDaemonPort daemon_;
  AwaitedSaves saves_{daemon_};
};

TEST_F(AwaitedSavesTest, ACheckpointServesWhatCameBefore) {
  saves_.Add({1});
  saves_.Add({2});
  saves_.Begin();
  EXPECT_FALSE(saves_.HasWaiting());
  saves_.Add({3});
  EXPECT_TRUE(saves_.HasWaiting());
  saves_.Answer(Outcome::kSaved);
  EXPECT_EQ(Answered(), (std::vector<std::uint64_t>{1, 2}));
  saves_.Answer(Outcome::kSaved);
  EXPECT_EQ(Answered().size(), 2u) << "each is answered once";
}

TEST_F(AwaitedSavesTest, ACheckpointThatIsLostIsBegunAgain) {
  saves_.Add({1});
  saves_.Begin();
  saves_.Add({2});
  saves_.Restart();
  saves_.Begin();
  saves_.Answer(Outcome::kFailed, "no room");
  EXPECT_EQ(Answered(), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(daemon_.All<wire::SaveMemoryReply>()[1].outcome, Outcome::kFailed);
  EXPECT_EQ(daemon_.All<wire::SaveMemoryReply>()[1].message, "no room");
}

TEST_F(AwaitedSavesTest, WithoutALeaseAllAreAnswered) {
  saves_.Add({1});
  saves_.Begin();
  saves_.Add({2});
  saves_.AnswerAllWithoutLease();
  EXPECT_EQ(Answered().size(), 2u);
  EXPECT_EQ(daemon_.All<wire::SaveMemoryReply>()[0].outcome, Outcome::kNoLease);
}

TEST_F(AwaitedSavesTest, ADaemonThatHasGoneIsNotAnswered) {
  saves_.Add({1});
  saves_.Begin();
  saves_.Add({2});
  saves_.Clear();
  EXPECT_FALSE(saves_.HasWaiting());
  saves_.Answer(Outcome::kSaved);
  EXPECT_TRUE(Answered().empty());
}

}  // namespace
}  // namespace torpor::shim
