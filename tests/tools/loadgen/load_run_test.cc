#include "tools/loadgen/load_run.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace torpor::loadgen {
namespace {

// A server on a free port that gives each request's body to `answer` and sends what it
// returns, verbatim; an empty text closes the connection.
class FakeServer {
 public:
  explicit FakeServer(std::function<std::string(const std::string&)> answer)
      : answer_(std::move(answer)), listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 100), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    host_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    acceptor_ = std::thread([this] { Accept(); });
  }

  ~FakeServer() {
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    for (const int connection : connections_) shutdown(connection, SHUT_RDWR);
    for (std::thread& thread : threads_) thread.join();
    for (const int connection : connections_) close(connection);
    close(listener_);
  }

  const std::string& host() const { return host_; }

 private:
  void Accept() {
    for (int connection; (connection = accept(listener_, nullptr, nullptr)) >= 0;) {
      connections_.push_back(connection);
      threads_.emplace_back([this, connection] { Serve(connection); });
    }
  }

  void Serve(int connection) {
    std::string received;
    char chunk[4096];
    while (true) {
      const std::size_t head = received.find("\r\n\r\n");
      const std::size_t length_at = received.find("Content-Length: ");
      if (head != std::string::npos && length_at != std::string::npos) {
        const auto length = std::strtoull(received.c_str() + length_at + 16, nullptr, 10);
        if (received.size() >= head + 4 + length) {
          const std::string response = answer_(received.substr(head + 4, length));
          received.erase(0, head + 4 + length);
          if (response.empty()) {
            shutdown(connection, SHUT_RDWR);
            return;
          }
          (void)send(connection, response.data(), response.size(), MSG_NOSIGNAL);
          continue;
        }
      }
      const ssize_t got = recv(connection, chunk, sizeof(chunk), 0);
      if (got <= 0) return;
      received.append(chunk, static_cast<std::size_t>(got));
    }
  }

  const std::function<std::string(const std::string&)> answer_;
  const int listener_;
  std::string host_;
  std::thread acceptor_;
  std::vector<int> connections_;
  std::vector<std::thread> threads_;
};

std::string Response(int status, const std::string& body, const std::string& headers = "") {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

Workload Load(const std::string& host, std::vector<Exchange> exchanges) {
  FunctionLoad function;
  function.name = "f";
  function.host = host;
  function.path = "/x";
  function.rate_per_s = 200;
  function.objective = std::chrono::seconds(10);
  function.exchanges = std::move(exchanges);
  Workload workload;
  workload.arrivals.process = workload::ArrivalProcess::kConstant;
  workload.duration = std::chrono::milliseconds(200);
  workload.timeout = std::chrono::seconds(20);
  workload.functions = {std::move(function)};
  return workload;
}

Report RunAndReport(const Workload& workload) {
  return MakeReport(workload, RunLoad(workload, *MakeRates(workload), {}, {}));
}

TEST(LoadRunTest, SendsTheWholeScheduleAndReadsTheHeaders) {
  const FakeServer server([](const std::string& body) {
    return Response(200, body,
                    "X-Torpor-Gpu: 1\r\nX-Torpor-Swap: host\r\nX-Torpor-Queue-Ms: 1.5\r\n"
                    "X-Torpor-Swap-Ms: 20\r\nX-Torpor-Run-Ms: 3\r\n");
  });
  const Report report = RunAndReport(Load(server.host(), {{"[1]", "[1]", 0}}));
  EXPECT_EQ(report.totals().requests, 40U);
  EXPECT_EQ(report.totals().swaps_pcie, 40U);
  EXPECT_TRUE(report.Clean());
  EXPECT_NEAR(report.functions[0].requests.all.queue_ms, 1.5, 1e-9);
  EXPECT_NEAR(report.functions[0].requests.all.swap_ms, 20, 1e-9);
  EXPECT_EQ(report.gpus.at(1).requests, 40U);
}

TEST(LoadRunTest, FindsTheWrongAnswersAmongTheRight) {
  std::atomic<int> served{0};
  const FakeServer server(
      [&](const std::string& body) { return Response(200, ++served % 4 == 0 ? "[7]" : body); });
  const Report report = RunAndReport(Load(server.host(), {{"[1]", "[1]", 0}, {"[2]", "[2]", 0}}));
  EXPECT_EQ(report.totals().wrong_answers, 10U);
  EXPECT_EQ(report.totals().errors, 0U);
  EXPECT_NEAR(report.totals().Attainment(), 0.75, 1e-9);
}

TEST(LoadRunTest, ErrorStatusesAndTheirTextAreTold) {
  const FakeServer server([](const std::string&) { return Response(503, "busy"); });
  std::string told;
  const Workload workload = Load(server.host(), {{"x", "", 0}});
  LoadObserver observer;
  observer.on_failure = [&](const std::string& failure) { told = failure; };
  const Report report = MakeReport(workload, RunLoad(workload, *MakeRates(workload), {}, observer));
  EXPECT_EQ(report.totals().errors, report.totals().requests);
  EXPECT_EQ(told, "f: HTTP 503: busy");
}

TEST(LoadRunTest, ASilentServerIsATimeOut) {
  std::mutex silence;
  silence.lock();
  {
    Workload workload = Load("", {{"x", "", 0}});
    workload.functions[0].rate_per_s = 10;
    workload.timeout = std::chrono::milliseconds(100);
    const FakeServer server([&](const std::string&) {
      const std::scoped_lock wait(silence);
      return std::string();
    });
    workload.functions[0].host = server.host();
    const Report report = RunAndReport(workload);
    EXPECT_EQ(report.totals().timeouts, 2U);
    EXPECT_EQ(report.totals().errors, 2U);
    EXPECT_GE(report.requests.all.latency.p50_ms, 100);
    silence.unlock();
  }
}

TEST(LoadRunTest, ALostConnectionIsAnErrorAndTheNextRequestGetsANewOne) {
  std::atomic<int> served{0};
  const FakeServer server(
      [&](const std::string&) { return ++served == 1 ? std::string() : Response(200, "1"); });
  const Report report = RunAndReport(Load(server.host(), {{"x", "", 0}}));
  EXPECT_EQ(report.totals().errors, 1U);
  EXPECT_EQ(report.totals().requests, 40U);
}

TEST(LoadRunTest, NobodyThereIsAnError) {
  std::string host;
  {
    const FakeServer gone([](const std::string&) { return std::string(); });
    host = gone.host();
  }
  const Report report = RunAndReport(Load(host, {{"x", "", 0}}));
  EXPECT_EQ(report.totals().errors, 40U);
  EXPECT_FALSE(report.Clean());
}

TEST(LoadRunTest, ASlowAnswerDelaysNoOtherRequest) {
  std::atomic<int> waiting{0};
  // Nobody is answered before all have asked: a closed loop would never end.
  const FakeServer server([&](const std::string&) {
    ++waiting;
    while (waiting.load() < 40) std::this_thread::yield();
    return Response(200, "1");
  });
  const Report report = RunAndReport(Load(server.host(), {{"x", "", 0}}));
  EXPECT_TRUE(report.Clean());
  // The first waited for the last, and its time counts from when it was meant to be sent.
  EXPECT_GE(report.requests.all.latency.max_ms, 150);
}

TEST(LoadRunTest, TheWarmUpIsSentButNotMeasured) {
  const FakeServer server([](const std::string&) { return Response(200, "1"); });
  Workload workload = Load(server.host(), {{"x", "", 0}});
  workload.warm_up = std::chrono::milliseconds(100);
  const Report report = RunAndReport(workload);
  EXPECT_EQ(report.warm_up.requests, 20U);
  EXPECT_EQ(report.totals().requests, 40U);
}

TEST(LoadRunTest, RatesMayChangeEveryMinute) {
  const FakeServer server([](const std::string&) { return Response(200, "1"); });
  const Workload workload = Load(server.host(), {{"x", "", 0}});
  // Only the first of these minutes is sent.
  const workload::MinuteRates rates(2, {600, 60'000});
  const LoadResult result = RunLoad(workload, rates, {}, {});
  EXPECT_EQ(MakeReport(workload, result).totals().requests, 2U);
}

TEST(LoadRunTest, ItGivesUpRatherThanHaveMoreUnderWayThanItMay) {
  std::mutex silence;
  silence.lock();
  const FakeServer server([&](const std::string&) {
    const std::scoped_lock wait(silence);
    return Response(200, "1");
  });
  Workload workload = Load(server.host(), {{"x", "", 0}});
  workload.timeout = std::chrono::milliseconds(300);
  LoadLimits limits;
  limits.connections = 5;
  const LoadResult result = RunLoad(workload, *MakeRates(workload), limits, {});
  silence.unlock();
  EXPECT_EQ(result.records.size(), 5U);
  EXPECT_NE(result.gave_up.find("5 requests wait for answers"), std::string::npos)
      << result.gave_up;
}

TEST(LoadRunTest, ItGivesUpWhenItIsTooLate) {
  const FakeServer server([](const std::string&) { return Response(200, "1"); });
  const Workload workload = Load(server.host(), {{"x", "", 0}});
  LoadLimits limits;
  limits.lag = Duration(1);
  const LoadResult result = RunLoad(workload, *MakeRates(workload), limits, {});
  EXPECT_LT(result.records.size(), 40U);
  EXPECT_LT(result.measured, *workload.duration);
  EXPECT_EQ(result.gave_up.rfind("the generator gave up ", 0), 0U) << result.gave_up;
  const Report report = MakeReport(workload, result);
  EXPECT_EQ(report.invalid_because, result.gave_up);
  EXPECT_TRUE(report.Clean());
}

}  // namespace
}  // namespace torpor::loadgen
