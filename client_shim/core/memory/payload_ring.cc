#include "client_shim/core/memory/payload_ring.h"

#include <algorithm>

#include "base/units.h"

namespace torpor::shim {
namespace {

constexpr std::uint64_t kPieceAlignment = 64;

}  // namespace

void PayloadRing::Attach(std::uint8_t* window, std::uint64_t begin, std::uint64_t end) {
  window_ = window;
  begin_ = begin;
  end_ = RoundDown(end, kPieceAlignment);
  next_ = begin;
}

// Frees pieces from the oldest on, up to the first one in use.
void PayloadRing::Reclaim() {
  while (!entries_.empty()) {
    Entry& oldest = entries_.front();
    const bool read =
        oldest.state == State::kSubmitted && slots_.Value(oldest.slot) >= oldest.value;
    if (oldest.state != State::kFree && !read) return;
    if (before_reuse_) before_reuse_(oldest.offset);
    slots_.Free(oldest.slot);
    entries_.pop_front();
  }
  next_ = begin_;
}

// Free bytes from next_ on without a wrap; moves next_ to the ring's begin if the end is full.
std::uint64_t PayloadRing::ContiguousRoom() {
  if (entries_.empty()) return end_ - next_;
  const std::uint64_t oldest = entries_.front().offset;
  if (next_ <= oldest) return oldest - next_;
  if (next_ == end_) {
    next_ = begin_;
    return oldest - begin_;
  }
  return end_ - next_;
}

bool PayloadRing::Acquire(std::uint64_t bytes, WindowPiece& piece) {
  std::lock_guard lock(mutex_);
  Reclaim();
  const std::uint64_t max_piece =
      RoundDown(std::max((end_ - begin_) / 4, kPieceAlignment), kPieceAlignment);
  const std::uint64_t room = std::min(
      {RoundUp(std::max<std::uint64_t>(bytes, 1), kPieceAlignment), max_piece, ContiguousRoom()});
  if (room == 0) return false;
  const std::uint32_t slot = slots_.AllotForRing();
  if (slot == 0) return false;
  entries_.push_back({next_, next_ + room, slot, slots_.NextValue(slot), State::kFilling});
  piece = {window_ + next_, next_, std::min(room, bytes), slot, entries_.back().value};
  next_ += room;
  return true;
}

PayloadRing::Entry* PayloadRing::Find(std::uint64_t offset) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.offset == offset; });
  return found == entries_.end() ? nullptr : &*found;
}

void PayloadRing::Release(const WindowPiece& piece) {
  std::lock_guard lock(mutex_);
  if (Entry* entry = Find(piece.offset)) entry->state = State::kFree;
}

void PayloadRing::Submitted(const WindowPiece& piece) {
  std::lock_guard lock(mutex_);
  if (Entry* entry = Find(piece.offset)) entry->state = State::kSubmitted;
}

void PayloadRing::DropSubmitted() {
  std::lock_guard lock(mutex_);
  for (Entry& entry : entries_)
    if (entry.state == State::kSubmitted) entry.state = State::kFree;
}

}  // namespace torpor::shim
