#include "server/executor/session_memory/node_windows.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "memory/block_states.h"
#include "server/executor/session_memory/descriptor_client.h"

namespace torpor::executor {
namespace {

constexpr Bytes StateBytes(Bytes image_bytes) {
  return image_bytes / wire::kImageBlockBytes * memory::BlockStates::kBytesPerBlock;
}

// Returns where [base, base + bytes) lies in the node's range.
absl::StatusOr<memory::Extent> PlaceIn(std::uint64_t node_base, Bytes node_bytes,
                                       std::uint64_t base, Bytes bytes) {
  const Bytes begin = base - node_base;
  if (base >= node_base && begin <= node_bytes && bytes <= node_bytes - begin) {
    return memory::Extent{begin, begin + bytes};
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("a session has %d bytes of addresses at %#x; this executor has %d at %#x",
                      bytes, base, node_bytes, node_base));
}

}  // namespace

absl::StatusOr<std::unique_ptr<NodeWindows>> NodeWindows::Reserve(
    const server::NodeAddresses& addresses, Bytes chunk_bytes) {
  std::unique_ptr<NodeWindows> windows(
      new NodeWindows(addresses, server::DeviceSegmentBytes(chunk_bytes)));
  TORPOR_ASSIGN_OR_RETURN(windows->arenas_,
                          AddressWindow::Reserve(addresses.host_bytes, addresses.host_base));
  TORPOR_ASSIGN_OR_RETURN(windows->images_, AddressWindow::Reserve(addresses.device_bytes));
  TORPOR_ASSIGN_OR_RETURN(windows->block_states_,
                          AddressWindow::Reserve(StateBytes(addresses.device_bytes)));
  return windows;
}

absl::StatusOr<MappedSessionFiles> NodeWindows::Open(const std::string& descriptor_socket,
                                                     const SessionIdentity& identity) const {
  TORPOR_ASSIGN_OR_RETURN(const memory::Extent image,
                          PlaceIn(addresses_.device_base, addresses_.device_bytes,
                                  identity.device_base, identity.device_bytes));
  const auto fetch = [&](wire::SharedMemory what) {
    return FetchDescriptor(descriptor_socket, identity.id, identity.key, what);
  };
  const auto in_parts = [&](wire::SharedMemory what, const AddressWindow& window,
                            memory::Extent place, Bytes unit) -> absl::StatusOr<SharedMapping> {
    TORPOR_ASSIGN_OR_RETURN(UniqueFd file, fetch(what));
    return SharedMapping::InParts(std::move(file), window, place, unit);
  };
  MappedSessionFiles files;
  TORPOR_ASSIGN_OR_RETURN(const UniqueFd window, fetch(wire::SharedMemory::kWindow));
  TORPOR_ASSIGN_OR_RETURN(files.window, SharedMapping::Map(window, identity.window_bytes));
  TORPOR_ASSIGN_OR_RETURN(files.image.image,
                          in_parts(wire::SharedMemory::kImage, *images_, image, segment_bytes_));
  TORPOR_ASSIGN_OR_RETURN(
      files.image.block_states,
      in_parts(wire::SharedMemory::kBlockStates, *block_states_,
               {StateBytes(image.begin), StateBytes(image.end)}, StateBytes(segment_bytes_)));
  if (identity.host_bytes == 0) return files;
  TORPOR_ASSIGN_OR_RETURN(const memory::Extent arena,
                          PlaceIn(addresses_.host_base, addresses_.host_bytes, identity.host_base,
                                  identity.host_bytes));
  TORPOR_ASSIGN_OR_RETURN(files.arena, in_parts(wire::SharedMemory::kHostArena, *arenas_, arena,
                                                server::kHostSegmentBytes));
  return files;
}

}  // namespace torpor::executor
