#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/log/structured_log.h"
#include "server/router/router.h"
#include "tests/base/temporary_folder.h"
#include "tests/server/router/fake_broker.h"
#include "tests/server/router/fake_node.h"
#include "tests/server/router/raw_http.h"

namespace torpor::server {

// A router on free ports with one function `f`, whose server the test brings.
class RouterTest : public ::testing::Test {
 protected:
  RouterTest() {
    config_.router.http_address = "127.0.0.1:0";
    config_.router.metrics_address = "127.0.0.1:0";
    config_.router.spool_dir = spool_folder_.path("spool");
    config_.functions["f"].name = "f";
    SetUpLog(LogLevel::kOff, LogFormat::kText);
  }

  // Afterwards config_ is no longer read.
  void StartRouter() {
    broker_.upstream = config_.functions["f"].upstream;
    node_.upstream = broker_.upstream;
    auto router = Router::Start({config_.router, config_.drain_timeout}, Parts());
    ASSERT_TRUE(router.ok()) << router.status();
    router_ = *std::move(router);
    router_->SetFunctions(config_.functions);
  }
  Router::Parts Parts() { return {.broker = &broker_, .node = &node_, .metrics = &metrics_}; }

  // As FakeUpstream's constructor.
  void StartWithUpstream(FakeUpstream::Handler handler, bool reads_bodies = true) {
    upstream_ = std::make_unique<FakeUpstream>(std::move(handler), reads_bodies);
    config_.functions["f"].upstream = upstream_->address();
    StartRouter();
  }

  RawConnection Connect() { return RawConnection::To(router_->http_address()); }

  // One request on a connection of its own.
  RawMessage Fetch(const std::string& request) {
    RawConnection connection = Connect();
    connection.Send(request);
    const auto answer = connection.Read(!request.starts_with("HEAD"));
    EXPECT_TRUE(answer.has_value()) << request;
    return answer.value_or(RawMessage{"HTTP/1.1 0 none", {}, ""});
  }

  static std::string Get(const std::string& target, const std::string& fields = "") {
    return "GET " + target + " HTTP/1.1\r\nHost: node\r\n" + fields + "\r\n";
  }
  static std::string Post(const std::string& target, const std::string& body,
                          const std::string& fields = "") {
    return "POST " + target +
           " HTTP/1.1\r\nHost: node\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
           fields + "\r\n" + body;
  }

  // Bytes without a pattern, others for another seed.
  static std::string SomeBody(std::size_t bytes, std::uint32_t seed = 1) {
    std::string body(bytes, '\0');
    std::uint32_t state = seed;
    for (char& c : body) {
      state = state * 1664525 + 1013904223;
      c = static_cast<char>(state >> 24);
    }
    return body;
  }

  std::string MetricsText() { return metrics_.Render(); }
  // What bodies of requests take; `place`: memory or disk.
  double BodyBytesIn(const std::string& place) {
    const std::string text = MetricsText();
    const std::string key = "torpor_request_body_bytes{place=\"" + place + "\"} ";
    return std::stod(text.substr(text.find(key) + key.size()));
  }

  const TemporaryFolder spool_folder_;
  Config config_;
  FakeBroker broker_;
  FakeNode node_;
  RequestMetrics metrics_;
  std::unique_ptr<FakeUpstream> upstream_;
  std::unique_ptr<Router> router_;  // goes first
};

}  // namespace torpor::server
