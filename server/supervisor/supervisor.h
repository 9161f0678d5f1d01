#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
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
#include "server/supervisor/executor_killer.h"
#include "server/supervisor/restart_pauses.h"

namespace torpor::server {

// Observes executors' processes. Called on the supervisor's thread; must not call back into the
// supervisor.
class ProcessListener {
 public:
  virtual ~ProcessListener() = default;
  // A process with `epoch` is about to start.
  virtual void OnExecutorStarting(GpuIndex gpu, std::uint64_t epoch) = 0;
  // A process that an earlier torpord has started goes on, with `epoch` from now on.
  virtual void OnExecutorAdopted(GpuIndex gpu, std::uint64_t epoch, pid_t process) = 0;
  // `signal`: ended the process; 0 if no signal did, or nobody knows.
  virtual void OnExecutorExited(GpuIndex gpu, std::uint64_t epoch, int signal) = 0;
};

// Keeps one executor process alive for each GPU. Restarts a process that has ended: at once the
// first time, then after ever longer pauses. No process outlives the supervisor, unless left.
// Thread-safe.
class Supervisor final : public ExecutorKiller {
 public:
  struct Options {
    std::vector<GpuIndex> gpus;
    std::function<ProcessCommand(GpuIndex gpu, std::uint64_t epoch)> command;
    RestartPauses::Options pauses;
    // Processes of an earlier torpord to go on with, in place of new ones.
    std::map<GpuIndex, ProcessIdentity> adopted;
  };

  // `listener` must outlive the supervisor.
  Supervisor(Options options, ProcessListener& listener);
  ~Supervisor() override;  // Stop(0)

  void Kill(GpuIndex gpu, std::uint64_t epoch) override;

  // Whether `pid` is a running executor's.
  bool IsExecutor(pid_t pid) const;

  // Stops restarting. Waits until all processes have ended by themselves; kills the rest after
  // `grace`. Idempotent.
  void Stop(Duration grace);

  // Stops, and leaves to the next torpord the processes that outlive this torpord.
  void Leave();

 private:
  struct Slot {
    std::unique_ptr<ChildProcess> process;
    std::uint64_t epoch = 0;
    TimePoint started;
    TimePoint next_start;
    RestartPauses pauses;
  };

  void Run();
  void TellAdopted();
  // Waits for an end, a stop or the next start.
  void Wait();
  void StartDue();
  void Start(GpuIndex gpu);
  void ReapEnded();
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
