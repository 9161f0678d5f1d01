#pragma once

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "server/controller/images/image_swaps.h"
#include "server/controller/images/peer_access.h"
#include "server/controller/memory/device_allocations.h"
#include "server/controller/model/instance_table.h"
#include "server/controller/model/session_table.h"

namespace torpor::server {

// Shares allocations among processes of a function: the owner names an allocation by a token, other
// processes open it. The memory stays in the owner's image and at the owner's address. On the
// controller's thread.
class SharedAllocations {
 public:
  // Runs the rest of a step of a session whose process has gone, when no block is open any more.
  using FinishClosing = std::function<void(const SessionPtr&, const StepQueue::Finish&)>;

  // The arguments must outlive the object.
  SharedAllocations(InstanceTable& instances, const SessionTable& sessions, ImageSwaps& swaps,
                    PeerAccess& peers, DeviceAllocations& allocations, FinishClosing finish_closing)
      : instances_(instances),
        sessions_(sessions),
        swaps_(swaps),
        peers_(peers),
        allocations_(allocations),
        finish_closing_(std::move(finish_closing)) {}

  // Each call is answered to the client.
  void Share(const SessionPtr& session, const wire::ShareMemory& call);
  void Open(const SessionPtr& session, const wire::OpenMemory& call);
  void Close(const SessionPtr& session, const wire::CloseMemory& call);

  // The session ends: closes all blocks open in its process.
  void CloseAll(ClientSession& opener);

 private:
  struct Found {
    SessionPtr owner;
    Bytes offset = 0;
  };
  // Returns the block named by `call` and its owner; nullopt if `session` may not open it.
  std::optional<Found> Find(const ClientSession& session, const wire::OpenMemory& call) const;
  // Brings the owner's image to the GPU of the present lease, if any, and lets peers map it; then
  // calls `then`. Later leases bring all shared images anyway.
  void MakeReachable(const SessionPtr& owner, const std::function<void(absl::Status)>& then);
  void ShareWhenArrived(const SessionPtr& owner, const std::function<void(absl::Status)>& then);
  void CloseBlock(SessionId owner, Bytes offset, SessionId opener);

  InstanceTable& instances_;
  const SessionTable& sessions_;
  ImageSwaps& swaps_;
  PeerAccess& peers_;
  DeviceAllocations& allocations_;
  const FinishClosing finish_closing_;
};

}  // namespace torpor::server
