#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "server/broker/swap_source.h"

namespace torpor::server {

// How far a session is with the lease of its instance, in ascending order.
enum class ParticipantState {
  kPreparing,  // the image is brought, and the executor is told
  kOffered,    // the session is told
  kAcked,      // the session has acknowledged the grant
  kReturning,  // the session has given the lease back
};

// The lease of an instance and its participants. A plain record.
struct InstanceLease {
  LeaseId id;
  std::vector<GpuIndex> gpus;  // by device index of the sessions
  bool is_explicit = false;    // for requests of the router, not for a program outside of requests
  bool is_revoked = false;
  TimePoint since;
  TimePoint last_request;  // when the latest of its requests was let in
  SwapSource source = SwapSource::kResident;
  std::map<SessionId, ParticipantState> participants;
  std::set<RequestId> requests;

  bool IsOn(GpuIndex gpu) const { return std::find(gpus.begin(), gpus.end(), gpu) != gpus.end(); }
};

}  // namespace torpor::server
