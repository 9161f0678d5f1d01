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

// The executors of all GPUs of the node, and the operations sent to them. On the controller's
// thread; never blocks.
class ExecutorTable {
 public:
  // `loop` and `processes` must outlive the table.
  ExecutorTable(const std::vector<GpuIndex>& gpus, TaskLoop& loop, ExecutorProcesses& processes);

  // The node serves `gpu`.
  GpuExecutor& At(GpuIndex gpu) { return executors_.at(gpu); }
  const GpuExecutor& At(GpuIndex gpu) const { return executors_.at(gpu); }
  // Returns null if the node does not serve `gpu`.
  GpuExecutor* Find(GpuIndex gpu);
  bool Serves(GpuIndex gpu) const { return executors_.count(gpu) > 0; }

  auto begin() { return executors_.begin(); }
  auto end() { return executors_.end(); }
  auto begin() const { return executors_.begin(); }
  auto end() const { return executors_.end(); }

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
  void Run(GpuIndex gpu, v1::DaemonMessage operation, GpuExecutor::OnDone done);
  // Sends to all attached executors of `gpus`. Calls `then` with the first failure when all have
  // answered. A death is no failure, since the successor learns the whole state.
  void RunOn(const std::set<GpuIndex>& gpus, const v1::DaemonMessage& operation,
             std::function<void(absl::Status)> then);
  void RunOnAll(const v1::DaemonMessage& operation, std::function<void(absl::Status)> then);

  // --- Ends ---
  // Ends the executor's process if it still runs.
  void EndProcess(GpuIndex gpu) { processes_.Kill(gpu, At(gpu).epoch()); }
  // Logs `why` and ends the executor's process. The loss is noticed later.
  void Kill(GpuIndex gpu, const std::string& why);
  // Kills an attached executor; calls `gone` when the loss has been noticed.
  void KillAndAwait(GpuIndex gpu, const std::string& why, GpuExecutor::OnDone gone);
  // Calls `gone` when an attached executor, already ending, is lost.
  void AwaitLoss(GpuIndex gpu, GpuExecutor::OnDone gone);
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
  bool ReachesAll(const GpuExecutor& executor) const;

  TaskLoop& loop_;
  ExecutorProcesses& processes_;
  std::map<GpuIndex, GpuExecutor> executors_;
  std::map<const ExecutorChannel*, GpuIndex> by_link_;
};

}  // namespace torpor::server
