#include "server/router/response_buffer.h"

#include <boost/beast/http/field.hpp>
#include <utility>

#include "server/router/end_to_end_fields.h"
#include "server/settings/value_text.h"

namespace torpor::server {

namespace http = boost::beast::http;

void ResponseBuffer::SetHead(const Head& from_upstream) {
  head_.emplace();
  head_->version(11);
  head_->result(from_upstream.result_int());
  head_->reason(from_upstream.reason());
  CopyEndToEnd(from_upstream, *head_);
  if (from_upstream.has_content_length() && !from_upstream.chunked()) {
    // The parser does not tell the length of an answer without a body (HEAD, 304).
    const auto length = ParseUnsigned(View(from_upstream[http::field::content_length]));
    if (length.ok()) length_ = *length;
  }
}

void ResponseBuffer::Append(std::string piece) {
  if (holds_end_) last_piece_.swap(piece);
  if (piece.empty()) return;
  bytes_ += piece.size();
  pieces_.push_back(std::move(piece));
}

void ResponseBuffer::Complete(TimePoint now) {
  bytes_ += last_piece_.size();
  if (!last_piece_.empty()) pieces_.push_back(std::exchange(last_piece_, {}));
  end_ = now;
  is_complete_ = true;
}

std::string ResponseBuffer::TakePiece() {
  std::string piece = std::move(pieces_.front());
  pieces_.pop_front();
  bytes_ -= piece.size();
  return piece;
}

std::string ResponseBuffer::TakeBody() {
  std::string body;
  while (has_pieces()) body += TakePiece();
  return body;
}

bool ResponseBuffer::CanBegin() const {
  if (is_complete_) return true;
  // A head may be all of an answer.
  const bool has_part = holds_end_ ? has_pieces() : has_head();
  return has_part && !FitsWhole();
}

bool ResponseBuffer::FitsWhole() const {
  return !has_body_ || is_complete_ || (IsServerError() && !IsFull()) ||
         (length_ && *length_ <= capacity_);
}

}  // namespace torpor::server
