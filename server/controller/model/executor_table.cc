#include "server/controller/model/executor_table.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "server/controller/model/join.h"

namespace torpor::server {

ExecutorTable::ExecutorTable(const std::vector<GpuIndex>& gpus, TaskLoop& loop,
                             ExecutorProcesses& processes)
    : loop_(loop), processes_(processes) {
  for (const GpuIndex gpu : gpus) executors_.try_emplace(gpu, gpu);
}

GpuExecutor* ExecutorTable::Find(GpuIndex gpu) {
  const auto executor = executors_.find(gpu);
  return executor == executors_.end() ? nullptr : &executor->second;
}

void ExecutorTable::Attach(GpuExecutor& executor, const std::shared_ptr<ExecutorChannel>& link,
                           const v1::ExecutorMessage::Register& what) {
  by_link_[link.get()] = executor.gpu();
  executor.OnRegistered(link, what);
}

GpuExecutor* ExecutorTable::OfLink(const std::shared_ptr<ExecutorChannel>& link) {
  const auto entry = by_link_.find(link.get());
  if (entry == by_link_.end()) return nullptr;
  GpuExecutor& executor = At(entry->second);
  return executor.link() == link ? &executor : nullptr;
}

std::map<std::uint64_t, GpuExecutor::OnDone> ExecutorTable::Detach(GpuExecutor& executor) {
  by_link_.erase(executor.link().get());
  return executor.OnLost();
}

void ExecutorTable::Run(GpuIndex gpu, v1::DaemonMessage operation, GpuExecutor::OnDone done) {
  GpuExecutor& executor = At(gpu);
  if (executor.is_attached()) {
    return executor.Start(std::move(operation), loop_.Now(), std::move(done));
  }
  loop_.Post([done = std::move(done)] { done(OperationResult::Lost()); });
}

void ExecutorTable::RunOn(const std::set<GpuIndex>& gpus, const v1::DaemonMessage& operation,
                          std::function<void(absl::Status)> then) {
  Join join(std::move(then));
  for (const GpuIndex gpu : gpus) {
    if (!At(gpu).is_attached()) continue;
    join.Add();
    Run(gpu, operation,
        [join](const OperationResult& result) { join.Done(result.status_unless_lost()); });
  }
  loop_.Post([join] { join.Done(); });
}

void ExecutorTable::RunOnAll(const v1::DaemonMessage& operation,
                             std::function<void(absl::Status)> then) {
  std::set<GpuIndex> all;
  for (const auto& [gpu, executor] : executors_) all.insert(gpu);
  RunOn(all, operation, std::move(then));
}

void ExecutorTable::Kill(GpuIndex gpu, const std::string& why) {
  spdlog::error("GPU {}: the executor is restarted: {}", gpu.value, why);
  EndProcess(gpu);
}

void ExecutorTable::KillAndAwait(GpuIndex gpu, const std::string& why, GpuExecutor::OnDone gone) {
  Kill(gpu, why);
  AwaitLoss(gpu, std::move(gone));
}

void ExecutorTable::AwaitLoss(GpuIndex gpu, GpuExecutor::OnDone gone) {
  At(gpu).AwaitLoss(loop_.Now(), std::move(gone));
}

void ExecutorTable::KillHanging(Duration patience) {
  for (const auto& [gpu, executor] : executors_) {
    const TimePoint oldest = executor.oldest_operation();
    if (oldest != TimePoint::max() && loop_.Now() - oldest > patience) {
      Kill(gpu, "an operation does not end");
    }
  }
}

bool ExecutorTable::IsAnyReady() const {
  return std::any_of(executors_.begin(), executors_.end(), [](const auto& executor) {
    return executor.second.state() == GpuExecutor::State::kReady;
  });
}

Bytes ExecutorTable::LargestPool(Bytes chunk_bytes) const {
  Bytes largest = 0;
  for (const auto& [gpu, executor] : executors_) {
    largest =
        std::max<Bytes>(largest, RoundDown(executor.registration().pool_bytes(), chunk_bytes));
  }
  return largest;
}

bool ExecutorTable::ReachesAll(const GpuExecutor& executor) const {
  const auto& peers = executor.registration().peers();
  return std::all_of(executors_.begin(), executors_.end(), [&](const auto& other) {
    return !other.second.has_registered() || other.first == executor.gpu() ||
           std::find(peers.begin(), peers.end(), other.first.value) != peers.end();
  });
}

bool ExecutorTable::HasPeerAccess() const {
  return std::all_of(executors_.begin(), executors_.end(), [&](const auto& executor) {
    return !executor.second.has_registered() || ReachesAll(executor.second);
  });
}

}  // namespace torpor::server
