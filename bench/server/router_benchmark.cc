// What it costs a request that the router is a process of its own: requests through a router whose
// broker is in the same process, and through one that asks a broker in another process over the
// stream. Both brokers grant at once, on a thread of their own as the controller's; the function's
// server answers at once, too.
#include <benchmark/benchmark.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/mailbox.h"
#include "bench/run_benchmarks.h"
#include "server/log/structured_log.h"
#include "server/router/router.h"
#include "server/routing/protocol.h"
#include "server/routing/routing_client.h"
#include "server/routing/routing_server.h"
#include "tests/server/router/raw_http.h"

namespace torpor::server {
namespace {

// The folder of the socket between the two processes.
std::string& Folder() {
  static std::string folder = "/tmp/torpor-bench-XXXXXX";
  return folder;
}
std::string SocketPath() { return Folder() + "/router.sock"; }

// Grants every request, on a thread of its own, to an instance whose server is where the request's
// own name says: the broker of another process does not know the benchmark's server.
class GrantingBroker final : public RequestBroker {
 public:
  ~GrantingBroker() override {
    grants_.Close();
    thread_.join();
  }

  RequestId Acquire(const Demand& demand, OnGrant on_grant, OnLost) override {
    const RequestId request{next_.fetch_add(1)};
    grants_.Send([request, upstream = demand.id, on_grant = std::move(on_grant)] {
      RequestGrant grant;
      grant.request = request;
      grant.upstream = upstream;
      grant.gpu = GpuIndex{0};
      on_grant(grant);
    });
    return request;
  }
  void ConfirmLease(RequestId, std::function<void()> done) override { done(); }
  void Save(RequestId, std::function<void()> done) override { done(); }
  void AskAgain(RequestId) override { std::abort(); }  // the benchmark's server always answers
  void Release(RequestId, scheduler::Ending) override {
    grants_.Send([] {});
  }

 private:
  std::atomic<std::uint64_t> next_{1};
  Mailbox<std::function<void()>> grants_{1 << 16};
  std::thread thread_{[this] {
    while (const auto grant = grants_.Receive()) (*grant)();
  }};
};

class ReadyNode final : public NodeInquiry {
 public:
  void AskReadiness(const std::string&, std::function<void(Readiness)> on_answer) override {
    on_answer({.is_ready = true});
  }
  void AskMetrics(std::function<void(std::string)> on_answer) override { on_answer(""); }
};

// In a process of its own, until the parent dies: torpord without GPUs.
[[noreturn]] void ServeRouting(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  GrantingBroker broker;
  const auto server = RoutingServer::Start(
      SocketPath(), {.broker = &broker,
                     .settings = "",
                     .functions = {},
                     .find_refusal = [](const auto&) { return std::string(); },
                     .on_attached = [](const auto&) {},
                     .on_alive = [](auto) {},
                     .readiness = [](const std::string&) { return Readiness{.is_ready = true}; },
                     .metrics = [] { return std::string(); }});
  TORPOR_CHECK(server.ok());
  while (true) pause();
}

// A router with one function `f`, whose requests its own broker grants or the other process.
class Bench {
 public:
  explicit Bench(bool is_over_a_stream) {
    const RouterConfig config = {.http_address = "127.0.0.1:0", .metrics_address = ""};
    const Router::Parts parts = is_over_a_stream ? Router::Parts{&requests_, &inquiry_, &metrics_}
                                                 : Router::Parts{&broker_, &node_, &metrics_};
    auto router = Router::Start({config, std::chrono::seconds(1)}, parts);
    TORPOR_CHECK(router.ok());
    router_ = *std::move(router);
    const std::string name = "f";
    std::map<std::string, FunctionConfig> functions;
    functions[name].name = name;
    functions[name].upstream = upstream_.address();
    router_->SetFunctions(functions);
    if (!is_over_a_stream) return;
    v1::RouterMessage::Hello hello;
    hello.set_protocol(kRoutingProtocol);
    std::promise<void> attached;
    client_ =
        RoutingClient::Start(SocketPath(), {.broker = &requests_,
                                            .inquiry = &inquiry_,
                                            .hello = hello,
                                            .on_welcome = [](const auto&) {},
                                            .on_functions = [](const auto&) {},
                                            .on_attached =
                                                [&attached](bool is_attached) {
                                                  if (is_attached) attached.set_value();
                                                },
                                            .is_turning = [] { return true; },
                                            .on_unwanted = [](const auto&) { std::abort(); }});
    attached.get_future().wait();
  }
  ~Bench() { router_->Close(); }

  RawConnection Connect() const { return RawConnection::To(router_->http_address()); }
  void Ask(RawConnection& connection) const {
    connection.Send(request_);
    const auto answer = connection.Read();
    TORPOR_CHECK(answer && answer->status() == 200);
  }

 private:
  SteadyClock clock_;
  GrantingBroker broker_;
  ReadyNode node_;
  StreamBroker requests_{clock_};
  StreamInquiry inquiry_{clock_};
  RequestMetrics metrics_;
  FakeUpstream upstream_{
      [](RawConnection& connection, const RawMessage&) { return connection.Send(Ok("ok")); }};
  const std::string request_ =
      "GET /function/f/ HTTP/1.1\r\nHost: n\r\nX-Request-Id: " + upstream_.address() + "\r\n\r\n";
  std::unique_ptr<Router> router_;
  std::unique_ptr<RoutingClient> client_;
};

// A client sends request after request.
void OneClient(benchmark::State& state) {
  const Bench bench(state.range(0) != 0);
  RawConnection connection = bench.Connect();
  for (int i = 0; i < 200; ++i) bench.Ask(connection);
  std::vector<double> microseconds;
  for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    const TimePoint begin = SteadyClock().Now();
    bench.Ask(connection);
    microseconds.push_back(ToSeconds(SteadyClock().Now() - begin) * 1e6);
  }
  std::sort(microseconds.begin(), microseconds.end());
  state.counters["p50_us"] = microseconds[microseconds.size() / 2];
  state.counters["p99_us"] = microseconds[microseconds.size() * 99 / 100];
}
BENCHMARK(OneClient)
    ->ArgName("over_a_stream")
    ->Arg(0)
    ->Arg(1)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

// As many clients as the argument says, all the time.
void ManyClients(benchmark::State& state) {
  constexpr int kRequestsEach = 100;
  const Bench bench(state.range(0) != 0);
  const auto clients = static_cast<std::size_t>(state.range(1));
  std::vector<RawConnection> connections;
  for (std::size_t i = 0; i < clients; ++i) {
    connections.push_back(bench.Connect());
    bench.Ask(connections.back());
  }
  for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    std::vector<std::thread> threads;
    threads.reserve(clients);
    for (RawConnection& connection : connections) {
      threads.emplace_back([&bench, &connection] {
        for (int i = 0; i < kRequestsEach; ++i) bench.Ask(connection);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  state.SetItemsProcessed(state.iterations() * kRequestsEach * state.range(1));
}
BENCHMARK(ManyClients)
    ->ArgNames({"over_a_stream", "clients"})
    ->Args({0, 16})
    ->Args({1, 16})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// What a liveness probe waits for while the metrics of as many functions as the argument says are
// scraped all the time; all functions have had a request of each outcome's series.
void ProbeWhileScraped(benchmark::State& state) {
  ReadyNode node;
  GrantingBroker broker;
  RequestMetrics metrics;
  const RouterConfig config = {.http_address = "127.0.0.1:0", .metrics_address = "127.0.0.1:0"};
  auto router = *Router::Start({config, std::chrono::seconds(1)}, {&broker, &node, &metrics});
  std::map<std::string, FunctionConfig> functions;
  for (int i = 0; i < state.range(0); ++i) {
    const std::string name = "function-" + std::to_string(i);
    functions[name].name = name;
  }
  router->SetFunctions(functions);
  metrics.SetFunctions(functions);
  std::atomic<bool> is_over = false;
  std::vector<double> scrapes_ms;
  std::thread scraper([&] {
    while (!is_over) {
      RawConnection connection = RawConnection::To(router->metrics_address());
      const TimePoint begin = SteadyClock().Now();
      connection.Send("GET /metrics HTTP/1.1\r\nHost: n\r\nConnection: close\r\n\r\n");
      TORPOR_CHECK(connection.ReadToEnd().size() > 100);
      scrapes_ms.push_back(ToSeconds(SteadyClock().Now() - begin) * 1e3);
    }
  });
  RawConnection prober = RawConnection::To(router->http_address());
  std::vector<double> probes_ms;
  for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    const TimePoint begin = SteadyClock().Now();
    prober.Send("GET /livez HTTP/1.1\r\nHost: n\r\n\r\n");
    TORPOR_CHECK(prober.Read()->status() == 200);
    probes_ms.push_back(ToSeconds(SteadyClock().Now() - begin) * 1e3);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  is_over = true;
  scraper.join();
  router->Close();
  std::sort(probes_ms.begin(), probes_ms.end());
  state.counters["p50_ms"] = probes_ms[probes_ms.size() / 2];
  state.counters["p99_ms"] = probes_ms[probes_ms.size() * 99 / 100];
  state.counters["longest_ms"] = probes_ms.back();
  state.counters["scrape_ms"] = scrapes_ms[scrapes_ms.size() / 2];
}
BENCHMARK(ProbeWhileScraped)
    ->ArgName("functions")
    ->Arg(3000)
    ->Arg(10000)
    ->Iterations(2000)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace torpor::server

int main(int argc, char** argv) {
  using torpor::server::Folder;
  if (mkdtemp(Folder().data()) == nullptr) return 1;
  torpor::server::SetUpLog(torpor::server::LogLevel::kOff, torpor::server::LogFormat::kText);
  const pid_t parent = getpid();
  // Before any thread starts.
  if (fork() == 0) torpor::server::ServeRouting(parent);
  const int status = torpor::bench::RunBenchmarks(argc, argv);
  unlink(torpor::server::SocketPath().c_str());
  rmdir(Folder().c_str());
  return status;
}
