#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <optional>

#include "base/clock.h"
#include "server/router/lease_desk.h"
#include "server/router/loop_event.h"
#include "server/router/request_failure.h"

namespace torpor::server {

// The lease of one request, from the demand to its release. Notes a refused or lost lease in the
// request's failure. Used on the router's thread.
class RequestLease final : private LeaseDesk::Listener {
 public:
  // All must outlive the lease.
  RequestLease(boost::asio::io_context& io, LeaseDesk& desk, RequestFailure& failure)
      : desk_(desk), failure_(failure), changed_(io) {}
  RequestLease(const RequestLease&) = delete;
  RequestLease& operator=(const RequestLease&) = delete;
  // Release must have come first, if Acquire was called.
  ~RequestLease() override = default;

  // Asks for a lease and returns once it is granted or the request has failed. At most once;
  // `demand` must outlive the call.
  boost::asio::awaitable<void> Acquire(const RequestBroker::Demand& demand);
  // Gives the lease back, as RequestBroker::AskAgain, and returns once another one is granted or
  // the request has failed. After the grant.
  boost::asio::awaitable<void> AskAgain();
  // Returns once the lease is known to have been intact at the call, or the request has failed. A
  // function may see that its GPU is gone before the controller does, and answer with an error or
  // die of it: then the loss is noted within this wait. One caller at a time, after the grant.
  boost::asio::awaitable<void> Confirm();
  // Returns once host memory has the work of the request, or the request has failed: at `late` as
  // late, since endless work is never saved. One caller at a time, after the grant.
  boost::asio::awaitable<void> Save(TimePoint late);
  // Ends the lease, or the wait for one. No effect before Acquire or when called again.
  void Release(scheduler::Ending ending);
  // Lets Acquire and Confirm see that the request has failed.
  void Wake() { changed_.Notify(); }

  // nullopt before the grant, and while AskAgain waits; stays after Release.
  const std::optional<RequestGrant>& grant() const { return grant_; }
  TimePoint granted_at() const { return granted_at_; }

 private:
  void OnGrant(absl::StatusOr<RequestGrant> grant) override;
  void OnLeaseLost(const absl::Status& status) override;
  void OnLeaseConfirmed() override;

  LeaseDesk& desk_;
  RequestFailure& failure_;
  LoopEvent changed_;
  std::optional<LeaseDesk::Ticket> ticket_;
  std::optional<RequestGrant> grant_;
  TimePoint granted_at_{};
  bool is_confirmed_ = false;
};

}  // namespace torpor::server
