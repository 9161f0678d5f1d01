#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "server/broker/request_broker.h"
#include "server/router/loop_link.h"

namespace torpor::server {

// The broker for the router's thread: carries the controller's callbacks over to the router's loop.
// No callback arrives after Release or after the desk is gone. Used on the router's thread.
class LeaseDesk {
 public:
  // Called on the router's thread.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void OnGrant(absl::StatusOr<RequestGrant> grant) = 0;
    virtual void OnLeaseLost(const absl::Status& status) = 0;
    virtual void OnLeaseConfirmed() = 0;
  };
  using Ticket = std::uint64_t;

  LeaseDesk(boost::asio::io_context& io, RequestBroker& broker);
  ~LeaseDesk();
  LeaseDesk(const LeaseDesk&) = delete;
  LeaseDesk& operator=(const LeaseDesk&) = delete;

  // Asks for a lease; OnGrant follows. `listener` must stay valid until Release.
  Ticket Ask(const RequestBroker::Demand& demand, Listener& listener);
  // OnLeaseConfirmed follows; OnLeaseLost comes before if the lease is lost already.
  void Confirm(Ticket ticket);
  // OnLeaseConfirmed follows, as RequestBroker::Save; OnLeaseLost comes before if it fails.
  void Save(Ticket ticket);
  // OnGrant follows once more, as RequestBroker::AskAgain.
  void AskAgain(Ticket ticket);
  // Ends the lease or the wait, as RequestBroker::Release. Exactly once for every ticket.
  void Release(Ticket ticket, scheduler::Ending ending);

 private:
  struct Entry {
    RequestId request;
    Listener* listener = nullptr;
  };
  Listener* Find(Ticket ticket);
  // Tells the ticket's listener that its lease is confirmed. May be called on any thread.
  std::function<void()> Confirmation(Ticket ticket);

  RequestBroker& broker_;
  const std::shared_ptr<LoopLink> link_;  // shared with callbacks that the broker still holds
  Ticket last_ticket_ = 0;
  std::unordered_map<Ticket, Entry> entries_;
};

}  // namespace torpor::server
