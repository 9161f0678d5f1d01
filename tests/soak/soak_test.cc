// Many functions over a node's memory, and all that may happen to them, for as long as is asked.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/sequence_model.h"
#include "tests/soak/accounts.h"
#include "tests/soak/disturbances.h"
#include "tests/soak/fleet.h"
#include "tests/soak/process_figures.h"
#include "tools/torporctl/hints.h"
#include "tools/torporctl/node_report.h"

namespace torpor::soak {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// 24 MiB of each GPU are for images: all together hold about ten functions. Links as the paper's
// node has them, slow enough for this computer.
constexpr const char* kFourGpus = R"(version: v1
pcie_switches:
  - {name: left, gbps: 4}
  - {name: right, gbps: 4}
gpus:
  - {memory: 32MiB, pcie_gbps: 3, pcie_switch: left, count: 2}
  - {memory: 32MiB, pcie_gbps: 3, pcie_switch: right, count: 2}
nvlinks:
  gbps_per_link: 4
  matrix:
    - [0, 1, 1, 2]
    - [1, 0, 2, 1]
    - [1, 2, 0, 2]
    - [2, 1, 2, 0]
)";
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
constexpr unsigned kMostHintPauseMs = 60;

// How much more a process may have in the end than after the warm-up, with as many functions.
constexpr Bytes kMostAnonymousGrowth = 16 * kMiB;
constexpr int kMostDescriptorGrowth = 8;

constexpr Bytes kMostSharedLeft = 1 * kMiB;

constexpr const char* kDaemon = "torpord";
constexpr const char* kSparedExecutor = "executor 0";
constexpr const char* kLargest = "largest";  // as large as a GPU

// At once, also where stdout is no terminal.
void Say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

std::string Environment(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

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
  using Figures = std::map<std::string, ProcessFigures>;  // by what the process is

  void SetUp() override {
    Say(fmt::format("SOAK_SEED={} SOAK_SECONDS={}: {} functions on {} GPUs\n", seed_,
                    length_.count(), kFunctions, kGpus));
    ASSERT_NO_FATAL_FAILURE(node_.Start());
    WaitForStatus("every GPU is ready", [](const v1::NodeStatus& status) {
      return std::all_of(status.gpus().begin(), status.gpus().end(),
                         [](const v1::GpuStatus& gpu) { return gpu.state() == "ready"; });
    });
    executors_ = e2e::DescendantsOf(node_.daemon().pid());
    bare_ = Measure();
    fleet_.Start();
  }

  void TearDown() override {
    if (HasFailure()) std::fputs(EndOfLog().c_str(), stderr);
  }

  std::string EndOfLog() {
    constexpr std::size_t kMostLog = 64 << 10;
    const std::string log = node_.daemon().Stderr();
    return "the end of torpord's log:\n" + log.substr(log.size() - std::min(log.size(), kMostLog));
  }

  v1::NodeStatus Status() const {
    const auto status = torporctl::FetchStatus(socket_);
    EXPECT_TRUE(status.ok()) << status.status();
    return status.ok() ? *status : v1::NodeStatus();
  }

  template <typename Condition>
  void WaitForStatus(const char* what, Condition is_so) const {
    const TimePoint give_up = SteadyClock().Now() + seconds(60);
    while (!is_so(Status())) {
      ASSERT_LT(SteadyClock().Now(), give_up) << "it never is so that " << what;
    }
  }

  Figures Measure() {
    Figures figures = {{kDaemon, FiguresOf(node_.daemon().pid())}};
    const v1::NodeStatus status = Status();
    for (const v1::GpuStatus& gpu : status.gpus()) {
      figures[fmt::format("executor {}", gpu.gpu())] =
          FiguresOf(static_cast<pid_t>(gpu.executor_pid()));
    }
    return figures;
  }

  static void Print(const char* when, const Figures& figures) {
    for (const auto& [process, values] : figures) {
      Say(
          fmt::format("{:18} {:11} {:4} MiB of its own, {:4} MiB shared, {:4} descriptors, "
                      "{:3} threads\n",
                      when, process, values.anonymous / kMiB, values.shared / kMiB,
                      values.descriptor_count(), values.threads));
    }
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
            absl::Milliseconds(random() % kMostHintPauseMs))) {
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
    const v1::NodeStatus status = Status();
    Say(
        fmt::format("{:4.0f} s: {} requests, {} swaps in, {} out, {} hints followed and {} "
                    "refused, {} executors "
                    "killed, {} functions restarted, slowest answer {:.1f} s, {} errors\n",
                    ToSeconds(SteadyClock().Now() - begin_), gate_.passed(), status.swaps_in(),
                    status.swaps_out(), hints_.followed(), hints_.refused(), kills_,
                    fleet_.restarts(), ToSeconds(fleet_.slowest()), failures_.count()));
  }

  // What a process may have: it is killed before long, but not the executor of GPU 0.
  static const ProcessFigures& ReferenceOf(const std::string& process, const Figures& warm) {
    return warm.at(process == kDaemon ? kDaemon : kSparedExecutor);
  }

  static void CheckGrowth(const Figures& warm, const Figures& after) {
    for (const auto& [process, figures] : after) {
      const ProcessFigures& before = ReferenceOf(process, warm);
      EXPECT_LE(figures.anonymous, before.anonymous + kMostAnonymousGrowth) << process;
      // Connections to functions that were asked a moment ago are kept.
      EXPECT_LE(figures.descriptor_count(),
                before.descriptor_count() + kMostDescriptorGrowth + kFunctions)
          << process << " has " << figures.DescriptorText() << "; it had "
          << before.DescriptorText();
    }
  }

  // With its functions gone it has what it had before they came. `arena`: what it keeps mapped for
  // functions whoever there is, of which pages come into being when they are used.
  static bool IsBare(const ProcessFigures& left, const ProcessFigures& bare, Bytes arena) {
    return left.shared <= bare.shared + kMostSharedLeft + arena &&
           left.descriptor_count() <= bare.descriptor_count() + kMostDescriptorGrowth;
  }

  // What the daemon believes to be free is: one function that needs it all comes to each GPU.
  void CheckThatEachGpuCanBeFilled() {
    const Bytes pool = Status().gpus(0).pool_bytes();
    // Weights, keys, values and the rest share a chunk.
    const e2e::SequenceShape shape = {.kilobytes = static_cast<unsigned>((pool - kChunk) / kKiB)};
    e2e::SequenceModel model(shape);
    node_.StartFunction(kLargest, shape.Command());
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      WaitForStatus("no lease is left", [](const v1::NodeStatus& status) {
        return std::all_of(status.gpus().begin(), status.gpus().end(),
                           [](const v1::GpuStatus& other) { return other.leased_to().empty(); });
      });
      const absl::Status loaded = torporctl::Load(socket_, kLargest, gpu);
      EXPECT_TRUE(loaded.ok()) << "load to GPU " << gpu << ": " << loaded;
      const e2e::Turn turn = e2e::RandomTurn(model, {.block_kilobytes = 1}, random_);
      const e2e::Reply reply =
          node_.PostOne(fmt::format("/function/{}/{}", kLargest, turn.path), turn.body);
      EXPECT_EQ(reply.body, turn.answer) << "on GPU " << gpu;
      EXPECT_EQ(Status().gpus(gpu).used_bytes(), pool) << "on GPU " << gpu;
    }
    node_.StopFunction(kLargest);
  }

  void CheckThatFunctionsLeaveNothing() {
    fleet_.Stop();
    WaitForStatus("no session is left", [](const v1::NodeStatus& status) {
      return status.sessions() == 0 && status.host_image_bytes() == 0;
    });
    CheckGpusAreEmpty(socket_);
    Figures left;
    const Bytes arena = is_translating_ ? Status().gpus(0).pool_bytes() : 0;
    const auto is_bare = [&](const auto& process) {
      return IsBare(process.second, bare_.at(process.first), process.first == kDaemon ? 0 : arena);
    };
    // Connections to functions are closed a little later.
    WaitForStatus("memory and descriptors of the functions are gone", [&](const auto&) {
      left = Measure();
      return std::all_of(left.begin(), left.end(), is_bare);
    });
    Print("without functions", left);
    for (const auto& [process, figures] : left) {
      if (!is_bare(*left.find(process))) Say(process + ": " + figures.DescriptorText() + "\n");
    }
  }

  void CheckThatTheDaemonLeavesNothing() {
    std::vector<pid_t> processes = e2e::DescendantsOf(node_.daemon().pid());
    EXPECT_EQ(processes.size(), executors_.size()) << "processes of the daemon";
    node_.daemon().Signal(SIGTERM);
    EXPECT_EQ(node_.daemon().Wait(seconds(60)), 0);
    for (const pid_t process : processes) {
      EXPECT_TRUE(e2e::WaitUntilGone(process, seconds(10))) << e2e::ProgramNameOf(process);
    }
  }

  const seconds length_{std::stol(Environment("SOAK_SECONDS", "600"))};
  const unsigned seed_ = static_cast<unsigned>(
      std::stoul(Environment("SOAK_SEED", std::to_string(std::random_device()()))));
  std::mt19937 random_{seed_};
  const std::vector<std::string> names_ = Names();
  const std::string settings_ = Environment("SOAK_SETTINGS", "");
  const bool is_translating_ = settings_.find("address_mode: translate") != std::string::npos;
  e2e::EmulatedNode node_{kFourGpus, And(names_, kLargest),
                          "queue_timeout: 50s\n" + settings_ + "\n", 1, "keeps_state: true"};
  const std::string socket_ = node_.folder().path() + "/admin.sock";
  Gate gate_;
  Failures failures_;
  Fleet fleet_{node_, names_, gate_, failures_, seed_};
  Hints hints_{socket_, names_, kGpus, failures_};
  Figures bare_;  // before the first function came
  std::vector<pid_t> executors_;
  std::uint64_t kills_ = 0;
  TimePoint begin_{};  // of the requests
  TimePoint next_kill_{};
  TimePoint next_restart_{};
  TimePoint next_progress_{};
};

TEST_F(Soak, EveryAnswerIsRightAndNothingIsLeftBehind) {
  begin_ = SteadyClock().Now();
  const Duration warm_up = std::min<Duration>(length_ / 5, seconds(60));
  RunFor(warm_up);
  const Figures warm = Measure();
  RunFor(length_ - warm_up);
  if (HasFailure()) return;
  hints_.UnpinAll();
  fleet_.AskAll();
  PrintProgress();
  CheckAccounts(socket_, fleet_.AllocatedBytes());
  const Figures after = Measure();
  Print("at first", bare_);
  Print("after the warm-up", warm);
  Print("in the end", after);
  CheckGrowth(warm, after);
  hints_.EvictAll();
  CheckGpusAreEmpty(socket_);
  CheckThatEachGpuCanBeFilled();
  CheckThatFunctionsLeaveNothing();
  CheckThatTheDaemonLeavesNothing();
}

}  // namespace
}  // namespace torpor::soak
