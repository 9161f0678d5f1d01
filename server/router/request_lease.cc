#include "server/router/request_lease.h"

#include <string>
#include <utility>

namespace torpor::server {

boost::asio::awaitable<void> RequestLease::Acquire(const RequestBroker::Demand& demand) {
  ticket_ = desk_.Ask(demand, *this);
  while (!grant_ && !failure_) co_await changed_.Wait();
}

boost::asio::awaitable<void> RequestLease::AskAgain() {
  grant_.reset();
  desk_.AskAgain(*ticket_);
  while (!grant_ && !failure_) co_await changed_.Wait();
}

boost::asio::awaitable<void> RequestLease::Confirm() {
  is_confirmed_ = false;
  desk_.Confirm(*ticket_);
  while (!is_confirmed_ && !failure_) co_await changed_.Wait();
}

boost::asio::awaitable<void> RequestLease::Save(TimePoint late) {
  is_confirmed_ = false;
  desk_.Save(*ticket_);
  while (!is_confirmed_ && !failure_ && SteadyClock().Now() < late) {
    co_await changed_.WaitUntil(late);
  }
  if (!is_confirmed_) {
    failure_.Set(RequestFailure::Cause::kUpstreamTimeout, "its work was not saved in time");
  }
}

void RequestLease::Release(scheduler::Ending ending) {
  if (!ticket_) return;
  desk_.Release(*ticket_, ending);
  ticket_.reset();
}

void RequestLease::OnGrant(absl::StatusOr<RequestGrant> grant) {
  if (grant.ok()) {
    grant_ = *std::move(grant);
    granted_at_ = SteadyClock().Now();
  } else {
    failure_.SetNotGranted(grant.status());
  }
  changed_.Notify();
}

void RequestLease::OnLeaseLost(const absl::Status& status) {
  failure_.Set(RequestFailure::Cause::kLeaseLost, std::string(status.message()));
}

void RequestLease::OnLeaseConfirmed() {
  is_confirmed_ = true;
  changed_.Notify();
}

}  // namespace torpor::server
