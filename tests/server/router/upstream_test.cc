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

// A function with an instance that does not answer, and one that the broker grants next.
class SiblingsTest : public RouterTest {
 protected:
  // `dead`: the address of the first.
  void StartWithSibling(const std::string& dead) {
    upstream_ =
        std::make_unique<FakeUpstream>([](RawConnection& connection, const RawMessage& message) {
          return connection.Send(Ok(message.body));
        });
    FunctionConfig& f = config_.functions["f"];
    f.instances["x"] = {"x", dead, ""};
    f.instances["y"] = {"y", upstream_->address(), ""};
    broker_.answer = [this, dead](const std::string&) { return Grant("x", dead); };
    broker_.answer_again = [this] { return Grant("y", upstream_->address()); };
    StartRouter();
  }
  RequestGrant Grant(const std::string& instance, const std::string& address) {
    RequestGrant grant = broker_.SomeGrant();
    grant.instance = instance;
    grant.upstream = address;
    grant.has_siblings = true;
    return grant;
  }
  // An address at which nobody listens.
  static std::string DeadAddress() {
    return FakeUpstream([](RawConnection&, const RawMessage&) { return false; }).address();
  }
};

TEST_F(SiblingsTest, ARefusedRequestGoesToAnotherInstance) {
  StartWithSibling(DeadAddress());
  const RawMessage answer = Fetch(Post("/function/f/", "body"));
  EXPECT_EQ(answer.status(), 200) << answer.body;
  EXPECT_EQ(answer.body, "body");
  EXPECT_EQ(answer.Field("x-torpor-instance"), "y");
  EXPECT_EQ(broker_.asked_again(), 1);
  broker_.WaitForReleased(1);
  EXPECT_EQ(broker_.ended(scheduler::Ending::kAnswered), 1u);
}

TEST_F(SiblingsTest, ARequestThatAnInstanceBreaksOffGoesToAnother) {
  FakeUpstream dying([](RawConnection&, const RawMessage&) { return false; });
  StartWithSibling(dying.address());
  EXPECT_EQ(Fetch(Post("/function/f/", "body")).body, "body");
  EXPECT_EQ(broker_.asked_again(), 1);
}

TEST_F(SiblingsTest, ABodyOnTheDiskGoesToAnotherInstanceWhole) {
  config_.router.request_buffer_bytes = 4 * kKiB;
  const std::string body = SomeBody(500'000);
  std::promise<std::string> first;
  FakeUpstream dying([&](RawConnection&, const RawMessage& message) {
    first.set_value(message.body);
    return false;
  });
  StartWithSibling(dying.address());
  EXPECT_TRUE(Fetch(Post("/function/f/", body)).body == body);
  EXPECT_TRUE(first.get_future().get() == body);
  EXPECT_EQ(broker_.asked_again(), 1);
  EXPECT_EQ(BodyBytesIn("disk"), 0);
}

TEST_F(SiblingsTest, WithoutSecondTriesARequestIsSentOnce) {
  config_.functions["f"].second_tries = false;
  FakeUpstream dying([](RawConnection&, const RawMessage&) { return false; });
  StartWithSibling(dying.address());
  EXPECT_EQ(Fetch(Post("/function/f/", "body")).status(), 502);
  EXPECT_EQ(broker_.asked_again(), 0);
}

TEST_F(SiblingsTest, ARequestIsAskedForOnlySoOften) {
  const std::string dead = DeadAddress();
  StartWithSibling(dead);
  broker_.answer_again = [this, dead] { return Grant("x", dead); };
  const RawMessage answer = Fetch(Post("/function/f/", "body"));
  EXPECT_EQ(answer.status(), 503);
  EXPECT_THAT(answer.body, HasSubstr("upstream_down"));
  EXPECT_EQ(broker_.asked_again(), 3);
}

TEST_F(SiblingsTest, ALoneInstanceIsNotAskedAgain) {
  StartWithSibling(DeadAddress());
  broker_.answer = [this](const std::string&) {
    RequestGrant grant = Grant("x", DeadAddress());
    grant.has_siblings = false;
    return grant;
  };
  EXPECT_EQ(Fetch(Post("/function/f/", "body")).status(), 503);
  EXPECT_EQ(broker_.asked_again(), 0);
}

TEST_F(UpstreamTest, ABodyOnTheDiskIsSentAgain) {
  config_.router.request_buffer_bytes = 4 * kKiB;
  std::atomic<int> requests = 0;
  StartWithUpstream([&](RawConnection& connection, const RawMessage& message) {
    return ++requests != 2 && connection.Send(Ok(message.body));
  });
  EXPECT_EQ(Fetch(Get("/function/f/")).status(), 200);
  const std::string body = SomeBody(200 * kKiB);
  const std::string put =
      "PUT /function/f/ HTTP/1.1\r\nHost: node\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n" + body;
  EXPECT_TRUE(Fetch(put).body == body);
  EXPECT_EQ(requests, 3);
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
