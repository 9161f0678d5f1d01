#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/ids.h"
#include "base/mutex.h"

namespace torpor::executor {

class SessionMemory;

// The memory of all sessions of this executor, for sharing among the sessions of a function, and
// with executors that show a session's peer key. Thread-safe; a memory is used only inside of
// `use`, and is not removed meanwhile. The directory is locked while siblings are used, not while a
// peer waits for the GPU.
class MemoryDirectory {
 public:
  using Key = std::array<std::uint8_t, 16>;
  using Use = std::function<bool(SessionMemory&)>;

  void Add(SessionId session, const std::string& function, const Key& peer_key,
           SessionMemory& memory);
  // Waits for peers that use the memory.
  void Remove(SessionId session);

  // Whether an address may belong to a session, now or earlier. Costs two loads.
  bool MayHold(std::uint64_t address) const {
    return lowest_.load(std::memory_order_relaxed) <= address &&
           address < end_.load(std::memory_order_relaxed);
  }

  // Calls `use` for the function's sessions but `except` until a call returns true. Returns whether
  // a call did.
  bool UseSiblings(const std::string& function, SessionId except, const Use& use) const;
  // Returns the result of `use`; false if the function has no such session.
  bool UseSibling(const std::string& function, SessionId session, const Use& use) const;
  // As UseSibling, for a caller with the session's peer key.
  bool UseAsPeer(SessionId session, const Key& peer_key, const Use& use);

 private:
  struct Entry {
    std::string function;
    Key peer_key{};
    SessionMemory* memory = nullptr;
    int peers = 0;  // that use the memory at the moment
  };

  // Returns the memory, which is not removed before LetGo; null without the right key.
  SessionMemory* Hold(SessionId session, const Key& peer_key);
  void LetGo(SessionId session);

  std::atomic<std::uint64_t> lowest_{~std::uint64_t{0}};
  std::atomic<std::uint64_t> end_{0};

  mutable Mutex mutex_;
  std::map<SessionId, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  absl::CondVar let_go_;  // a peer uses a memory no longer
};

}  // namespace torpor::executor
