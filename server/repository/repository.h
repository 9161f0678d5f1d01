#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/mutex.h"
#include "server/repository/session_files.h"

namespace torpor::server {

using SessionKey = std::array<std::uint8_t, 16>;

// Returns 16 bytes from the system's random source.
SessionKey NewSessionKey();

// The memory files of all sessions of the node, by session id. The daemon owns one; the controller
// creates and removes files, the descriptor server finds them for clients and executors.
// Thread-safe.
class Repository {
 public:
  // Creates a session's files and stores them under `key`; replaces an entry of the same session.
  // Fails if the system refuses memory or descriptors.
  absl::StatusOr<std::shared_ptr<SessionFiles>> Create(SessionId session, const SessionKey& key,
                                                       const SessionFiles::Sizes& sizes);

  // Stores files that an earlier torpord has created for the session.
  void Adopt(SessionId session, const SessionKey& key, std::shared_ptr<SessionFiles> files);

  // Forgets the session. The files live on until the last shared_ptr to them is gone.
  void Remove(SessionId session);

  // Returns the files of a session to a caller with the session's key. Errors: NotFound for an
  // unknown session, PermissionDenied for a wrong key. Compares keys in constant time.
  absl::StatusOr<std::shared_ptr<SessionFiles>> Find(SessionId session,
                                                     const SessionKey& key) const;

  // Host memory in bytes that the images of all sessions occupy. Asks the system once a session.
  Bytes image_bytes() const;

 private:
  struct Entry {
    SessionKey key;
    std::shared_ptr<SessionFiles> memory;
  };

  mutable Mutex mutex_;
  std::map<SessionId, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace torpor::server
