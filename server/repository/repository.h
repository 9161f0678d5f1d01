#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "server/repository/session_memory.h"

namespace torpor::server {

using SessionKey = std::array<std::uint8_t, 16>;

// 16 bytes from the system's random source.
SessionKey NewSessionKey();

// The shared memory of all sessions, by id. Thread-safe.
class Repository {
 public:
  absl::StatusOr<std::shared_ptr<SessionMemory>> Create(SessionId session, const SessionKey& key,
                                                        const SessionMemory::Sizes& sizes);

  // The memory lives on until its last user lets go of it.
  void Remove(SessionId session);

  // For whoever shows the session's key. NotFound, PermissionDenied.
  absl::StatusOr<std::shared_ptr<SessionMemory>> Find(SessionId session,
                                                      const SessionKey& key) const;

  // Host memory that all images occupy.
  Bytes image_bytes() const;

 private:
  struct Entry {
    SessionKey key;
    std::shared_ptr<SessionMemory> memory;
  };

  mutable Mutex mutex_;
  std::map<SessionId, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace torpor::server
