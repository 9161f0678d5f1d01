// A node in which programs come and go, requests arrive, executors die and are slow, all at random:
// the same seed gives the same history. What must hold always is checked after every step, here and
// by the harness, whose executors watch what they are told.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/controller/controller_harness.h"

namespace torpor::server {
namespace {

constexpr int kGpus = 3;
constexpr std::size_t kMaxPrograms = 10;
constexpr std::size_t kMaxRequests = 30;
constexpr std::array<const char*, 3> kFunctions = {"a", "b", "c"};

class Simulation : public ControllerHarness {
 public:
  explicit Simulation(std::uint64_t seed) : ControllerHarness(kGpus), random_(seed) {
    answers_ = [this](const v1::DaemonMessage&) -> std::optional<absl::Status> {
      if (Chance(slowness_)) return std::nullopt;
      return absl::OkStatus();
    };
    for (int gpu = 0; gpu < kGpus; ++gpu) StartExecutor(gpu);
  }
  void TestBody() override {}

  void Run(int steps) {
    for (int i = 0; i < steps && !HasFailure(); ++i) {
      Step();
      Tidy();
      Check();
    }
  }

  // Nothing fails any more: all that waits is answered, and the node comes to rest.
  void ComeToRest() {
    slowness_ = 0;
    bool is_idle = false;
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      if (!IsUp(gpu)) StartExecutor(gpu);
    }
    controller_->Drain([&] { is_idle = true; });
    for (int i = 0; i < 1000 && !is_idle; ++i) {
      Listen(/*laziness=*/0);
      while (!requests_.empty()) EndRequest(requests_.size() - 1);
      loop_.Advance(std::chrono::milliseconds(100));
      Settle();
      Tidy();
    }
    EXPECT_TRUE(is_idle);
    while (!requests_.empty()) EndRequest(requests_.size() - 1);
    EXPECT_EQ(controller_->Snapshot().queued_requests, 0u);
    while (!programs_.empty()) Leave(programs_.size() - 1);
    for (int i = 0; i < 100; ++i) {
      loop_.Advance(std::chrono::milliseconds(100));
      Settle();
    }
    EXPECT_EQ(controller_->Snapshot().sessions, 0u);
    for (const auto& [gpu, executor] : executors_) {
      EXPECT_TRUE(executor.sessions.empty()) << "GPU " << gpu;
      EXPECT_TRUE(executor.leases.empty()) << "GPU " << gpu;
    }
    // The scheduler that is told the same decides the same.
    TearDown();
  }

  // The last events and decisions, to see what led to a failure.
  std::string LastOfHistory() const {
    constexpr std::size_t kBytes = 8000;
    return event_log_.substr(event_log_.size() - std::min(event_log_.size(), kBytes));
  }
  const std::string& history() const { return event_log_; }
  int kills() const { return kills_; }
  int answered() const { return answered_; }

 private:
  struct Program {
    Client client;
    std::string function;
    bool is_open = false;
    bool is_broken = false;
    std::vector<std::uint64_t> memory{};
  };
  struct Ask {
    RequestId id;
    std::string function;
  };

  double Uniform() { return static_cast<double>(random_() >> 11) * 0x1.0p-53; }
  bool Chance(double share) { return Uniform() < share; }
  std::size_t Below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }
  bool IsUp(int gpu) const { return executors_.contains(gpu); }

  void Step() {
    const std::size_t kind = Below(100);
    if (kind < 6) return Come();
    if (kind < 8 && !programs_.empty()) return Leave(Below(programs_.size()));
    if (kind < 30) return AskForLease();
    if (kind < 50 && !requests_.empty()) return EndRequest(Below(requests_.size()));
    if (kind < 70) return Listen(0.3);
    if (kind < 76) return UseMemory();
    if (kind < 80) return WantGpu();
    if (kind < 83) return KillSome();
    if (kind < 90) return StartSome();
    if (kind < 91) return FaultSome();
    loop_.Advance(std::chrono::milliseconds(1 << Below(12)));
    Settle();
  }

  void Come() {
    if (programs_.size() >= kMaxPrograms) return;
    const std::string function = kFunctions.at(Below(kFunctions.size()));
    programs_.push_back({.client = Hello("token-" + function), .function = function});
  }
  void Leave(std::size_t index) {
    const Program gone = std::move(programs_[index]);
    unsettled_.insert(gone.function);
    programs_.erase(programs_.begin() + static_cast<std::ptrdiff_t>(index));
    Disconnect(gone.client);
  }
  void AskForLease() {
    if (requests_.size() >= kMaxRequests) return;
    const std::string function = kFunctions.at(Below(kFunctions.size()));
    requests_.push_back({Acquire(function, std::chrono::seconds(30)), function});
  }
  // Releases an answered request, or gives a waiting request up.
  void EndRequest(std::size_t index) {
    const RequestId id = requests_[index].id;
    const Outcome& known = outcome(id);
    const bool is_lost = known.lost.has_value();
    if (IsRunning(id)) ++answered_;
    requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(index));
    Release(id, is_lost ? scheduler::Ending::kLost : scheduler::Ending::kAnswered);
  }
  // Programs answer their messages; `laziness` is the share left for later.
  void Listen(double laziness) {
    for (Program& program : programs_) {
      auto& messages = program.client.link->received;
      while (!messages.empty() && !Chance(laziness)) {
        const wire::ServerMessage message = std::move(messages.front());
        messages.pop_front();
        std::visit([&](const auto& what) { Hear(program, what); }, message);
      }
    }
  }
  template <typename Message>
  void Hear(Program& program, const Message& message) {
    if constexpr (std::is_same_v<Message, wire::HelloReply>) {
      if (message.error != 0) return;
      program.client.hello = message;
      program.is_open = true;
      Say(program.client, wire::HelloAck{});
    } else if constexpr (std::is_same_v<Message, wire::LeaseGrant>) {
      Say(program.client, wire::LeaseAck{message.lease_id});
    } else if constexpr (std::is_same_v<Message, wire::LeaseRevoke>) {
      Say(program.client, wire::LeaseReturned{message.lease_id});
    } else if constexpr (std::is_same_v<Message, wire::LeaseLost>) {
      program.is_broken |= message.sticky;
    } else if constexpr (std::is_same_v<Message, wire::MemoryReply>) {
      if (message.error == 0 && message.address != 0) program.memory.push_back(message.address);
    }
  }
  Program* AnyOpen() {
    if (programs_.empty()) return nullptr;
    Program& program = programs_[Below(programs_.size())];
    return program.is_open && !program.is_broken ? &program : nullptr;
  }
  void UseMemory() {
    Program* const program = AnyOpen();
    if (program == nullptr) return;
    Client& client = program->client;
    if (program->memory.empty() || Chance(0.6)) {
      return Say(client, wire::Malloc{client.next_request++, (1 + Below(8)) * kMiB});
    }
    const std::uint64_t address = program->memory.back();
    program->memory.pop_back();
    Say(client, wire::Free{client.next_request++, address});
  }
  void WantGpu() {
    if (Program* const program = AnyOpen()) Say(program->client, wire::LeaseRequest{});
  }
  void KillSome() {
    const int gpu = static_cast<int>(Below(kGpus));
    if (IsUp(gpu)) End(gpu, Chance(0.2) ? SIGSEGV : SIGKILL);
  }
  void StartSome() {
    const int gpu = static_cast<int>(Below(kGpus));
    if (!IsUp(gpu)) StartExecutor(gpu);
  }
  // A program's kernel writes where it may not.
  void FaultSome() {
    for (auto& [gpu, executor] : executors_) {
      if (executor.leases.empty()) continue;
      v1::ExecutorMessage message;
      message.mutable_context_lost()->set_session_id(executor.leases.begin()->first);
      message.mutable_context_lost()->set_cuda_error(700);
      controller_->OnExecutorMessage(executor.link, message);
      return End(gpu, 0);
    }
  }
  void End(int gpu, int signal) {
    ++kills_;
    unsettled_.insert(kFunctions.begin(), kFunctions.end());
    const Executor dead = std::move(executors_[gpu]);
    executors_.erase(gpu);
    // Either may be noticed first.
    if (Chance(0.5)) controller_->OnExecutorClosed(dead.link);
    controller_->OnExecutorExited(GpuIndex{gpu}, dead.epoch, signal);
    Settle();
  }
  // Ends streams closed, and executors killed, by the controller.
  void Tidy() {
    for (std::size_t i = programs_.size(); i > 0; --i) {
      if (programs_[i - 1].client.link->closed || programs_[i - 1].is_broken) Leave(i - 1);
    }
    const auto killed = std::exchange(processes_.killed, {});
    for (const auto& [gpu, epoch] : killed) {
      if (IsUp(gpu.value) && executors_[gpu.value].epoch == epoch) End(gpu.value, SIGKILL);
    }
  }

  void Check() {
    const NodeSnapshot node = controller_->Snapshot();
    for (const GpuSnapshot& gpu : node.gpus) {
      if (gpu.state != "ready") continue;
      EXPECT_LE(gpu.used_bytes, gpu.pool_bytes) << "GPU " << gpu.gpu;
    }
    std::map<std::string, int> running;
    for (const Ask& ask : requests_) {
      running[ask.function] += IsRunning(ask.id) ? 1 : 0;
    }
    std::erase_if(unsettled_, [&](const std::string& function) { return running[function] == 0; });
    for (const auto& [function, count] : running) {
      if (unsettled_.contains(function)) continue;
      EXPECT_LE(count, config_.functions.at(function).max_in_flight) << function;
    }
  }

  std::mt19937_64 random_;
  double slowness_ = 0.3;
  std::vector<Program> programs_;
  std::vector<Ask> requests_;
  // Functions of which an executor or a program has died, until none of their requests runs. Their
  // requests may run on without a lease beside those that have one: the scheduler decides on an
  // executor's death before it hears which requests come again.
  std::set<std::string> unsettled_;
  int kills_ = 0;
  int answered_ = 0;
};

int FromEnvironment(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

std::string HistoryOf(std::uint64_t seed, int steps) {
  Simulation node(seed);
  node.Run(steps);
  if (!testing::Test::HasFailure()) node.ComeToRest();
  EXPECT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  return node.history();
}

TEST(ControllerSimulation, TheSameSeedIsTheSameHistory) {
  const std::string history = HistoryOf(1, 500);
  EXPECT_EQ(HistoryOf(1, 500), history);
  EXPECT_NE(HistoryOf(2, 500), history);
}

// SIMULATION_SEEDS so many, from SIMULATION_SEED on, of SIMULATION_STEPS each.
TEST(ControllerSimulation, NothingBreaksWhateverFails) {
  const int first = FromEnvironment("SIMULATION_SEED", 1);
  const int seeds = FromEnvironment("SIMULATION_SEEDS", 12);
  const int steps = FromEnvironment("SIMULATION_STEPS", 1500);
  const auto begun = std::chrono::steady_clock::now();
  std::int64_t lines = 0;
  int kills = 0;
  int answered = 0;
  for (int seed = first; seed < first + seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("SIMULATION_SEED={} SIMULATION_SEEDS=1", seed));
    Simulation node(static_cast<std::uint64_t>(seed));
    node.Run(steps);
    if (!HasFailure()) node.ComeToRest();
    if (HasFailure()) std::fputs(node.LastOfHistory().c_str(), stderr);
    lines += std::ranges::count(node.history(), '\n');
    kills += node.kills();
    answered += node.answered();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  EXPECT_GT(answered, 0);
  std::printf(
      "%lld events and decisions, %d deaths of executors, %d requests answered: %.0f events "
      "and decisions a minute\n",
      static_cast<long long>(lines), kills, answered,
      60 * static_cast<double>(lines) / took.count());
}

}  // namespace
}  // namespace torpor::server
