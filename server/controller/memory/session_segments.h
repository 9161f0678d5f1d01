#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/units.h"
#include "memory/range_allocator.h"
#include "server/controller/memory/host_budget.h"
#include "server/controller/model/client_session.h"
#include "server/repository/logged_sessions.h"
#include "server/repository/session_addresses.h"
#include "server/settings/node_addresses.h"

namespace torpor::server {

// Gives sessions segments of the node's addresses: one of GPU addresses at the begin, and more of
// both kinds when allocations need more. Nothing is given beyond the budget of host memory. On the
// controller's thread.
class SessionSegments {
 public:
  struct Options {
    NodeAddresses addresses;
    // A session may have so many GPU addresses, or more if its memory_limit needs more.
    Bytes address_range = 0;
    Bytes chunk_bytes = 0;
    // Chunks lie apart on a GPU: an allocation cannot span two.
    bool is_apart = false;
    Bytes host_budget = HostBudget::kUnlimited;  // of all sessions together
  };

  explicit SessionSegments(const Options& options);

  // Gives a new session its first segment, and its allocators. `memory_limit`: bytes of device
  // memory that the client may allocate. ResourceExhausted if no addresses, or no host memory, are
  // left.
  absl::Status Begin(ClientSession& session, Bytes memory_limit);
  // Gives a session that an earlier torpord has opened the segments and the allocations that it
  // had. FailedPrecondition if the node's addresses are others, or not free.
  absl::Status Restore(ClientSession& session, const LoggedSession& logged);
  // Allocate `bytes` (> 0) of the session's addresses, which grow if these have no room.
  // ResourceExhausted, with a reason for users, if the session or the node has none left, or no
  // host memory. Pinned memory is the primary session's.
  absl::StatusOr<memory::Block> AllocateDevice(ClientSession& session, Bytes bytes);
  absl::StatusOr<memory::Block> AllocateHost(ClientSession& session, Bytes bytes);
  // Call after an allocation of the session was freed, and when its image has left host memory or
  // is about to come back.
  void Settle(ClientSession& session) { budget_.Settle(session); }
  // As HostBudget.
  void SetTenantFiles(Bytes bytes) { budget_.SetTenantFiles(bytes); }
  // Takes all segments back. No executor and no client uses them any more.
  void Release(ClientSession& session);

  const NodeAddresses& addresses() const { return options_.addresses; }
  Bytes free_device_bytes() const { return device_.free_bytes(); }
  const HostBudget::Use& host_memory() const { return budget_.use(); }
  Bytes free_host_bytes() const { return budget_.free_bytes(); }

 private:
  // Gives the session the node's bases, its limit, and allocators without addresses.
  void Prepare(ClientSession& session, Bytes address_limit);
  // Returns the new block of `allocator`, or frees it and says why the budget does not allow it.
  absl::StatusOr<memory::Block> Admitted(ClientSession& session, memory::RangeAllocator& allocator,
                                         memory::Block block);
  bool IsAsLogged(const SessionOpened& opened) const;

  const Options options_;
  SessionAddresses device_;
  SessionAddresses host_;
  HostBudget budget_;
};

}  // namespace torpor::server
