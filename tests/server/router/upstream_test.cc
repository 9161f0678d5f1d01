#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "tests/server/router/router_test.h"

namespace torpor::server {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class UpstreamTest : public RouterTest {};

TEST_F(UpstreamTest, ANameIsLookedUp) {
  upstream_ = std::make_unique<FakeUpstream>(
      [](RawConnection& connection, const RawMessage&) { return connection.Send(Ok("x")); });
  const std::string address = upstream_->address();
  config_.functions["f"].upstream = "localhost" + address.substr(address.rfind(':'));
  StartRouter();
  EXPECT_EQ(Fetch(Get("/function/f/")).body, "x");
}

TEST_F(UpstreamTest, ANameThatNobodyHasCostsNoGpu) {
  config_.functions["f"].upstream = "no..name:9001";
  StartRouter();
  const RawMessage answer = Fetch(Get("/function/f/"));
  EXPECT_EQ(answer.status(), 503);
  EXPECT_THAT(answer.body, HasSubstr("no..name:9001"));
  EXPECT_EQ(broker_.acquired(), 0u);
}

TEST_F(UpstreamTest, ARequestThatMetAClosingConnectionIsSentAgain) {
  std::atomic<int> requests = 0;
  StartWithUpstream([&](RawConnection& connection, const RawMessage&) {
    return ++requests != 2 && connection.Send(Ok("x"));
  });
  SetUpLog(LogLevel::kInfo, LogFormat::kText);
  testing::internal::CaptureStderr();
  EXPECT_EQ(Fetch(Get("/function/f/")).body, "x");
  EXPECT_EQ(Fetch(Get("/function/f/")).body, "x");
  EXPECT_EQ(requests, 3);
  EXPECT_EQ(upstream_->connections(), 2);
  router_.reset();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(ContainsRegex("failure=\"[^\"]")));
}

TEST_F(UpstreamTest, AConnectionThatNobodyUsesIsClosed) {
  std::promise<bool> is_at_end;
  StartWithUpstream([&](RawConnection& connection, const RawMessage&) {
    connection.Send(Ok("x"));
    is_at_end.set_value(connection.IsAtEnd());  // blocks until something comes
    return false;
  });
  EXPECT_EQ(Fetch(Get("/function/f/")).body, "x");
  EXPECT_TRUE(is_at_end.get_future().get());
}

}  // namespace
}  // namespace torpor::server
