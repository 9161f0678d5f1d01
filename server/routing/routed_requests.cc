#include "server/routing/routed_requests.h"

#include <spdlog/spdlog.h>

#include <string>
#include <utility>

#include "server/broker/broker_messages.h"

namespace torpor::server {
namespace {

v1::TorpordMessage LostMessage(std::uint64_t request, std::uint64_t lease, std::string why) {
  v1::TorpordMessage message;
  message.mutable_lost()->set_request_id(request);
  message.mutable_lost()->set_lease_id(lease);
  message.mutable_lost()->set_message(std::move(why));
  return message;
}

}  // namespace

void RoutedRequests::OnMessage(const v1::RouterMessage::Holding& holding) {
  // Running requests first: they arrived first, and wait in their functions' way.
  for (const auto& running : holding.running()) {
    const bool is_told = !running.demand().ran_on().empty();  // not by earlier routers
    if (is_told) Acquire(running.demand(), LeaseId{running.lease_id()});
  }
  for (const v1::Demand& demand : holding.waiting()) OnMessage(demand);
  if (holding.waiting_size() + holding.running_size() + holding.released_size() > 0) {
    spdlog::info(
        "the router has kept {} requests that wait and {} that run; {} have ended meanwhile",
        holding.waiting_size(), holding.running_size(), holding.released_size());
  }
}

void RoutedRequests::OnMessage(const v1::Demand& demand) { Acquire(demand, LeaseId()); }

void RoutedRequests::Acquire(const v1::Demand& demand, LeaseId granted) {
  const std::uint64_t id = demand.request_id();
  if (is_paused_->load() || requests_.count(id) > 0) return;
  const auto answered = std::make_shared<Answered>();
  answered->lease = granted;
  auto on_grant = [link = link_, is_paused = is_paused_, id,
                   answered](const absl::StatusOr<RequestGrant>& grant) {
    answered->is_refused = !grant.ok();
    if (!grant.ok() && is_paused->load()) return;  // the next torpord decides
    v1::TorpordMessage message;
    if (grant.ok()) {
      answered->lease = grant->lease;
      *message.mutable_grant() = ToMessage(id, *grant);
    } else {
      *message.mutable_refusal() = ToMessage(id, grant.status());
    }
    link->Send(std::move(message));
  };
  auto on_lost = [link = link_, id, answered](const absl::Status& status) {
    link->Send(LostMessage(id, answered->lease.value, std::string(status.message())));
  };
  requests_[id] = {broker_.Acquire(FromMessage(demand), std::move(on_grant), std::move(on_lost)),
                   answered};
}

void RoutedRequests::OnMessage(const v1::RouterMessage::Confirm& confirm) {
  const std::uint64_t id = confirm.request_id();
  auto done = [link = link_, id] {
    v1::TorpordMessage message;
    message.mutable_confirmed()->set_request_id(id);
    link->Send(std::move(message));
  };
  const auto found = requests_.find(id);
  const bool is_known = found != requests_.end();
  if (is_known && !confirm.saves()) {
    return broker_.ConfirmLease(found->second.request, std::move(done));
  }
  // The broker knows nothing of a request that it has refused, and so of no work.
  if (is_known && !found->second.answered->is_refused) {
    return broker_.Save(found->second.request, std::move(done));
  }
  link_->Send(
      LostMessage(id, confirm.lease_id(), "torpord was started anew while the request ran"));
  done();
}

void RoutedRequests::OnMessage(const v1::RouterMessage::AskAgain& again) {
  const auto found = requests_.find(again.demand().request_id());
  if (found == requests_.end()) return OnMessage(again.demand());
  broker_.AskAgain(found->second.request);
}

void RoutedRequests::OnMessage(const v1::RouterMessage::Release& release) {
  const auto found = requests_.find(release.request_id());
  if (found == requests_.end()) return;
  broker_.Release(found->second.request, EndingOf(release));
  requests_.erase(found);
}

std::size_t RoutedRequests::ReleaseAll() {
  const std::size_t released = requests_.size();
  for (const auto& [id, routed] : requests_) {
    broker_.Release(routed.request, scheduler::Ending::kCancelled);
  }
  requests_.clear();
  return released;
}

}  // namespace torpor::server
