#include "server/executor/session_memory/memory_directory.h"

#include <algorithm>

#include "absl/time/time.h"
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
  const auto entry = entries_.find(session);
  if (entry == entries_.end()) return;
  while (entry->second.peers > 0) mutex_.WaitFor(let_go_, absl::Seconds(1));
  entries_.erase(entry);
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

bool MemoryDirectory::UseAsPeer(SessionId session, const Key& peer_key, const Use& use) {
  SessionMemory* const memory = Hold(session, peer_key);
  if (memory == nullptr) return false;
  const bool result = use(*memory);
  LetGo(session);
  return result;
}

SessionMemory* MemoryDirectory::Hold(SessionId session, const Key& peer_key) {
  MutexLock lock(&mutex_);
  const auto found = entries_.find(session);
  if (found == entries_.end() || !SecretsEqual(found->second.peer_key, peer_key)) return nullptr;
  ++found->second.peers;
  return found->second.memory;
}

void MemoryDirectory::LetGo(SessionId session) {
  MutexLock lock(&mutex_);
  --entries_.at(session).peers;
  let_go_.SignalAll();
}

}  // namespace torpor::executor
