#pragma once

#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/message.hpp>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/units.h"

namespace torpor::server {

// The answer of a function's server on its way to the client: the head, and the pieces of the body
// that the client has not taken yet. No I/O. Not thread-safe.
class ResponseBuffer {
 public:
  using Head = boost::beast::http::response<boost::beast::http::buffer_body>;

  // `capacity`: bytes of the body above which IsFull. `has_body` is false for the answer to HEAD.
  // `holds_end`: the client gets the last piece once the answer is complete, and no head alone.
  ResponseBuffer(Bytes capacity, bool has_body, bool holds_end = false)
      : capacity_(capacity), has_body_(has_body), holds_end_(holds_end) {}

  // Takes over the fields that may cross the proxy, and the length.
  void SetHead(const Head& from_upstream);
  // Adds a piece of the body; not empty.
  void Append(std::string piece);
  // The answer is whole. `now`: when its last byte came.
  void Complete(TimePoint now);

  // Removes and returns the first piece; one must be there.
  std::string TakePiece();
  // Removes all pieces and returns the joined body.
  std::string TakeBody();

  bool has_head() const { return head_.has_value(); }
  // The head as the client gets it, for the sender to complete; has_head.
  Head& head() { return *head_; }
  // 0 without a head.
  unsigned status() const { return head_ ? head_->result_int() : 0; }
  bool IsServerError() const { return status() >= 500; }
  // The length of the body that the head tells, if any. An answer to HEAD tells it without a body.
  std::optional<std::uint64_t> length() const { return length_; }
  bool has_body() const { return has_body_; }
  bool has_pieces() const { return !pieces_.empty(); }
  bool is_complete() const { return is_complete_; }
  // When the answer was complete, else `now`.
  TimePoint EndOr(TimePoint now) const { return is_complete_ ? end_ : now; }

  bool IsFull() const { return bytes_ >= capacity_; }
  // Whether the client may get the beginning of the answer, or all of it.
  bool CanBegin() const;
  // Whether the whole answer is here or certainly fits: then the client gets nothing before all of
  // it, and a server error can still become another answer.
  bool FitsWhole() const;

 private:
  const Bytes capacity_;
  const bool has_body_;
  const bool holds_end_;
  std::optional<Head> head_;
  std::optional<std::uint64_t> length_;
  std::deque<std::string> pieces_;
  std::string last_piece_;   // of those that have come, if holds_end_
  std::uint64_t bytes_ = 0;  // of pieces_
  bool is_complete_ = false;
  TimePoint end_{};
};

}  // namespace torpor::server
