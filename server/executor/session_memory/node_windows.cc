#include "server/executor/session_memory/node_windows.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "memory/block_states.h"
#include "server/executor/gpu/address_range.h"
#include "server/executor/session_memory/descriptor_client.h"

namespace torpor::executor {
namespace {

constexpr memory::Extent StatesOf(memory::Extent image) {
  return memory::BlockStates::StatesOf(image, wire::kImageBlockBytes);
}

// Returns where [base, base + bytes) lies in the node's addresses.
absl::StatusOr<memory::Extent> PlaceIn(AddressRange node, std::uint64_t base, Bytes bytes) {
  if (node.Holds(base, bytes)) {
    return memory::Extent{base - node.begin, base - node.begin + bytes};
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("a session has %d bytes of addresses at %#x; this executor has %d at %#x",
                      bytes, base, node.bytes, node.begin));
}

}  // namespace

absl::StatusOr<std::unique_ptr<NodeWindows>> NodeWindows::Reserve(
    const server::NodeAddresses& addresses, Bytes chunk_bytes, bool wants_huge_pages) {
  std::unique_ptr<NodeWindows> windows(
      new NodeWindows(addresses, server::DeviceSegmentBytes(chunk_bytes)));
  TORPOR_ASSIGN_OR_RETURN(windows->arenas_,
                          AddressWindow::Reserve(addresses.host_bytes, addresses.host_base));
  TORPOR_ASSIGN_OR_RETURN(windows->images_,
                          wants_huge_pages
                              ? AddressWindow::ReserveForHugePages(addresses.device_bytes)
                              : AddressWindow::Reserve(addresses.device_bytes));
  TORPOR_ASSIGN_OR_RETURN(windows->annexes_, AddressWindow::Reserve(addresses.device_bytes));
  TORPOR_ASSIGN_OR_RETURN(windows->block_states_,
                          AddressWindow::Reserve(StatesOf({0, addresses.device_bytes}).end));
  return windows;
}

absl::StatusOr<MappedSessionFiles> NodeWindows::Open(const std::string& descriptor_socket,
                                                     const SessionIdentity& identity) const {
  TORPOR_ASSIGN_OR_RETURN(const memory::Extent image,
                          PlaceIn({addresses_.device_base, addresses_.device_bytes},
                                  identity.device_base, identity.device_bytes));
  const auto fetch = [&](wire::SharedMemory what) {
    return FetchDescriptor(descriptor_socket, identity.id, identity.key, what);
  };
  const auto in_parts = [&](wire::SharedMemory what, const AddressWindow& window,
                            memory::Extent place, Bytes unit,
                            Bytes from = 0) -> absl::StatusOr<SharedMapping> {
    TORPOR_ASSIGN_OR_RETURN(UniqueFd file, fetch(what));
    return SharedMapping::InParts(std::move(file), window, place, unit, from);
  };
  MappedSessionFiles files;
  TORPOR_ASSIGN_OR_RETURN(const UniqueFd window, fetch(wire::SharedMemory::kWindow));
  TORPOR_ASSIGN_OR_RETURN(files.window, SharedMapping::Map(window, identity.window_bytes));
  TORPOR_ASSIGN_OR_RETURN(files.image.image,
                          in_parts(wire::SharedMemory::kImage, *images_, image, segment_bytes_));
  TORPOR_ASSIGN_OR_RETURN(files.image.annex, in_parts(wire::SharedMemory::kImage, *annexes_, image,
                                                      segment_bytes_, identity.device_bytes));
  TORPOR_ASSIGN_OR_RETURN(files.image.blocks.records,
                          in_parts(wire::SharedMemory::kBlockStates, *block_states_,
                                   StatesOf(image), StatesOf({0, segment_bytes_}).end));
  TORPOR_ASSIGN_OR_RETURN(const UniqueFd states, fetch(wire::SharedMemory::kBlockStates));
  const Bytes checkpoint =
      memory::LayoutOfBlockStates(identity.device_bytes, wire::kImageBlockBytes).checkpoint;
  TORPOR_ASSIGN_OR_RETURN(
      files.image.blocks.checkpoint,
      SharedMapping::Map(states, memory::kCheckpointPageBytes, /*address=*/0, checkpoint));
  if (identity.host_bytes == 0) return files;
  TORPOR_ASSIGN_OR_RETURN(const memory::Extent arena,
                          PlaceIn({addresses_.host_base, addresses_.host_bytes}, identity.host_base,
                                  identity.host_bytes));
  TORPOR_ASSIGN_OR_RETURN(files.arena, in_parts(wire::SharedMemory::kHostArena, *arenas_, arena,
                                                server::kHostSegmentBytes));
  return files;
}

}  // namespace torpor::executor
