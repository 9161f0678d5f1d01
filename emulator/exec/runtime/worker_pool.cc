#include "emulator/exec/runtime/worker_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <csignal>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "emulator/exec/runtime/fault_handler.h"
#include "emulator/exec/runtime/kernel_thread.h"

namespace torpor::emulator {
namespace {

// Duration of a grid from which waking helpers pays: twice the measured cost of waking a helper.
constexpr Duration kWorthHelp = std::chrono::microseconds(40);

unsigned UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
}

// BlockRunner::Prepare, with std::bad_alloc as a failure of the job.
bool PrepareRunner(BlockRunner& runner, KernelJob& job) {
  try {
    return runner.Prepare(job);
  } catch (const std::bad_alloc&) {
    job.progress.Fail({ExecError::kOutOfMemory, "no memory for the blocks of " + job.kernel});
    return false;
  }
}

bool HasMore(const KernelJob& job) { return job.progress.next_cluster < job.shape.clusters(); }

}  // namespace

// Never destroyed, as the threads live as long as the process.
WorkerPool& WorkerPool::Instance() {
  static WorkerPool* const pool = new WorkerPool();
  return *pool;
}

WorkerPool::WorkerPool() : cores_(UsableCores()) {
  InstallFaultHandler();
  // Signals for the process go to the application's threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  StartHelpers();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void WorkerPool::StartHelpers() {
  try {
    for (unsigned i = 1; i < cores_; ++i) StartKernelThread([this] { Help(); });
  } catch (const std::system_error&) {
    // The system denies more threads: the existing threads do the work.
  }
}

// A cooperative grid is shared out evenly, as all blocks must be resident.
void WorkerPool::Run(KernelJob& job) {
  InstallSignalStack();
  std::unique_ptr<BlockRunner> runner = TakeRunner();
  if (job.shape.config.cooperative)
    job.schedule.share = (job.shape.clusters() + cores_ - 1) / cores_;
  job.schedule.start = std::chrono::steady_clock::now();
  if (PrepareRunner(*runner, job)) {
    RunShared(*runner, job);
  }
  ReturnRunner(std::move(runner));
}

// Calls helpers at once, or as soon as the grid has lasted longer than waking helpers takes.
void WorkerPool::RunShared(BlockRunner& runner, KernelJob& job) {
  const auto clusters = static_cast<std::int64_t>(job.shape.clusters());
  const bool known = job.schedule.cluster_time != Duration{};
  bool alone = clusters == 1 || (known && job.schedule.cluster_time * clusters < kWorthHelp);
  if (!alone) CallHelpers(job);
  const TimePoint start = std::chrono::steady_clock::now();
  Duration spent = {};
  std::int64_t done = 0;
  while (const std::int64_t some = RunSome(runner, job)) {
    done += some;
    spent = std::chrono::steady_clock::now() - start;
    // Slower than last time.
    if (!alone || spent < kWorthHelp || !HasMore(job)) continue;
    CallHelpers(job);
    alone = false;
  }
  if (!alone) DismissHelpers(job);
  if (done != 0) job.schedule.cluster_time = std::max(spent / done, Duration{1});
}

// Chunks are an eighth of a core's share at most, so that cores finish together.
std::int64_t WorkerPool::RunSome(BlockRunner& runner, KernelJob& job) const {
  const std::uint64_t total = job.shape.clusters();
  const std::uint64_t max_chunk = job.schedule.blocks_wait ? 1 : 64;
  const std::uint64_t chunk =
      std::clamp<std::uint64_t>(total / (std::uint64_t{cores_} * 8), 1, max_chunk);
  const std::uint64_t first = job.progress.next_cluster.fetch_add(chunk);
  if (first >= total) return 0;
  const std::uint64_t end = std::min(total, first + chunk);
  runner.RunClusters(first, end);
  return static_cast<std::int64_t>(end - first);
}

void WorkerPool::CallHelpers(KernelJob& job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(&job);
  }
  work_.notify_all();
}

void WorkerPool::DismissHelpers(KernelJob& job) {
  std::unique_lock lock(mutex_);
  std::erase(jobs_, &job);
  done_.wait(lock, [&] { return job.progress.helpers == 0; });
}

// Body of a helper: waits for jobs with blocks left, and runs blocks.
void WorkerPool::Help() {
  InstallSignalStack();
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] {
      std::erase_if(jobs_, [](const KernelJob* job) { return !HasMore(*job); });
      return !jobs_.empty();
    });
    KernelJob& job = *jobs_.front();
    ++job.progress.helpers;
    lock.unlock();
    std::unique_ptr<BlockRunner> runner = TakeRunner();
    if (PrepareRunner(*runner, job)) {
      while (RunSome(*runner, job) != 0) {
      }
    }
    ReturnRunner(std::move(runner));
    lock.lock();
    if (--job.progress.helpers == 0) done_.notify_all();
  }
}

std::unique_ptr<BlockRunner> WorkerPool::TakeRunner() {
  const std::lock_guard lock(mutex_);
  if (idle_runners_.empty()) return std::make_unique<BlockRunner>();
  std::unique_ptr<BlockRunner> runner = std::move(idle_runners_.back());
  idle_runners_.pop_back();
  return runner;
}

void WorkerPool::ReturnRunner(std::unique_ptr<BlockRunner> runner) {
  const std::lock_guard lock(mutex_);
  idle_runners_.push_back(std::move(runner));
}

}  // namespace torpor::emulator
