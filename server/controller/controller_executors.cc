#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/controller/controller.h"
#include "server/controller/cuda_errors.h"
#include "server/controller/pcie_switch.h"

// Executors: what they are told, how they come and go.
namespace torpor::server {
namespace {

// An operation that takes longer than this: the executor hangs. Above any swap, and above the
// time that an executor itself waits for a session's work to end.
constexpr Duration kOperationTimeout = std::chrono::seconds(90);
constexpr Duration kWatchPeriod = std::chrono::seconds(1);

}  // namespace

Executor* Controller::ExecutorOf(GpuIndex gpu) {
  const auto executor = executors_.find(gpu);
  return executor == executors_.end() ? nullptr : &executor->second;
}

void Controller::Run(GpuIndex gpu, v1::DaemonMessage operation, Executor::OnDone done) {
  Executor& executor = *ExecutorOf(gpu);
  if (executor.is_attached()) {
    return executor.Start(std::move(operation), loop_.Now(), std::move(done));
  }
  loop_.Post([done = std::move(done)] { done(OperationResult::Lost()); });
}

void Controller::RunOnAll(const v1::DaemonMessage& operation,
                          std::function<void(absl::Status)> then) {
  std::set<GpuIndex> all;
  for (const auto& [gpu, executor] : executors_) all.insert(gpu);
  RunOn(all, operation, std::move(then));
}

void Controller::RunOn(const std::set<GpuIndex>& gpus, const v1::DaemonMessage& operation,
                       std::function<void(absl::Status)> then) {
  struct Outcome {
    std::size_t open = 1;
    absl::Status status;
  };
  auto outcome = std::make_shared<Outcome>();
  const auto one_done = [outcome, then = std::move(then)](const OperationResult& result) {
    // One that died learns what it must know when it comes back.
    if (!result.is_executor_lost) outcome->status.Update(result.status);
    if (--outcome->open == 0) then(outcome->status);
  };
  for (const GpuIndex gpu : gpus) {
    if (!ExecutorOf(gpu)->is_attached()) continue;
    ++outcome->open;
    Run(gpu, operation, one_done);
  }
  loop_.Post([one_done] { one_done({}); });
}

void Controller::OnExecutorStarting(GpuIndex gpu, std::uint64_t epoch) {
  Executor* const executor = ExecutorOf(gpu);
  LoseExecutor(*executor, "a successor is started");
  executor->OnStarting(epoch);
  if (!std::exchange(is_watching_, true)) Watch();
}

void Controller::OnExecutorExited(GpuIndex gpu, std::uint64_t epoch) {
  Executor* const executor = ExecutorOf(gpu);
  if (executor->epoch() == epoch) LoseExecutor(*executor, "its process has ended");
}

void Controller::OnExecutorClosed(const std::shared_ptr<ExecutorLink>& link) {
  const auto entry = executor_links_.extract(link.get());
  if (entry.empty()) return;
  Executor* const executor = ExecutorOf(entry.mapped());
  if (executor->link() != link) return;
  // A process without its stream is of no use, even if it still runs.
  if (!is_shut_down_) killer_.Kill(executor->gpu(), executor->epoch());
  LoseExecutor(*executor, "its stream has ended");
}

void Controller::OnExecutorMessage(const std::shared_ptr<ExecutorLink>& link,
                                   const v1::ExecutorMessage& message) {
  if (message.has_register_()) return OnRegister(link, message.register_());
  const auto entry = executor_links_.find(link.get());
  if (entry == executor_links_.end()) return link->Close("an executor registers first");
  Executor& executor = *ExecutorOf(entry->second);
  if (executor.link() != link) return;
  if (message.has_operation_done()) executor.OnOperationDone(message.operation_done());
  if (message.has_context_lost()) OnContextLost(executor, message.context_lost());
  if (message.has_memory_use()) executor.OnMemory(message.memory_use());
  if (message.has_swap_in_complete()) OnSwapInComplete(executor, message.swap_in_complete());
}

void Controller::OnRegister(const std::shared_ptr<ExecutorLink>& link,
                            const v1::ExecutorMessage::Register& what) {
  Executor* const executor = ExecutorOf(GpuIndex{what.gpu()});
  if (!executor || executor->state() != Executor::State::kStarting ||
      executor->epoch() != what.epoch()) {
    return link->Close("not an executor that this torpord started");
  }
  if (what.chunk_bytes() != ChunkBytes() || what.pool_bytes() < ChunkBytes()) {
    spdlog::error("GPU {}: executor offers {} bytes in chunks of {}; {} are configured", what.gpu(),
                  what.pool_bytes(), what.chunk_bytes(), ChunkBytes());
    return link->Close("unusable memory pool");
  }
  executor_links_[link.get()] = executor->gpu();
  executor->OnRegistered(link, what);
  spdlog::info("GPU {}: executor {} registered, {} with {} MiB for images", what.gpu(), what.pid(),
               what.device().name(), what.pool_bytes() / kMiB);
  Recover(*executor);
}

void Controller::Recover(Executor& executor) {
  const GpuIndex gpu = executor.gpu();
  const std::uint64_t epoch = executor.epoch();
  auto open = std::make_shared<std::size_t>(1);
  const auto one_done = [this, gpu, epoch, open] {
    Executor& recovered = *ExecutorOf(gpu);
    const bool is_same =
        recovered.epoch() == epoch && recovered.state() == Executor::State::kRecovering;
    if (--*open == 0 && is_same) OnRecovered(recovered);
  };
  for (const auto& [id, session] : sessions_) {
    if (!session->is_announced) continue;
    const auto told = [this, session = session, gpu, one_done](const OperationResult& result) {
      if (!result.status.ok() && !result.is_executor_lost) {
        CloseSession(session, absl::StrCat("the restarted executor of GPU ", gpu.value,
                                           " cannot open it: ", result.status.ToString()));
      }
      one_done();
    };
    *open += 1 + session->host_blocks.size();
    Run(gpu, OpenSessionMessage(*session), told);
    for (const auto& [offset, bytes] : session->host_blocks) {
      v1::DaemonMessage message;
      message.mutable_map_host()->set_session_id(id.value);
      message.mutable_map_host()->mutable_extent()->set_offset(offset);
      message.mutable_map_host()->mutable_extent()->set_bytes(bytes);
      Run(gpu, std::move(message), told);
    }
  }
  one_done();
}

void Controller::OnRecovered(Executor& executor) {
  executor.OnRecovered();
  spdlog::info("GPU {}: ready", executor.gpu().value);
  const Bytes capacity = RoundDown(executor.registration().pool_bytes(), ChunkBytes());
  const std::string& pci_bus_id = executor.registration().device().pci_bus_id();
  Feed(scheduler::ExecutorUp{
      executor.gpu(), capacity, ImageSourcesOf(executor),
      options_.config.is_emulated ? EmulatedPcieSwitchOf(pci_bus_id) : PcieSwitchOf(pci_bus_id)});
  OpenWaitingSessions();
}

void Controller::OnContextLost(Executor& executor, const v1::ExecutorMessage::ContextLost& what) {
  spdlog::error("GPU {}: session {} lost the context: {}", executor.gpu().value, what.session_id(),
                what.message());
  const SessionPtr session = FindSession(SessionId{what.session_id()});
  if (!session || session->is_lost) return;
  LoseSession(session, {session->lease.value, what.cuda_error(), true, what.message()});
}

void Controller::LoseExecutor(Executor& executor, const std::string& why) {
  if (!executor.is_attached()) return;
  const GpuIndex gpu = executor.gpu();
  if (!is_shut_down_) {
    spdlog::error("GPU {}: executor lost: {}", gpu.value, why);
    telemetry_.OnExecutorLost(gpu);
  }
  executor_links_.erase(executor.link().get());
  const std::map<std::uint64_t, Executor::OnDone> unanswered = executor.OnLost();
  std::vector<RequestId> requeued;
  for (auto& [id, instance] : instances_) {
    if (instance.lease && instance.lease->IsOn(gpu)) LoseLease(instance, requeued);
  }
  LoseResidents(gpu);
  Feed(scheduler::ExecutorDown{gpu});
  for (const auto& [id, done] : unanswered) done(OperationResult::Lost());
  for (const RequestId request : requeued) Requeue(request);
}

void Controller::LoseResidents(GpuIndex gpu) {
  for (const auto& [id, session] : sessions_) {
    session->image_holders.erase(gpu);
    session->peer_holders.erase(gpu);
    if (session->source == gpu) {
      // The host's image is the same; what is not copied yet comes from there.
      session->source.reset();
      if (session->resident == gpu) session->resident.reset();
      continue;
    }
    if (session->resident != gpu) continue;
    session->resident.reset();
    // Uploads since the last write-back are in the host's image, and nobody has looked at them.
    session->swaps.OnUnseenChanges();
    OnArrived(*session);
    ReleasePeersOf(session);
    const bool is_usable = !session->unsaved_lease && !LosesState(*session);
    if (is_usable || session->is_lost) continue;
    LoseSession(session, {session->unsaved_lease.value, kCudaErrorDevicesUnavailable, true,
                          "the executor died before it had saved the memory"});
  }
}

void Controller::Requeue(RequestId request) {
  if (const auto found = requests_.find(request); found != requests_.end()) {
    found->second.state = Request::State::kQueued;
    return Feed(scheduler::RequestArrived{
        .request = request, .instance = found->second.instance, .arrival = found->second.arrival});
  }
  const auto implicit = implicit_requests_.find(request);
  if (implicit == implicit_requests_.end()) return;
  const InstanceId instance = sessions_.at(implicit->second)->instance;
  Feed(scheduler::RequestArrived{.request = request, .instance = instance, .is_implicit = true});
}

void Controller::Watch() {
  for (auto& [gpu, executor] : executors_) {
    const TimePoint oldest = executor.oldest_operation();
    if (oldest != TimePoint::max() && loop_.Now() - oldest > kOperationTimeout) {
      Condemn(executor, "an operation does not end");
    }
  }
  if (is_shut_down_) return;
  const TimePoint now = loop_.Now();
  loop_.RunAt(now + kWatchPeriod, [this, now] {
    AccountHostMemory(loop_.Now() - now);
    Watch();
  });
}

void Controller::AccountHostMemory(Duration passed) {
  for (const auto& [id, session] : sessions_) {
    if (!session->memory) continue;
    const Bytes bytes = session->memory->resident_bytes(wire::SharedMemory::kImage) +
                        session->memory->resident_bytes(wire::SharedMemory::kHostArena);
    instances_.at(session->instance).host_byte_seconds +=
        static_cast<double>(bytes) * ToSeconds(passed);
  }
}

void Controller::Condemn(Executor& executor, const std::string& why) {
  spdlog::error("GPU {}: the executor is restarted: {}", executor.gpu().value, why);
  killer_.Kill(executor.gpu(), executor.epoch());
}

Bytes Controller::LargestPool() const {
  Bytes largest = 0;
  for (const auto& [gpu, executor] : executors_) {
    largest =
        std::max<Bytes>(largest, RoundDown(executor.registration().pool_bytes(), ChunkBytes()));
  }
  return largest;
}

}  // namespace torpor::server
