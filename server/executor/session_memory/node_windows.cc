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

absl::Status CheckRange(const char* what, std::uint64_t base, Bytes bytes,
                        std::uint64_t expected_base, Bytes expected_bytes) {
  if (base == expected_base && bytes == expected_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "a session's %s addresses begin at %#x, with %d bytes; this executor has %#x, with %d", what,
      base, bytes, expected_base, expected_bytes));
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
  TORPOR_RETURN_IF_ERROR(CheckRange("GPU", identity.device_base, identity.device_bytes,
                                    addresses_.device_base, addresses_.device_bytes));
  const auto fetch = [&](wire::SharedMemory what) {
    return FetchDescriptor(descriptor_socket, identity.id, identity.key, what);
  };
  const auto in_parts = [&](wire::SharedMemory what, const AddressWindow& window,
                            Bytes unit) -> absl::StatusOr<SharedMapping> {
    TORPOR_ASSIGN_OR_RETURN(UniqueFd file, fetch(what));
    return SharedMapping::InParts(std::move(file), window, unit);
  };
  MappedSessionFiles files;
  TORPOR_ASSIGN_OR_RETURN(const UniqueFd window, fetch(wire::SharedMemory::kWindow));
  TORPOR_ASSIGN_OR_RETURN(files.window, SharedMapping::Map(window, identity.window_bytes));
  TORPOR_ASSIGN_OR_RETURN(files.image.image,
                          in_parts(wire::SharedMemory::kImage, *images_, segment_bytes_));
  TORPOR_ASSIGN_OR_RETURN(
      files.image.block_states,
      in_parts(wire::SharedMemory::kBlockStates, *block_states_, StateBytes(segment_bytes_)));
  if (identity.host_bytes == 0) return files;
  TORPOR_RETURN_IF_ERROR(CheckRange("host", identity.host_base, identity.host_bytes,
                                    addresses_.host_base, addresses_.host_bytes));
  TORPOR_ASSIGN_OR_RETURN(
      files.arena, in_parts(wire::SharedMemory::kHostArena, *arenas_, server::kHostSegmentBytes));
  return files;
}

}  // namespace torpor::executor
