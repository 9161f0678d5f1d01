#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "proto/wire/ring_memory.h"

namespace torpor::wire {

// The writing side of a ring of bytes. The peer may be hostile: its cursor is checked at each look.
// Not thread-safe.
class RingWriter {
 public:
  // The ring is `bytes`, a power of two long. Both must outlive the writer; all counts are 0.
  RingWriter(RingCursors& cursors, std::span<std::uint8_t> bytes)
      : cursors_(cursors), bytes_(bytes) {}

  // Free bytes. 0 for ever once the peer's cursor has made no sense.
  std::size_t Room() {
    const std::uint64_t unread = written_ - cursors_.taken.load(std::memory_order_seq_cst);
    if (unread > bytes_.size()) is_broken_ = true;
    return is_broken_ ? 0 : bytes_.size() - unread;
  }
  bool is_broken() const { return is_broken_; }

  // Copies as many bytes as fit, publishes the bytes, and returns the number.
  std::size_t Write(std::span<const std::uint8_t> from) {
    const std::size_t count = std::min(from.size(), Room());
    if (count == 0) return 0;
    const std::size_t at = written_ & (bytes_.size() - 1);
    const std::size_t before_end = std::min(count, bytes_.size() - at);
    std::memcpy(bytes_.data() + at, from.data(), before_end);
    std::memcpy(bytes_.data(), from.data() + before_end, count - before_end);
    written_ += count;
    // In one order with the reader's announcement of a wait (doorbell.h).
    cursors_.written.store(written_, std::memory_order_seq_cst);
    return count;
  }

 private:
  RingCursors& cursors_;
  const std::span<std::uint8_t> bytes_;
  std::uint64_t written_ = 0;
  bool is_broken_ = false;
};

// The reading side, as hostile a peer in mind: copies bytes out before anybody looks at them. Not
// thread-safe.
class RingReader {
 public:
  // As for RingWriter.
  RingReader(RingCursors& cursors, std::span<const std::uint8_t> bytes)
      : cursors_(cursors), bytes_(bytes) {}

  // Bytes to take. 0 for ever once the peer's cursor has made no sense.
  std::size_t Available() {
    const std::uint64_t unread = cursors_.written.load(std::memory_order_seq_cst) - taken_;
    if (unread > bytes_.size()) is_broken_ = true;
    return is_broken_ ? 0 : unread;
  }
  bool is_broken() const { return is_broken_; }
  // Free bytes of the ring, as far as this side knows.
  std::size_t RoomLeft() { return bytes_.size() - Available(); }

  // Copies as many bytes as there are into `to`, gives the room back, and returns the number.
  std::size_t Take(std::span<std::uint8_t> to) {
    const std::size_t count = std::min(to.size(), Available());
    if (count == 0) return 0;
    const std::size_t at = taken_ & (bytes_.size() - 1);
    const std::size_t before_end = std::min(count, bytes_.size() - at);
    std::memcpy(to.data(), bytes_.data() + at, before_end);
    std::memcpy(to.data() + before_end, bytes_.data(), count - before_end);
    taken_ += count;
    cursors_.taken.store(taken_, std::memory_order_seq_cst);
    return count;
  }

 private:
  RingCursors& cursors_;
  const std::span<const std::uint8_t> bytes_;
  std::uint64_t taken_ = 0;
  bool is_broken_ = false;
};

}  // namespace torpor::wire
