#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "proto/wire/byte_ring.h"

namespace torpor::wire {

using RecordLength = std::uint32_t;

// Cuts a ring's bytes into records, in memory of its own: the peer may write to the ring at any
// time, but never to a record that was handed out. Not thread-safe.
class RecordReader {
 public:
  // A record longer than `max_bytes` is malformed.
  RecordReader(RingReader ring, std::size_t max_bytes) : ring_(ring), max_bytes_(max_bytes) {}

  enum class Step { kRecord, kNeedMore, kMalformed };

  // Takes the next record, or the part that has come. `record` is valid until the next call. After
  // kMalformed no more records follow.
  Step Next(std::span<const std::uint8_t>& record) {
    if (is_complete_) Forget();
    if (!TakeLength()) return ring_.is_broken() ? Step::kMalformed : Step::kNeedMore;
    if (length_ > max_bytes_) return Step::kMalformed;
    TakeBytes();
    if (ring_.is_broken()) return Step::kMalformed;
    if (have_ < length_) return Step::kNeedMore;
    is_complete_ = true;
    record = std::span(bytes_).first(length_);
    return Step::kRecord;
  }

  // Whether bytes have come, or the peer's cursor makes no sense: Next gets further.
  bool HasBytes() { return ring_.Available() > 0 || ring_.is_broken(); }
  RingReader& ring() { return ring_; }

 private:
  // Memory beyond this size is not kept from record to record.
  static constexpr std::size_t kKeptBytes = std::size_t{1} << 20;

  void Forget() {
    is_complete_ = false;
    length_bytes_ = have_ = 0;
    if (bytes_.size() <= kKeptBytes) return;
    bytes_.resize(kKeptBytes);
    bytes_.shrink_to_fit();
  }

  bool TakeLength() {
    if (length_bytes_ == sizeof length_) return true;
    auto* const to = reinterpret_cast<std::uint8_t*>(&length_);
    length_bytes_ += ring_.Take({to + length_bytes_, sizeof length_ - length_bytes_});
    return length_bytes_ == sizeof length_;
  }

  // Memory grows with the bytes that have come, not with the length that the peer claims.
  void TakeBytes() {
    const std::size_t part = std::min<std::size_t>(length_ - have_, ring_.Available());
    if (bytes_.size() < have_ + part) bytes_.resize(have_ + part);
    have_ += ring_.Take({bytes_.data() + have_, part});
  }

  RingReader ring_;
  const std::size_t max_bytes_;
  RecordLength length_ = 0;
  std::size_t length_bytes_ = 0;  // of length_ that have come
  std::size_t have_ = 0;
  bool is_complete_ = false;
  std::vector<std::uint8_t> bytes_;  // at least have_
};

}  // namespace torpor::wire
