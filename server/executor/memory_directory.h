#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>

#include "absl/base/thread_annotations.h"
#include "base/ids.h"
#include "base/mutex.h"

namespace torpor::executor {

class SessionMemory;

// The memory of all sessions of this executor, for those that may reach another's: the sessions of
// one process, a family that is named by its first session, and executors that show the session's
// peer key. Thread-safe; a memory is used only inside of `use`, and is not removed meanwhile.
class MemoryDirectory {
 public:
  using Key = std::array<std::uint8_t, 16>;
  using Use = std::function<bool(SessionMemory&)>;

  void Add(SessionId session, SessionId first, const Key& peer_key, SessionMemory& memory);
  void Remove(SessionId session);

  // Calls `use` for the members of the family, but `except`, until it gives true. Whether it did.
  bool UseFamily(SessionId first, SessionId except, const Use& use) const;
  // What `use` gives; false if there is no such session in that family.
  bool UseMember(SessionId first, SessionId session, const Use& use) const;
  // The same for who shows the session's peer key.
  bool UseAsPeer(SessionId session, const Key& peer_key, const Use& use) const;

 private:
  struct Entry {
    SessionId first;
    Key peer_key{};
    SessionMemory* memory = nullptr;
  };

  mutable Mutex mutex_;
  std::map<SessionId, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace torpor::executor
