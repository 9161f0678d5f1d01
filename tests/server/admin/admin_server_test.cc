#include "server/admin/admin_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/mutex.h"
#include "tools/torporctl/admin_requests.h"
#include "tools/torporctl/explanation.h"
#include "tools/torporctl/function_settings.h"
#include "tools/torporctl/memory_report.h"
#include "tools/torporctl/node_report.h"

namespace torpor::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AdminServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "admin-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    config_.admin_socket = name + "/admin.sock";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void StartServer() {
    auto server = AdminServer::Start(
        config_,
        {.snapshot = [this] { return node_; },
         .administer =
             [this](const AdminRequest& request) {
               const MutexLock lock(&mutex_);
               requests_.push_back(request);
               return answer_;
             },
         .configure =
             [this](const ConfigRequest& request) -> absl::StatusOr<std::vector<std::string>> {
           const MutexLock lock(&mutex_);
           configured_ = request;
           if (!answer_.ok()) return answer_;
           return std::vector<std::string>{"function digits: added"};
         },
         .explain = [this](const std::string& request_id) -> absl::StatusOr<RequestTrace> {
           const MutexLock lock(&mutex_);
           if (trace_.id == request_id) return trace_;
           return absl::NotFoundError("no request");
         },
         .http_address = "127.0.0.1:8000",
         .metrics_address = ""});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  // Changes and reads what the server's threads use, once the server runs.
  void SetAnswer(const absl::Status& answer) {
    const MutexLock lock(&mutex_);
    answer_ = answer;
  }
  void SetSource(SwapSource source) {
    const MutexLock lock(&mutex_);
    trace_.placement.source = source;
  }
  std::vector<AdminRequest> requests() {
    const MutexLock lock(&mutex_);
    return requests_;
  }
  ConfigRequest configured() {
    const MutexLock lock(&mutex_);
    return configured_;
  }

  std::filesystem::path folder_;
  Config config_;
  NodeSnapshot node_;
  Mutex mutex_;  // guards the members below while the server runs
  std::vector<AdminRequest> requests_;
  ConfigRequest configured_;
  absl::Status answer_;
  RequestTrace trace_;

  std::unique_ptr<AdminServer> server_;
};

TEST_F(AdminServerTest, StatusIsTheSnapshot) {
  node_.state = "ready";
  node_.swaps_in = 7;
  node_.host_memory = {.budget = 9, .used = 8};
  GpuSnapshot& gpu = node_.gpus.emplace_back();
  gpu.gpu = 3;
  gpu.state = "ready";
  gpu.executor_pid = 42;
  gpu.leased_to = "digits";
  StartServer();
  const auto status = torporctl::FetchStatus(config_.admin_socket);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->state(), "ready");
  EXPECT_EQ(status->version(), "0.1.0");
  EXPECT_EQ(status->http_address(), "127.0.0.1:8000");
  EXPECT_EQ(status->swaps_in(), 7u);
  EXPECT_EQ(status->host_memory_bytes(), 9u);
  EXPECT_EQ(status->host_memory_used_bytes(), 8u);
  ASSERT_EQ(status->gpus_size(), 1);
  EXPECT_EQ(status->gpus(0).gpu(), 3);
  EXPECT_EQ(status->gpus(0).executor_pid(), 42);
  EXPECT_EQ(status->gpus(0).leased_to(), "digits");
}

TEST_F(AdminServerTest, MemoryIsByGpuAndFunction) {
  node_.host_image_bytes = 7;
  GpuSnapshot& gpu = node_.gpus.emplace_back();
  gpu.gpu = 3;
  gpu.pool_bytes = 100;
  gpu.free_bytes = 60;
  gpu.fragmented_bytes = 20;
  gpu.memory = {.used = 30, .cached = 10};
  FunctionSnapshot& digits = node_.functions.emplace_back();
  digits.name = "digits";
  digits.memory[3] = gpu.memory;
  node_.functions.emplace_back().name = "elsewhere";
  StartServer();
  const auto memory = torporctl::FetchMemory(config_.admin_socket);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->host_image_bytes(), 7u);
  ASSERT_EQ(memory->gpus_size(), 1);
  EXPECT_EQ(memory->gpus(0).pool_bytes(), 100u);
  EXPECT_EQ(memory->gpus(0).free_bytes(), 60u);
  EXPECT_EQ(memory->gpus(0).fragmented_bytes(), 20u);
  ASSERT_EQ(memory->gpus(0).functions_size(), 1);
  EXPECT_EQ(memory->gpus(0).functions(0).name(), "digits");
  EXPECT_EQ(memory->gpus(0).functions(0).memory().used_bytes(), 30u);
  EXPECT_EQ(memory->gpus(0).functions(0).memory().cached_bytes(), 10u);
}

TEST_F(AdminServerTest, FunctionsAreTheSnapshots) {
  FunctionSnapshot& digits = node_.functions.emplace_back();
  digits.name = "digits";
  digits.memory_limit = kGiB;
  digits.upstream = "127.0.0.1:9001";
  InstanceSnapshot& a = digits.instances.emplace_back();
  a.name = "a";
  a.health = "down";
  a.requests = 4;
  digits.state = "running";
  digits.resident_gpus = {0, 1};
  digits.requests = 5;
  digits.gpu_seconds = 1.5;
  digits.objective = {.deadline = std::chrono::milliseconds(90), .finished = 8, .in_time = 7};
  StartServer();
  const auto functions = torporctl::FetchFunctions(config_.admin_socket);
  ASSERT_TRUE(functions.ok()) << functions.status();
  ASSERT_EQ(functions->functions_size(), 1);
  const v1::FunctionStatus& function = functions->functions(0);
  EXPECT_EQ(function.state(), "running");
  EXPECT_THAT(function.resident_gpus(), ElementsAre(0, 1));
  EXPECT_EQ(function.memory_limit_bytes(), kGiB);
  EXPECT_EQ(function.deadline_ms(), 90);
  EXPECT_EQ(function.finished(), 8u);
  EXPECT_EQ(function.in_time(), 7u);
  EXPECT_FALSE(function.has_required_count());
  EXPECT_EQ(function.upstream(), "127.0.0.1:9001");
  ASSERT_EQ(function.instances_size(), 1);
  EXPECT_EQ(function.instances(0).name(), "a");
  EXPECT_EQ(function.instances(0).health(), "down");
  EXPECT_EQ(function.instances(0).requests(), 4u);
}

TEST_F(AdminServerTest, AdministratorsRequestsArriveAndAreAnswered) {
  StartServer();
  EXPECT_TRUE(torporctl::Load(config_.admin_socket, "digits", 1).ok());
  EXPECT_TRUE(torporctl::Load(config_.admin_socket, "digits", std::nullopt).ok());
  EXPECT_TRUE(torporctl::Evict(config_.admin_socket, "digits").ok());
  EXPECT_TRUE(torporctl::Pin(config_.admin_socket, "digits", true).ok());
  EXPECT_TRUE(torporctl::Pin(config_.admin_socket, "digits", false).ok());
  const absl::Status in_use = absl::FailedPreconditionError("it is in use");
  SetAnswer(in_use);
  EXPECT_EQ(torporctl::Checkpoint(config_.admin_socket, "digits"), in_use);
  std::vector<AdminRequest::Kind> kinds;
  const std::vector<AdminRequest> requests = this->requests();
  for (const AdminRequest& request : requests) {
    EXPECT_EQ(request.function, "digits");
    kinds.push_back(request.kind);
  }
  using Kind = AdminRequest::Kind;
  EXPECT_THAT(kinds, ElementsAre(Kind::kLoad, Kind::kLoad, Kind::kEvict, Kind::kPin, Kind::kUnpin,
                                 Kind::kCheckpoint));
  EXPECT_EQ(requests.at(0).gpu, GpuIndex{1});
  EXPECT_FALSE(requests.at(1).gpu.has_value());
}

TEST_F(AdminServerTest, ChangesArriveAsTheyWereWritten) {
  using Kind = ConfigRequest::Kind;
  StartServer();
  const std::vector<SettingText> settings = {{"deadline", "80ms"}, {"priority", "2"}};
  for (const Kind kind : {Kind::kAdd, Kind::kSet, Kind::kRemove}) {
    const auto changes = torporctl::Configure(
        config_.admin_socket, {.kind = kind, .function = "digits", .settings = settings});
    ASSERT_TRUE(changes.ok()) << changes.status();
    EXPECT_THAT(*changes, ElementsAre("function digits: added"));
    EXPECT_EQ(configured().kind, kind);
    EXPECT_EQ(configured().function, "digits");
    EXPECT_EQ(configured().settings, kind == Kind::kRemove ? std::vector<SettingText>() : settings);
  }
  EXPECT_TRUE(torporctl::Configure(config_.admin_socket, {.kind = Kind::kApply,
                                                          .text = "version: v1",
                                                          .file_name = "/f.yaml",
                                                          .prune = true,
                                                          .is_trial = true})
                  .ok());
  EXPECT_EQ(configured().text, "version: v1");
  EXPECT_EQ(configured().file_name, "/f.yaml");
  EXPECT_TRUE(configured().prune && configured().is_trial);
  const absl::Status no_time =
      absl::InvalidArgumentError("deadline: 0s is no time; use more than 0");
  SetAnswer(no_time);
  EXPECT_EQ(torporctl::Configure(config_.admin_socket, {.function = "digits"}).status(), no_time);
}

TEST_F(AdminServerTest, TheNodeCountsWhoComplies) {
  node_.policy = "torpor";
  node_.alpha = 0.5;
  node_.functions.emplace_back().objective = {.percentile = 0.5, .finished = 2, .in_time = 1};
  node_.functions.emplace_back().objective = {.percentile = 0.6, .finished = 2, .in_time = 1};
  StartServer();
  const auto status = torporctl::FetchStatus(config_.admin_socket);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->policy(), "torpor");
  EXPECT_EQ(status->alpha(), 0.5);
  EXPECT_EQ(status->functions(), 2u);
  EXPECT_EQ(status->compliant_functions(), 1u);
}

TEST_F(AdminServerTest, ARequestIsExplained) {
  using std::chrono::milliseconds;
  const TimePoint arrival{std::chrono::seconds(5)};
  trace_ = {.id = "r1", .function = "digits", .deadline = milliseconds(80), .arrival = arrival};
  trace_.waiting_before = 3;
  trace_.standing = {.required_count = 12, .is_high = true, .alpha = 0.5};
  trace_.delay = {.own_lease = milliseconds(4),
                  .by_choice = milliseconds(3),
                  .awaited = GpuIndex{2},
                  .no_gpu = milliseconds(5),
                  .has_revoked = true,
                  .is_late = true,
                  .is_beyond_rescue = true,
                  .earlier = {{"encoder", 2}, {"speech", 1}},
                  .overtakers = {{"ranker", 1}}};
  trace_.gpu = GpuIndex{1};
  trace_.decided = arrival + milliseconds(12);
  trace_.placement.swap_in = arrival + milliseconds(14);
  trace_.placement.source = SwapSource::kHost;
  trace_.placement.loading_nearby = {{GpuIndex{0}, "encoder"}};
  trace_.placement.evicted = {"speech", "ranker"};
  trace_.granted = arrival + milliseconds(17);
  trace_.ended = trace_.as_of = arrival + milliseconds(31);
  StartServer();
  const auto explanation = torporctl::FetchExplanation(config_.admin_socket, "r1");
  ASSERT_TRUE(explanation.ok()) << explanation.status();
  EXPECT_EQ(torporctl::ExplanationText(*explanation),
            "request    r1\n"
            "function   digits\n"
            "arrived    when 3 others waited\n"
            "standing   12.0 requests in time required, first group, alpha 0.5\n"
            "waited     12.0ms for a GPU, 2.0ms for room, 3.0ms for its image\n"
            "because    its function ran others of its requests, 4.0ms\n"
            "because    no GPU was free for it, 5.0ms\n"
            "because    GPU 2 has its image: better than another that was free, 3.0ms\n"
            "because    a program outside of requests had to give its GPU back\n"
            "because    earlier ones went first: 2 of encoder, 1 of speech\n"
            "because    later ones were put before it: 1 of ranker\n"
            "because    it was too late for its deadline and was set aside\n"
            "because    its function is beyond rescue and comes last\n"
            "GPU        1, from the host\n"
            "beside     encoder to GPU 0, through the same PCIe switch\n"
            "evicted    speech, ranker\n"
            "ran        14.0ms\n"
            "state      answered\n"
            "deadline   80ms, met: 31.0ms in all\n");
  const std::string json = torporctl::ExplanationJson(*explanation);
  EXPECT_THAT(json, HasSubstr("\"room_wait_ms\": 2.0"));
  EXPECT_THAT(json, HasSubstr("\"chosen_wait_ms\": 3.0"));
  EXPECT_THAT(json, HasSubstr("\"is_first_group\": true"));
  EXPECT_THAT(json, HasSubstr("\"counts_as\": \"met\""));
  EXPECT_EQ(torporctl::FetchExplanation(config_.admin_socket, "r2").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(AdminServerTest, WhereAnImageReallyCameFromIsSaid) {
  trace_ = {.id = "r1", .function = "digits"};
  trace_.gpu = GpuIndex{1};
  trace_.decided = trace_.granted = trace_.arrival;
  trace_.placement.peer = GpuIndex{0};
  trace_.placement.source = SwapSource::kPeer;
  StartServer();
  const auto text = [this] {
    const auto explanation = torporctl::FetchExplanation(config_.admin_socket, "r1");
    return torporctl::ExplanationText(explanation.value_or(v1::Explanation()));
  };
  EXPECT_THAT(text(), HasSubstr("GPU        1, from GPU 0\n"));
  SetSource(SwapSource::kHost);
  EXPECT_THAT(text(),
              HasSubstr("GPU        1, from the host, since GPU 0 could not give its image\n"));
  {
    const MutexLock lock(&mutex_);
    trace_.joined = trace_.decided;
  }
  EXPECT_THAT(text(), HasSubstr("GPU        1, where its function ran already\n"));
}

TEST_F(AdminServerTest, HowARequestEndedIsSaid) {
  using std::chrono::milliseconds;
  trace_ = {.id = "r1", .function = "digits", .deadline = milliseconds(80)};
  trace_.ended = trace_.as_of = TimePoint(milliseconds(9));
  StartServer();
  const auto text = [this](scheduler::Ending ending) {
    {
      const MutexLock lock(&mutex_);
      trace_.ending = ending;
    }
    const auto explanation = torporctl::FetchExplanation(config_.admin_socket, "r1");
    return torporctl::ExplanationText(explanation.value_or(v1::Explanation()));
  };
  EXPECT_THAT(text(scheduler::Ending::kFailed),
              HasSubstr("state      failed\ndeadline   80ms, missed: 9.0ms in all\n"));
  EXPECT_THAT(text(scheduler::Ending::kLost),
              HasSubstr("state      lost\ndeadline   80ms, missed: 9.0ms in all\n"));
  EXPECT_THAT(text(scheduler::Ending::kCancelled),
              HasSubstr("state      cancelled\ndeadline   80ms, not passed: 9.0ms in all\n"));
}

TEST_F(AdminServerTest, ARequestThatWaitsIsExplainedToo) {
  trace_ = {.id = "r1", .function = "digits", .deadline = std::chrono::milliseconds(80)};
  trace_.as_of = TimePoint(std::chrono::milliseconds(90));
  trace_.delay.no_gpu = std::chrono::milliseconds(90);
  StartServer();
  const auto explanation = torporctl::FetchExplanation(config_.admin_socket, "r1");
  ASSERT_TRUE(explanation.ok()) << explanation.status();
  EXPECT_EQ(torporctl::ExplanationText(*explanation),
            "request    r1\n"
            "function   digits\n"
            "arrived    when 0 others waited\n"
            "waited     90.0ms for a GPU\n"
            "because    no GPU was free for it, 90.0ms\n"
            "state      waiting\n"
            "deadline   80ms, missed: 90.0ms until now\n");
}

TEST_F(AdminServerTest, ASocketThatCannotBeBoundIsNamed) {
  config_.admin_socket = "/nowhere/admin.sock";
  const auto server = AdminServer::Start(config_, {});
  ASSERT_FALSE(server.ok());
  EXPECT_THAT(std::string(server.status().message()), HasSubstr("/nowhere/admin.sock"));
}

TEST_F(AdminServerTest, WhereNobodyAnswersTheClientSaysSo) {
  const auto status = torporctl::FetchStatus(config_.admin_socket);
  EXPECT_EQ(status.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.status().message()), HasSubstr("no torpord answers on"));
}

}  // namespace
}  // namespace torpor::server
