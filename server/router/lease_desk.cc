#include "server/router/lease_desk.h"

#include <utility>

namespace torpor::server {

LeaseDesk::LeaseDesk(boost::asio::io_context& io, RequestBroker& broker)
    : broker_(broker), link_(std::make_shared<LoopLink>(io)) {}

LeaseDesk::~LeaseDesk() { link_->Cut(); }

LeaseDesk::Ticket LeaseDesk::Ask(const RequestBroker::Demand& demand, Listener& listener) {
  const Ticket ticket = ++last_ticket_;
  auto on_grant = [this, ticket, link = link_](absl::StatusOr<RequestGrant> grant) {
    link->Post([this, ticket, grant = std::move(grant)]() mutable {
      if (Listener* const found = Find(ticket)) found->OnGrant(std::move(grant));
    });
  };
  auto on_lost = [this, ticket, link = link_](absl::Status status) {
    link->Post([this, ticket, status = std::move(status)] {
      if (Listener* const found = Find(ticket)) found->OnLeaseLost(status);
    });
  };
  // Callbacks may come before Acquire returns, but are handled after this function.
  entries_[ticket].listener = &listener;
  entries_[ticket].request = broker_.Acquire(demand, std::move(on_grant), std::move(on_lost));
  return ticket;
}

void LeaseDesk::Confirm(Ticket ticket) {
  broker_.ConfirmLease(entries_.at(ticket).request, Confirmation(ticket));
}

void LeaseDesk::Save(Ticket ticket) {
  broker_.Save(entries_.at(ticket).request, Confirmation(ticket));
}

std::function<void()> LeaseDesk::Confirmation(Ticket ticket) {
  return [this, ticket, link = link_] {
    link->Post([this, ticket] {
      if (Listener* const found = Find(ticket)) found->OnLeaseConfirmed();
    });
  };
}

void LeaseDesk::AskAgain(Ticket ticket) { broker_.AskAgain(entries_.at(ticket).request); }

void LeaseDesk::Release(Ticket ticket, scheduler::Ending ending) {
  const auto entry = entries_.find(ticket);
  const RequestId request = entry->second.request;
  entries_.erase(entry);
  broker_.Release(request, ending);
}

LeaseDesk::Listener* LeaseDesk::Find(Ticket ticket) {
  const auto entry = entries_.find(ticket);
  return entry == entries_.end() ? nullptr : entry->second.listener;
}

}  // namespace torpor::server
