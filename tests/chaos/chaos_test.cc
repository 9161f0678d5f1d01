// Processes of a node under load are killed at random moments, for as long as is asked:
// docs/chaos.md.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/write_file.h"
#include "tests/chaos/chaos_run.h"
#include "tests/chaos/function.h"
#include "tests/chaos/growth.h"
#include "tests/chaos/judgement.h"
#include "tests/chaos/kill_plan.h"
#include "tests/chaos/load.h"
#include "tests/chaos/report.h"
#include "tests/chaos/victims.h"
#include "tests/e2e/await.h"
#include "tests/e2e/emulated_node.h"
#include "tests/e2e/four_small_gpus.h"
#include "tests/e2e/run_environment.h"

namespace torpor::chaos {
namespace {

using std::chrono::seconds;

constexpr unsigned kFunctions = 24;

// Longer than any recovery: what has not recovered then is stuck.
constexpr Duration kPatience = seconds(30);
// Images take their second home in host memory, and executors touch all they map: shorter runs are
// nothing but warm-up.
constexpr Duration kShortestForGrowth = seconds(120);
constexpr Duration kProgressPeriod = seconds(10);
constexpr std::size_t kMaxLog = 4 << 20;

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (unsigned i = 0; i < kFunctions; ++i) names.push_back(fmt::format("f{:02}", i));
  return names;
}

class Chaos : public testing::Test {
 protected:
  void SetUp() override {
    e2e::Say(fmt::format("CHAOS_SEED={} CHAOS_SECONDS={}: {} functions on 4 GPUs\n", run_.seed,
                         run_.length.count(), kFunctions));
    ASSERT_NO_FATAL_FAILURE(node_.StartUnderInit());
    for (unsigned i = 0; i < kFunctions; ++i) {
      functions_.push_back(std::make_unique<Function>(
          node_, Names()[i], MakeProgram(i, !run_.is_translating()), run_.seed + i));
    }
    victims_.emplace(node_, functions_);
    load_.emplace(functions_, run_.seed);
    if (Recovers()) return;
    for (const std::string& fault : Result().faults) ADD_FAILURE() << fault;
    FAIL() << "the functions do not answer at the start";
  }

  void TearDown() override {
    if (!HasFailure()) return;
    e2e::Say("the node: " + node_.Status().dump() + "\n");
    e2e::Say("the end of torpord's log:\n" + EndOfLog());
  }

  // Whether all functions answer again, and all GPUs have an executor.
  bool Recovers() {
    absl::Status status = load_->AwaitAnswers(kPatience);
    if (status.ok()) {
      status = e2e::Await("every GPU is ready", [&] { return victims_->AreGpusReady(); });
    }
    if (status.ok()) {
      load_->OnRecovery();
      growth_.Add(victims_->Measure());
      images_on_disk_ = std::max(images_on_disk_, ImagesOnDisk());
      return true;
    }
    faults_.push_back(status.ToString());
    return false;
  }

  unsigned ImagesOnDisk() const {
    return run_.spills() ? node_.Status().at("spills").at("images").get<unsigned>() : 0;
  }

  // Kills until the time is over, enough are killed, or something is wrong.
  void KillAll() {
    KillPlan plan(run_.seed, run_.victims);
    const TimePoint end = begin_ + run_.length;
    TimePoint next_progress = begin_ + kProgressPeriod;
    while (SteadyClock().Now() < end && (run_.max_kills == 0 || kills_ < run_.max_kills)) {
      const Kill kill = plan.Next();
      if (kill.is_after_recovery && !Recovers()) return;
      std::this_thread::sleep_for(kill.pause);
      const auto killed = victims_->Kill(kill, *load_);
      if (!killed.ok()) return faults_.push_back(killed.status().ToString());
      ++kills_;
      last_kills_ += fmt::format("{:7.3f} s: {}{}\n", ToSeconds(SteadyClock().Now() - begin_),
                                 *killed, kill.is_after_recovery ? "" : ", during a recovery");
      if (SteadyClock().Now() < next_progress) continue;
      next_progress += kProgressPeriod;
      PrintProgress();
    }
    Recovers();
  }

  void PrintProgress() const {
    e2e::Say(fmt::format("{:4.0f} s: {} kills, {} answers\n",
                         ToSeconds(SteadyClock().Now() - begin_), kills_, load_->counts().right));
  }

  ChaosResult Result() const {
    const Delays delays = load_->delays();
    ChaosResult result = {.seconds = ToSeconds(SteadyClock().Now() - begin_),
                          .requests = load_->counts(),
                          .delays = ByVictim(delays.kills()),
                          .undisturbed = delays.undisturbed(),
                          .images_on_disk = images_on_disk_,
                          .faults = load_->faults()};
    if (result.seconds >= ToSeconds(kShortestForGrowth)) result.growths = growth_.Judge();
    std::sort(result.undisturbed.begin(), result.undisturbed.end());
    result.faults.insert(result.faults.end(), faults_.begin(), faults_.end());
    return result;
  }

  // Where no function is killed, each has been started once.
  void CheckThatNobodyElseHasDied() {
    if (std::find(run_.victims.begin(), run_.victims.end(), Victim::kFunction) !=
        run_.victims.end()) {
      return;
    }
    for (const auto& function : functions_) EXPECT_EQ(function->starts(), 1U) << function->name();
  }

  std::string EndOfLog() const {
    const std::string log = node_.Logs();
    return log.substr(log.size() - std::min(log.size(), kMaxLog));
  }

  const ChaosRun run_ = [] {
    const auto run = ChaosRun::FromEnvironment();
    EXPECT_TRUE(run.ok()) << run.status();
    return run.ok() ? *run : ChaosRun{.victims = {Victim::kExecutor}};
  }();
  // A torpord that has never seen the router before would choose another one.
  const e2e::EmulatedNode::Port http_port_ = e2e::EmulatedNode::FreePort();
  e2e::EmulatedNode node_{
      e2e::kFourSmallGpus, Names(),
      fmt::format("{}\nhttp_address: 127.0.0.1:{}\n", run_.settings, http_port_.number),
      /*gpus=*/1, run_.function_setting};
  std::vector<std::unique_ptr<Function>> functions_;
  std::optional<Victims> victims_;
  std::optional<Load> load_;
  GrowthRecord growth_;
  std::vector<std::string> faults_;
  std::string last_kills_;
  TimePoint begin_ = SteadyClock().Now();
  unsigned kills_ = 0;
  unsigned images_on_disk_ = 0;  // most at a recovery
};

TEST_F(Chaos, NothingIsLost) {
  begin_ = SteadyClock().Now();
  KillAll();
  CheckThatNobodyElseHasDied();
  const ChaosResult result = Result();
  e2e::Say(TableOf(result));
  for (const std::string& fault : Judge(result, run_.judges_times)) ADD_FAILURE() << fault;
  if (HasFailure())
    e2e::Say("the kills of CHAOS_SEED=" + std::to_string(run_.seed) + ":\n" + last_kills_);
  if (run_.json.empty()) return;
  const absl::Status written = WriteFile(run_.json, JsonOf(run_, result).dump(2) + "\n");
  EXPECT_TRUE(written.ok()) << written;
}

}  // namespace
}  // namespace torpor::chaos
