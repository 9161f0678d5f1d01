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
#include "server/links/links.h"

namespace torpor::server {

// How an operation of an executor ended.
struct OperationResult {
  absl::Status status;
  bool is_executor_lost = false;  // it died before it answered; `status` is Unavailable
  memory::MovedBytes to_host;
  bool has_more = false;  // a write-back of a part has left some
  memory::MovedBytes from_peer;
  Duration duration{};
  v1::Learned learned;

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

// Device memory as an executor has told of it.
struct DeviceMemory {
  struct Session {
    Bytes used = 0;  // its resident allocations
    Bytes held = 0;  // the physical memory that is kept for them
  };
  std::map<SessionId, Session> sessions;  // those that hold some
  Bytes free = 0;                         // held by no session
  Bytes fragmented = 0;                   // of it: not in one piece with the rest
};

// The controller's picture of one GPU's executor, over all its lives. On the controller's thread.
class Executor {
 public:
  enum class State {
    kAbsent,      // not started yet, or dead and not restarted yet
    kStarting,    // the process runs, but has not registered
    kRecovering,  // learns of the sessions
    kReady,
  };
  using OnDone = std::function<void(const OperationResult&)>;

  explicit Executor(GpuIndex gpu) : gpu_(gpu) {}

  // A process with this epoch is about to be started.
  void OnStarting(std::uint64_t epoch);
  void OnRegistered(std::shared_ptr<ExecutorLink> link, const v1::ExecutorMessage::Register& what);
  void OnRecovered() { state_ = State::kReady; }

  // Sends an operation; its id is filled in. `done` comes later, never from inside. Must be
  // attached.
  void Start(v1::DaemonMessage operation, TimePoint now, OnDone done);
  void OnOperationDone(const v1::ExecutorMessage::OperationDone& answer);
  void OnMemory(const v1::MemoryUse& use);
  // `done` comes when the process has gone. Must be attached.
  void AwaitLoss(TimePoint now, OnDone done);

  // The process has gone, or is as good as gone. Gives what it left unanswered.
  std::map<std::uint64_t, OnDone> OnLost();

  // When the operation was sent that waits longest for its answer.
  TimePoint oldest_operation() const;

  GpuIndex gpu() const { return gpu_; }
  State state() const { return state_; }
  bool is_attached() const { return link_ != nullptr; }
  const std::shared_ptr<ExecutorLink>& link() const { return link_; }
  std::uint64_t epoch() const { return epoch_; }
  std::uint64_t starts() const { return starts_; }
  // As registered; of the last life while there is none.
  const v1::ExecutorMessage::Register& registration() const { return registration_; }
  // As it has told last; nothing while there is no process.
  const DeviceMemory& memory() const { return memory_; }

 private:
  struct Pending {
    TimePoint since;
    OnDone done;
  };

  const GpuIndex gpu_;
  State state_ = State::kAbsent;
  std::uint64_t epoch_ = 0;
  std::uint64_t starts_ = 0;
  std::shared_ptr<ExecutorLink> link_;
  v1::ExecutorMessage::Register registration_;
  DeviceMemory memory_;
  std::uint64_t next_operation_ = 1;
  std::map<std::uint64_t, Pending> pending_;
};

}  // namespace torpor::server
