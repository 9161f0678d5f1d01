#include "server/controller/domain_seats.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"

namespace torpor::server {
namespace {

// From the wish for an executor until it is ready. Starting a process takes a driver a second, and
// more where several start at once.
constexpr Duration kSeatPatience = std::chrono::seconds(10);

}  // namespace

void DomainSeats::StartAhead(DomainId domain) {
  for (const GpuIndex gpu : executors_.gpus()) TakeFreeSeat({gpu, domain});
}

void DomainSeats::Ensure(ExecutorKey key, const Then& then) {
  last_used_[key] = loop_.Now();
  if (IsReady(key)) return then(absl::OkStatus());
  const TimePoint until = loop_.Now() + kSeatPatience;
  waiting_.push_back({key, until, then});
  loop_.RunAt(until, [this] { Look(); });
  Serve(key.gpu);
}

bool DomainSeats::Require(ExecutorKey key) {
  last_used_[key] = loop_.Now();
  if (!IsReady(key) && !IsWaitedFor(key)) {
    Ensure(key, [this, key](const absl::Status& status) {
      // Once it is too late, the scheduler may try again.
      if (absl::IsDeadlineExceeded(status)) TellServed(key);
    });
  }
  if (IsReady(key)) return true;
  const std::set<InstanceId> instances = InstancesOf(key.domain);
  events_.Feed(scheduler::ImagesLost{key.gpu, {instances.begin(), instances.end()}});
  return false;
}

bool DomainSeats::IsReady(ExecutorKey key) const {
  const GpuExecutor* const executor = std::as_const(executors_).Of(key);
  return executor != nullptr && executor->state() == GpuExecutor::State::kReady &&
         !IsLeaving(*executor);
}

void DomainSeats::TellServed(ExecutorKey key) {
  const std::set<InstanceId> instances = InstancesOf(key.domain);
  if (instances.empty()) return;
  events_.Feed(scheduler::InstancesServed{key.gpu, {instances.begin(), instances.end()}});
}

void DomainSeats::NoteUse(const std::vector<SessionPtr>& sessions, GpuIndex gpu) {
  for (const SessionPtr& session : sessions) last_used_[session->On(gpu)] = loop_.Now();
}

void DomainSeats::OnReady(GpuExecutor& executor) {
  if (!executor.domain()) {
    if (const std::optional<DomainId> domain = DomainInNeed(executor.gpu())) {
      return Give(executor, *domain);
    }
    return;
  }
  if (IsLeaving(executor)) return;
  TellServed(executor.key());
  Answer([key = executor.key()](const Waiting& one) { return one.key == key; }, absl::OkStatus());
}

void DomainSeats::OnGpuDown(GpuIndex gpu) {
  const auto leaving = leaving_.find(gpu);
  if (leaving != leaving_.end() && !leaving->second.is_ending) leaving_.erase(leaving);
  Answer([gpu](const Waiting& one) { return one.key.gpu == gpu; },
         absl::CancelledError("the GPU is down"));
}

void DomainSeats::Look() {
  const TimePoint now = loop_.Now();
  Answer([now](const Waiting& one) { return one.until <= now; },
         absl::DeadlineExceededError(
             absl::StrCat("no executor was ready within ",
                          std::chrono::duration_cast<std::chrono::seconds>(kSeatPatience).count(),
                          " s: see the log for why executors end, or raise executors_per_gpu")));
  std::set<GpuIndex> gpus;
  for (const Waiting& one : waiting_) gpus.insert(one.key.gpu);
  std::erase_if(leaving_, [&gpus](const auto& leaving) {
    return !leaving.second.is_ending && !gpus.contains(leaving.first);
  });
  for (const GpuIndex gpu : gpus) {
    Serve(gpu);
    LeaveIfEmpty(gpu);
  }
}

std::set<InstanceId> DomainSeats::InstancesOf(DomainId domain) const {
  std::set<InstanceId> instances;
  for (const auto& [id, session] : sessions_.all()) {
    if (session->domain == domain && session->instance) instances.insert(session->instance);
  }
  return instances;
}

bool DomainSeats::IsLeaving(const GpuExecutor& executor) const {
  const auto leaving = leaving_.find(executor.gpu());
  return leaving != leaving_.end() && leaving->second.seat == executor.seat();
}

bool DomainSeats::IsWaitedFor(ExecutorKey key) const {
  return std::ranges::any_of(waiting_, [&](const Waiting& one) { return one.key == key; });
}

std::optional<DomainId> DomainSeats::DomainWaitingAt(GpuIndex gpu) const {
  for (const Waiting& one : waiting_) {
    if (one.key.gpu == gpu && executors_.Of(one.key) == nullptr) return one.key.domain;
  }
  return std::nullopt;
}

std::optional<DomainId> DomainSeats::DomainInNeed(GpuIndex gpu) const {
  if (const std::optional<DomainId> waiting = DomainWaitingAt(gpu)) return waiting;
  for (const auto& [id, session] : sessions_.all()) {
    const ExecutorKey key = session->On(gpu);
    if (session->is_announced && executors_.Of(key) == nullptr) return key.domain;
  }
  return std::nullopt;
}

bool DomainSeats::TakeFreeSeat(ExecutorKey key) {
  if (executors_.Of(key) != nullptr) return true;
  const std::vector<GpuExecutor*> seats = executors_.On(key.gpu);
  for (GpuExecutor* const executor : seats) {
    if (executor->domain()) continue;
    Give(*executor, key.domain);
    return true;
  }
  // Executors that own the memory leave none to others.
  const bool has_owner = executors_.RegistrationOf(key.gpu).pool_owner_pid() != 0;
  if (seats.size() >= (has_owner ? per_gpu_ : 1)) return false;
  GpuExecutor& added = executors_.AddSeat(key.gpu);
  Give(added, key.domain);
  processes_.Want(added.seat());
  return true;
}

void DomainSeats::Give(GpuExecutor& executor, DomainId domain) {
  executor.Assign(domain);
  spdlog::info("GPU {}: an executor serves {}", executor.gpu().value, domains_.NameOf(domain));
  if (executor.is_attached()) tell_(executor);
}

void DomainSeats::Serve(GpuIndex gpu) {
  const std::vector<Waiting> waiting = waiting_;
  for (const Waiting& one : waiting) {
    if (one.key.gpu == gpu && !TakeFreeSeat(one.key)) return Vacate(one.key);
  }
}

bool DomainSeats::IsInUse(ExecutorKey key) const {
  if (IsWaitedFor(key)) return true;
  for (const InstanceId id : InstancesOf(key.domain)) {
    const FunctionInstance* const instance = instances_.FindById(id);
    if (instance && instance->lease && instance->lease->IsOn(key.gpu)) return true;
  }
  return false;
}

GpuExecutor* DomainSeats::LeastUsed(GpuIndex gpu) {
  GpuExecutor* least = nullptr;
  const auto used = [this](const GpuExecutor& executor) {
    const auto found = last_used_.find(executor.key());
    return found == last_used_.end() ? TimePoint::min() : found->second;
  };
  for (GpuExecutor* const executor : executors_.On(gpu)) {
    if (IsInUse(executor->key())) continue;
    if (least == nullptr || used(*executor) < used(*least)) least = executor;
  }
  return least;
}

void DomainSeats::Vacate(ExecutorKey next) {
  const GpuIndex gpu = next.gpu;
  if (const auto leaving = leaving_.find(gpu); leaving != leaving_.end()) {
    if (!leaving->second.is_ending) AskImagesToLeave(executors_.At(leaving->second.seat).key());
    return;
  }
  const GpuExecutor* const least = LeastUsed(gpu);
  if (least == nullptr) return;  // Look tries again
  spdlog::info(
      "GPU {}: {} leaves its executor to another domain; raise executors_per_gpu to keep "
      "more",
      gpu.value, domains_.NameOf(least->domain()));
  leaving_.emplace(gpu, Leaving{least->seat(), next.domain});
  AskImagesToLeave(least->key());
  // The scheduler's answer follows this event.
  loop_.Post([this, gpu] { LeaveIfEmpty(gpu); });
}

void DomainSeats::AskImagesToLeave(ExecutorKey key) {
  const std::set<InstanceId> instances = InstancesOf(key.domain);
  events_.Feed(scheduler::ImagesUnwanted{key.gpu, {instances.begin(), instances.end()}});
}

bool DomainSeats::HasImages(ExecutorKey key) const {
  return std::ranges::any_of(sessions_.all(), [&](const auto& entry) {
    const ClientSession& session = *entry.second;
    if (session.domain != key.domain) return false;
    const ImageState& image = session.image;
    const bool is_coming = image.is_arriving() && image.ArrivedLastAt(key.gpu);
    return image.IsOn(key.gpu) || image.HasReplicaOn(key.gpu) || is_coming;
  });
}

void DomainSeats::LeaveIfEmpty(GpuIndex gpu) {
  const auto leaving = leaving_.find(gpu);
  if (leaving == leaving_.end() || leaving->second.is_ending) return;
  const ExecutorSeat seat = leaving->second.seat;
  GpuExecutor& executor = executors_.At(seat);
  if (HasImages(executor.key())) return;
  leaving->second.is_ending = true;
  if (!executor.is_attached()) return PassOn(seat);  // whatever process comes has served nobody
  executors_.AwaitLoss(executor.key(), [this, seat](const OperationResult&) { PassOn(seat); });
  executors_.ReplaceProcess(executor);
}

void DomainSeats::PassOn(ExecutorSeat seat) {
  const DomainId next = leaving_.at(seat.gpu).next;
  leaving_.erase(seat.gpu);
  GpuExecutor& executor = executors_.At(seat);
  const ExecutorKey old = executor.key();
  last_used_.erase(old);
  executor.Assign({});
  Give(executor, DomainWaitingAt(seat.gpu).value_or(next));
  // Its next request asks for another seat.
  TellServed(old);
  Serve(seat.gpu);
}

void DomainSeats::Answer(const std::function<bool(const Waiting&)>& matches,
                         const absl::Status& status) {
  std::vector<Waiting> answered;
  std::vector<Waiting> others;
  for (Waiting& one : waiting_) (matches(one) ? answered : others).push_back(std::move(one));
  waiting_ = std::move(others);
  for (const Waiting& one : answered) one.then(status);
}

}  // namespace torpor::server
