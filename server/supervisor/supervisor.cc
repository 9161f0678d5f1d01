#include "server/supervisor/supervisor.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>
#include <set>
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

bool Supervisor::Slot::has_executors() const {
  return spare.runs() || std::any_of(executors.begin(), executors.end(),
                                     [](const auto& entry) { return entry.second.runs(); });
}

template <typename Do>
void Supervisor::Slot::ForEach(const Do& with_life) {
  for (auto& [seat, executor] : executors) with_life(executor);
  with_life(spare);
  with_life(pool_owner);
}

int Supervisor::Slot::FreePlace() const {
  std::set<int> taken;
  for (const auto& [seat, executor] : executors) {
    if (executor.runs()) taken.insert(executor.place);
  }
  if (spare.runs()) taken.insert(spare.place);
  int place = 0;
  while (taken.count(place) > 0) ++place;
  return place;
}

Supervisor::Supervisor(Options options, ProcessListener& listener)
    : options_(std::move(options)),
      listener_(listener),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      next_epoch_(FirstEpoch()) {
  for (const GpuIndex gpu : options_.gpus) {
    Slot& slot = slots_[gpu];
    slot.executors[0] = NewLife(options_.pauses);
    slot.spare = NewLife(options_.spare_pauses);
    slot.pool_owner = NewLife(options_.pauses);
    const auto left = options_.adopted.find(gpu);
    if (left != options_.adopted.end()) Adopt(left->second, slot);
  }
  thread_ = std::thread([this] { Run(); });
}

Supervisor::~Supervisor() { Stop({}); }

Supervisor::Life Supervisor::NewLife(const RestartPauses::Options& pauses) const {
  Life life;
  life.started = life.next_start = clock_.Now();
  life.pauses = RestartPauses(pauses);
  return life;
}

void Supervisor::Adopt(const GpuProcesses& left, Slot& slot) {
  const auto adopt = [this](Life& life, int place, const ProcessIdentity& process) {
    life.place = place;
    life.process = ChildProcess::Adopt(process);
    if (life.runs()) life.epoch = next_epoch_++;
  };
  int seat = 0;
  for (const auto& [place, process] : left.executors) {
    Life life = NewLife(options_.pauses);
    adopt(life, place, process);
    if (life.runs()) slot.executors[seat++] = std::move(life);
  }
  for (const auto& [place, process] : left.spares) adopt(slot.spare, place, process);
  if (left.pool_owner) slot.pool_owner.process = ChildProcess::Adopt(*left.pool_owner);
}

void Supervisor::Kill(GpuIndex gpu, std::uint64_t epoch) {
  Kill(gpu, epoch, /*is_replaced=*/false);
}

void Supervisor::Replace(GpuIndex gpu, std::uint64_t epoch) {
  Kill(gpu, epoch, /*is_replaced=*/true);
}

void Supervisor::Kill(GpuIndex gpu, std::uint64_t epoch, bool is_replaced) {
  MutexLock lock(&mutex_);
  const auto slot = slots_.find(gpu);
  if (slot == slots_.end()) return;
  slot->second.ForEach([&](Life& life) {
    if (!life.runs() || life.epoch != epoch) return;
    life.is_replaced = is_replaced;
    life.process->Kill();
  });
}

void Supervisor::Want(ExecutorSeat seat) {
  {
    MutexLock lock(&mutex_);
    const auto slot = slots_.find(seat.gpu);
    if (slot == slots_.end()) return;
    slot->second.executors.try_emplace(seat.number, NewLife(options_.pauses));
  }
  eventfd_write(wake_.get(), 1);
}

void Supervisor::KeepSpare(GpuIndex gpu) {
  {
    MutexLock lock(&mutex_);
    const auto slot = slots_.find(gpu);
    if (slot == slots_.end() || !options_.pool_owner_command || !options_.keeps_spares) return;
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
    const std::map<int, Life>& executors = entry.second.executors;
    return is_it(entry.second.spare) ||
           std::any_of(executors.begin(), executors.end(),
                       [&](const auto& executor) { return is_it(executor.second); });
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
      slot.ForEach([](Life& life) {
        if (life.runs()) life.process->Leave();
        life.process.reset();
      });
    }
  }
  Stop({});
}

void Supervisor::TellAdopted() {
  struct Told {
    ExecutorSeat seat;
    std::uint64_t epoch;
    pid_t process;
  };
  std::vector<Told> executors;
  std::vector<Told> spares;
  {
    MutexLock lock(&mutex_);
    for (const auto& [gpu, slot] : slots_) {
      for (const auto& [seat, life] : slot.executors) {
        if (life.runs()) executors.push_back({{gpu, seat}, life.epoch, life.process->pid()});
      }
      if (slot.spare.runs()) spares.push_back({gpu, slot.spare.epoch, slot.spare.process->pid()});
    }
  }
  for (const auto& [seat, epoch, process] : executors) {
    listener_.OnExecutorAdopted(seat, epoch, process);
  }
  for (const auto& [seat, epoch, process] : spares) {
    listener_.OnSpareAdopted(seat.gpu, epoch, process);
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
    for (auto& [gpu, slot] : slots_) {
      slot.ForEach([&polled](const Life& life) {
        if (life.runs()) polled.push_back({life.process->descriptor(), POLLIN, 0});
      });
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
    bool has_executors = false;
    for (const auto& [seat, executor] : slot.executors) {
      if (is_over && executor.runs()) executor.process->Kill();
      has_executors |= executor.runs();
    }
    if (!has_executors && slot.pool_owner.runs()) slot.pool_owner.process->Kill();
  }
}

std::optional<Supervisor::DueStep> Supervisor::NextStep(const Slot& slot) const {
  if (options_.pool_owner_command && !slot.pool_owner.runs()) {
    // Executors that still run have the memory of the owner that has died.
    if (slot.has_executors()) return std::nullopt;
    return DueStep{Step::kStartPoolOwner, slot.pool_owner.next_start};
  }
  for (const auto& [seat, executor] : slot.executors) {
    if (executor.runs()) continue;
    if (slot.spare.runs()) return DueStep{Step::kPromoteSpare, TimePoint::min(), seat};
    return DueStep{Step::kStartExecutor, executor.next_start, seat};
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
      Take(*next, gpu);
    }
  }
}

void Supervisor::Take(const DueStep& due, GpuIndex gpu) {
  switch (due.step) {
    case Step::kPromoteSpare:
      return PromoteSpare({gpu, due.seat});
    case Step::kStartPoolOwner:
      return StartPoolOwner(gpu);
    case Step::kStartExecutor:
      return StartExecutor({gpu, due.seat});
    case Step::kStartSpare:
      return StartSpare(gpu);
  }
}

void Supervisor::ExpectKeepSpare(GpuIndex gpu) {
  MutexLock lock(&mutex_);
  slots_[gpu].keeps_spare = false;
}

void Supervisor::PromoteSpare(ExecutorSeat seat) {
  std::uint64_t epoch = 0;
  {
    MutexLock lock(&mutex_);
    Slot& slot = slots_[seat.gpu];
    Life& executor = slot.executors[seat.number];
    executor.process = std::move(slot.spare.process);
    executor.epoch = epoch = slot.spare.epoch;
    executor.place = slot.spare.place;
    executor.started = slot.spare.started;
  }
  ExpectKeepSpare(seat.gpu);
  listener_.OnExecutorStarting(seat, epoch);
}

int Supervisor::FreePlace(GpuIndex gpu) const {
  MutexLock lock(&mutex_);
  return slots_.at(gpu).FreePlace();
}

void Supervisor::StartExecutor(ExecutorSeat seat) {
  const std::uint64_t epoch = next_epoch_++;
  const int place = FreePlace(seat.gpu);
  ExpectKeepSpare(seat.gpu);
  listener_.OnExecutorStarting(seat, epoch);
  auto process = ChildProcess::Start(options_.executor_command(seat.gpu, epoch, place));
  MutexLock lock(&mutex_);
  Begin(seat.gpu, slots_[seat.gpu].executors[seat.number], kExecutor, epoch, place,
        std::move(process));
}

void Supervisor::StartSpare(GpuIndex gpu) {
  const std::uint64_t epoch = next_epoch_++;
  const int place = FreePlace(gpu);
  listener_.OnSpareStarting(gpu, epoch);
  auto process = ChildProcess::Start(options_.executor_command(gpu, epoch, place));
  MutexLock lock(&mutex_);
  Begin(gpu, slots_[gpu].spare, kSpare, epoch, place, std::move(process));
}

void Supervisor::StartPoolOwner(GpuIndex gpu) {
  auto process = ChildProcess::Start(options_.pool_owner_command(gpu));
  MutexLock lock(&mutex_);
  Begin(gpu, slots_[gpu].pool_owner, kPoolOwner, /*epoch=*/0, /*place=*/0, std::move(process));
}

void Supervisor::Begin(GpuIndex gpu, Life& life, const char* what, std::uint64_t epoch, int place,
                       absl::StatusOr<std::unique_ptr<ChildProcess>> process) {
  life.epoch = epoch;
  life.place = place;
  life.started = clock_.Now();
  if (process.ok()) {
    life.process = *std::move(process);
    return;
  }
  spdlog::error("GPU {}: no {}: {}", gpu.value, what, process.status().ToString());
  life.next_start = life.started + life.pauses.Next({});
}

void Supervisor::ReapEnded() {
  struct Ended {
    ExecutorSeat seat;
    std::uint64_t epoch;
    pid_t process = 0;
    int signal = 0;
  };
  std::vector<Ended> executors;
  std::vector<Ended> spares;
  {
    MutexLock lock(&mutex_);
    for (auto& [gpu, slot] : slots_) {
      if (Reap(gpu, kPoolOwner, slot.pool_owner)) {
        slot.ForEach([](const Life& life) {
          if (life.runs()) life.process->Kill();
        });
      }
      for (auto& [seat, life] : slot.executors) {
        if (Reap(gpu, kExecutor, life)) {
          executors.push_back({{gpu, seat}, life.epoch, life.ended, life.end_signal});
        }
      }
      if (Reap(gpu, kSpare, slot.spare)) spares.push_back({gpu, slot.spare.epoch});
    }
  }
  for (const Ended& end : executors) {
    listener_.OnExecutorExited(end.seat, end.epoch, end.process, end.signal);
  }
  for (const Ended& end : spares) listener_.OnSpareExited(end.seat.gpu, end.epoch);
}

bool Supervisor::Reap(GpuIndex gpu, const char* what, Life& life) {
  std::string why;
  if (!life.runs() || !life.process->HasEnded(why)) return false;
  const TimePoint now = clock_.Now();
  const bool is_replaced = std::exchange(life.is_replaced, false);
  life.next_start = is_replaced ? now : now + life.pauses.Next(now - life.started);
  if (!is_stopping_ && !is_replaced) {
    spdlog::warn("GPU {}: {} {} ended: {}", gpu.value, what, life.process->pid(), why);
  }
  life.ended = life.process->pid();
  life.end_signal = life.process->end_signal();
  life.process.reset();
  return true;
}

}  // namespace torpor::server
