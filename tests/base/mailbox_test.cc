#include "base/mailbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace torpor {
namespace {

TEST(MailboxTest, DeliversInOrder) {
  Mailbox<int> mailbox(4);
  EXPECT_TRUE(mailbox.Send(1));
  EXPECT_TRUE(mailbox.Send(2));
  EXPECT_EQ(mailbox.Receive(), 1);
  EXPECT_EQ(mailbox.Receive(), 2);
}

TEST(MailboxTest, AFullMailboxHoldsTheSenderBack) {
  Mailbox<int> mailbox(1);
  constexpr int kMessages = 1000;
  std::thread sender([&] {
    for (int i = 0; i < kMessages; ++i) mailbox.Send(i);
    mailbox.Close();
  });
  int expected = 0;
  while (const auto message = mailbox.Receive()) EXPECT_EQ(*message, expected++);
  EXPECT_EQ(expected, kMessages);
  sender.join();
}

TEST(MailboxTest, CloseHandsOutTheRestAndRefusesMore) {
  Mailbox<int> mailbox(4);
  mailbox.Send(7);
  mailbox.Close();
  EXPECT_FALSE(mailbox.Send(8));
  EXPECT_EQ(mailbox.Receive(), 7);
  EXPECT_EQ(mailbox.Receive(), std::nullopt);
}

TEST(MailboxTest, ReceiveUntilGivesUpAtItsDeadline) {
  Mailbox<int> mailbox(1);
  EXPECT_EQ(mailbox.ReceiveUntil(SteadyClock().Now()), std::nullopt);
}

}  // namespace
}  // namespace torpor
