#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "base/units.h"
#include "server/controller/model/client_session.h"

namespace torpor::server {

// Host memory of a session without allocations: pages of block states and of the window.
inline constexpr Bytes kSessionBytes = 128 * kKiB;

// How much host memory sessions may take, and take. Allocations count, in whole chunks, written or
// not: a write-back must never find the memory gone. Blocks in tenants' files count once. On the
// controller's thread.
class HostBudget {
 public:
  static constexpr Bytes kUnlimited = std::numeric_limits<Bytes>::max();

  struct Use {
    Bytes budget = kUnlimited;
    Bytes used = 0;
    Bytes tenant_files = 0;  // of `used`: blocks that sessions share
    std::uint64_t refusals = 0;
  };

  explicit HostBudget(Bytes budget) : use_{.budget = budget} {}

  // The session is new, or has allocated. ResourceExhausted, with a reason for users, if that is
  // beyond the budget: the caller takes the allocation back. The first refusal of a session is
  // logged, and the first after it was allowed more.
  absl::Status Admit(ClientSession& session);
  // The session has freed memory, was restored with allocations, or its image has left host memory
  // or comes back.
  void Settle(ClientSession& session);
  // Sets the bytes of all tenants' files. Blocks there count once, and not as a session's own: a
  // change of such blocks takes memory beyond the budget, if need be.
  void SetTenantFiles(Bytes bytes);
  // The session has no memory any more.
  void Forget(ClientSession& session);

  const Use& use() const { return use_; }
  Bytes free_bytes() const { return use_.budget - std::min(use_.budget, use_.used); }

 private:
  void Count(ClientSession& session, Bytes bytes);

  Use use_;
};

}  // namespace torpor::server
