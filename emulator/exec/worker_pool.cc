#include "emulator/exec/worker_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "emulator/exec/block_runner.h"
#include "emulator/exec/fault_handler.h"

namespace torpor::emulator {
namespace {

unsigned UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace

// Never destroyed: its threads live as long as the process.
WorkerPool& WorkerPool::Instance() {
  static WorkerPool* const pool = new WorkerPool();
  return *pool;
}

WorkerPool::WorkerPool() : workers_(UsableCores()) {
  InstallFaultHandler();
  // Signals for the process are its own threads' business.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (unsigned i = 0; i < workers_; ++i) std::thread([this] { Work(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void WorkerPool::Run(const std::shared_ptr<KernelJob>& job) {
  std::unique_lock lock(mutex_);
  jobs_.push_back(job);
  if (job->blocks() == 1 || job->config.cooperative) {
    work_.notify_one();
  } else {
    work_.notify_all();
  }
  done_.wait(lock, [&] { return job->finished_blocks == job->blocks(); });
}

bool WorkerPool::HasMore(const KernelJob& job) const { return job.next_block < job.blocks(); }

void WorkerPool::Work() {
  InstallSignalStack();
  BlockRunner runner;
  for (;;) {
    std::shared_ptr<KernelJob> job;
    {
      std::unique_lock lock(mutex_);
      work_.wait(lock, [&] {
        while (!jobs_.empty() && !HasMore(*jobs_.front())) jobs_.pop_front();
        return !jobs_.empty();
      });
      job = jobs_.front();
      // Blocks that may wait for each other stay on one thread; two such jobs could otherwise
      // each hold threads that the other needs.
      if (job->config.cooperative) {
        job->next_block = job->blocks();
        jobs_.pop_front();
      }
    }
    RunBlocks(runner, *job);
  }
}

void WorkerPool::RunBlocks(BlockRunner& runner, KernelJob& job) {
  const bool prepared = runner.Prepare(job);
  if (job.config.cooperative) {
    if (prepared) runner.RunAllBlocks();
    return Account(job, job.blocks());
  }
  const std::uint64_t total = job.blocks();
  const std::uint64_t chunk =
      std::clamp<std::uint64_t>(total / (std::uint64_t{workers_} * 8), 1, 64);
  for (;;) {
    const std::uint64_t first = job.next_block.fetch_add(chunk);
    if (first >= total) return;
    const std::uint64_t end = std::min(total, first + chunk);
    for (std::uint64_t block = first; block < end && !job.failed; ++block) runner.RunBlock(block);
    Account(job, end - first);
  }
}

void WorkerPool::Account(KernelJob& job, std::uint64_t blocks) {
  if (job.finished_blocks.fetch_add(blocks) + blocks < job.blocks()) return;
  const std::lock_guard lock(mutex_);
  done_.notify_all();
}

}  // namespace torpor::emulator
