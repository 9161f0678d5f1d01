#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace torpor::server {

// An answer that the router itself gives.
struct Answer {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> fields;  // additional header fields
};

// The reason for not serving a request.
struct Refusal {
  unsigned status = 500;
  std::string reason;           // a word for programs: draining, queue_timeout, ...
  std::string message;          // the cause and the remedy, for people
  int retry_after_seconds = 0;  // 0: retrying will not help
};

constexpr int kRetrySoonSeconds = 1;

// Milliseconds with three decimals: "1.500".
std::string FormatMilliseconds(Duration duration);

// Makes the answer {"error": {"status": ..., "reason": ..., "message": ..., "request_id": ...}}.
Answer ErrorAnswer(const Refusal& refusal, std::string_view request_id);

// Framing of an answer, after its request.
struct AnswerFrame {
  bool is_http_1_0 = false;
  bool is_head = false;  // the header alone, with the body's length
  bool keep_alive = true;
};

// Writes the answer. Returns false if the client does not take the answer within `timeout`.
boost::asio::awaitable<bool> SendAnswer(boost::beast::tcp_stream& stream, Answer answer,
                                        AnswerFrame frame, Duration timeout);

}  // namespace torpor::server
