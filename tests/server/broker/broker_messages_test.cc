#include "server/broker/broker_messages.h"

#include <gtest/gtest.h>

namespace torpor::server {
namespace {

TEST(BrokerMessages, ADemandSurvives) {
  const TimePoint now = SteadyClock().Now();
  const RequestBroker::Demand demand{.function = "f",
                                     .id = "r",
                                     .give_up = TimePoint::max(),
                                     .arrival = now,
                                     .ran_on = "i",
                                     .granted = now};
  const RequestBroker::Demand read = FromMessage(ToMessage(7, demand));
  EXPECT_EQ(read.function, "f");
  EXPECT_EQ(read.id, "r");
  EXPECT_EQ(read.give_up, TimePoint::max());
  EXPECT_EQ(read.arrival, now);
  EXPECT_EQ(read.ran_on, "i");
  EXPECT_EQ(read.granted, now);
  EXPECT_EQ(FromMessage(v1::Demand()).arrival, std::nullopt);
}

TEST(BrokerMessages, AGrantNamesTheInstanceAndItsServer) {
  const RequestGrant grant{.request = {},
                           .lease = LeaseId{3},
                           .instance = "b",
                           .upstream = "host:2",
                           .has_siblings = true,
                           .gpu = GpuIndex{1},
                           .source = SwapSource::kHost,
                           .queue = std::chrono::milliseconds(4),
                           .swap = std::chrono::milliseconds(5)};
  const RequestGrant read = FromMessage(ToMessage(7, grant));
  EXPECT_EQ(read.request, RequestId{7});
  EXPECT_EQ(read.lease, LeaseId{3});
  EXPECT_EQ(read.instance, "b");
  EXPECT_EQ(read.upstream, "host:2");
  EXPECT_TRUE(read.has_siblings);
  EXPECT_EQ(read.gpu, GpuIndex{1});
  EXPECT_EQ(read.source, SwapSource::kHost);
  EXPECT_EQ(read.queue, std::chrono::milliseconds(4));
  EXPECT_EQ(read.swap, std::chrono::milliseconds(5));
}

TEST(BrokerMessages, ARefusalIsNeverOk) {
  EXPECT_EQ(FromMessage(ToMessage(7, absl::OutOfRangeError("late"))),
            absl::OutOfRangeError("late"));
  EXPECT_FALSE(FromMessage(v1::TorpordMessage::Refusal()).ok());
}

TEST(BrokerMessages, UnknownValuesAreReplaced) {
  v1::RouterMessage::Release release = ToMessage(7, LeaseId{3}, scheduler::Ending::kFailed);
  EXPECT_EQ(EndingOf(release), scheduler::Ending::kFailed);
  release.set_ending(99);
  EXPECT_EQ(EndingOf(release), scheduler::Ending::kCancelled);
  v1::TorpordMessage::Grant grant;
  grant.set_source(99);
  EXPECT_EQ(FromMessage(grant).source, SwapSource::kPeer);
}

}  // namespace
}  // namespace torpor::server
