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
#include "server/executor/gpu/idle_task.h"
#include "server/executor/operations.h"
#include "server/executor/session/session.h"

namespace torpor::executor {

// How an executor ended; the supervisor chooses the next step by the exit status.
enum class ExitStatus : int {
  kShutdown = 0,
  kFailure = 1,      // could not start
  kUsage = 2,        // wrong flags
  kContextLost = 3,  // a session's work cost the CUDA context
  kDaemonLost = 4,   // torpord has gone
};

// Messages to the loop: the stream to torpord has ended, or no other torpord has come.
struct DaemonGone {
  std::string reason;
  bool is_final = false;  // no torpord will have the executor
};
// Another torpord listens.
struct DaemonBack {};
// The CUDA context is lost.
struct ContextLost {
  SessionId session;  // whose call showed the loss; may be empty
  cuda_api::CallStatus error;
};
// All bytes of a swap-in have arrived.
struct LoopArrival {
  SessionId session;
  ArrivedBytes bytes;
  Duration duration{};
};
// An operation has come so far that torpord need not wait for the rest.
struct EarlyAnswer {
  OperationOutcome outcome;
};
// A step of an idle task has ended.
struct IdleStepDone {
  std::size_t task = 0;  // index
  absl::StatusOr<bool> has_more;
};
using LoopMessage = std::variant<v1::DaemonMessage, OperationOutcome, EarlyAnswer, ContextLost,
                                 LoopArrival, IdleStepDone, DaemonGone, DaemonBack>;

// Sends the loop's messages to torpord. Called by the loop's thread only.
class DaemonUplink {
 public:
  virtual ~DaemonUplink() = default;
  // Drops the message while no torpord is there.
  virtual void Send(const v1::ExecutorMessage& message) = 0;
  // After DaemonGone: posts DaemonBack once another torpord listens, or DaemonGone if none does
  // within `patience`.
  virtual void AwaitNext(Duration patience) = 0;
  // After DaemonBack: registers there, as at the start.
  virtual void RegisterAgain() = 0;
};

// The deciding thread of an executor: chooses the worker and the order of torpord's operations (one
// at a time for each session, in order of arrival), what to do while idle, and when to end; detects
// a lost context. Never blocks on the GPU; only the workers do.
class ExecutorLoop final : public SessionListener {
 public:
  static constexpr std::size_t kMailboxCapacity = 4096;

  // `environment` must name the loop as listener of sessions. Of several idle tasks that may gain
  // something, the first goes on. `environment`'s references, the tasks, `uplink` and `clock` must
  // outlive the loop. Only the thread of Run reads `clock`.
  ExecutorLoop(const OperationEnvironment& environment, const std::vector<IdleTask*>& idle_tasks,
               DaemonUplink& uplink, const Clock& clock);
  ~ExecutorLoop() override;

  // Thread-safe. Blocks while the mailbox is full.
  void Post(LoopMessage message) { mailbox_.Send(std::move(message)); }
  // SessionListener: posts the event to the loop, from any thread.
  void OnContextLost(SessionId session, const cuda_api::CallStatus& error) override;
  void OnArrival(SessionId session, const ArrivedBytes& bytes, Duration duration) override;

  // Runs until the executor must end; returns the exit status. Call with the device current.
  ExitStatus Run();

 private:
  // The operations of one session: at most one runs (`busy`), later operations wait in order of
  // arrival.
  struct Lane {
    bool busy = false;
    bool is_answered = false;  // what runs has been answered early
    std::deque<v1::DaemonMessage> waiting;
  };

  // An idle task, and whether and when it takes its next step.
  struct IdleSlot {
    IdleTask* task = nullptr;
    bool may_gain = true;
    TimePoint looked_at{};  // end of the latest step without more to gain
  };

  // Work for the workers: operations and steps of idle tasks.
  struct IdleStep {
    std::size_t task = 0;
  };
  using Work = std::variant<v1::DaemonMessage, IdleStep>;

  // A worker's thread: carries out work with a stream of the worker's own, until work_ is closed.
  void DoWork();
  LoopMessage Do(const Work& work, const absl::StatusOr<CUstream>& stream);
  absl::Status OpenWatch();
  // Returns the next message; nullopt when periodic work is due.
  std::optional<LoopMessage> AwaitMessage();
  // Each handler returns the exit status if the executor must end.
  std::optional<ExitStatus> Handle(LoopMessage message);
  std::optional<ExitStatus> OnOperation(v1::DaemonMessage operation);
  // Whether the operation may run beside the session's others, on the loop's thread: the begin of a
  // lease takes no time, and nobody waits for a rest that nobody needs.
  bool GoesAtOnce(const v1::DaemonMessage& operation) const;
  std::optional<ExitStatus> OnEarlyAnswer(const EarlyAnswer& answer);
  std::optional<ExitStatus> OnResult(const OperationOutcome& result);
  std::optional<ExitStatus> OnLost(const ContextLost& lost);
  std::optional<ExitStatus> OnArrived(const LoopArrival& arrival);
  std::optional<ExitStatus> OnIdleStepDone(const IdleStepDone& step);
  std::optional<ExitStatus> OnGone(const DaemonGone& gone);
  std::optional<ExitStatus> OnBack();
  // Runs when no message came in time: watches active sessions, or starts a step of an idle task.
  std::optional<ExitStatus> OnSilence();
  // Returns when the task may take a step, if nothing happens until then; TimePoint::max(): never.
  TimePoint DueTime(const IdleSlot& slot) const;
  // Asks the driver whether the context is intact; if not, `suspect` is to blame, or without one
  // the session that holds a lease.
  std::optional<ExitStatus> Watch(SessionId suspect = {});
  // Once no work runs: answers a shutdown, or registers with the next torpord.
  std::optional<ExitStatus> Settle();
  // The process is to live on when torpord ends.
  void Outlive(const v1::DaemonMessage& operation);
  // Hands the operation to a worker; the lane must be idle.
  void Dispatch(Lane& lane, v1::DaemonMessage operation);
  // Reports the result to torpord, with the session's memory and the GPU's free memory.
  void Answer(const OperationOutcome& result);
  void SetFree(v1::MemoryUse& memory);
  // Tells torpord how much of the GPU's memory is free, if that has changed since last told.
  void ReportFree();

  const OperationEnvironment environment_;
  DaemonUplink& uplink_;
  const Clock& clock_;
  Mailbox<LoopMessage> mailbox_{kMailboxCapacity};
  Mailbox<Work> work_{kMailboxCapacity};
  std::atomic<bool> is_wanted_{false};  // an operation waits for the idle step
  std::vector<std::thread> workers_;

  // Used only by the loop's thread.
  std::map<SessionId, Lane> lanes_;
  std::size_t running_ = 0;
  TimePoint busy_until_{};  // last time with work to do
  std::vector<IdleSlot> idle_;
  bool is_in_idle_step_ = false;
  std::vector<v1::DaemonMessage> held_;  // operations held until the step has ended
  Bytes free_told_ = 0;                  // free and fragmented bytes as torpord knows them
  Bytes fragmented_told_ = 0;
  std::optional<std::uint64_t> shutdown_operation_;
  enum class Daemon {
    kServed,
    kGone,     // leases go on
    kLeft,     // another one listens; sessions are being closed
    kAwaited,  // the executor has registered there
  } daemon_ = Daemon::kServed;
  Duration patience_{};  // to wait for the next torpord; 0: the executor ends with its torpord
  CUstream watch_stream_ = nullptr;
  CUevent watch_event_ = nullptr;
};

}  // namespace torpor::executor
