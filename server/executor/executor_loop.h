#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/mailbox.h"
#include "proto/torpor/v1/node.pb.h"
#include "server/executor/operations.h"
#include "server/executor/session/session.h"

namespace torpor::executor {

// How an executor ends; the supervisor tells by it what to do.
enum class ExitStatus : int {
  kShutdown = 0,
  kFailure = 1,      // could not start
  kUsage = 2,        // wrong flags
  kContextLost = 3,  // a session's work cost the CUDA context
  kDaemonLost = 4,   // torpord has gone
};

// What the loop learns.
struct DaemonGone {
  std::string reason;
};
struct ContextLost {
  SessionId session;  // whose call showed it; may be none
  cuda_api::CallStatus error;
};
// All of a swap-in is there.
struct LoopArrival {
  SessionId session;
  ArrivedBytes bytes;
  Duration duration{};
};
// A step of consolidation has ended.
struct Consolidated {
  absl::StatusOr<Bytes> moved;
};
using LoopMessage = std::variant<v1::DaemonMessage, OperationResult, ContextLost, LoopArrival,
                                 Consolidated, DaemonGone>;

// Where the loop's words to torpord go. Called by the loop's thread only.
class DaemonUplink {
 public:
  virtual ~DaemonUplink() = default;
  virtual void Send(const v1::ExecutorMessage& message) = 0;
};

// The thread that decides: which of torpord's operations runs next on which worker (one at a time
// a session, in the order they came), when memory is consolidated, when the context is lost, when
// to end. It never blocks on the GPU; the workers do.
class ExecutorLoop final : public SessionListener {
 public:
  static constexpr std::size_t kMailboxCapacity = 4096;

  // `environment` must name this loop as listener of sessions. All outlive the loop. `clock` is
  // read by Run's thread only.
  ExecutorLoop(const OperationEnvironment& environment, DaemonUplink& uplink, const Clock& clock);
  ~ExecutorLoop() override;

  // Any thread. Waits while the loop is behind.
  void Post(LoopMessage message) { mailbox_.Send(std::move(message)); }
  void OnContextLost(SessionId session, const cuda_api::CallStatus& error) override;
  void OnArrival(SessionId session, const ArrivedBytes& bytes, Duration duration) override;

  // Runs until there is a reason to end. The device is current on the calling thread.
  ExitStatus Run();

 private:
  struct Lane {
    bool busy = false;
    std::deque<v1::DaemonMessage> waiting;
  };

  // What workers do: operations and steps of consolidation.
  struct Consolidation {};
  using Work = std::variant<v1::DaemonMessage, Consolidation>;

  void DoWork();
  LoopMessage Do(const Work& work, const absl::StatusOr<CUstream>& stream);
  // The next message; nothing if it is time to do something without one.
  std::optional<LoopMessage> AwaitMessage();
  // Each gives the status to end with, if it is the end.
  std::optional<ExitStatus> Handle(LoopMessage message);
  std::optional<ExitStatus> OnOperation(v1::DaemonMessage operation);
  std::optional<ExitStatus> OnResult(const OperationResult& result);
  std::optional<ExitStatus> OnLost(const ContextLost& lost);
  std::optional<ExitStatus> OnArrived(const LoopArrival& arrival);
  std::optional<ExitStatus> OnConsolidated(const Consolidated& step);
  std::optional<ExitStatus> OnSilence();
  // Asks the driver whether the context is still there.
  std::optional<ExitStatus> Watch();
  std::optional<ExitStatus> EndIfShutDown();
  void Dispatch(Lane& lane, v1::DaemonMessage operation);
  void Answer(const OperationResult& result);
  void SetFree(v1::MemoryUse& memory) const;

  const OperationEnvironment environment_;
  DaemonUplink& uplink_;
  const Clock& clock_;
  Mailbox<LoopMessage> mailbox_{kMailboxCapacity};
  Mailbox<Work> work_{kMailboxCapacity};
  std::atomic<bool> is_wanted_{false};  // an operation waits for the step of consolidation
  std::vector<std::thread> workers_;

  // Of the loop's thread.
  std::map<SessionId, Lane> lanes_;
  std::size_t running_ = 0;
  TimePoint busy_until_{};       // when there was something to do the last time
  bool may_consolidate_ = true;  // there may be something to gain
  bool is_consolidating_ = false;
  std::vector<v1::DaemonMessage> held_;  // until the step has ended
  std::optional<std::uint64_t> shutdown_operation_;
  CUstream watch_stream_ = nullptr;
};

}  // namespace torpor::executor
