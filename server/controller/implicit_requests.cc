#include "server/controller/implicit_requests.h"

#include <utility>

namespace torpor::server {

void ImplicitRequests::Add(ClientSession& session) {
  session.lease.implicit_request = RequestId{next_++};
  by_request_[session.lease.implicit_request] = session.id;
  events_.Feed(scheduler::RequestArrived{.request = session.lease.implicit_request,
                                         .instance = session.instance,
                                         .is_implicit = true});
}

void ImplicitRequests::Requeue(RequestId request) {
  const SessionPtr session = SessionOf(request);
  if (!session) return;
  events_.Feed(scheduler::RequestArrived{
      .request = request, .instance = session->instance, .is_implicit = true});
}

void ImplicitRequests::Withdraw(ClientSession& session) {
  const RequestId request = Take(session);
  if (request) events_.Feed(scheduler::RequestGone{request});
}

RequestId ImplicitRequests::Take(ClientSession& session) {
  const RequestId request = std::exchange(session.lease.implicit_request, {});
  by_request_.erase(request);
  return request;
}

SessionPtr ImplicitRequests::SessionOf(RequestId request) const {
  const auto found = by_request_.find(request);
  return found == by_request_.end() ? nullptr : sessions_.Find(found->second);
}

}  // namespace torpor::server
