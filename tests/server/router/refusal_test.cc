#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/server/router/router_test.h"

// What goes wrong, and how the client is told.
namespace torpor::server {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

class RefusalTest : public RouterTest {
 protected:
  void StartWithOk() {
    StartWithUpstream(
        [](RawConnection& connection, const RawMessage&) { return connection.Send(Ok("ok")); });
  }

  // Takes the request and never answers.
  void StartWithSilence() {
    StartWithUpstream([](RawConnection& connection, const RawMessage&) {
      connection.ReadToEnd();
      return false;
    });
  }

  static std::string ReasonOf(const RawMessage& answer) {
    const auto json = nlohmann::json::parse(answer.body, nullptr, false);
    if (json.is_discarded()) return "no JSON: " + answer.body;
    EXPECT_EQ(json["error"]["status"], answer.status());
    EXPECT_EQ(json["error"]["request_id"], answer.Field("x-request-id"));
    EXPECT_NE(json["error"]["message"], "");
    return json["error"]["reason"];
  }

  void ExpectRefusal(const RawMessage& answer, int status, const std::string& reason) {
    EXPECT_EQ(answer.status(), status);
    EXPECT_EQ(ReasonOf(answer), reason);
  }

  std::string Requests(const std::string& outcome) {
    const std::string text = MetricsText();
    const std::string key = "torpor_requests_total{function=\"f\",outcome=\"" + outcome + "\"} ";
    return text.substr(text.find(key) + key.size(), 1);
  }
};

TEST_F(RefusalTest, UnknownFunctionsAndPathsAre404) {
  StartWithOk();
  ExpectRefusal(Fetch(Get("/function/other/x")), 404, "unknown_function");
  ExpectRefusal(Fetch(Get("/function/F/x")), 404, "unknown_function");
  ExpectRefusal(Fetch(Get("/function/%66/x")), 404, "unknown_function");
  ExpectRefusal(Fetch(Get("/function/")), 404, "unknown_function");
  ExpectRefusal(Fetch(Get("/")), 404, "unknown_path");
  ExpectRefusal(Fetch(Get("/metrics")), 404, "unknown_path");
  EXPECT_THAT(MetricsText(), HasSubstr("torpor_unknown_function_requests_total 4"));
}

struct BrokerAnswer {
  absl::Status status;
  int http_status;
  const char* reason;
  const char* outcome;
};

TEST_F(RefusalTest, WhatTheBrokerRefusesHasItsOwnStatus) {
  StartWithOk();
  const BrokerAnswer answers[] = {
      {absl::UnavailableError("no session"), 503, "unavailable", "rejected"},
      {absl::DeadlineExceededError("waited"), 504, "queue_timeout", "timeout"},
      {absl::NotFoundError("gone"), 404, "unknown_function", "rejected"},
      {absl::InternalError("odd"), 503, "unavailable", "rejected"},
      {absl::ResourceExhaustedError("queue"), 429, "queue_full", "rejected"},
      {absl::OutOfRangeError("late"), 504, "too_late", "rejected"},
  };
  RawConnection connection = Connect();
  for (const BrokerAnswer& expected : answers) {
    broker_.answer = [&](const std::string&) { return expected.status; };
    connection.Send(Get("/function/f/"));
    const auto answer = connection.Read();
    ASSERT_TRUE(answer.has_value());
    ExpectRefusal(*answer, expected.http_status, expected.reason);
    const bool may_retry = expected.http_status == 503 || expected.http_status == 429;
    EXPECT_EQ(answer->Field("retry-after"), may_retry ? "1" : "");
    EXPECT_THAT(answer->body, HasSubstr(std::string(expected.status.message())));
  }
  EXPECT_EQ(Requests("rejected"), "5");
  EXPECT_EQ(Requests("timeout"), "1");
  EXPECT_EQ(broker_.released(), 6u);
  EXPECT_EQ(broker_.ended(scheduler::Ending::kCancelled), 6u);
}

TEST_F(RefusalTest, ADrainingNodeRefusesAndSaysSo) {
  config_.drain_timeout = std::chrono::seconds(30);
  std::mutex may_answer;
  may_answer.lock();
  StartWithUpstream([&](RawConnection& connection, const RawMessage&) {
    const std::lock_guard lock(may_answer);
    return connection.Send(Ok("late"));
  });
  RawConnection running = Connect();
  running.Send(Get("/function/f/"));
  broker_.WaitForAcquired(1);
  RawConnection idle = Connect();
  idle.Send(Get("/livez"));
  EXPECT_EQ(idle.Read()->status(), 200);

  std::thread drain([&] { router_->Drain(); });
  EXPECT_TRUE(idle.IsAtEnd());  // idle connections end first
  const RawMessage answer = Fetch(Get("/function/f/"));
  ExpectRefusal(answer, 503, "draining");
  EXPECT_EQ(answer.Field("retry-after"), "1");
  EXPECT_EQ(answer.Field("connection"), "close");
  EXPECT_EQ(Fetch(Get("/readyz")).status(), 503);
  EXPECT_EQ(Fetch(Get("/livez")).status(), 200);
  may_answer.unlock();
  EXPECT_EQ(running.Read()->body, "late");
  drain.join();
}

TEST_F(RefusalTest, DrainGivesUpAfterItsTimeout) {
  config_.drain_timeout = milliseconds(20);
  StartWithSilence();
  RawConnection connection = Connect();
  connection.Send(Get("/function/f/"));
  broker_.WaitForAcquired(1);
  router_->Drain();
  router_.reset();
  EXPECT_EQ(broker_.released(), 1u);
  EXPECT_TRUE(connection.IsAtEnd());
}

TEST_F(RefusalTest, AFunctionWithoutAServerIs503) {
  {
    FakeUpstream closed([](RawConnection&, const RawMessage&) { return false; });
    config_.functions["f"].upstream = closed.address();
  }
  config_.functions["g"].name = "g";
  StartRouter();
  const RawMessage down = Fetch(Get("/function/f/"));
  ExpectRefusal(down, 503, "upstream_down");
  EXPECT_EQ(down.Field("retry-after"), "1");
  EXPECT_EQ(broker_.released(), 1u);
  EXPECT_EQ(broker_.ended(scheduler::Ending::kFailed), 1u);
  ExpectRefusal(Fetch(Get("/function/g/")), 503, "no_upstream");
}

TEST_F(RefusalTest, ASilentUpstreamIs504) {
  config_.functions["f"].upstream_timeout = milliseconds(20);
  StartWithSilence();
  ExpectRefusal(Fetch(Get("/function/f/")), 504, "upstream_timeout");
  EXPECT_EQ(Requests("timeout"), "1");
  broker_.WaitForReleased(1);
  EXPECT_EQ(broker_.ended(scheduler::Ending::kFailed), 1u);
}

TEST_F(RefusalTest, AnUpstreamThatBreaksOffIs502) {
  StartWithUpstream([](RawConnection& connection, const RawMessage& request) {
    if (request.first_line.find("/half") != std::string::npos) {
      connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    }
    if (request.first_line.find("/junk") != std::string::npos) connection.Send("\x01junk\r\n\r\n");
    return false;
  });
  ExpectRefusal(Fetch(Get("/function/f/none")), 502, "upstream_broken");
  ExpectRefusal(Fetch(Get("/function/f/half")), 502, "upstream_broken");
  ExpectRefusal(Fetch(Get("/function/f/junk")), 502, "upstream_broken");
  EXPECT_EQ(Requests("lost"), "3");
  EXPECT_EQ(broker_.ended(scheduler::Ending::kFailed), 3u);
}

TEST_F(RefusalTest, AnAnswerThatBreaksOffAfterItsHeaderIsCutShort) {
  StartWithUpstream([](RawConnection& connection, const RawMessage&) {
    connection.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
    return false;
  });
  RawConnection connection = Connect();
  connection.Send(Get("/function/f/"));
  const std::string text = connection.ReadToEnd();
  EXPECT_FALSE(text.ends_with("0\r\n\r\n")) << text;
}

TEST_F(RefusalTest, ALeaseLostInMidRequestIs502) {
  StartWithSilence();
  RawConnection connection = Connect();
  connection.Send(Get("/function/f/"));
  broker_.WaitForAcquired(1);
  broker_.Lose(1, absl::UnavailableError("executor 1 died"));
  const auto answer = connection.Read();
  ASSERT_TRUE(answer.has_value());
  ExpectRefusal(*answer, 502, "lease_lost");
  EXPECT_THAT(answer->body, HasSubstr("executor 1 died"));
  EXPECT_EQ(Requests("lost"), "1");
  broker_.WaitForReleased(1);
  EXPECT_EQ(broker_.ended(scheduler::Ending::kLost), 1u);
}

TEST_F(RefusalTest, AFunctionThatSeesTheLossFirstIs502Too) {
  broker_.on_confirm = [this](RequestId request) {
    broker_.Lose(request.value, absl::UnavailableError("executor 1 died"));
  };
  StartWithUpstream([](RawConnection& connection, const RawMessage&) {
    return connection.Send("HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\nOops");
  });
  ExpectRefusal(Fetch(Get("/function/f/")), 502, "lease_lost");
}

TEST_F(RefusalTest, AFunctionThatDiesOfTheLossIsNotAskedAgain) {
  broker_.on_confirm = [this](RequestId request) {
    broker_.Lose(request.value, absl::UnavailableError("executor 1 died"));
  };
  std::atomic<int> requests = 0;
  StartWithUpstream([&](RawConnection& connection, const RawMessage&) {
    return ++requests == 1 && connection.Send(Ok("alive"));
  });
  EXPECT_EQ(Fetch(Get("/function/f/")).status(), 200);
  ExpectRefusal(Fetch(Get("/function/f/")), 502, "lease_lost");
  EXPECT_EQ(requests, 2);
}

TEST_F(RefusalTest, AFunctionsOwnErrorsPass) {
  StartWithUpstream([](RawConnection& connection, const RawMessage&) {
    return connection.Send(
        "HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nOops\r\n0\r\n\r\n");
  });
  const RawMessage answer = Fetch(Get("/function/f/"));
  EXPECT_EQ(answer.first_line, "HTTP/1.1 500 Oops");
  EXPECT_EQ(answer.body, "Oops");
  EXPECT_EQ(Requests("upstream_error"), "1");
  EXPECT_EQ(broker_.ended(scheduler::Ending::kFailed), 1u);
}

TEST_F(RefusalTest, AClientThatLeavesTheQueueGivesUpItsPlace) {
  StartWithOk();
  broker_.answer = nullptr;
  {
    RawConnection connection = Connect();
    connection.Send(Get("/function/f/"));
    broker_.WaitForAcquired(1);
  }
  broker_.WaitForReleased(1);
  EXPECT_EQ(upstream_->connections(), 0);
  broker_.Answer(1, broker_.SomeGrant());  // comes too late, and harms nobody
  EXPECT_EQ(Fetch(Get("/livez")).status(), 200);
}

TEST_F(RefusalTest, AClientThatLeavesWhileItRunsFreesTheGpu) {
  bool upstream_saw_the_end = false;
  std::promise<void> running;
  StartWithUpstream([&](RawConnection& connection, const RawMessage&) {
    running.set_value();
    upstream_saw_the_end = connection.IsAtEnd();
    return false;
  });
  {
    RawConnection connection = Connect();
    connection.Send(Get("/function/f/") + Get("/function/f/pipelined"));
    running.get_future().wait();
  }
  broker_.WaitForReleased(1);
  upstream_.reset();
  EXPECT_TRUE(upstream_saw_the_end);
}

TEST_F(RefusalTest, AClientThatLeavesInMidBodyLeavesNothingBehind) {
  config_.router.request_buffer_bytes = 4 * kKiB;
  StartWithOk();
  {
    RawConnection connection = Connect();
    connection.Send("POST /function/f/ HTTP/1.1\r\nHost: n\r\nContent-Length: 1000000\r\n\r\n" +
                    std::string(200'000, 'x'));
    while (BodyBytesIn("disk") == 0) std::this_thread::yield();
  }
  while (BodyBytesIn("disk") > 0) std::this_thread::yield();
  EXPECT_EQ(BodyBytesIn("memory"), 0);
  EXPECT_EQ(broker_.acquired(), 0u);
}

TEST_F(RefusalTest, AClientThatLeavesWhileItsBodyIsSentFreesTheGpu) {
  config_.router.request_buffer_bytes = 4 * kKiB;
  std::promise<void> is_over;
  StartWithUpstream(
      [over = is_over.get_future().share()](RawConnection&, const RawMessage&) {
        over.wait();  // takes no more of the body
        return false;
      },
      /*reads_bodies=*/false);
  {
    RawConnection connection = Connect();
    connection.Send(Post("/function/f/", std::string(20'000'000, 'x')));
    broker_.WaitForAcquired(1);
  }
  broker_.WaitForReleased(1);
  is_over.set_value();
}

TEST_F(RefusalTest, ABodyBeyondTheSpoolIs503AndHarmsNobody) {
  config_.router.request_buffer_bytes = 4 * kKiB;
  config_.router.spool_limit = 128 * kKiB;
  StartWithOk();
  const RawMessage answer = Fetch(Post("/function/f/", std::string(500'000, 'x')));
  ExpectRefusal(answer, 503, "spool_full");
  EXPECT_EQ(answer.Field("retry-after"), "1");
  EXPECT_EQ(answer.Field("connection"), "close");
  EXPECT_THAT(answer.body, HasSubstr("spool_limit"));
  EXPECT_EQ(BodyBytesIn("memory"), 0);
  EXPECT_EQ(BodyBytesIn("disk"), 0);
  EXPECT_EQ(broker_.acquired(), 0u);
  EXPECT_EQ(Requests("rejected"), "1");
  EXPECT_EQ(Fetch(Post("/function/f/", std::string(100'000, 'x'))).status(), 200);
}

TEST_F(RefusalTest, WithoutADiskShortBodiesAreServed) {
  config_.router.request_buffer_bytes = 4 * kKiB;
  config_.router.spool_dir = spool_folder_.Write("taken", "by a file") + "/spool";
  StartWithOk();
  ExpectRefusal(Fetch(Post("/function/f/", std::string(4097, 'x'))), 503, "spool_full");
  EXPECT_EQ(Fetch(Post("/function/f/", std::string(4096, 'x'))).status(), 200);
}

TEST_F(RefusalTest, StoppingInMidBodyReleasesEverything) {
  config_.router.request_buffer_bytes = 4 * kKiB;
  StartWithOk();
  RawConnection sending = Connect();
  sending.Send("POST /function/f/ HTTP/1.1\r\nHost: n\r\nContent-Length: 1000000\r\n\r\n" +
               std::string(500'000, 'x'));
  while (BodyBytesIn("disk") == 0) std::this_thread::yield();
  router_.reset();
  EXPECT_EQ(BodyBytesIn("disk"), 0);
  EXPECT_EQ(BodyBytesIn("memory"), 0);
  EXPECT_EQ(broker_.acquired(), 0u);
}

TEST_F(RefusalTest, AnUpstreamWithAnEndlessHeaderIs502) {
  StartWithUpstream([](RawConnection& connection, const RawMessage&) {
    connection.Send("HTTP/1.1 200 OK\r\nX: " + std::string(300 * kKiB, 'x') + "\r\n\r\n");
    return false;
  });
  ExpectRefusal(Fetch(Get("/function/f/")), 502, "upstream_broken");
}

TEST_F(RefusalTest, WhatIsNotHttpIs400) {
  StartWithOk();
  for (const std::string& request :
       {std::string("nonsense\r\n\r\n"), std::string("GET /livez HTTP/3.7\r\n\r\n"),
        std::string("GET /livez HTTP/1.1\r\n\r\n"),
        std::string("GET /livez HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
        std::string("GET /livez HTTP/1.1\r\nHost: a\r\nBad\x01Name: b\r\n\r\n"),
        std::string("POST /function/f/ HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"),
        std::string("POST /function/f/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
                    "Content-Length: 2\r\n\r\nx"),
        std::string("POST /function/f/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        std::string("POST /function/f/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "zz\r\n")}) {
    const RawMessage answer = Fetch(request);
    EXPECT_EQ(answer.status(), 400) << request;
    EXPECT_EQ(answer.Field("connection"), "close") << request;
  }
  EXPECT_EQ(broker_.acquired(), 0u);
}

TEST_F(RefusalTest, HeadersAndBodiesHaveLimits) {
  config_.router.max_header_bytes = kKiB;
  config_.router.max_body_bytes = 10;
  StartWithOk();
  EXPECT_EQ(Fetch(Get("/livez", "X: " + std::string(2000, 'x') + "\r\n")).status(), 431);
  EXPECT_EQ(Fetch(Post("/function/f/", "01234567890")).status(), 413);
  EXPECT_EQ(Fetch(Post("/function/f/", "0123456789")).status(), 200);
  ExpectRefusal(Fetch("POST /function/f/ HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: chunked\r\n\r\n"
                      "14\r\n01234567890123456789\r\n0\r\n\r\n"),
                413, "body_too_large");
}

TEST_F(RefusalTest, WhatIsNotProxiedSaysSo) {
  StartWithOk();
  ExpectRefusal(Fetch(Get("/function/f/", "Connection: Upgrade\r\nUpgrade: websocket\r\n")), 501,
                "upgrade");
  ExpectRefusal(Fetch("POST /function/f/ HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: gzip, "
                      "chunked\r\n\r\n0\r\n\r\n"),
                501, "transfer_encoding");
  ExpectRefusal(Fetch(Post("/function/f/", "x", "Expect: miracles\r\n")), 417, "expectation");
}

TEST_F(RefusalTest, ASlowHeaderEndsTheConnection) {
  config_.router.header_timeout = milliseconds(20);
  StartWithOk();
  RawConnection connection = Connect();
  connection.Send("GET /livez HTTP/1.1\r\nHo");
  EXPECT_TRUE(connection.IsAtEnd());
}

TEST_F(RefusalTest, ASlowBodyEndsTheConnection) {
  config_.router.client_timeout = milliseconds(20);
  StartWithOk();
  RawConnection connection = Connect();
  connection.Send("POST /function/f/ HTTP/1.1\r\nHost: n\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_TRUE(connection.IsAtEnd());
  EXPECT_EQ(broker_.acquired(), 0u);
}

TEST_F(RefusalTest, AnUnusedConnectionEnds) {
  config_.router.idle_timeout = milliseconds(20);
  StartWithOk();
  EXPECT_TRUE(Connect().IsAtEnd());
}

TEST_F(RefusalTest, ThereAreOnlySoManyConnections) {
  config_.router.max_connections = 1;
  StartWithOk();
  RawConnection first = Connect();
  first.Send(Get("/livez"));
  EXPECT_EQ(first.Read()->status(), 200);
  EXPECT_TRUE(Connect().IsAtEnd());
  first.Send(Get("/livez"));
  EXPECT_EQ(first.Read()->status(), 200);
}

TEST_F(RefusalTest, HealthPathsTellOfTheNodeAndItsFunctions) {
  StartWithOk();
  for (const char* path : {"/livez", "/readyz", "/v2/health/live", "/v2/health/ready"}) {
    EXPECT_EQ(Fetch(Get(path)).status(), 200) << path;
  }
  EXPECT_EQ(Fetch(Get("/v2/models/f/ready")).body, "{\"name\":\"f\",\"ready\":true}\n");
  EXPECT_EQ(Fetch(Get("/v2/models/g/ready")).status(), 404);
  node_.is_ready = false;
  const RawMessage not_ready = Fetch(Get("/readyz"));
  EXPECT_EQ(not_ready.status(), 503);
  EXPECT_EQ(not_ready.body, "{\"ready\":false,\"reason\":\"no GPU serves\"}\n");
  EXPECT_EQ(Fetch(Get("/v2/models/f/ready")).status(), 503);
  EXPECT_EQ(Fetch(Get("/livez")).status(), 200);
  node_.is_ready = true;
  node_.is_serving = false;
  const RawMessage not_serving = Fetch(Get("/v2/models/f/ready"));
  EXPECT_EQ(not_serving.status(), 503);
  EXPECT_EQ(not_serving.body,
            "{\"name\":\"f\",\"ready\":false,\"reason\":\"no instance has a session\"}\n");
  node_.is_serving = true;
  upstream_.reset();
  EXPECT_EQ(Fetch(Get("/v2/models/f/ready")).status(), 503) << "nobody listens";
  const RawMessage wrong_method = Fetch(Post("/livez", ""));
  EXPECT_EQ(wrong_method.status(), 405);
  EXPECT_EQ(wrong_method.Field("allow"), "GET, HEAD");
  EXPECT_EQ(broker_.acquired(), 0u);
}

TEST_F(RefusalTest, ANodeThatDoesNotAnswerKeepsNoStopWaiting) {
  node_.is_silent = true;
  StartWithOk();
  RawConnection probe = Connect();
  probe.Send(Get("/readyz"));
  while (node_.asked == 0) std::this_thread::yield();
  router_.reset();
  EXPECT_TRUE(probe.IsAtEnd());
}

TEST_F(RefusalTest, FunctionsMayChange) {
  StartWithOk();
  EXPECT_EQ(Fetch(Get("/function/f/")).status(), 200);
  std::map<std::string, FunctionConfig> functions = {{"g", config_.functions["f"]}};
  functions["g"].name = "g";
  router_->SetFunctions(functions);
  EXPECT_EQ(Fetch(Get("/function/f/")).status(), 404);
  EXPECT_EQ(Fetch(Get("/function/g/")).status(), 200);
  EXPECT_THAT(MetricsText(), HasSubstr("torpor_requests_total{function=\"g\",outcome=\"ok\"} 1"));
  EXPECT_THAT(MetricsText(), Not(HasSubstr("function=\"f\"")));
}

TEST_F(RefusalTest, AFunctionThatIsGoneAnswersWhatItHasBegun) {
  broker_.answer = nullptr;
  StartWithOk();
  RawConnection waiting = Connect();
  waiting.Send(Get("/function/f/"));
  broker_.WaitForAcquired(1);
  router_->SetFunctions({});
  EXPECT_EQ(Fetch(Get("/function/f/")).status(), 404);
  broker_.Answer(1, broker_.SomeGrant());
  EXPECT_EQ(waiting.Read()->status(), 200);
}

TEST_F(RefusalTest, LimitsMayChange) {
  config_.router.max_body_bytes = 1;
  StartWithOk();
  EXPECT_EQ(Fetch(Post("/function/f/", "two")).status(), 413);
  RouterConfig larger = config_.router;
  larger.max_body_bytes = 0;
  router_->SetOptions({larger, config_.drain_timeout});
  EXPECT_EQ(Fetch(Post("/function/f/", "two")).status(), 200);
}

TEST_F(RefusalTest, MetricsAreOnAnAddressOfTheirOwn) {
  StartWithOk();
  RawConnection connection = RawConnection::To(router_->metrics_address());
  connection.Send(Get("/metrics"));
  const auto answer = connection.Read();
  ASSERT_TRUE(answer.has_value());
  EXPECT_THAT(answer->body, HasSubstr("torpor_build_info"));
  EXPECT_EQ(answer->Field("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  connection.Send(Get("/function/f/"));
  EXPECT_EQ(connection.Read()->status(), 404);
  EXPECT_EQ(broker_.acquired(), 0u);
}

TEST_F(RefusalTest, AnAddressInUseIsNamed) {
  StartWithOk();
  RouterConfig second = config_.router;
  second.http_address = router_->http_address();
  const auto router = Router::Start({second, {}}, Parts());
  ASSERT_FALSE(router.ok());
  EXPECT_THAT(std::string(router.status().message()), HasSubstr(router_->http_address()));
}

TEST_F(RefusalTest, StoppingInMidRequestReleasesEverything) {
  broker_.answer = nullptr;
  StartWithSilence();
  RawConnection running = Connect();
  running.Send(Get("/function/f/"));
  broker_.WaitForAcquired(1);
  broker_.Answer(1, broker_.SomeGrant());
  RawConnection queued = Connect();
  queued.Send(Get("/function/f/"));
  broker_.WaitForAcquired(2);
  router_.reset();
  EXPECT_EQ(broker_.released(), 2u);
  broker_.Answer(2, broker_.SomeGrant());  // after the router's end
  EXPECT_TRUE(queued.IsAtEnd());
}

}  // namespace
}  // namespace torpor::server
