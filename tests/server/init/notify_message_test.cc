#include "server/init/notify_message.h"

#include <gtest/gtest.h>

namespace torpor::init {
namespace {

TEST(NotifyMessage, LinesAreTakenTogether) {
  const NotifyMessage message = ParseNotifyMessage("FDSTORE=1\nFDNAME=image-42\nWATCHDOG=1\n");
  EXPECT_TRUE(message.has_descriptors);
  EXPECT_TRUE(message.feeds_watchdog);
  EXPECT_EQ(message.name, "image-42");
  EXPECT_FALSE(message.drops_descriptors || message.is_ready || message.is_stopping);
}

TEST(NotifyMessage, EveryKindHasItsLine) {
  EXPECT_TRUE(ParseNotifyMessage("READY=1").is_ready);
  EXPECT_TRUE(ParseNotifyMessage("STOPPING=1").is_stopping);
  EXPECT_TRUE(ParseNotifyMessage("FDSTOREREMOVE=1\nFDNAME=a").drops_descriptors);
}

TEST(NotifyMessage, OtherLinesMeanNothing) {
  const NotifyMessage message =
      ParseNotifyMessage("STATUS=READY=1\n\nREADY=0\nXREADY=1\nREADY=1 \nBARRIER=1\nMAINPID=7");
  EXPECT_FALSE(message.is_ready);
  EXPECT_EQ(message.name, "");
}

}  // namespace
}  // namespace torpor::init
