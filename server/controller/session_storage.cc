#include "server/controller/session_storage.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace torpor::server {

absl::Status SessionStorage::Create(ClientSession& session, Bytes memory_limit) {
  SessionAllocations& memory = session.memory;
  // Room for fragmentation, so that a program can allocate all of its limit. Chunks that lie apart
  // take up to twice their bytes of addresses.
  const Bytes room =
      options_.is_apart ? 2 * memory_limit + memory_limit / 4 : memory_limit + memory_limit / 8;
  memory.device_bytes = RoundUp(std::max(options_.address_range, room), options_.chunk_bytes);
  const auto address = addresses_.Reserve(memory.device_bytes + session.arena_bytes());
  if (!address) {
    return absl::ResourceExhaustedError(
        "no addresses are left for another session; close some, or lower address_range");
  }
  memory.device_base = *address;
  memory.host_base = *address + memory.device_bytes;
  memory.key = NewSessionKey();
  memory.peer_key = NewSessionKey();
  auto files = repository_.Create(session.id, memory.key,
                                  {.image = memory.device_bytes,
                                   .host_arena = session.arena_bytes(),
                                   .window = options_.window_bytes});
  if (!files.ok()) {
    ReleaseAddresses(session);
    return files.status();
  }
  memory.files = *std::move(files);
  using Layout = memory::RangeAllocator::Layout;
  memory.device.emplace(memory.device_bytes, options_.chunk_bytes,
                        options_.is_apart ? Layout::kApart : Layout::kDense);
  if (session.has_arena()) memory.host.emplace(kHostArenaBytes, options_.chunk_bytes);
  return absl::OkStatus();
}

void SessionStorage::ReleaseAddresses(const ClientSession& session) {
  addresses_.Release(session.memory.device_base,
                     session.memory.device_bytes + session.arena_bytes());
}

void SessionStorage::Remove(ClientSession& session) {
  repository_.Remove(session.id);
  ReleaseAddresses(session);
  // Freeing the memory, with the last reference, can take as long as a swap.
  auto files = std::make_shared<std::shared_ptr<SessionFiles>>(std::move(session.memory.files));
  loop_.InBackground([files] { files->reset(); }, [] {});
}

}  // namespace torpor::server
