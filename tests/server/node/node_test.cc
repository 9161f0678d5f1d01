// The node as torpord composes it, in this process: emulated GPUs, real executors, a real router.
#include "server/node/node.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

extern "C" {
#include <sys/pidfd.h>  // of glibc 2.36: has no linkage of its own
}

#include "base/unique_fd.h"
#include "server/router/router.h"
#include "tests/server/links/test_server.h"
#include "tests/server/router/raw_http.h"

namespace torpor::server {
namespace {

class NodeTest : public testing::Test {
 protected:
  NodeTest() {
    std::ofstream(folder_.path("topology.yaml"))
        << "version: v1\ngpus:\n  - memory: 96MiB\n    count: 2\n";
    std::ofstream(folder_.path("token")) << "secret-of-the-function-f\n";
    config_.run_dir = folder_.path("run");
    config_.state_dir = folder_.path("state");
    std::filesystem::create_directory(config_.run_dir);
    config_.client_socket = config_.run_dir + "/torpor.sock";
    config_.cuda_library_dir = EMULATOR_DIR;
    config_.emulator_topology = folder_.path("topology.yaml");
    config_.addresses.space = 1024 * kGiB;  // more is not free beside AddressSanitizer's
    config_.device.driver_reserve = 16 * kMiB;
    config_.device.swap_group_bytes = 2 * kMiB;  // whose links are not measured at every start
    config_.device.spare_executor = false;
    config_.router.http_address = "127.0.0.1:0";
    config_.router.metrics_address = "";
    config_.log.level = LogLevel::kOff;
    FunctionConfig& function = config_.functions["f"];
    function.name = "f";
    function.memory_limit = 64 * kMiB;
    function.token_file = folder_.path("token");
  }

  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer leaves no 1 TiB of addresses to executors";
#endif
  }

  void Start() {
    absl::StatusOr<std::unique_ptr<Node>> node =
        Node::Start(config_, telemetry_, {.executor = EXECUTOR_PROGRAM});
    ASSERT_TRUE(node.ok()) << node.status();
    node_ = *std::move(node);
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!AllServe() && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
    ASSERT_TRUE(AllServe());
  }

  bool AllServe() {
    const NodeSnapshot snapshot = node_->Snapshot();
    return std::ranges::all_of(snapshot.gpus,
                               [](const GpuSnapshot& gpu) { return gpu.state == "ready"; });
  }

  TemporaryFolder folder_;
  Config config_;
  Telemetry telemetry_;
  std::unique_ptr<Node> node_;
};

class NodesAnswers final : public NodeInquiry {
 public:
  explicit NodesAnswers(Node& node) : node_(node) {}

  void AskReadiness(const std::string&, std::function<void(Readiness)> on_answer) override {
    on_answer({.is_ready = node_.Ready()});
  }
  void AskMetrics(std::function<void(std::string)> on_answer) override { on_answer(""); }

 private:
  Node& node_;
};

unsigned ModeOf(const std::string& path) {
  return static_cast<unsigned>(std::filesystem::status(path).permissions());
}

RawMessage Get(RawConnection& connection, const std::string& path) {
  connection.Send("GET " + path + " HTTP/1.1\r\nHost: n\r\n\r\n");
  return connection.Read().value_or(RawMessage{"HTTP/1.1 0 none", {}, ""});
}

TEST_F(NodeTest, ServesAndDrainsAndLeavesNothingBehind) {
  std::promise<void> may_answer;
  FakeUpstream upstream([&](RawConnection& connection, const RawMessage& request) {
    if (request.first_line.find("/slow") != std::string::npos) may_answer.get_future().wait();
    return connection.Send(Ok("served"));
  });
  config_.functions["f"].upstream = upstream.address();
  ASSERT_NO_FATAL_FAILURE(Start());
  ASSERT_EQ(node_->Snapshot().gpus.size(), 2u);
  EXPECT_TRUE(node_->Ready());

  NodesAnswers answers(*node_);
  RequestMetrics metrics;
  auto router = Router::Start({config_.router, config_.drain_timeout},
                              {&node_->broker(), &answers, &metrics});
  ASSERT_TRUE(router.ok()) << router.status();
  (*router)->SetFunctions(config_.functions);
  RawConnection client = RawConnection::To((*router)->http_address());
  const RawMessage answer = Get(client, "/function/f/");
  EXPECT_EQ(answer.body, "served");
  EXPECT_EQ(answer.Field("x-torpor-gpu"), "0");

  std::thread slow([&] { EXPECT_EQ(Get(client, "/function/f/slow").body, "served"); });
  while (node_->Snapshot().functions[0].state != "running") std::this_thread::yield();
  std::thread drain([&] {
    (*router)->Drain();
    node_->Drain();
  });
  RawConnection probe = RawConnection::To((*router)->http_address());
  while (Get(probe, "/readyz").status() == 200) std::this_thread::yield();
  may_answer.set_value();
  slow.join();  // what runs may end
  drain.join();
  EXPECT_FALSE(node_->Ready());

  std::vector<UniqueFd> executors;
  for (const GpuSnapshot& gpu : node_->Snapshot().gpus) {
    executors.emplace_back(pidfd_open(static_cast<pid_t>(gpu.executor_pid), 0));
  }
  router->reset();
  node_->Stop();
  for (const UniqueFd& executor : executors) {
    pollfd ended = {executor.get(), POLLIN, 0};
    EXPECT_EQ(poll(&ended, 1, 0), 1) << "an executor outlives its node";
  }
  EXPECT_FALSE(std::filesystem::exists(config_.client_socket));
  EXPECT_EQ(node_->Snapshot().state, "draining");
}

TEST_F(NodeTest, FunctionsSocketsHaveOneMode) {
  config_.socket_mode = 0666;
  ASSERT_NO_FATAL_FAILURE(Start());
  for (const char* name : {"torpor.sock", "executor-0.sock", "executor-1.sock",
                           "executor-0.sock.rings", "descriptors.sock"}) {
    EXPECT_EQ(ModeOf(config_.run_dir + "/" + name), 0666u) << name;
  }
  EXPECT_EQ(ModeOf(config_.run_dir + "/node.sock"), 0600u);
}

TEST_F(NodeTest, ExecutorsDivideTheirMemoryAsTheConfigurationSays) {
  std::ofstream(folder_.path("topology.yaml"))
      << "version: v1\ngpus:\n  - memory: 1500MiB\n    count: 1\n";
  config_.device.pool_bytes = kGiB;
  config_.device.address_mode = AddressMode::kTranslate;
  const auto pool_bytes = [this] {
    Start();
    if (HasFatalFailure()) return Bytes{0};
    const Bytes bytes = node_->Snapshot().gpus.at(0).pool_bytes;
    node_->Stop();
    node_.reset();
    return bytes;
  };
  EXPECT_EQ(pool_bytes(), 960 * kMiB) << "20 MiB leaves over a sixteenth of 1 GiB";
  config_.device.partition_sizes = {2 * kMiB, 32 * kMiB};
  EXPECT_EQ(pool_bytes(), kGiB);
  config_.device.partition_sizes.emplace();
  EXPECT_EQ(pool_bytes(), kGiB);
}

TEST_F(NodeTest, ThePoolIsAsLargeAsConfigured) {
  std::ofstream(folder_.path("topology.yaml")) << "version: v1\ngpus:\n  - memory: 1GiB\n";
  config_.device.pool_bytes = 100 * kMiB + 1;
  ASSERT_NO_FATAL_FAILURE(Start());
  EXPECT_EQ(node_->Snapshot().gpus.at(0).pool_bytes, 100 * kMiB) << "whole chunks of 2 MiB";
}

TEST_F(NodeTest, AnExecutorThatDiesIsReplaced) {
  ASSERT_NO_FATAL_FAILURE(Start());
  std::promise<absl::StatusOr<RequestGrant>> granted;
  const RequestId request = node_->broker().Acquire(
      {.function = "f", .id = "r1", .give_up = TimePoint::max()},
      [&](const absl::StatusOr<RequestGrant>& grant) { granted.set_value(grant); },
      [](const absl::Status&) {});
  const absl::StatusOr<RequestGrant> grant = granted.get_future().get();
  ASSERT_TRUE(grant.ok()) << grant.status();
  std::promise<void> confirmed;
  node_->broker().ConfirmLease(request, [&] { confirmed.set_value(); });
  confirmed.get_future().wait();

  const auto gpu = static_cast<std::size_t>(grant->gpu.value);
  const auto executor = static_cast<pid_t>(node_->Snapshot().gpus.at(gpu).executor_pid);
  ASSERT_EQ(kill(executor, SIGKILL), 0);
  std::promise<void> settled;
  node_->broker().ConfirmLease(request, [&] { settled.set_value(); });
  settled.get_future().wait();
  EXPECT_NE(node_->Snapshot().gpus.at(gpu).executor_pid, executor);
  node_->broker().Release(request, scheduler::Ending::kAnswered);
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!AllServe() && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  EXPECT_EQ(node_->Snapshot().gpus.at(gpu).executor_restarts, 1u);
}

TEST_F(NodeTest, SaysWhyItCannotStart) {
  config_.functions["f"].token_file = folder_.path("nowhere");
  EXPECT_EQ(Node::Start(config_, telemetry_, {.executor = EXECUTOR_PROGRAM}).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace torpor::server
