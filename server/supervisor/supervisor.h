#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "server/supervisor/child_process.h"
#include "server/supervisor/executor_processes.h"
#include "server/supervisor/gpu_processes.h"
#include "server/supervisor/restart_pauses.h"

namespace torpor::server {

// Observes executors' processes. Called on the supervisor's thread; must not call back into the
// supervisor.
class ProcessListener {
 public:
  virtual ~ProcessListener() = default;
  // The process with `epoch` is the executor at this seat from now on: a process about to start, or
  // the spare.
  virtual void OnExecutorStarting(ExecutorSeat seat, std::uint64_t epoch) = 0;
  // A process that an earlier torpord has started goes on, with `epoch` from now on.
  virtual void OnExecutorAdopted(ExecutorSeat seat, std::uint64_t epoch, pid_t process) = 0;
  // `signal`: ended the process; 0 if no signal did, or nobody knows.
  virtual void OnExecutorExited(ExecutorSeat seat, std::uint64_t epoch, pid_t process,
                                int signal) = 0;

  virtual void OnSpareStarting(GpuIndex gpu, std::uint64_t epoch) = 0;
  virtual void OnSpareAdopted(GpuIndex gpu, std::uint64_t epoch, pid_t process) = 0;
  virtual void OnSpareExited(GpuIndex gpu, std::uint64_t epoch) = 0;
};

// Keeps an executor process alive at each wanted seat of each GPU and, where wanted, the process
// that owns the GPU's memory, and a spare executor. When an executor has ended, the spare takes the
// seat at once, as a newly wanted one; without a spare another process is started, at once the
// first time, then after ever longer pauses. The end of the memory's owner ends the GPU's executors
// before another owner is started. No process outlives the supervisor, unless left. Thread-safe.
class Supervisor final : public ExecutorProcesses {
 public:
  struct Options {
    std::vector<GpuIndex> gpus;
    std::function<ProcessCommand(GpuIndex gpu, std::uint64_t epoch, int place)> executor_command;
    // Null: executors own the GPUs' memory, one a GPU, and have no spares.
    std::function<ProcessCommand(GpuIndex gpu)> pool_owner_command;
    bool keeps_spares = true;  // where the memory has an owner
    RestartPauses::Options pauses;
    // Nobody waits for a spare, and a GPU may have no room for one.
    RestartPauses::Options spare_pauses{.longest = std::chrono::minutes(1)};
    // From KeepSpare to the spare's start: functions that have lost their GPU come first.
    Duration spare_delay{std::chrono::milliseconds(250)};
    // Processes of an earlier torpord to go on with, in place of new ones.
    std::map<GpuIndex, GpuProcesses> adopted;
  };

  // `listener` must outlive the supervisor.
  Supervisor(Options options, ProcessListener& listener);
  ~Supervisor() override;  // Stop(0)

  void Kill(GpuIndex gpu, std::uint64_t epoch) override;
  void Replace(GpuIndex gpu, std::uint64_t epoch) override;
  void KeepSpare(GpuIndex gpu) override;
  void Want(ExecutorSeat seat) override;

  // Whether `pid` is a running executor's, or spare's.
  bool IsExecutor(pid_t pid) const;

  // Stops restarting. Waits until all executors have ended by themselves; kills the rest after
  // `grace`. Idempotent.
  void Stop(Duration grace);

  // Stops, and leaves to the next torpord the processes that outlive this torpord.
  void Leave();

 private:
  // A process that is started again whenever it ends.
  struct Life {
    std::unique_ptr<ChildProcess> process;
    std::uint64_t epoch = 0;
    int place = 0;
    TimePoint started;
    TimePoint next_start;
    RestartPauses pauses;
    // Of the last process.
    pid_t ended = 0;
    int end_signal = 0;
    bool is_replaced = false;

    bool runs() const { return process != nullptr; }
  };
  // The processes of a GPU.
  struct Slot {
    std::map<int, Life> executors;  // by seat
    Life spare;
    Life pool_owner;
    bool keeps_spare = false;

    bool has_executors() const;
    // Calls `with_life` for the executors, the spare and the memory's owner.
    template <typename Do>
    void ForEach(const Do& with_life);
    // Returns the lowest place that no running executor has.
    int FreePlace() const;
  };
  enum class Step { kPromoteSpare, kStartPoolOwner, kStartExecutor, kStartSpare };
  struct DueStep {
    Step step;
    TimePoint when;
    int seat = 0;  // of the executor
  };

  // Kills the executor or spare of this epoch, if it runs.
  void Kill(GpuIndex gpu, std::uint64_t epoch, bool is_replaced);
  Life NewLife(const RestartPauses::Options& pauses) const;
  void Adopt(const GpuProcesses& left, Slot& slot);
  void Run();
  void TellAdopted();
  // Waits for an end, a stop or the next step.
  void Wait();
  // Returns what to do next for a GPU if nothing ends before; nullopt: nothing.
  std::optional<DueStep> NextStep(const Slot& slot) const;
  void TakeDueSteps();
  void Take(const DueStep& due, GpuIndex gpu);
  void PromoteSpare(ExecutorSeat seat);
  void StartExecutor(ExecutorSeat seat);
  void StartSpare(GpuIndex gpu);
  void StartPoolOwner(GpuIndex gpu);
  // Another process is an executor: no spare starts before the GPU is served again. A spare would
  // hold up the executor, and take memory while the memory's owner measures.
  void ExpectKeepSpare(GpuIndex gpu);
  int FreePlace(GpuIndex gpu) const;
  // Has the program run as `life`, of whatever `process` came of the start; without one plans the
  // next attempt.
  void Begin(GpuIndex gpu, Life& life, const char* what, std::uint64_t epoch, int place,
             absl::StatusOr<std::unique_ptr<ChildProcess>> process)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReapEnded();
  // Whether the process has ended; if so, logs why, and plans the next start.
  bool Reap(GpuIndex gpu, const char* what, Life& life) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Once stopping: kills what nobody waits for, and in the end all.
  void KillUseless();
  bool IsDone();

  const Options options_;
  ProcessListener& listener_;
  SteadyClock clock_;
  UniqueFd wake_;
  mutable Mutex mutex_;
  std::map<GpuIndex, Slot> slots_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  TimePoint kill_at_ ABSL_GUARDED_BY(mutex_) = TimePoint::max();
  std::uint64_t next_epoch_;
  std::thread thread_;
};

}  // namespace torpor::server
