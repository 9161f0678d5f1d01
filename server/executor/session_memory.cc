#include "server/executor/session_memory.h"

#include <utility>

#include "base/status_macros.h"
#include "server/executor/descriptor_client.h"

namespace torpor::executor {
namespace {

constexpr Bytes kPageBytes = 4 * kKiB;

}  // namespace

absl::StatusOr<SessionFiles> OpenSessionFiles(const std::string& descriptor_socket,
                                              const SessionIdentity& identity) {
  const auto open = [&](wire::SharedMemory what, Bytes bytes,
                        std::uint64_t address) -> absl::StatusOr<SharedMapping> {
    TORPOR_ASSIGN_OR_RETURN(const UniqueFd file,
                            FetchDescriptor(descriptor_socket, identity.id, identity.key, what));
    return SharedMapping::Map(file, bytes, address);
  };
  SessionFiles files;
  TORPOR_ASSIGN_OR_RETURN(files.window,
                          open(wire::SharedMemory::kWindow, identity.window_bytes, 0));
  TORPOR_ASSIGN_OR_RETURN(
      files.arena, open(wire::SharedMemory::kHostArena, identity.host_bytes, identity.host_base));
  TORPOR_ASSIGN_OR_RETURN(files.image, open(wire::SharedMemory::kImage, identity.device_bytes, 0));
  return files;
}

absl::StatusOr<std::unique_ptr<SessionMemory>> SessionMemory::Open(const Device& device,
                                                                   PhysicalPool& pool,
                                                                   const SessionIdentity& identity,
                                                                   SessionFiles files) {
  TORPOR_ASSIGN_OR_RETURN(std::unique_ptr<SessionWindow> window,
                          SessionWindow::Open(device, std::move(files.window)));
  TORPOR_ASSIGN_OR_RETURN(std::unique_ptr<DeviceImage> image,
                          DeviceImage::Open(device, pool, identity.device_base,
                                            identity.device_bytes, std::move(files.image)));
  return std::unique_ptr<SessionMemory>(
      new SessionMemory(device, std::move(files.arena), std::move(image), std::move(window)));
}

SessionMemory::SessionMemory(const Device& device, SharedMapping arena,
                             std::unique_ptr<DeviceImage> image,
                             std::unique_ptr<SessionWindow> window)
    : arena_(std::move(arena)),
      arena_pins_(device, arena_.data(), arena_.bytes(), kPageBytes),
      image_(std::move(image)),
      window_(std::move(window)) {}

bool SessionMemory::IsAddressable(std::uint64_t address, Bytes bytes) const {
  if (image_->Contains(address, bytes)) return true;
  const std::uint8_t* const pinned = ArenaAt(address, bytes);
  if (pinned == nullptr) return false;
  const auto begin = static_cast<Bytes>(pinned - arena_.data());
  return arena_pins_.Contains({begin, begin + bytes});
}

}  // namespace torpor::executor
