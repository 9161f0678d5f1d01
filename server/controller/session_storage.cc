#include "server/controller/session_storage.h"

#include <memory>
#include <utility>

#include "base/status_macros.h"

namespace torpor::server {

absl::Status SessionStorage::Create(ClientSession& session, Bytes memory_limit) {
  TORPOR_RETURN_IF_ERROR(segments_.Begin(session, memory_limit));
  SessionAllocations& memory = session.memory;
  memory.key = NewSessionKey();
  memory.peer_key = NewSessionKey();
  const NodeAddresses& addresses = segments_.addresses();
  auto files = repository_.Create(session.id, memory.key,
                                  {.image = addresses.device_bytes,
                                   .host_arena = session.has_arena() ? addresses.host_bytes : 0,
                                   .window = window_bytes_});
  if (!files.ok()) {
    segments_.Release(session);
    return files.status();
  }
  memory.files = *std::move(files);
  return absl::OkStatus();
}

void SessionStorage::Remove(ClientSession& session) {
  repository_.Remove(session.id);
  segments_.Release(session);
  // Freeing the memory, with the last reference, can take as long as a swap.
  auto files = std::make_shared<std::shared_ptr<SessionFiles>>(std::move(session.memory.files));
  loop_.InBackground([files] { files->reset(); }, [] {});
}

}  // namespace torpor::server
