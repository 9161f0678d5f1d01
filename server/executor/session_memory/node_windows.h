#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "server/executor/gpu/address_window.h"
#include "server/executor/session_memory/session_memory.h"
#include "server/settings/node_addresses.h"

namespace torpor::executor {

// Where this process maps the memory files of all sessions: a window each for images, for their
// annexes, for states of their blocks, and for host arenas, the last at the clients' own addresses.
// A file's parts lie at its session's addresses, so that sessions never overlap, and a session
// takes up no more of this process than its segments.
class NodeWindows {
 public:
  // `wants_huge_pages`: behind images.
  static absl::StatusOr<std::unique_ptr<NodeWindows>> Reserve(
      const server::NodeAddresses& addresses, Bytes chunk_bytes, bool wants_huge_pages = false);

  // Fetches the session's files from torpord; nothing but the window is mapped yet. Blocks.
  // InvalidArgument if the session's addresses are not among the node's.
  absl::StatusOr<MappedSessionFiles> Open(const std::string& descriptor_socket,
                                          const SessionIdentity& identity) const;

 private:
  NodeWindows(const server::NodeAddresses& addresses, Bytes segment_bytes)
      : addresses_(addresses), segment_bytes_(segment_bytes) {}

  const server::NodeAddresses addresses_;
  const Bytes segment_bytes_;
  std::unique_ptr<AddressWindow> images_;
  std::unique_ptr<AddressWindow> annexes_;
  std::unique_ptr<AddressWindow> block_states_;
  std::unique_ptr<AddressWindow> arenas_;
};

}  // namespace torpor::executor
