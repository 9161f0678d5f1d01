#include "server/supervisor/supervisor.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/poll_timeout.h"
#include "base/thread_name.h"

namespace torpor::server {
namespace {

// Differs between lives of torpord too: clients take another epoch for another process.
std::uint64_t FirstEpoch() {
  return static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
}

constexpr const char* kExecutor = "executor";
constexpr const char* kSpare = "spare executor";
constexpr const char* kPoolOwner = "owner of the memory";

}  // namespace

Supervisor::Supervisor(Options options, ProcessListener& listener)
    : options_(std::move(options)),
      listener_(listener),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      next_epoch_(FirstEpoch()) {
  for (const GpuIndex gpu : options_.gpus) {
    Slot& slot = slots_[gpu];
    for (Life* const life : {&slot.executor, &slot.spare, &slot.pool_owner}) {
      life->started = life->next_start = clock_.Now();
      life->pauses = RestartPauses(options_.pauses);
    }
    slot.spare.pauses = RestartPauses(options_.spare_pauses);
    const auto left = options_.adopted.find(gpu);
    if (left != options_.adopted.end()) Adopt(left->second, next_epoch_, slot);
  }
  thread_ = std::thread([this] { Run(); });
}

Supervisor::~Supervisor() { Stop({}); }

void Supervisor::Adopt(const GpuProcesses& left, std::uint64_t& next_epoch, Slot& slot) {
  slot.executor.place = left.place;
  slot.spare.place = 1 - left.place;
  if (left.pool_owner) slot.pool_owner.process = ChildProcess::Adopt(*left.pool_owner);
  if (left.executor) slot.executor.process = ChildProcess::Adopt(*left.executor);
  if (left.spare) slot.spare.process = ChildProcess::Adopt(*left.spare);
  if (slot.executor.runs()) slot.executor.epoch = next_epoch++;
  if (slot.spare.runs()) slot.spare.epoch = next_epoch++;
}

void Supervisor::Kill(GpuIndex gpu, std::uint64_t epoch) {
  MutexLock lock(&mutex_);
  const auto slot = slots_.find(gpu);
  if (slot == slots_.end()) return;
  for (const Life* const life : {&slot->second.executor, &slot->second.spare}) {
    if (life->runs() && life->epoch == epoch) life->process->Kill();
  }
}

void Supervisor::KeepSpare(GpuIndex gpu) {
  {
    MutexLock lock(&mutex_);
    const auto slot = slots_.find(gpu);
    if (slot == slots_.end() || !options_.pool_owner_command) return;
    slot->second.keeps_spare = true;
    Life& spare = slot->second.spare;
    spare.next_start = std::max(spare.next_start, clock_.Now() + options_.spare_delay);
  }
  eventfd_write(wake_.get(), 1);
}

bool Supervisor::IsExecutor(pid_t pid) const {
  MutexLock lock(&mutex_);
  return std::any_of(slots_.begin(), slots_.end(), [pid](const auto& entry) {
    const auto is_it = [pid](const Life& life) {
      return life.runs() && life.process->pid() == pid;
    };
    return is_it(entry.second.executor) || is_it(entry.second.spare);
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
      for (Life* const life : {&slot.executor, &slot.spare, &slot.pool_owner}) {
        if (life->runs()) life->process->Leave();
        life->process.reset();
      }
    }
  }
  Stop({});
}

void Supervisor::TellAdopted() {
  struct Told {
    GpuIndex gpu;
    std::uint64_t epoch;
    pid_t process;
    bool is_spare;
  };
  std::vector<Told> adopted;
  {
    MutexLock lock(&mutex_);
    for (const auto& [gpu, slot] : slots_) {
      for (const Life* const life : {&slot.executor, &slot.spare}) {
        if (!life->runs()) continue;
        adopted.push_back({gpu, life->epoch, life->process->pid(), life == &slot.spare});
      }
    }
  }
  for (const auto& [gpu, epoch, process, is_spare] : adopted) {
    if (is_spare) {
      listener_.OnSpareAdopted(gpu, epoch, process);
    } else {
      listener_.OnExecutorAdopted(gpu, epoch, process);
    }
  }
}

void Supervisor::Run() {
  NameThread("supervisor");
  TellAdopted();
  while (!IsDone()) {
    TakeDueSteps();
    KillUseless();
    Wait();
    ReapEnded();
  }
}

bool Supervisor::IsDone() {
  MutexLock lock(&mutex_);
  return is_stopping_ && std::none_of(slots_.begin(), slots_.end(), [](const auto& entry) {
           return entry.second.has_executors() || entry.second.pool_owner.runs();
         });
}

void Supervisor::Wait() {
  std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}};
  TimePoint until = TimePoint::max();
  {
    MutexLock lock(&mutex_);
    if (is_stopping_) until = kill_at_;
    for (const auto& [gpu, slot] : slots_) {
      for (const Life* const life : {&slot.executor, &slot.spare, &slot.pool_owner}) {
        if (life->runs()) polled.push_back({life->process->descriptor(), POLLIN, 0});
      }
      const std::optional<DueStep> next = is_stopping_ ? std::nullopt : NextStep(slot);
      if (next) until = std::min(until, next->when);
    }
  }
  poll(polled.data(), polled.size(), PollTimeout(until, clock_.Now()));
  eventfd_t ignored = 0;
  eventfd_read(wake_.get(), &ignored);
}

void Supervisor::KillUseless() {
  MutexLock lock(&mutex_);
  if (!is_stopping_) return;
  const bool is_over = clock_.Now() >= kill_at_;
  // A kill takes time, but nothing survives it.
  if (is_over) kill_at_ = clock_.Now() + options_.pauses.longest;
  for (const auto& [gpu, slot] : slots_) {
    if (slot.spare.runs()) slot.spare.process->Kill();
    if (is_over && slot.executor.runs()) slot.executor.process->Kill();
    if (!slot.executor.runs() && slot.pool_owner.runs()) slot.pool_owner.process->Kill();
  }
}

std::optional<Supervisor::DueStep> Supervisor::NextStep(const Slot& slot) const {
  if (options_.pool_owner_command && !slot.pool_owner.runs()) {
    // Executors that still run have the memory of the owner that has died.
    if (slot.has_executors()) return std::nullopt;
    return DueStep{Step::kStartPoolOwner, slot.pool_owner.next_start};
  }
  if (!slot.executor.runs()) {
    if (slot.spare.runs()) return DueStep{Step::kPromoteSpare, TimePoint::min()};
    return DueStep{Step::kStartExecutor, slot.executor.next_start};
  }
  if (!slot.keeps_spare || slot.spare.runs()) return std::nullopt;
  return DueStep{Step::kStartSpare, slot.spare.next_start};
}

void Supervisor::TakeDueSteps() {
  for (const GpuIndex gpu : options_.gpus) {
    while (true) {
      std::optional<DueStep> next;
      {
        MutexLock lock(&mutex_);
        if (!is_stopping_) next = NextStep(slots_.at(gpu));
      }
      if (!next || next->when > clock_.Now()) break;
      Take(next->step, gpu);
    }
  }
}

void Supervisor::Take(Step step, GpuIndex gpu) {
  switch (step) {
    case Step::kPromoteSpare:
      return PromoteSpare(gpu);
    case Step::kStartPoolOwner:
      return Start(gpu, &Slot::pool_owner, kPoolOwner, /*epoch=*/0, /*place=*/0);
    case Step::kStartExecutor: {
      const std::uint64_t epoch = next_epoch_++;
      ExpectKeepSpare(gpu);
      listener_.OnExecutorStarting(gpu, epoch);
      return Start(gpu, &Slot::executor, kExecutor, epoch, /*place=*/0);
    }
    case Step::kStartSpare: {
      const std::uint64_t epoch = next_epoch_++;
      int place = 0;
      {
        MutexLock lock(&mutex_);
        place = 1 - slots_[gpu].executor.place;
      }
      listener_.OnSpareStarting(gpu, epoch);
      return Start(gpu, &Slot::spare, kSpare, epoch, place);
    }
  }
}

void Supervisor::ExpectKeepSpare(GpuIndex gpu) {
  MutexLock lock(&mutex_);
  slots_[gpu].keeps_spare = false;
}

void Supervisor::PromoteSpare(GpuIndex gpu) {
  std::uint64_t epoch = 0;
  {
    MutexLock lock(&mutex_);
    Slot& slot = slots_[gpu];
    slot.executor.process = std::move(slot.spare.process);
    slot.executor.epoch = epoch = slot.spare.epoch;
    slot.executor.place = slot.spare.place;
    slot.executor.started = slot.spare.started;
  }
  ExpectKeepSpare(gpu);
  listener_.OnExecutorStarting(gpu, epoch);
}

void Supervisor::Start(GpuIndex gpu, Life Slot::*life, const char* what, std::uint64_t epoch,
                       int place) {
  absl::StatusOr<std::unique_ptr<ChildProcess>> process =
      ChildProcess::Start(life == &Slot::pool_owner ? options_.pool_owner_command(gpu)
                                                    : options_.executor_command(gpu, epoch, place));
  MutexLock lock(&mutex_);
  Life& started = slots_[gpu].*life;
  started.epoch = epoch;
  started.place = place;
  started.started = clock_.Now();
  if (process.ok()) {
    started.process = *std::move(process);
    return;
  }
  spdlog::error("GPU {}: no {}: {}", gpu.value, what, process.status().ToString());
  started.next_start = started.started + started.pauses.Next({});
}

void Supervisor::ReapEnded() {
  struct Ended {
    GpuIndex gpu;
    std::uint64_t epoch;
    int signal;
    bool is_spare;
  };
  std::vector<Ended> ended;
  {
    MutexLock lock(&mutex_);
    for (auto& [gpu, slot] : slots_) {
      if (Reap(gpu, kPoolOwner, slot.pool_owner)) {
        for (const Life* const life : {&slot.executor, &slot.spare}) {
          if (life->runs()) life->process->Kill();
        }
      }
      if (Reap(gpu, kExecutor, slot.executor)) {
        ended.push_back({gpu, slot.executor.epoch, slot.executor.end_signal, false});
      }
      if (Reap(gpu, kSpare, slot.spare)) ended.push_back({gpu, slot.spare.epoch, 0, true});
    }
  }
  for (const auto& [gpu, epoch, signal, is_spare] : ended) {
    if (is_spare) {
      listener_.OnSpareExited(gpu, epoch);
    } else {
      listener_.OnExecutorExited(gpu, epoch, signal);
    }
  }
}

bool Supervisor::Reap(GpuIndex gpu, const char* what, Life& life) {
  std::string why;
  if (!life.runs() || !life.process->HasEnded(why)) return false;
  const TimePoint now = clock_.Now();
  life.next_start = now + life.pauses.Next(now - life.started);
  if (!is_stopping_) {
    spdlog::warn("GPU {}: {} {} ended: {}", gpu.value, what, life.process->pid(), why);
  }
  life.end_signal = life.process->end_signal();
  life.process.reset();
  return true;
}

}  // namespace torpor::server
