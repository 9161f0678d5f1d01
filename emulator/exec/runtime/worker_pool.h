#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "emulator/exec/runtime/block_runner.h"
#include "emulator/exec/runtime/kernel_job.h"

namespace torpor::emulator {

// Runs grids on the launching thread and on helpers, one for each additional core of the process.
// Waking a helper costs tens of microseconds, so short grids (by the time of the kernel's last
// launch) run without helpers. Helpers start with the first launch and never stop; there are fewer
// if the system denies threads. Thread-safe.
class WorkerPool {
 public:
  static WorkerPool& Instance();

  // Runs all blocks of the job; returns when all are done or abandoned.
  void Run(KernelJob& job);

 private:
  WorkerPool();
  void StartHelpers();
  void RunShared(BlockRunner& runner, KernelJob& job);
  // Runs a part of the remaining clusters; returns the number of clusters run.
  std::int64_t RunSome(BlockRunner& runner, KernelJob& job) const;
  void CallHelpers(KernelJob& job);
  void DismissHelpers(KernelJob& job);
  void Help();

  // Runners keep memory and stacks, so idle runners are used again.
  std::unique_ptr<BlockRunner> TakeRunner();
  void ReturnRunner(std::unique_ptr<BlockRunner> runner);

  unsigned cores_ = 0;
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable done_;
  std::deque<KernelJob*> jobs_;  // that have called helpers; guarded by mutex_
  std::vector<std::unique_ptr<BlockRunner>> idle_runners_;  // guarded by mutex_
};

}  // namespace torpor::emulator
