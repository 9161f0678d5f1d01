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

// Runs grids: on the thread that launches, and on helpers, one for each further core that the
// process may use. Waking a helper costs tens of microseconds, so a grid that takes less, as its
// kernel's last launch tells, has none. Helpers start with the first launch and never stop; a
// process that may not make so many threads has fewer.
// Thread-safe.
class WorkerPool {
 public:
  static WorkerPool& Instance();

  // Runs all blocks of the job; returns when they are done or abandoned.
  void Run(KernelJob& job);

 private:
  WorkerPool();
  void StartHelpers();
  void RunShared(BlockRunner& runner, KernelJob& job);
  // A part of the blocks that are left; returns how many.
  std::int64_t RunSome(BlockRunner& runner, KernelJob& job) const;
  void CallHelpers(KernelJob& job);
  void DismissHelpers(KernelJob& job);
  void Help();

  // Runners keep memory and stacks, so there are no more than launches and helpers at a time.
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
