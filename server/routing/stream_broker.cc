#include "server/routing/stream_broker.h"

#include <utility>

#include "server/broker/broker_messages.h"

namespace torpor::server {
namespace {

constexpr Duration kConfirmPatience = std::chrono::seconds(1);
// torpord gives requests up by itself; the router only if torpord does not.
constexpr Duration kSilence = std::chrono::seconds(1);

}  // namespace

RequestId StreamBroker::Acquire(const Demand& demand, OnGrant on_grant, OnLost on_lost) {
  MutexLock lock(&mutex_);
  const std::uint64_t id = ++last_id_;
  Request& request = requests_[id];
  request.demand = demand;
  if (!request.demand.arrival) request.demand.arrival = clock_.Now();
  request.patience = demand.give_up - clock_.Now();
  request.on_grant = std::move(on_grant);
  request.on_lost = std::move(on_lost);
  if (link_ != nullptr) {
    v1::RouterMessage message;
    *message.mutable_acquire() = ToMessage(id, request.demand);
    link_->Send(std::move(message));
  }
  return RequestId{id};
}

void StreamBroker::ConfirmLease(RequestId request, std::function<void()> done) {
  BeginConfirm(request, /*saves=*/false, clock_.Now() + kConfirmPatience, std::move(done));
}

void StreamBroker::Save(RequestId request, std::function<void()> done) {
  BeginConfirm(request, /*saves=*/true, TimePoint::max(), std::move(done));
}

void StreamBroker::BeginConfirm(RequestId request, bool saves, TimePoint by,
                                std::function<void()> done) {
  MutexLock lock(&mutex_);
  Request& running = requests_.at(request.value);
  running.on_confirmed = std::move(done);
  running.saves = saves;
  running.confirm_by = by;
  if (link_ != nullptr) SendConfirm(request.value, running);
}

void StreamBroker::SendConfirm(std::uint64_t id, const Request& request) {
  v1::RouterMessage message;
  message.mutable_confirm()->set_request_id(id);
  message.mutable_confirm()->set_lease_id(request.lease.value);
  message.mutable_confirm()->set_saves(request.saves);
  link_->Send(std::move(message));
}

void StreamBroker::AskAgain(RequestId request) {
  MutexLock lock(&mutex_);
  Request& asking = requests_.at(request.value);
  const LeaseId left = std::exchange(asking.lease, {});
  asking.state = Request::State::kWaiting;
  asking.demand.ran_on.clear();
  asking.demand.granted.reset();
  if (asking.demand.give_up != TimePoint::max()) {
    asking.demand.give_up = clock_.Now() + asking.patience;
  }
  asking.is_lost = false;
  asking.on_confirmed = nullptr;
  if (link_ == nullptr) return;  // the next torpord hears of one that waits
  v1::RouterMessage message;
  *message.mutable_ask_again() = ToMessage(request.value, left, asking.demand);
  link_->Send(std::move(message));
}

void StreamBroker::Release(RequestId request, scheduler::Ending ending) {
  MutexLock lock(&mutex_);
  const auto entry = requests_.extract(request.value);
  const Request& ended = entry.mapped();
  v1::RouterMessage message;
  *message.mutable_release() = ToMessage(request.value, ended.lease, ending);
  if (link_ != nullptr) {
    link_->Send(std::move(message));
  } else if (ended.state == Request::State::kRunning) {
    released_.push_back(message.release());
  }
}

void StreamBroker::Attach(std::shared_ptr<TorpordLink> link) {
  MutexLock lock(&mutex_);
  link_ = std::move(link);
  v1::RouterMessage message;
  v1::RouterMessage::Holding& holding = *message.mutable_holding();
  for (const auto& [id, request] : requests_) {
    if (request.state == Request::State::kWaiting) {
      *holding.add_waiting() = ToMessage(id, request.demand);
    } else if (request.state == Request::State::kRunning) {
      v1::RouterMessage::Holding::Running& running = *holding.add_running();
      *running.mutable_demand() = ToMessage(id, request.demand);
      running.set_lease_id(request.lease.value);
    }
  }
  for (v1::RouterMessage::Release& release : released_) {
    *holding.add_released() = std::move(release);
  }
  released_.clear();
  link_->Send(std::move(message));
  for (const auto& [id, request] : requests_) {
    if (request.on_confirmed) SendConfirm(id, request);
  }
}

void StreamBroker::Detach() {
  MutexLock lock(&mutex_);
  link_ = nullptr;
}

void StreamBroker::OnMessage(const v1::TorpordMessage::Grant& grant) {
  OnGrant on_grant;
  {
    MutexLock lock(&mutex_);
    const auto found = requests_.find(grant.request_id());
    if (found == requests_.end() || found->second.state != Request::State::kWaiting) return;
    found->second.state = Request::State::kRunning;
    found->second.lease = LeaseId{grant.lease_id()};
    found->second.demand.ran_on = grant.instance();
    found->second.demand.granted = clock_.Now();
    on_grant = found->second.on_grant;
  }
  on_grant(FromMessage(grant));
}

void StreamBroker::OnMessage(const v1::TorpordMessage::Refusal& refusal) {
  Refuse(refusal.request_id(), FromMessage(refusal));
}

void StreamBroker::OnMessage(const v1::TorpordMessage::Lost& lost) {
  Lose(lost.request_id(), LeaseId{lost.lease_id()}, absl::UnavailableError(lost.message()));
}

void StreamBroker::OnMessage(const v1::TorpordMessage::Confirmed& confirmed) {
  Confirm(confirmed.request_id());
}

void StreamBroker::Refuse(std::uint64_t id, const absl::Status& status) {
  OnGrant on_grant;
  {
    MutexLock lock(&mutex_);
    const auto found = requests_.find(id);
    if (found == requests_.end() || found->second.state != Request::State::kWaiting) return;
    found->second.state = Request::State::kRefused;
    on_grant = found->second.on_grant;
  }
  on_grant(status);
}

void StreamBroker::Lose(std::uint64_t id, LeaseId lease, const absl::Status& status) {
  OnLost on_lost;
  {
    MutexLock lock(&mutex_);
    const auto found = requests_.find(id);
    if (found == requests_.end()) return;
    Request& request = found->second;
    // Of a lease that the request has left meanwhile nobody wants to hear.
    const bool is_held = request.state == Request::State::kRunning && request.lease == lease;
    if (!is_held || std::exchange(request.is_lost, true)) return;
    on_lost = request.on_lost;
  }
  on_lost(status);
}

void StreamBroker::Confirm(std::uint64_t id) {
  std::function<void()> on_confirmed;
  {
    MutexLock lock(&mutex_);
    const auto found = requests_.find(id);
    if (found == requests_.end()) return;
    on_confirmed = std::exchange(found->second.on_confirmed, nullptr);
  }
  if (on_confirmed) on_confirmed();
}

void StreamBroker::Expire() {
  std::vector<std::uint64_t> given_up;
  std::vector<std::pair<std::uint64_t, LeaseId>> unconfirmed;
  bool is_away = false;
  {
    MutexLock lock(&mutex_);
    is_away = link_ == nullptr;
    const TimePoint now = clock_.Now();
    const TimePoint latest = is_away ? now : now - kSilence;
    for (const auto& [id, request] : requests_) {
      if (request.state == Request::State::kWaiting && request.demand.give_up <= latest) {
        given_up.push_back(id);
      }
      if (request.on_confirmed && request.confirm_by <= latest) {
        unconfirmed.emplace_back(id, request.lease);
      }
    }
  }
  const std::string why = is_away ? "torpord is away" : "torpord does not answer";
  for (const std::uint64_t id : given_up) Refuse(id, absl::DeadlineExceededError(why));
  for (const auto& [id, lease] : unconfirmed) {
    Lose(id, lease, absl::UnavailableError(why));
    Confirm(id);
  }
}

}  // namespace torpor::server
