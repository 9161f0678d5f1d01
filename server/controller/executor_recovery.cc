#include "server/controller/executor_recovery.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/controller/model/join.h"
#include "server/controller/pcie_switch.h"

namespace torpor::server {

void ExecutorRecovery::Expect(ExecutorSeat seat, std::uint64_t epoch) {
  GpuExecutor& executor = executors_.At(seat);
  const std::optional<SpareExecutors::Spare> spare = spares_.Take(seat.gpu, epoch);
  if (!spare || spare->adopted_process == 0) {
    executor.OnStarting(epoch);
  } else {
    executor.OnAdopted(epoch, spare->adopted_process);
  }
  if (!spare) return;
  spdlog::info("GPU {}: the spare executor takes over", seat.gpu.value);
  if (spare->link) Register(spare->link, spare->what);
}

void ExecutorRecovery::Register(const std::shared_ptr<ExecutorChannel>& link,
                                const v1::ExecutorMessage::Register& what) {
  if (spares_.Register(link, what)) return OnSpareReady(link, what);
  GpuExecutor* const executor = executors_.Expecting(what);
  if (!executor) {
    return link->Close("not an executor that this torpord started");
  }
  if (what.chunk_bytes() != options_.chunk_bytes || what.pool_bytes() < options_.chunk_bytes) {
    spdlog::error("GPU {}: executor offers {} bytes in chunks of {}; {} are configured", what.gpu(),
                  what.pool_bytes(), what.chunk_bytes(), options_.chunk_bytes);
    return link->Close("unusable memory pool");
  }
  if (!SettleDomain(*executor, what)) {
    executors_.EndProcess(*executor);
    return link->Close("it has served another isolation domain");
  }
  NoteProcess(GpuProcess::kExecutor, what);
  executors_.Attach(*executor, link, what);
  spdlog::info("GPU {}: executor {} registered, {} with {} MiB for images", what.gpu(), what.pid(),
               what.device().name(), what.pool_bytes() / kMiB);
  if (auto message = OutliveMessage()) {
    executor->Start(*std::move(message), loop_.Now(), [](const OperationResult&) {});
  }
  TellOfSessions(*executor);
}

bool ExecutorRecovery::SettleDomain(GpuExecutor& executor,
                                    const v1::ExecutorMessage::Register& what) {
  if (what.domain().empty()) return true;
  const DomainId served = domains_.Named(what.domain());
  if (!executor.domain() && executors_.Of({executor.gpu(), served}) == nullptr) {
    executor.Assign(served);
  }
  return executor.domain() == served;
}

void ExecutorRecovery::OnSpareReady(const std::shared_ptr<ExecutorChannel>& link,
                                    const v1::ExecutorMessage::Register& what) {
  NoteProcess(GpuProcess::kSpare, what);
  spdlog::info("GPU {}: executor {} is ready to take over", what.gpu(), what.pid());
  if (const auto message = OutliveMessage()) link->Send(*message);
}

void ExecutorRecovery::NoteProcess(GpuProcess role, const v1::ExecutorMessage::Register& what) {
  const GpuIndex gpu{what.gpu()};
  journal_.NoteProcess(role, gpu, what.pid(), what.place());
  if (what.pool_owner_pid() != 0) {
    journal_.NoteProcess(GpuProcess::kPoolOwner, gpu, what.pool_owner_pid());
  }
}

std::optional<v1::DaemonMessage> ExecutorRecovery::OutliveMessage() const {
  const auto patience = std::chrono::ceil<std::chrono::milliseconds>(options_.patience);
  if (!journal_.is_kept() || patience.count() <= 0) return std::nullopt;
  v1::DaemonMessage message;
  message.mutable_outlive()->set_patience_ms(static_cast<std::uint64_t>(patience.count()));
  return message;
}

void ExecutorRecovery::TellOfSessions(GpuExecutor& executor) {
  executor.OnRecovering();
  Join join([this, seat = executor.seat(), epoch = executor.epoch()](const absl::Status&) {
    GpuExecutor& told = executors_.At(seat);
    const bool is_same = told.epoch() == epoch && told.state() == GpuExecutor::State::kRecovering;
    if (is_same) OnRecovered(told);
  });
  for (const auto& [id, session] : sessions_.all()) {
    if (session->is_announced && session->domain == executor.domain()) {
      TellOf(session, executor, join);
    }
  }
  join.Done();
}

void ExecutorRecovery::TellOf(const SessionPtr& session, GpuExecutor& executor, Join join) {
  const auto one_told = [this, session, gpu = executor.gpu(), join](const OperationResult& result) {
    if (!result.status_unless_lost().ok()) {
      close_(session, absl::StrCat("the restarted executor of GPU ", gpu.value,
                                   " cannot open it: ", result.status.ToString()));
    }
    join.Done();
  };
  join.Add(1 + session->memory.host_blocks.size());
  executor.Start(opening_.OpenMessage(*session), loop_.Now(), one_told);
  for (const auto& [offset, bytes] : session->memory.host_blocks) {
    v1::DaemonMessage message;
    message.mutable_map_host()->set_session_id(session->id.value);
    message.mutable_map_host()->mutable_extent()->set_offset(offset);
    message.mutable_map_host()->mutable_extent()->set_bytes(bytes);
    executor.Start(std::move(message), loop_.Now(), one_told);
  }
}

void ExecutorRecovery::OnRecovered(GpuExecutor& executor) {
  executor.OnRecovered();
  spdlog::info("GPU {}: ready", executor.gpu().value);
  NoteUp(executor);
  if (executor.registration().pool_owner_pid() != 0) spares_.KeepFor(executor.gpu());
  seats_.OnReady(executor);
  resuming_.AnswerWaiting();
  opening_.OpenWaiting();
}

void ExecutorRecovery::NoteUp(const GpuExecutor& executor) {
  if (!executors_.SetUp(executor.gpu(), true)) return;
  const Bytes capacity = RoundDown(executor.registration().pool_bytes(), options_.chunk_bytes);
  const std::string& pci_bus_id = executor.registration().device().pci_bus_id();
  events_.Feed(scheduler::ExecutorUp{
      executor.gpu(), capacity, ImageSourcesOf(executor),
      options_.is_emulated ? EmulatedPcieSwitchOf(pci_bus_id) : PcieSwitchOf(pci_bus_id)});
}

std::vector<GpuIndex> ExecutorRecovery::ImageSourcesOf(const GpuExecutor& executor) const {
  std::vector<GpuIndex> sources;
  if (!options_.swaps_from_peers) return sources;
  for (const int gpu : executor.registration().image_sources()) {
    if (executors_.Serves(GpuIndex{gpu})) sources.push_back(GpuIndex{gpu});
  }
  return sources;
}

}  // namespace torpor::server
