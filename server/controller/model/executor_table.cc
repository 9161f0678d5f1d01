#include "server/controller/model/executor_table.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "server/controller/model/join.h"

namespace torpor::server {
namespace {

std::vector<GpuIndex> Sorted(std::vector<GpuIndex> gpus) {
  std::ranges::sort(gpus);
  return gpus;
}

}  // namespace

ExecutorTable::ExecutorTable(const std::vector<GpuIndex>& gpus, TaskLoop& loop,
                             ExecutorProcesses& processes)
    : gpus_(Sorted(gpus)), loop_(loop), processes_(processes) {
  for (const ExecutorSeat seat : gpus_) executors_.try_emplace(seat, seat);
}

GpuExecutor* ExecutorTable::Find(ExecutorSeat seat) {
  const auto executor = executors_.find(seat);
  return executor == executors_.end() ? nullptr : &executor->second;
}

GpuExecutor& ExecutorTable::AddSeat(GpuIndex gpu) {
  const ExecutorSeat seat{gpu, static_cast<int>(On(gpu).size())};
  return executors_.try_emplace(seat, seat).first->second;
}

std::vector<GpuExecutor*> ExecutorTable::On(GpuIndex gpu) {
  std::vector<GpuExecutor*> on;
  for (auto at = executors_.lower_bound(gpu); at != executors_.end() && at->first.gpu == gpu; ++at)
    on.push_back(&at->second);
  return on;
}

std::vector<const GpuExecutor*> ExecutorTable::On(GpuIndex gpu) const {
  std::vector<const GpuExecutor*> on;
  for (auto at = executors_.lower_bound(gpu); at != executors_.end() && at->first.gpu == gpu; ++at)
    on.push_back(&at->second);
  return on;
}

GpuExecutor* ExecutorTable::Expecting(const v1::ExecutorMessage::Register& what) {
  for (GpuExecutor* const executor : On(GpuIndex{what.gpu()})) {
    if (executor->Expects(what)) return executor;
  }
  return nullptr;
}

const GpuExecutor* ExecutorTable::Of(ExecutorKey key) const {
  for (const GpuExecutor* const executor : On(key.gpu)) {
    if (executor->domain() == key.domain) return executor;
  }
  return nullptr;
}

GpuExecutor* ExecutorTable::Of(ExecutorKey key) {
  for (GpuExecutor* const executor : On(key.gpu)) {
    if (executor->domain() == key.domain) return executor;
  }
  return nullptr;
}

bool ExecutorTable::IsAttached(ExecutorKey key) const {
  const GpuExecutor* const executor = Of(key);
  return executor != nullptr && executor->is_attached();
}

std::uint64_t ExecutorTable::EpochOf(ExecutorKey key) const {
  const GpuExecutor* const executor = Of(key);
  return executor == nullptr ? 0 : executor->epoch();
}

const v1::ExecutorMessage::Register& ExecutorTable::RegistrationOf(ExecutorKey key) const {
  const GpuExecutor* const executor = Of(key);
  return executor == nullptr ? v1::ExecutorMessage::Register::default_instance()
                             : executor->registration();
}

const v1::ExecutorMessage::Register& ExecutorTable::RegistrationOf(GpuIndex gpu) const {
  for (const GpuExecutor* const executor : On(gpu)) {
    if (executor->has_registered()) return executor->registration();
  }
  return v1::ExecutorMessage::Register::default_instance();
}

bool ExecutorTable::HasAttached(GpuIndex gpu) const {
  return std::ranges::any_of(On(gpu),
                             [](const GpuExecutor* executor) { return executor->is_attached(); });
}

bool ExecutorTable::IsReady(GpuIndex gpu) const {
  return std::ranges::any_of(On(gpu), [](const GpuExecutor* executor) {
    return executor->state() == GpuExecutor::State::kReady;
  });
}

bool ExecutorTable::SetUp(GpuIndex gpu, bool is_up) {
  return is_up ? up_.insert(gpu).second : up_.erase(gpu) > 0;
}

void ExecutorTable::Attach(GpuExecutor& executor, const std::shared_ptr<ExecutorChannel>& link,
                           const v1::ExecutorMessage::Register& what) {
  by_link_[link.get()] = executor.seat();
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

void ExecutorTable::Run(ExecutorKey key, v1::DaemonMessage operation, GpuExecutor::OnDone done) {
  GpuExecutor* const executor = Of(key);
  if (executor && executor->is_attached()) {
    return executor->Start(std::move(operation), loop_.Now(), std::move(done));
  }
  loop_.Post([done = std::move(done)] { done(OperationResult::Lost()); });
}

void ExecutorTable::RunOn(const std::set<GpuIndex>& gpus, const v1::DaemonMessage& operation,
                          std::function<void(absl::Status)> then) {
  std::vector<ExecutorKey> attached;
  for (const auto& [seat, executor] : executors_) {
    if (gpus.contains(seat.gpu) && executor.is_attached()) attached.push_back(executor.key());
  }
  RunOnThese(attached, operation, std::move(then));
}

void ExecutorTable::RunOnAll(DomainId domain, const v1::DaemonMessage& operation,
                             std::function<void(absl::Status)> then) {
  RunOnThese(AttachedOf(domain), operation, std::move(then));
}

void ExecutorTable::RunOnThese(const std::vector<ExecutorKey>& keys,
                               const v1::DaemonMessage& operation,
                               std::function<void(absl::Status)> then) {
  Join join(std::move(then));
  join.Add(keys.size());
  for (const ExecutorKey key : keys) {
    Run(key, operation,
        [join](const OperationResult& result) { join.Done(result.status_unless_lost()); });
  }
  loop_.Post([join] { join.Done(); });
}

std::vector<ExecutorKey> ExecutorTable::AttachedOf(DomainId domain) const {
  std::vector<ExecutorKey> attached;
  for (const GpuIndex gpu : gpus_) {
    if (IsAttached({gpu, domain})) attached.push_back({gpu, domain});
  }
  return attached;
}

void ExecutorTable::Kill(ExecutorKey key, const std::string& why) {
  const GpuExecutor* const executor = Of(key);
  if (executor == nullptr) return;
  spdlog::error("GPU {}: the executor is restarted: {}", key.gpu.value, why);
  EndProcess(*executor);
}

void ExecutorTable::KillAndAwait(ExecutorKey key, const std::string& why,
                                 GpuExecutor::OnDone gone) {
  Kill(key, why);
  AwaitLoss(key, std::move(gone));
}

void ExecutorTable::AwaitLoss(ExecutorKey key, GpuExecutor::OnDone gone) {
  GpuExecutor* const executor = Of(key);
  TORPOR_CHECK(executor != nullptr);
  executor->AwaitLoss(loop_.Now(), std::move(gone));
}

void ExecutorTable::KillHanging(Duration patience) {
  for (const auto& [seat, executor] : executors_) {
    const TimePoint oldest = executor.oldest_operation();
    if (oldest != TimePoint::max() && loop_.Now() - oldest > patience) {
      Kill(executor.key(), "an operation does not end");
    }
  }
}

bool ExecutorTable::IsAnyReady() const {
  return std::ranges::any_of(gpus_, [this](GpuIndex gpu) { return IsReady(gpu); });
}

Bytes ExecutorTable::LargestPool(Bytes chunk_bytes) const {
  Bytes largest = 0;
  for (const GpuIndex gpu : gpus_) {
    largest = std::max<Bytes>(largest, RoundDown(RegistrationOf(gpu).pool_bytes(), chunk_bytes));
  }
  return largest;
}

bool ExecutorTable::ReachesAll(GpuIndex gpu) const {
  const auto& peers = RegistrationOf(gpu).peers();
  return std::ranges::all_of(gpus_, [&](GpuIndex other) {
    return !HasRegistered(other) || other == gpu ||
           std::find(peers.begin(), peers.end(), other.value) != peers.end();
  });
}

bool ExecutorTable::HasPeerAccess() const {
  return std::ranges::all_of(
      gpus_, [this](GpuIndex gpu) { return !HasRegistered(gpu) || ReachesAll(gpu); });
}

}  // namespace torpor::server
