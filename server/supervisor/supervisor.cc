#include "server/supervisor/supervisor.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "base/poll_timeout.h"
#include "base/thread_name.h"

namespace torpor::server {
namespace {

// Differs between lives of torpord too: clients take another epoch for another process.
std::uint64_t FirstEpoch() {
  return static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
}

}  // namespace

Supervisor::Supervisor(Options options, ProcessListener& listener)
    : options_(std::move(options)),
      listener_(listener),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      next_epoch_(FirstEpoch()) {
  for (const GpuIndex gpu : options_.gpus) {
    Slot& slot = slots_[gpu];
    slot.next_start = clock_.Now();
    slot.pauses = RestartPauses(options_.pauses);
    const auto adopted = options_.adopted.find(gpu);
    if (adopted == options_.adopted.end()) continue;
    slot.process = ChildProcess::Adopt(adopted->second);
    slot.epoch = next_epoch_++;
    slot.started = slot.next_start;
  }
  thread_ = std::thread([this] { Run(); });
}

Supervisor::~Supervisor() { Stop({}); }

void Supervisor::Kill(GpuIndex gpu, std::uint64_t epoch) {
  MutexLock lock(&mutex_);
  const auto slot = slots_.find(gpu);
  if (slot == slots_.end() || slot->second.epoch != epoch || !slot->second.process) return;
  slot->second.process->Kill();
}

bool Supervisor::IsExecutor(pid_t pid) const {
  MutexLock lock(&mutex_);
  return std::any_of(slots_.begin(), slots_.end(), [pid](const auto& slot) {
    return slot.second.process && slot.second.process->pid() == pid;
  });
}

void Supervisor::Stop(Duration grace) {
  {
    MutexLock lock(&mutex_);
    is_stopping_ = true;
    kill_at_ = std::min(kill_at_, clock_.Now() + grace);
  }
  eventfd_write(wake_.get(), 1);
  if (thread_.joinable()) thread_.join();
}

void Supervisor::Leave() {
  {
    MutexLock lock(&mutex_);
    for (auto& [gpu, slot] : slots_) {
      if (slot.process) slot.process->Leave();
      slot.process.reset();
    }
  }
  Stop({});
}

void Supervisor::TellAdopted() {
  std::vector<std::tuple<GpuIndex, std::uint64_t, pid_t>> adopted;
  {
    MutexLock lock(&mutex_);
    for (const auto& [gpu, slot] : slots_) {
      if (slot.process) adopted.emplace_back(gpu, slot.epoch, slot.process->pid());
    }
  }
  for (const auto& [gpu, epoch, pid] : adopted) listener_.OnExecutorAdopted(gpu, epoch, pid);
}

void Supervisor::Run() {
  NameThread("supervisor");
  TellAdopted();
  while (!IsDone()) {
    StartDue();
    Wait();
    ReapEnded();
  }
}

bool Supervisor::IsDone() {
  MutexLock lock(&mutex_);
  return is_stopping_ && std::none_of(slots_.begin(), slots_.end(), [](const auto& slot) {
           return slot.second.process != nullptr;
         });
}

void Supervisor::Wait() {
  std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}};
  TimePoint until = TimePoint::max();
  {
    MutexLock lock(&mutex_);
    if (is_stopping_) until = kill_at_;
    for (const auto& [gpu, slot] : slots_) {
      if (slot.process) {
        polled.push_back({slot.process->descriptor(), POLLIN, 0});
      } else if (!is_stopping_) {
        until = std::min(until, slot.next_start);
      }
    }
  }
  poll(polled.data(), polled.size(), PollTimeout(until, clock_.Now()));
  eventfd_t ignored = 0;
  eventfd_read(wake_.get(), &ignored);
  MutexLock lock(&mutex_);
  if (!is_stopping_ || clock_.Now() < kill_at_) return;
  for (const auto& [gpu, slot] : slots_) {
    if (slot.process) slot.process->Kill();
  }
  kill_at_ = clock_.Now() + options_.pauses.longest;  // a kill takes time, but nothing survives it
}

void Supervisor::StartDue() {
  std::vector<GpuIndex> due;
  {
    MutexLock lock(&mutex_);
    if (is_stopping_) return;
    for (const auto& [gpu, slot] : slots_) {
      if (!slot.process && slot.next_start <= clock_.Now()) due.push_back(gpu);
    }
  }
  for (const GpuIndex gpu : due) Start(gpu);
}

void Supervisor::Start(GpuIndex gpu) {
  const std::uint64_t epoch = next_epoch_++;
  listener_.OnExecutorStarting(gpu, epoch);
  absl::StatusOr<std::unique_ptr<ChildProcess>> process =
      ChildProcess::Start(options_.command(gpu, epoch));
  MutexLock lock(&mutex_);
  Slot& slot = slots_[gpu];
  slot.epoch = epoch;
  slot.started = clock_.Now();
  if (process.ok()) {
    slot.process = *std::move(process);
    return;
  }
  spdlog::error("GPU {}: no executor: {}", gpu.value, process.status().ToString());
  slot.next_start = slot.started + slot.pauses.Next({});
}

void Supervisor::ReapEnded() {
  std::vector<std::tuple<GpuIndex, std::uint64_t, int>> ended;
  {
    MutexLock lock(&mutex_);
    for (auto& [gpu, slot] : slots_) {
      std::string why;
      if (!slot.process || !slot.process->HasEnded(why)) continue;
      const TimePoint now = clock_.Now();
      slot.next_start = now + slot.pauses.Next(now - slot.started);
      if (!is_stopping_) {
        spdlog::warn("GPU {}: executor {} ended: {}", gpu.value, slot.process->pid(), why);
      }
      ended.emplace_back(gpu, slot.epoch, slot.process->end_signal());
      slot.process.reset();
    }
  }
  for (const auto& [gpu, epoch, signal] : ended) listener_.OnExecutorExited(gpu, epoch, signal);
}

}  // namespace torpor::server
