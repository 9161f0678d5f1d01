#include "server/controller/session_storage.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/status_macros.h"

namespace torpor::server {
namespace {

// Makes what holds no allocation read as zero: the earlier torpord may have been about to. No
// process has the memory mapped but the client, which does not use it.
absl::Status DiscardFree(SessionFiles& files, wire::SharedMemory what, const LoggedMemory& memory) {
  absl::Status status;
  for (const memory::Block& segment : memory.segments) {
    Bytes begin = segment.offset;
    const auto discard_to = [&](Bytes end) {
      if (end > begin) status.Update(files.Discard(what, begin, end - begin));
    };
    auto piece = memory.pieces.lower_bound(segment.offset);
    for (; piece != memory.pieces.end() && piece->first < segment.end(); ++piece) {
      discard_to(piece->first);
      begin = std::max(begin, piece->first + piece->second.bytes);
    }
    discard_to(segment.end());
  }
  return status;
}

}  // namespace

absl::Status SessionStorage::Create(ClientSession& session, Bytes memory_limit,
                                    const std::string& tenant) {
  TORPOR_RETURN_IF_ERROR(segments_.Begin(session, memory_limit));
  SessionAllocations& memory = session.memory;
  memory.key = NewSessionKey();
  memory.peer_key = NewSessionKey();
  auto files = repository_.Create(session.id, memory.key, SizesOf(session));
  if (!files.ok()) {
    segments_.Release(session);
    return files.status();
  }
  memory.files = *std::move(files);
  memory.tenant_blocks.tenant = tenant;
  sharing_.Add(session);
  return absl::OkStatus();
}

SessionFiles::Sizes SessionStorage::SizesOf(const ClientSession& session) const {
  return {.image = addresses().device_bytes,
          .host_arena = session.has_arena() ? addresses().host_bytes : 0,
          .window = window_bytes_};
}

absl::Status SessionStorage::Restore(ClientSession& session, const LoggedSession& logged,
                                     std::shared_ptr<SessionFiles> files,
                                     const std::string& tenant) {
  if (logged.opened.window_bytes != window_bytes_) {
    return absl::FailedPreconditionError("window_bytes is another than it was");
  }
  SessionAllocations& memory = session.memory;
  if (logged.spilled) memory.spill = {ImageSpill::State::kOnDisk, false, *logged.spilled};
  TORPOR_RETURN_IF_ERROR(segments_.Restore(session, logged));
  memory.key = logged.opened.key;
  memory.peer_key = NewSessionKey();
  // The function may have another tenant by now.
  memory.tenant_blocks.tenant = logged.tenant.empty() ? tenant : logged.tenant;
  sharing_.Adopt(session, *files, logged.tenant);
  absl::Status status = DiscardFree(*files, wire::SharedMemory::kImage, logged.device);
  status.Update(DiscardFree(*files, wire::SharedMemory::kHostArena, logged.host));
  if (!status.ok()) {
    sharing_.Remove(session);
    segments_.Release(session);
    return status;
  }
  if (logged.spilled) spills_.Adopt(session);
  memory.files = std::move(files);
  repository_.Adopt(session.id, memory.key, memory.files);
  return absl::OkStatus();
}

void SessionStorage::Remove(ClientSession& session) {
  repository_.Remove(session.id);
  spills_.Remove(session);
  sharing_.Remove(session);
  segments_.Release(session);
  // Freeing the memory, with the last reference, can take as long as a swap.
  auto files = std::make_shared<std::shared_ptr<SessionFiles>>(std::move(session.memory.files));
  loop_.InBackground([files] { files->reset(); }, [] {});
}

}  // namespace torpor::server
