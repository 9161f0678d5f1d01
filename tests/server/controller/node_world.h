#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "server/controller/model/event_sink.h"
#include "server/controller/services.h"
#include "server/controller/session_storage.h"
#include "tests/server/controller/fake_links.h"
#include "tests/server/controller/fake_loop.h"

namespace torpor::server {

// The tables of a node with GPUs 0 and 1 of 64 MiB, which reach each other, and functions a and
// pair, which uses two GPUs. For tests of single parts of the controller: executors answer only
// what the test answers, and the scheduler's events are kept.
class NodeWorld : public testing::Test {
 protected:
  static constexpr Bytes kChunk = 2 * kMiB;
  static constexpr Bytes kPool = 64 * kMiB;

  struct Events final : EventSink {
    void Feed(const scheduler::Event& event) override { fed.push_back(event); }
    // Returns the events of type T, in their order.
    template <typename T>
    std::vector<T> Of() const {
      std::vector<T> found;
      for (const scheduler::Event& event : fed) {
        if (const T* const one = std::get_if<T>(&event)) found.push_back(*one);
      }
      return found;
    }
    std::vector<scheduler::Event> fed;
  };
  struct FakeProcesses final : ExecutorProcesses {
    void Kill(GpuIndex gpu, std::uint64_t) override { killed.push_back(gpu); }
    void Replace(GpuIndex gpu, std::uint64_t) override { replaced.push_back(gpu); }
    void Want(ExecutorSeat seat) override { wanted.push_back(seat); }
    void KeepSpare(GpuIndex gpu) override { with_spare.insert(gpu); }
    std::vector<GpuIndex> killed;
    std::vector<GpuIndex> replaced;
    std::vector<ExecutorSeat> wanted;
    std::set<GpuIndex> with_spare;
  };

  NodeWorld();

  // A scheduler that knows the functions and both GPUs. It hears of no events but these.
  std::unique_ptr<scheduler::Scheduler> MakeScheduler();

  // An open session with memory, which executors have been told of. `primary`: of its process, if
  // it is a secondary session.
  SessionPtr AddSession(const std::string& function, int device = 0,
                        const SessionPtr& primary = nullptr);
  static FakeSessionLink& LinkOf(const SessionPtr& session) {
    return static_cast<FakeSessionLink&>(*session->link);
  }
  FunctionInstance& InstanceOf(const std::string& function) {
    return *tables_.instances.Find(function);
  }
  // Gives the instance a lease that all its sessions have acknowledged.
  InstanceLease& GiveLease(const std::string& function, bool is_explicit = true);
  // The image is resident on `gpu`, as after a swap-in that is complete.
  static void Land(const SessionPtr& session, int gpu);

  // The executor's oldest unanswered operation.
  const v1::DaemonMessage& Operation(int gpu) { return Link(gpu).operations.at(0); }
  bool IsQuiet(int gpu) { return Link(gpu).operations.empty(); }
  // Answers that; `edit` may add to the answer.
  using Edit = std::function<void(v1::ExecutorMessage::OperationDone&)>;
  void Answer(int gpu, const absl::Status& status = absl::OkStatus(), const Edit& edit = nullptr);
  // Answers all that come, with OK, until nothing moves any more.
  void Settle();
  // The executor dies. Its operations end as lost.
  void KillExecutor(int gpu);
  FakeExecutorLink& Link(int gpu) { return *links_.at(static_cast<std::size_t>(gpu)); }

  static Config MakeConfig();

  // After which equal blocks are shared, where a test has them looked at.
  static constexpr Duration kRest = std::chrono::seconds(5);

  const Config config_ = MakeConfig();
  FakeLoop loop_;
  FakeProcesses processes_;
  Telemetry telemetry_;
  Events events_;
  Repository repository_;
  NodeTables tables_;
  std::function<void(GpuExecutor&)> tell_;  // of a domain's sessions; may be null
  DomainSeats seats_{/*per_gpu=*/1,
                     tables_.domains,
                     tables_.executors,
                     processes_,
                     tables_.instances,
                     tables_.sessions,
                     events_,
                     loop_,
                     [this](GpuExecutor& executor) {
                       if (tell_) tell_(executor);
                     }};
  const std::unique_ptr<scheduler::Scheduler> stranger_ = MakeScheduler();  // knows no function
  HostServices host_;  // of which no image is spilled
  SessionStorage storage_;
  std::vector<std::shared_ptr<FakeExecutorLink>> links_;
};

}  // namespace torpor::server
