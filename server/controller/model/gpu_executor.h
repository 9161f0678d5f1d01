#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/units.h"
#include "memory/moved_bytes.h"
#include "server/controller/model/executor_key.h"
#include "server/links/links.h"

namespace torpor::server {

// How an operation of an executor ended.
struct OperationResult {
  absl::Status status;
  bool is_executor_lost = false;  // died before answering; `status` is Unavailable
  memory::MovedBytes to_host;
  bool has_more = false;  // a write-back of a part has left some
  memory::MovedBytes from_peer;
  Duration duration{};
  v1::Learned learned;

  // The status, or OK after a loss: for operations whose effect a successor gets anyway.
  absl::Status status_unless_lost() const { return is_executor_lost ? absl::OkStatus() : status; }

  static OperationResult Lost() {
    OperationResult lost;
    lost.status = absl::UnavailableError("the executor has died");
    lost.is_executor_lost = true;
    return lost;
  }
};

inline memory::MovedBytes ToMovedBytes(const v1::MovedBytes& message) {
  return {message.uploaded(), message.changed(), message.scratch()};
}

// Device memory as last reported by an executor.
struct GpuMemoryUse {
  struct Session {
    Bytes used = 0;  // bytes of resident allocations
    Bytes held = 0;  // physical memory reserved for the session
  };
  std::map<SessionId, Session> sessions;  // sessions that hold memory
  Bytes free = 0;                         // held by no session
  Bytes fragmented = 0;                   // part of `free`: not in one piece with the rest
};

// The controller's picture of the executor at one of a GPU's seats, over all lives of the process.
// On the controller's thread.
class GpuExecutor {
 public:
  enum class State {
    kAbsent,      // not started yet, or dead and not restarted yet
    kStarting,    // the process runs, but has not registered
    kRecovering,  // learns of the sessions
    kReady,
  };
  using OnDone = std::function<void(const OperationResult&)>;

  explicit GpuExecutor(ExecutorSeat seat) : seat_(seat) {}

  // The domain whose sessions the executor serves from now on: the first one for the process at
  // this seat, or for the next process.
  void Assign(DomainId domain) { domain_ = domain; }

  // A process with this epoch is about to be started.
  void OnStarting(std::uint64_t epoch);
  // An earlier torpord's process goes on with this epoch; its own number is another one.
  void OnAdopted(std::uint64_t epoch, std::int64_t process);
  // Whether the registration is of the process that was started or adopted last.
  bool Expects(const v1::ExecutorMessage::Register& what) const;
  void OnRegistered(std::shared_ptr<ExecutorChannel> link,
                    const v1::ExecutorMessage::Register& what);
  // Learns of sessions, as after the registration.
  void OnRecovering() { state_ = State::kRecovering; }
  void OnRecovered() { state_ = State::kReady; }

  // Sends an operation with a fresh id. Calls `done` later, never from inside. Must be attached.
  void Start(v1::DaemonMessage operation, TimePoint now, OnDone done);
  void OnOperationDone(const v1::ExecutorMessage::OperationDone& answer, TimePoint now);
  void OnMemory(const v1::MemoryUse& use);
  // `done` comes when the process has gone. Must be attached.
  void AwaitLoss(TimePoint now, OnDone done);

  // The process has gone, or is as good as gone. Returns the callbacks of unanswered operations.
  std::map<std::uint64_t, OnDone> OnLost();

  // Send time of the oldest unanswered operation.
  TimePoint oldest_operation() const;

  ExecutorSeat seat() const { return seat_; }
  GpuIndex gpu() const { return seat_.gpu; }
  // Invalid: serves no domain yet.
  DomainId domain() const { return domain_; }
  ExecutorKey key() const { return {gpu(), domain_}; }
  State state() const { return state_; }
  bool is_attached() const { return link_ != nullptr; }
  const std::shared_ptr<ExecutorChannel>& link() const { return link_; }
  std::uint64_t epoch() const { return epoch_; }
  std::uint64_t starts() const { return starts_; }
  // The registration of the present life, or of the last one.
  const v1::ExecutorMessage::Register& registration() const { return registration_; }
  // Whether any life of the executor has registered.
  bool has_registered() const { return registration_.pool_bytes() > 0; }
  // The last report; empty while no process runs.
  const GpuMemoryUse& memory() const { return memory_; }

 private:
  struct Pending {
    TimePoint since;
    std::string kind;  // of the operation, for the log
    OnDone done;
  };

  const ExecutorSeat seat_;
  DomainId domain_;
  State state_ = State::kAbsent;
  std::uint64_t epoch_ = 0;
  std::int64_t adopted_process_ = 0;  // 0: started by this torpord
  std::uint64_t starts_ = 0;
  std::shared_ptr<ExecutorChannel> link_;
  v1::ExecutorMessage::Register registration_;
  GpuMemoryUse memory_;
  std::uint64_t next_operation_ = 1;
  std::map<std::uint64_t, Pending> pending_;
};

}  // namespace torpor::server
