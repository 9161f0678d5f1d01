#pragma once

#include <cstdint>
#include <map>

#include "server/controller/model/event_sink.h"
#include "server/controller/model/session_table.h"

namespace torpor::server {

// Requests for implicit leases, by sessions whose programs need a GPU outside of the router's
// requests. Keeps SessionLease::implicit_request. On the controller's thread.
class ImplicitRequests {
 public:
  // The arguments must outlive the object.
  ImplicitRequests(const SessionTable& sessions, EventSink& events)
      : sessions_(sessions), events_(events) {}

  // Asks the scheduler for a lease. The session must not have a request yet.
  void Add(ClientSession& session);
  // Asks again after a loss of the granted lease. Ignores unknown requests.
  void Requeue(RequestId request);
  // Withdraws the session's request, if any.
  void Withdraw(ClientSession& session);
  // Removes the session's request without telling the scheduler. Returns the request, unset if
  // there was none.
  RequestId Take(ClientSession& session);

  bool Has(RequestId request) const { return by_request_.count(request) > 0; }
  // Returns null if the request is unknown.
  SessionPtr SessionOf(RequestId request) const;

 private:
  const SessionTable& sessions_;
  EventSink& events_;
  std::map<RequestId, SessionId> by_request_;
  // The router's requests count from 1, far below.
  std::uint64_t next_ = std::uint64_t{1} << 63;
};

}  // namespace torpor::server
