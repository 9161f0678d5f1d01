#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace torpor::server {

// An answer of the router's own.
struct Answer {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> fields;  // further header fields
};

// Why a request cannot be served.
struct Refusal {
  unsigned status = 500;
  std::string reason;           // a word for programs: draining, queue_timeout, ...
  std::string message;          // what happened and what to do
  int retry_after_seconds = 0;  // 0: retrying will not help
};

constexpr int kRetrySoonSeconds = 1;

// Milliseconds with three decimals: "1.500".
std::string FormatMilliseconds(Duration duration);

// {"error": {"status": ..., "reason": ..., "message": ..., "request_id": ...}}
Answer ErrorAnswer(const Refusal& refusal, std::string_view request_id);

// How to frame an answer for the request that it belongs to.
struct AnswerFrame {
  bool is_http_1_0 = false;
  bool is_head = false;  // no body, but the header that it would have
  bool keep_alive = true;
};

// False where the client does not take it within `timeout`.
boost::asio::awaitable<bool> SendAnswer(boost::beast::tcp_stream& stream, Answer answer,
                                        AnswerFrame frame, Duration timeout);

}  // namespace torpor::server
