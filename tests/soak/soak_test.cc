// Many functions over a node's memory, and all that may happen to them, for as long as is asked.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/e2e/await_status.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/four_small_gpus.h"
#include "tests/e2e/run_environment.h"
#include "tests/e2e/sequence_model.h"
#include "tests/soak/accounts.h"
#include "tests/soak/disturbances.h"
#include "tests/soak/fleet.h"
#include "tests/soak/soak_run.h"
#include "tests/soak/watched_node.h"
#include "tools/torporctl/admin_requests.h"

namespace torpor::soak {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kGpus = 4;
constexpr Bytes kChunk = 2 * kMiB;
constexpr int kFunctions = 64;
constexpr int kClients = 6;
constexpr int kAdministrators = 2;

// The executor of GPU 0 is never killed, so that what it leaks adds up.
constexpr int kSparedGpus = 1;

constexpr Duration kProgressPeriod = seconds(10);
constexpr Duration kKillPeriod = milliseconds(3'700);
constexpr Duration kRestartPeriod = milliseconds(2'300);
constexpr unsigned kMaxHintPauseMs = 60;

constexpr const char* kLargest = "largest";  // as large as a GPU

std::vector<std::string> Names() {
  std::vector<std::string> names;
  names.reserve(kFunctions);
  for (int i = 0; i < kFunctions; ++i) names.push_back(fmt::format("f{:02}", i));
  return names;
}

std::vector<std::string> And(std::vector<std::string> names, const std::string& name) {
  names.push_back(name);
  return names;
}

class Soak : public testing::Test {
 protected:
  void SetUp() override {
    e2e::Say(fmt::format("SOAK_SEED={} SOAK_SECONDS={}: {} functions on {} GPUs\n", run_.seed,
                         run_.length.count(), kFunctions, kGpus));
    ASSERT_NO_FATAL_FAILURE(watched_.Start());
    fleet_.Start();
  }

  void TearDown() override {
    if (HasFailure()) std::fputs(watched_.EndOfLog().c_str(), stderr);
  }

  // Requests, hints, kills and restarts for so long, or until something is wrong. Nothing is under
  // way afterwards.
  void RunFor(Duration length) {
    absl::Notification is_over;
    std::vector<std::thread> threads;
    threads.reserve(kClients + kAdministrators);
    for (int i = 0; i < kClients; ++i) {
      threads.emplace_back([&, random = std::mt19937(random_())]() mutable {
        while (!is_over.HasBeenNotified()) fleet_.AskOne(random);
      });
    }
    for (int i = 0; i < kAdministrators; ++i) {
      threads.emplace_back([&, random = std::mt19937(random_())]() mutable {
        while (!is_over.WaitForNotificationWithTimeout(
            absl::Milliseconds(random() % kMaxHintPauseMs))) {
          hints_.GiveOne(random);
        }
      });
    }
    Disturb(SteadyClock().Now() + length);
    is_over.Notify();
    for (std::thread& thread : threads) thread.join();
  }

  void Disturb(TimePoint until) {
    const auto due = [](TimePoint& next, Duration period) {
      const TimePoint now = SteadyClock().Now();
      if (now < next) return false;
      next = now + period;
      return true;
    };
    while (SteadyClock().Now() < until && failures_.count() == 0 && !HasFailure()) {
      std::this_thread::sleep_until(std::min({until, next_kill_, next_restart_, next_progress_}));
      if (due(next_kill_, kKillPeriod)) {
        const auto killed = kSparedGpus + random_() % (kGpus - kSparedGpus);
        KillExecutor(socket_, static_cast<int>(killed), gate_, hints_, failures_);
        ++kills_;
      }
      if (due(next_restart_, kRestartPeriod)) fleet_.RestartOne();
      if (due(next_progress_, kProgressPeriod)) PrintProgress();
    }
  }

  void PrintProgress() const {
    const v1::NodeStatus status = watched_.Status();
    e2e::Say(
        fmt::format("{:4.0f} s: {} requests, {} swaps in, {} out, {} hints followed and {} "
                    "refused, {} executors "
                    "killed, {} functions restarted, slowest answer {:.1f} s, {} errors\n",
                    ToSeconds(SteadyClock().Now() - begin_), gate_.passed(), status.swaps_in(),
                    status.swaps_out(), hints_.followed(), hints_.refused(), kills_,
                    fleet_.restarts(), ToSeconds(fleet_.slowest()), failures_.count()));
  }

  // What the daemon believes to be free is: one function that needs it all comes to each GPU.
  void CheckThatEachGpuCanBeFilled() {
    const Bytes pool = watched_.Status().gpus(0).pool_bytes();
    // Weights, keys, values and the rest share a chunk.
    const e2e::SequenceShape shape = {.kilobytes = static_cast<unsigned>((pool - kChunk) / kKiB)};
    e2e::SequenceModel model(shape);
    node_.StartFunction(kLargest, shape.Command());
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      watched_.WaitForStatus("no lease is left", e2e::IsIdle);
      const absl::Status loaded = torporctl::Load(socket_, kLargest, gpu);
      EXPECT_TRUE(loaded.ok()) << "load to GPU " << gpu << ": " << loaded;
      const e2e::Turn turn = e2e::RandomTurn(model, {.block_kilobytes = 1}, random_);
      const e2e::Reply reply =
          node_.PostOne(fmt::format("/function/{}/{}", kLargest, turn.path), turn.body);
      EXPECT_EQ(reply.body, turn.answer) << "on GPU " << gpu;
      EXPECT_EQ(watched_.Status().gpus(gpu).used_bytes(), pool) << "on GPU " << gpu;
    }
    node_.StopFunction(kLargest);
  }

  const SoakRun run_ = SoakRun::FromEnvironment();
  std::mt19937 random_{run_.seed};
  const std::vector<std::string> names_ = Names();
  e2e::EmulatedNode node_{e2e::kFourSmallGpus, And(names_, kLargest),
                          "queue_timeout: 50s\n" + run_.settings + "\n", 1, "durability: eviction"};
  WatchedNode watched_{node_};
  const std::string& socket_ = watched_.admin_socket();
  Gate gate_;
  Failures failures_;
  Fleet fleet_{node_, names_, gate_, failures_, run_.seed};
  Hints hints_{socket_, names_, kGpus, failures_};
  std::uint64_t kills_ = 0;
  TimePoint begin_{};  // of the requests
  TimePoint next_kill_{};
  TimePoint next_restart_{};
  TimePoint next_progress_{};
};

TEST_F(Soak, EveryAnswerIsRightAndNothingIsLeftBehind) {
  begin_ = SteadyClock().Now();
  const Duration warm_up = std::min<Duration>(run_.length / 5, seconds(60));
  RunFor(warm_up);
  const WatchedNode::Figures warm = watched_.Measure();
  RunFor(run_.length - warm_up);
  if (HasFailure()) return;
  hints_.UnpinAll();
  fleet_.AskAll();
  PrintProgress();
  CheckAccounts(socket_, fleet_.AllocatedBytes());
  const WatchedNode::Figures after = watched_.Measure();
  WatchedNode::Print("at first", watched_.bare());
  WatchedNode::Print("after the warm-up", warm);
  WatchedNode::Print("in the end", after);
  watched_.CheckGrowth(warm, after, kFunctions);
  hints_.EvictAll();
  CheckGpusAreEmpty(socket_);
  CheckThatEachGpuCanBeFilled();
  fleet_.Stop();
  watched_.CheckThatFunctionsLeaveNothing(run_.is_translating());
  watched_.CheckThatTheDaemonLeavesNothing();
}

}  // namespace
}  // namespace torpor::soak
