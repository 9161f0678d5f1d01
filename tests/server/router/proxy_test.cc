#include <gmock/gmock.h>

#include <functional>
#include <thread>
#include <vector>

#include "tests/server/router/router_test.h"

// What passes through the proxy, and how.
namespace torpor::server {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class ProxyTest : public RouterTest {
 protected:
  // Remembers the last request and answers it with "answer".
  void StartWithRecorder() {
    StartWithUpstream([this](RawConnection& connection, const RawMessage& request) {
      seen_ = request;
      return connection.Send(Ok("answer"));
    });
  }

  void StartWithEcho() {
    StartWithUpstream([](RawConnection& connection, const RawMessage& request) {
      return connection.Send(Ok(request.body));
    });
  }

  static std::string Chunked(const std::string& body, std::size_t chunk_bytes) {
    std::string text;
    for (std::size_t at = 0; at < body.size(); at += chunk_bytes) {
      const std::string chunk = body.substr(at, chunk_bytes);
      char size[32];
      std::snprintf(size, sizeof size, "%zx\r\n", chunk.size());
      text += size + chunk + "\r\n";
    }
    return text + "0\r\n\r\n";
  }

  RawMessage seen_;
};

TEST_F(ProxyTest, TheUpstreamSeesTheRestOfThePathAndTheQuery) {
  StartWithRecorder();
  const RawMessage answer = Fetch(Get("/function/f/v1/predict?a=1&b=%20"));
  EXPECT_EQ(answer.status(), 200);
  EXPECT_EQ(answer.body, "answer");
  EXPECT_EQ(seen_.first_line, "GET /v1/predict?a=1&b=%20 HTTP/1.1");
  Fetch(Get("/function/f"));
  EXPECT_EQ(seen_.first_line, "GET / HTTP/1.1");
  Fetch(Get("/function/f?x=1"));
  EXPECT_EQ(seen_.first_line, "GET /?x=1 HTTP/1.1");
  Fetch(Get("http://node:8000/function/f/abs"));
  EXPECT_EQ(seen_.first_line, "GET /abs HTTP/1.1");
}

TEST_F(ProxyTest, TheAnswerTellsWhereTheTimeWent) {
  StartWithRecorder();
  const RawMessage answer = Fetch(Get("/function/f/"));
  EXPECT_EQ(answer.Field("x-torpor-gpu"), "1");
  EXPECT_EQ(answer.Field("x-torpor-swap"), "host");
  EXPECT_EQ(answer.Field("x-torpor-queue-ms"), "1.500");
  EXPECT_EQ(answer.Field("x-torpor-swap-ms"), "2.500");
  EXPECT_THAT(answer.Field("x-torpor-run-ms"), MatchesRegex("[0-9]+.[0-9][0-9][0-9]"));
  EXPECT_EQ(broker_.acquired(), 1u);
  EXPECT_EQ(broker_.released(), 1u);
  EXPECT_THAT(MetricsText(), HasSubstr("torpor_requests_total{function=\"f\",outcome=\"ok\"} 1"));
  EXPECT_EQ(broker_.ended(scheduler::Ending::kAnswered), 1u);
}

TEST_F(ProxyTest, ARequestIdIsPassedBothWaysOrMade) {
  StartWithRecorder();
  EXPECT_EQ(Fetch(Get("/function/f/", "X-Request-Id: abc-123\r\n")).Field("x-request-id"),
            "abc-123");
  EXPECT_EQ(seen_.Field("x-request-id"), "abc-123");
  const RawMessage made = Fetch(Get("/function/f/", "X-Request-Id: a b\"<script>\r\n"));
  EXPECT_THAT(made.Field("x-request-id"), MatchesRegex("[0-9a-f]+"));
  EXPECT_EQ(seen_.Field("x-request-id"), made.Field("x-request-id"));
  EXPECT_EQ(seen_.fields.count("x-request-id"), 1u);
  EXPECT_EQ(broker_.last_id(), made.Field("x-request-id"));
}

TEST_F(ProxyTest, FieldsOfOneHopStayThere) {
  StartWithRecorder();
  Fetch(Post("/function/f/", "x",
             "Connection: keep-alive, X-Secret, Host, X-Request-Id\r\nX-Secret: 1\r\n"
             "Keep-Alive: timeout=5\r\nTE: trailers\r\nProxy-Connection: close\r\n"
             "X-Kept: 2\r\nX-Request-Id: id\r\nX-Forwarded-For: 10.0.0.9\r\n"));
  EXPECT_EQ(seen_.Field("x-kept"), "2");
  EXPECT_EQ(seen_.Field("host"), "node");
  EXPECT_EQ(seen_.Field("x-request-id"), "id");
  EXPECT_EQ(seen_.Field("x-forwarded-for"), "10.0.0.9, 127.0.0.1");
  EXPECT_EQ(seen_.Field("x-forwarded-proto"), "http");
  EXPECT_EQ(seen_.Field("content-length"), "1");
  for (const char* name : {"x-secret", "keep-alive", "te", "proxy-connection", "connection"}) {
    EXPECT_EQ(seen_.fields.count(name), 0u) << name;
  }
}

TEST_F(ProxyTest, TheUpstreamCannotSpeakInTorporsName) {
  StartWithUpstream([](RawConnection& connection, const RawMessage&) {
    return connection.Send(
        "HTTP/1.1 201 Made\r\nX-Torpor-Gpu: 7\r\nX-Request-Id: forged\r\nConnection: X-Hop\r\n"
        "X-Hop: 1\r\nX-Own: 2\r\nContent-Length: 2\r\n\r\nok");
  });
  const RawMessage answer = Fetch(Get("/function/f/", "X-Request-Id: mine\r\n"));
  EXPECT_EQ(answer.first_line, "HTTP/1.1 201 Made");
  EXPECT_EQ(answer.Field("x-torpor-gpu"), "1");
  EXPECT_EQ(answer.fields.count("x-torpor-gpu"), 1u);
  EXPECT_EQ(answer.Field("x-request-id"), "mine");
  EXPECT_EQ(answer.Field("x-own"), "2");
  EXPECT_EQ(answer.fields.count("x-hop"), 0u);
}

TEST_F(ProxyTest, BodiesOfAnySizePassWithBoundedBuffers) {
  config_.router.request_buffer_bytes = 64 * kKiB;
  config_.router.response_buffer_bytes = 64 * kKiB;
  StartWithEcho();
  for (const std::size_t bytes : {0u, 1u, 65535u, 65536u, 65537u, 12'345'678u}) {
    const std::string body = SomeBody(bytes);
    RawConnection connection = Connect();
    std::thread sender([&] { connection.Send(Post("/function/f/", body)); });
    const auto answer = connection.Read();
    sender.join();
    ASSERT_TRUE(answer.has_value()) << bytes;
    EXPECT_TRUE(answer->body == body) << bytes;
  }
}

TEST_F(ProxyTest, ChunkedBodiesPass) {
  config_.router.request_buffer_bytes = 64 * kKiB;
  StartWithEcho();
  for (const std::size_t bytes : {0u, 5u, 1'000'000u}) {
    const std::string body = SomeBody(bytes);
    const RawMessage answer =
        Fetch("POST /function/f/ HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: chunked\r\n\r\n" +
              Chunked(body, 10'000));
    EXPECT_EQ(answer.status(), 200);
    EXPECT_TRUE(answer.body == body) << bytes;
  }
}

TEST_F(ProxyTest, ChunkedAnswersPassAsTheyCome) {
  config_.router.response_buffer_bytes = 64 * kKiB;
  const std::string body = SomeBody(3'000'000);
  StartWithUpstream([&](RawConnection& connection, const RawMessage&) {
    return connection.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
                           Chunked(body, 7'777));
  });
  EXPECT_TRUE(Fetch(Get("/function/f/")).body == body);
}

TEST_F(ProxyTest, AnEventStreamArrivesBeforeItEnds) {
  std::mutex may_end;
  may_end.lock();
  StartWithUpstream([&](RawConnection& connection, const RawMessage&) {
    connection.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
    const std::lock_guard lock(may_end);
    return connection.Send("4\r\nlast\r\n0\r\n\r\n");
  });
  RawConnection connection = Connect();
  connection.Send(Get("/function/f/"));
  EXPECT_EQ(connection.Read(false)->status(), 200);
  may_end.unlock();
  EXPECT_EQ(connection.ReadChunks(), "firstlast");
}

TEST_F(ProxyTest, AnAnswerThatEndsWithItsConnectionIsFramedAnew) {
  StartWithUpstream([](RawConnection& connection, const RawMessage&) {
    connection.Send("HTTP/1.0 200 OK\r\n\r\nuntil the end");
    return false;
  });
  EXPECT_EQ(Fetch(Get("/function/f/")).body, "until the end");
}

TEST_F(ProxyTest, AnHttp10ClientGetsNoChunks) {
  StartWithUpstream([](RawConnection& connection, const RawMessage&) {
    return connection.Send(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"
        "2\r\ncd\r\n0\r\n\r\n");
  });
  RawConnection connection = Connect();
  connection.Send("GET /function/f/ HTTP/1.0\r\n\r\n");
  const std::string text = connection.ReadToEnd();
  EXPECT_TRUE(text.ends_with("\r\n\r\nabcd")) << text;
}

TEST_F(ProxyTest, HeadAndAnswersWithoutABodyKeepTheConnectionInStep) {
  StartWithUpstream([](RawConnection& connection, const RawMessage& request) {
    if (request.first_line.starts_with("HEAD")) {
      return connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n");
    }
    if (request.first_line.find("/304") != std::string::npos) {
      return connection.Send("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n");
    }
    return connection.Send("HTTP/1.1 204 No Content\r\n\r\n");
  });
  RawConnection connection = Connect();
  connection.Send("HEAD /function/f/ HTTP/1.1\r\nHost: n\r\n\r\n");
  const auto head = connection.Read(false);
  EXPECT_EQ(head->status(), 200);
  EXPECT_EQ(head->Field("content-length"), "77");
  connection.Send(Get("/function/f/"));
  EXPECT_EQ(connection.Read(false)->status(), 204);
  connection.Send(Get("/function/f/304"));
  EXPECT_EQ(connection.Read(false)->status(), 304);
  EXPECT_EQ(upstream_->connections(), 1);
}

TEST_F(ProxyTest, TheHeadOfAChunkedAnswerHasNoBody) {
  StartWithUpstream([](RawConnection& connection, const RawMessage& request) {
    const bool is_head = request.first_line.starts_with("HEAD");
    return connection.Send(std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n") +
                           (is_head ? "" : "2\r\nok\r\n0\r\n\r\n"));
  });
  RawConnection connection = Connect();
  connection.Send("HEAD /function/f/ HTTP/1.1\r\nHost: n\r\n\r\n");
  EXPECT_EQ(connection.Read(false)->status(), 200);
  connection.Send(Get("/function/f/"));
  EXPECT_EQ(connection.Read()->body, "ok");
}

TEST_F(ProxyTest, BothSidesKeepTheirConnections) {
  StartWithEcho();
  RawConnection connection = Connect();
  for (const char* body : {"one", "two", "three"}) {
    connection.Send(Post("/function/f/", body));
    EXPECT_EQ(connection.Read()->body, body);
  }
  EXPECT_EQ(upstream_->connections(), 1);
}

TEST_F(ProxyTest, PipelinedRequestsAreAnsweredInOrder) {
  StartWithEcho();
  RawConnection connection = Connect();
  connection.Send(Post("/function/f/", "one") + Post("/function/f/", "two") + Get("/livez") +
                  Post("/function/f/", "three"));
  EXPECT_EQ(connection.Read()->body, "one");
  EXPECT_EQ(connection.Read()->body, "two");
  EXPECT_EQ(connection.Read()->body, "{\"live\":true}\n");
  EXPECT_EQ(connection.Read()->body, "three");
}

TEST_F(ProxyTest, AnUpstreamThatClosesAfterEachAnswerIsReconnected) {
  StartWithUpstream([](RawConnection& connection, const RawMessage&) {
    connection.Send(Ok("x"));
    return false;
  });
  RawConnection connection = Connect();
  for (int i = 0; i < 5; ++i) {
    connection.Send(Get("/function/f/"));
    EXPECT_EQ(connection.Read()->status(), 200);
  }
}

TEST_F(ProxyTest, ExpectContinueIsMetBeforeTheBodyIsSent) {
  StartWithEcho();
  RawConnection connection = Connect();
  connection.Send(
      "POST /function/f/ HTTP/1.1\r\nHost: n\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(connection.Read(false)->first_line, "HTTP/1.1 100 Continue");
  connection.Send("body");
  EXPECT_EQ(connection.Read()->body, "body");
}

TEST_F(ProxyTest, InterimAnswersAreNotTheAnswer) {
  StartWithUpstream([](RawConnection& connection, const RawMessage&) {
    return connection.Send("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + Ok("real"));
  });
  EXPECT_EQ(Fetch(Get("/function/f/")).body, "real");
}

TEST_F(ProxyTest, AnEarlyAnswerDoesNotWaitUntilTheUpstreamTakesTheBody) {
  config_.router.request_buffer_bytes = 4 * kKiB;
  StartWithUpstream(
      [](RawConnection& connection, const RawMessage&) {
        connection.Send("HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nmuch");
        connection.ReadToEnd();
        return false;
      },
      /*reads_bodies=*/false);
  RawConnection connection = Connect();
  connection.Send(Post("/function/f/", std::string(20'000'000, 'x')));
  const auto answer = connection.Read();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status(), 413);
  EXPECT_EQ(answer->body, "much");
  connection.Send(Get("/livez"));
  EXPECT_EQ(connection.Read()->status(), 200) << "the body was read";
}

TEST_F(ProxyTest, TheGpuIsFreeBeforeASlowClientHasItsAnswer) {
  const std::string body = SomeBody(2'000'000);
  StartWithUpstream(
      [&](RawConnection& connection, const RawMessage&) { return connection.Send(Ok(body)); });
  RawConnection connection = Connect();
  connection.Send(Get("/function/f/"));
  broker_.WaitForReleased(1);
  EXPECT_TRUE(connection.Read()->body == body);
}

TEST_F(ProxyTest, AnAnswerLargerThanItsBufferWaitsForTheClient) {
  config_.router.response_buffer_bytes = 64 * kKiB;
  const std::string body = SomeBody(32'000'000);
  StartWithUpstream(
      [&](RawConnection& connection, const RawMessage&) { return connection.Send(Ok(body)); });
  RawConnection connection = Connect();
  connection.Send(Get("/function/f/"));
  EXPECT_EQ(connection.Read(false)->status(), 200);
  EXPECT_EQ(broker_.released(), 0u);
}

TEST_F(ProxyTest, ASlowSenderHoldsNoGpu) {
  StartWithEcho();
  RawConnection connection = Connect();
  const std::string request = Post("/function/f/", std::string(50'000, 'x'));
  connection.Send(request.substr(0, 30'000));
  Fetch(Get("/livez"));  // the router has had its turn
  EXPECT_EQ(broker_.acquired(), 0u);
  connection.Send(request.substr(30'000));
  EXPECT_EQ(connection.Read()->status(), 200);
  EXPECT_EQ(broker_.acquired(), 1u);
}

TEST_F(ProxyTest, NorDoesOneWhoseBodyIsOnTheDisk) {
  config_.router.request_buffer_bytes = 4 * kKiB;
  StartWithEcho();
  RawConnection connection = Connect();
  const std::string body = SomeBody(500'000);
  const std::string request = Post("/function/f/", body);
  connection.Send(request.substr(0, request.size() - 1));
  while (BodyBytesIn("disk") < 400'000) std::this_thread::yield();
  Fetch(Get("/livez"));
  EXPECT_EQ(broker_.acquired(), 0u);
  connection.Send(request.substr(request.size() - 1));
  EXPECT_TRUE(connection.Read()->body == body);
  EXPECT_EQ(broker_.acquired(), 1u);
  EXPECT_EQ(BodyBytesIn("disk"), 0);
  EXPECT_EQ(BodyBytesIn("memory"), 0);
}

TEST_F(ProxyTest, BodiesThatWaitTakeTheMemoryOfTheirLimit) {
  constexpr int kRequests = 200;
  config_.router.request_memory = 4 * kMiB;
  const auto hash_of = [](const std::string& body) {
    return std::to_string(std::hash<std::string>()(body));
  };
  StartWithUpstream([&](RawConnection& connection, const RawMessage& request) {
    return connection.Send(Ok(hash_of(request.body)));
  });
  broker_.answer = nullptr;
  std::vector<std::string> hashes;
  std::vector<RawConnection> connections;
  hashes.reserve(kRequests);
  connections.reserve(kRequests);
  for (int i = 0; i < kRequests; ++i) {
    const std::string body = SomeBody(kMiB, static_cast<std::uint32_t>(i));
    hashes.push_back(hash_of(body));
    connections.push_back(Connect());
    connections.back().Send(Post("/function/f/", body));
    broker_.WaitForAcquired(connections.size());
    EXPECT_LE(BodyBytesIn("memory"), 4 * kMiB);
  }
  EXPECT_EQ(BodyBytesIn("memory") + BodyBytesIn("disk"), kRequests * kMiB);
  for (std::size_t i = 0; i < connections.size(); ++i) {
    broker_.Answer(i + 1, broker_.SomeGrant());
    EXPECT_EQ(connections[i].Read()->body, hashes[i]) << i;
  }
  EXPECT_EQ(BodyBytesIn("memory"), 0);
  EXPECT_EQ(BodyBytesIn("disk"), 0);
}

}  // namespace
}  // namespace torpor::server
