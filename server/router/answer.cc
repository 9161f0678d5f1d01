#include "server/router/answer.h"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/status.hpp>
#include <nlohmann/json.hpp>

#include "server/router/await.h"

namespace torpor::server {
namespace {

std::string_view ReasonPhrase(unsigned status) {
  const auto phrase =
      boost::beast::http::obsolete_reason(boost::beast::http::int_to_status(status));
  return {phrase.data(), phrase.size()};
}

}  // namespace

std::string FormatMilliseconds(Duration duration) {
  return fmt::format("{:.3f}", ToMilliseconds(duration));
}

Answer ErrorAnswer(const Refusal& refusal, std::string_view request_id) {
  const nlohmann::ordered_json body = {{"error",
                                        {{"status", refusal.status},
                                         {"reason", refusal.reason},
                                         {"message", refusal.message},
                                         {"request_id", request_id}}}};
  Answer answer;
  answer.status = refusal.status;
  // A message may quote an upstream's bytes, which need not be UTF-8.
  answer.body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (refusal.retry_after_seconds > 0) {
    answer.fields.emplace_back("Retry-After", std::to_string(refusal.retry_after_seconds));
  }
  return answer;
}

boost::asio::awaitable<bool> SendAnswer(boost::beast::tcp_stream& stream, Answer answer,
                                        AnswerFrame frame, Duration timeout) {
  std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\nServer: torpor\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
      answer.status, ReasonPhrase(answer.status), answer.content_type, answer.body.size());
  for (const auto& [name, value] : answer.fields) text += fmt::format("{}: {}\r\n", name, value);
  if (!frame.keep_alive) {
    text += "Connection: close\r\n";
  } else if (frame.is_http_1_0) {
    text += "Connection: keep-alive\r\n";
  }
  text += "\r\n";
  if (!frame.is_head) text += answer.body;
  stream.expires_after(timeout);
  const auto [error, bytes] =
      co_await boost::asio::async_write(stream, boost::asio::buffer(text), kAwait);
  co_return !error;
}

}  // namespace torpor::server
