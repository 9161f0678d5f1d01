#include "server/executor/session_memory/memory_directory.h"

#include <algorithm>

#include "base/secret.h"
#include "server/executor/session_memory/session_memory.h"

namespace torpor::executor {

void MemoryDirectory::Add(SessionId session, const std::string& function, const Key& peer_key,
                          SessionMemory& memory) {
  const DeviceImage& image = memory.image();
  MutexLock lock(&mutex_);
  lowest_ = std::min(lowest_.load(), image.base());
  end_ = std::max(end_.load(), image.base() + image.bytes());
  entries_[session] = {function, peer_key, &memory};
}

void MemoryDirectory::Remove(SessionId session) {
  MutexLock lock(&mutex_);
  entries_.erase(session);
}

bool MemoryDirectory::UseSiblings(const std::string& function, SessionId except,
                                  const Use& use) const {
  ReaderMutexLock lock(&mutex_);
  for (const auto& [id, entry] : entries_) {
    if (entry.function == function && id != except && use(*entry.memory)) return true;
  }
  return false;
}

bool MemoryDirectory::UseSibling(const std::string& function, SessionId session,
                                 const Use& use) const {
  ReaderMutexLock lock(&mutex_);
  const auto found = entries_.find(session);
  return found != entries_.end() && found->second.function == function &&
         use(*found->second.memory);
}

bool MemoryDirectory::UseAsPeer(SessionId session, const Key& peer_key, const Use& use) const {
  ReaderMutexLock lock(&mutex_);
  const auto found = entries_.find(session);
  return found != entries_.end() && SecretsEqual(found->second.peer_key, peer_key) &&
         use(*found->second.memory);
}

}  // namespace torpor::executor
