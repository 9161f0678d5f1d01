#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "server/controller/request_broker.h"

namespace torpor::server {

// How far a session is with the lease of its instance, in the order in which it goes.
enum class MemberState {
  kPreparing,  // the executor is told
  kOffered,    // the session is told
  kAcked,
  kReturning,  // the session has given it back
};

// The lease of an instance, shared by its sessions.
struct Lease {
  LeaseId id;
  std::vector<GpuIndex> gpus;  // by the index of the device that sessions use
  bool is_explicit = false;
  bool is_revoked = false;
  TimePoint since;
  SwapSource source = SwapSource::kResident;
  std::map<SessionId, MemberState> members;
  std::set<RequestId> requests;

  bool IsOn(GpuIndex gpu) const { return std::find(gpus.begin(), gpus.end(), gpu) != gpus.end(); }
};

}  // namespace torpor::server
