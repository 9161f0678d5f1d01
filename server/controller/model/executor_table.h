#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/ids.h"
#include "server/controller/model/gpu_executor.h"
#include "server/controller/model/task_loop.h"
#include "server/links/links.h"
#include "server/supervisor/executor_processes.h"

namespace torpor::server {

// The executors of the node's GPUs, and the operations sent to them. A GPU has one executor at the
// start, and another for each further domain. On the controller's thread; never blocks.
class ExecutorTable {
 public:
  // `loop` and `processes` must outlive the table.
  ExecutorTable(const std::vector<GpuIndex>& gpus, TaskLoop& loop, ExecutorProcesses& processes);

  bool Serves(GpuIndex gpu) const { return executors_.contains(gpu); }
  // In the order of GPUs.
  const std::vector<GpuIndex>& gpus() const { return gpus_; }

  // --- Seats, in their order ---
  auto begin() { return executors_.begin(); }
  auto end() { return executors_.end(); }
  auto begin() const { return executors_.begin(); }
  auto end() const { return executors_.end(); }
  // The seat is there.
  GpuExecutor& At(ExecutorSeat seat) { return executors_.at(seat); }
  const GpuExecutor& At(ExecutorSeat seat) const { return executors_.at(seat); }
  // Returns null if there is no such seat.
  GpuExecutor* Find(ExecutorSeat seat);
  // Returns the executor; of no domain yet, and without a process before this is asked for.
  GpuExecutor& AddSeat(GpuIndex gpu);
  std::vector<GpuExecutor*> On(GpuIndex gpu);
  std::vector<const GpuExecutor*> On(GpuIndex gpu) const;
  // Returns null if no process that this torpord expects has such a registration.
  GpuExecutor* Expecting(const v1::ExecutorMessage::Register& what);

  // --- Domains ---
  // Returns the domain's executor on the GPU; null if there is none.
  GpuExecutor* Of(ExecutorKey key);
  const GpuExecutor* Of(ExecutorKey key) const;
  bool IsAttached(ExecutorKey key) const;
  // Returns the epoch of the executor's latest process; 0 without an executor.
  std::uint64_t EpochOf(ExecutorKey key) const;
  // Returns the registration of the executor's present or latest process, or an empty one.
  const v1::ExecutorMessage::Register& RegistrationOf(ExecutorKey key) const;

  // --- GPUs ---
  // Returns the registration of any process of the GPU, or an empty one: all describe the GPU.
  const v1::ExecutorMessage::Register& RegistrationOf(GpuIndex gpu) const;
  bool HasRegistered(GpuIndex gpu) const { return RegistrationOf(gpu).pool_bytes() > 0; }
  bool HasAttached(GpuIndex gpu) const;
  bool IsReady(GpuIndex gpu) const;
  // Notes whether the scheduler takes the GPU for up. Returns false if that is no news.
  bool SetUp(GpuIndex gpu, bool is_up);

  // --- Streams ---
  void Attach(GpuExecutor& executor, const std::shared_ptr<ExecutorChannel>& link,
              const v1::ExecutorMessage::Register& what);
  // Returns null if the stream belongs to no attached executor.
  GpuExecutor* OfLink(const std::shared_ptr<ExecutorChannel>& link);
  // Forgets the stream. Returns unanswered operations; see GpuExecutor::OnLost.
  std::map<std::uint64_t, GpuExecutor::OnDone> Detach(GpuExecutor& executor);

  // --- Operations ---
  // Sends `operation` to one executor. Calls `done` later, never from inside; with
  // OperationResult::Lost if the executor is not attached or dies first.
  void Run(ExecutorKey key, v1::DaemonMessage operation, GpuExecutor::OnDone done);
  // Sends to all attached executors on `gpus`, or of the domain. Call `then` with the first failure
  // when all have answered. A death is no failure, since the successor learns the whole state.
  void RunOn(const std::set<GpuIndex>& gpus, const v1::DaemonMessage& operation,
             std::function<void(absl::Status)> then);
  void RunOnAll(DomainId domain, const v1::DaemonMessage& operation,
                std::function<void(absl::Status)> then);
  // Returns the domain's attached executors.
  std::vector<ExecutorKey> AttachedOf(DomainId domain) const;

  // --- Ends ---
  // Ends the executor's process if it still runs.
  void EndProcess(const GpuExecutor& executor) {
    processes_.Kill(executor.gpu(), executor.epoch());
  }
  // As EndProcess, for no fault of the process.
  void ReplaceProcess(const GpuExecutor& executor) {
    processes_.Replace(executor.gpu(), executor.epoch());
  }
  // Logs `why` and ends the process of an executor that is there. The loss is noticed later.
  void Kill(ExecutorKey key, const std::string& why);
  // Kills an attached executor; calls `gone` when the loss has been noticed.
  void KillAndAwait(ExecutorKey key, const std::string& why, GpuExecutor::OnDone gone);
  // Calls `gone` when an attached executor, already ending, is lost.
  void AwaitLoss(ExecutorKey key, GpuExecutor::OnDone gone);
  // Kills every executor with an operation unanswered for longer than `patience`.
  void KillHanging(Duration patience);

  // --- All of them ---
  bool IsAnyReady() const;
  // Size in bytes of the largest registered pool, rounded down to chunks; 0 before any
  // registration.
  Bytes LargestPool(Bytes chunk_bytes) const;
  // Whether all registered GPUs can map each other's memory.
  bool HasPeerAccess() const;

 private:
  void RunOnThese(const std::vector<ExecutorKey>& keys, const v1::DaemonMessage& operation,
                  std::function<void(absl::Status)> then);
  bool ReachesAll(GpuIndex gpu) const;

  const std::vector<GpuIndex> gpus_;
  TaskLoop& loop_;
  ExecutorProcesses& processes_;
  std::map<ExecutorSeat, GpuExecutor> executors_;
  std::map<const ExecutorChannel*, ExecutorSeat> by_link_;
  std::set<GpuIndex> up_;
};

}  // namespace torpor::server
