#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "client_shim/core/client_core.h"
#include "client_shim/core/memory/completion_slots.h"

namespace torpor::shim {

// The bytes of uploads that a replay would need, by the commands' numbers. Bytes in the window stay
// there until their place is used again; then they are copied, unless the executor has said that
// they are in the host image for good. Thread-safe.
class KeptUploads {
 public:
  // `slots` must outlive this object.
  explicit KeptUploads(const CompletionSlots& slots) : slots_(slots) {}

  // Notes that command `number` reads the piece. `may_be_saved`: the executor says whether the
  // bytes are in the host image.
  void NoteSent(std::uint64_t number, const WindowPiece& piece, bool may_be_saved);
  // The place of the piece at `offset` of the window is about to be used again.
  void BeforeReuse(std::uint64_t offset);
  // Returns room for `bytes` of command `number`, to be filled before the command is sent.
  std::span<std::uint8_t> Keep(std::uint64_t number, std::size_t bytes);

  // A copy of an upload's bytes; nullopt if the host image has the bytes, or if the command is none
  // of these.
  std::optional<std::vector<std::uint8_t>> Find(std::uint64_t number) const;

  // Forgets all up to this number.
  void TrimTo(std::uint64_t number);
  // Memory for copies, in bytes.
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Upload {
    WindowPiece piece;  // data is null once copied or if never in the window
    bool may_be_saved = false;
    std::vector<std::uint8_t> copy;
  };
  bool IsSaved(const Upload& upload) const;

  const CompletionSlots& slots_;
  std::atomic<std::size_t> bytes_{0};
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Upload> uploads_;           // by number
  std::map<std::uint64_t, std::uint64_t> at_offset_;  // numbers of uploads still in the window
};

}  // namespace torpor::shim
