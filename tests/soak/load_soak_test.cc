// A node under a load of real requests for as long as is asked: nothing is lost, all who count
// agree, and the event log replays to the same decisions.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "emulator/node/model_account.h"
#include "tests/e2e/child_process.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/example_fleet.h"
#include "tests/e2e/example_load.h"
#include "tests/e2e/metrics_page.h"
#include "tests/e2e/preset_topology.h"
#include "tests/e2e/run_environment.h"
#include "tests/e2e/run_times.h"
#include "tests/soak/accounts.h"
#include "tests/soak/soak_run.h"
#include "tests/soak/watched_node.h"
#include "tools/loadgen/schedule.h"

namespace torpor::soak {
namespace {

constexpr std::size_t kGpus = 4;
constexpr std::size_t kFunctions = 24;
constexpr double kLoad = 0.8;

// The GPUs hold about half of what the functions have; two cores beside compilers keep up.
constexpr Bytes kGpuMemory = 60 * kMiB;
constexpr double kTimeScale = 50;

// Of an objective nothing depends but what the policy orders by.
constexpr int kObjectiveRuns = 10;

std::vector<e2e::ExampleModel> Models() {
  return {e2e::EncoderModel("short", 2, 256, 2048), e2e::EncoderModel("deep", 4, 256, 2048),
          e2e::EncoderModel("wide", 2, 256, 16384), e2e::DigitsModel("digits")};
}

std::string Topology() {
  return e2e::PresetTopology(
      {.time_scale = kTimeScale, .gpu_memory = kGpuMemory, .kernels = e2e::ExampleKernelTimes()});
}

class LoadSoak : public testing::Test {
 protected:
  void SetUp() override {
    e2e::Say(
        fmt::format("SOAK_SEED={} SOAK_SECONDS={}: {} functions on {} GPUs under {:.0f}% load\n",
                    run_.seed, run_.length.count(), kFunctions, kGpus, kLoad * 100));
    ASSERT_NO_FATAL_FAILURE(watched_.Start());
    const absl::Status started = fleet_.Start();
    ASSERT_TRUE(started.ok()) << started << node_.Logs();
    metrics_address_ = node_.Status().at("metrics_address");
    ASSERT_NO_FATAL_FAILURE(ChooseLoad());
  }

  void TearDown() override {
    if (HasFailure()) std::fputs(watched_.EndOfLog().c_str(), stderr);
  }

  // Every function as often as the others, at first as if all images came from the host.
  void ChooseLoad() {
    const e2e::RunMeter meter(fleet_);
    std::vector<Duration> from_host(fleet_.models().size());
    for (std::size_t model = 0; model < from_host.size(); ++model) {
      const auto runs = meter.FromHost(model);
      ASSERT_TRUE(runs.ok()) << runs.status();
      from_host[model] = runs->median;
    }
    double seconds = 0;
    for (const auto& function : fleet_.functions()) {
      seconds += ToSeconds(from_host[function.model]) / kFunctions;
      load_.objectives.push_back(kObjectiveRuns * from_host[function.model]);
    }
    SetRate(seconds);
  }

  // For requests that need a GPU for so long in the mean.
  void SetRate(double gpu_seconds) {
    const double rate = kLoad * kGpus / gpu_seconds;
    load_.rates_per_s.assign(kFunctions, rate / kFunctions);
    e2e::Say(fmt::format("{:.1f} ms of a GPU each: {:.1f} requests/s\n", gpu_seconds * 1e3, rate));
  }

  // A load of that length; afterwards nothing is under way.
  void Load(const std::string& name, Duration length) {
    load_.length = length;
    ++load_.seed;
    const std::string workload = e2e::WriteWorkload(fleet_, load_, name + ".yaml");
    const std::string before = e2e::ReadMetrics(metrics_address_);
    const e2e::LoadgenRun run = e2e::RunLoadgen(node_.folder().path(), workload, length);
    ASSERT_EQ(run.exit_status, 0) << run.messages;
    EXPECT_EQ(run.report.at("requests"), Planned(workload));
    EXPECT_EQ(run.report.at("errors"), 0);
    EXPECT_EQ(run.report.at("wrong_answers"), 0);
    EXPECT_TRUE(fleet_.AwaitIdle().ok());
    const std::string after = e2e::ReadMetrics(metrics_address_);
    CheckAgreement(run.report, before, after);
    EXPECT_EQ(watched_.Status().queued_requests(), 0U);
    const double busy_s = e2e::ValueOf(after, "torpor_gpu_busy_seconds_total", {}) -
                          e2e::ValueOf(before, "torpor_gpu_busy_seconds_total", {});
    Print(name, run.report, busy_s / kGpus / ToSeconds(length));
    gpu_seconds_ = busy_s / run.report.at("requests").get<double>();
  }

  static std::size_t Planned(const std::string& file) {
    const auto workload = loadgen::ReadWorkload(file, "");
    EXPECT_TRUE(workload.ok()) << workload.status();
    const auto rates = loadgen::MakeRates(*workload);
    EXPECT_TRUE(rates.ok()) << rates.status();
    return loadgen::CountRequests(*workload, *rates);
  }

  // The daemon counts the same requests of each function, with the same ends and paths.
  static void CheckAgreement(const nlohmann::json& report, const std::string& before,
                             const std::string& after) {
    static const std::map<std::string, std::string> kFieldOfSource = {
        {"resident", "resident"}, {"host", "swaps_pcie"}, {"peer", "swaps_nvlink"}};
    for (const auto& function : report.at("functions")) {
      const std::string name = function.at("name");
      SCOPED_TRACE(name);
      const auto grown = [&](const char* metric, const std::string& label) {
        const std::vector<std::string> labels = {"function=\"" + name + "\"", label};
        return e2e::ValueOf(after, metric, labels) - e2e::ValueOf(before, metric, labels);
      };
      const double requests = function.at("requests");
      EXPECT_EQ(grown("torpor_requests_total", ""), requests);
      EXPECT_EQ(grown("torpor_requests_total", R"(outcome="ok")"), requests);
      EXPECT_EQ(grown("torpor_scheduled_requests_total", ""), requests);
      for (const auto& [source, field] : kFieldOfSource) {
        EXPECT_EQ(grown("torpor_grants_total", fmt::format(R"(source="{}")", source)),
                  function.at(field).get<double>())
            << source;
      }
    }
  }

  static void Print(const std::string& name, const nlohmann::json& report, double load) {
    const auto& latency = report.at("latency_ms");
    e2e::Say(
        fmt::format("{}: {} requests, {} resident, {} from the host, {} from peers; {:.1f}% in "
                    "time, p50 {:.0f} ms, p98 {:.0f} ms; GPUs busy {:.0f}%\n",
                    name, report.at("requests").get<int>(), report.at("resident").get<int>(),
                    report.at("swaps_pcie").get<int>(), report.at("swaps_nvlink").get<int>(),
                    report.at("attainment").get<double>() * 100, latency.at("p50").get<double>(),
                    latency.at("p98").get<double>(), load * 100));
  }

  void PrintModelAccount() const {
    auto account = emulator::ModelAccount::Open(node_.folder().path() + "/gpus/emulator-node");
    if (account.ok()) e2e::Say(account->Read().ToText() + "\n");
  }

  // The daemon has ended, and with it the log.
  void CheckThatTheEventLogReplays() const {
    const std::string log = node_.folder().path() + "/events.log";
    const auto replay = e2e::RunToItsEnd("torpor-sim", {"replay", log}, node_.folder().path());
    EXPECT_EQ(replay->Wait(Duration::zero()), 0) << replay->Stdout() << replay->Stderr();
    e2e::Say("replayed: " + replay->Stdout());
  }

  const SoakRun run_ = SoakRun::FromEnvironment();
  e2e::EmulatedNode node_{Topology(), e2e::ExampleFleet::Names(Models(), kFunctions),
                          "event_log: events.log\nqueue_timeout: 50s\n" + run_.settings + "\n", 1,
                          "stateless: true"};
  WatchedNode watched_{node_};
  e2e::ExampleFleet fleet_{node_, Models(), kFunctions};
  std::string metrics_address_;
  double gpu_seconds_ = 0;  // of a request of the last load
  e2e::ExampleLoad load_{.seed = run_.seed};
};

TEST_F(LoadSoak, NothingIsLostAndTheEventLogReplays) {
  // Half as long as the other part of the soak, a fifth of that to warm up.
  const Duration length = run_.length / 2;
  ASSERT_NO_FATAL_FAILURE(Load("warm-up", length / 5));
  SetRate(gpu_seconds_);
  const WatchedNode::Figures warm = watched_.Measure();
  ASSERT_NO_FATAL_FAILURE(Load("load", length - length / 5));
  PrintModelAccount();
  const WatchedNode::Figures after = watched_.Measure();
  WatchedNode::Print("at first", watched_.bare());
  WatchedNode::Print("after the warm-up", warm);
  WatchedNode::Print("in the end", after);
  watched_.CheckGrowth(warm, after, kFunctions);
  CheckAccounts(watched_.admin_socket(), {});
  EXPECT_TRUE(fleet_.EvictAll().ok());
  CheckGpusAreEmpty(watched_.admin_socket());
  fleet_.Stop();
  watched_.CheckThatFunctionsLeaveNothing(run_.is_translating());
  watched_.CheckThatTheDaemonLeavesNothing();
  CheckThatTheEventLogReplays();
}

}  // namespace
}  // namespace torpor::soak
