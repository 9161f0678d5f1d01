#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>

#include "emulator/exec/kernel_job.h"

namespace torpor::emulator {

// The process' kernel threads, one for each core it may use. Started by the first launch, never
// stopped. Thread-safe.
class WorkerPool {
 public:
  static WorkerPool& Instance();

  // Runs all blocks of the job; returns when they are done or abandoned.
  void Run(const std::shared_ptr<KernelJob>& job);

 private:
  WorkerPool();
  void Work();
  bool HasMore(const KernelJob& job) const;
  void RunBlocks(class BlockRunner& runner, KernelJob& job);
  void Account(KernelJob& job, std::uint64_t blocks);

  unsigned workers_ = 0;
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable done_;
  std::deque<std::shared_ptr<KernelJob>> jobs_;  // guarded by mutex_
};

}  // namespace torpor::emulator
