#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "server/config/config.h"
#include "server/router/answer.h"
#include "server/router/request_failure.h"
#include "server/router/sender_patience.h"
#include "server/router/spooled_body.h"

namespace torpor::server {

// The request of a client: its head, and its body, which is read whole before a GPU is asked for.
// Notes what goes wrong with the client in the request's failure. Used on the router's thread.
class ClientRequest {
 public:
  using Parser = boost::beast::http::request_parser<boost::beast::http::buffer_body>;
  using Head = boost::beast::http::request<boost::beast::http::buffer_body>;

  // The rate below which a client that sends a body is cut off, after client_timeout.
  static constexpr Bytes kMinBytesPerSecond = kKiB;

  // The client's connection. `parser` has read the header and nothing of the body.
  struct Source {
    boost::beast::tcp_stream& stream;
    boost::beast::flat_buffer& buffer;
    Parser& parser;
    std::string address;  // the client's, for X-Forwarded-For
  };

  // `config`, `spool` and `failure` must outlive the request.
  ClientRequest(Source source, const RouterConfig& config, BodySpool& spool,
                RequestFailure& failure, Bytes min_bytes_per_second = kMinBytesPerSecond);

  // Whether the request says where its body ends (RFC 9112, 6.3): after one that does not, what
  // follows on the connection may be its body, and is no request.
  static bool SaysWhereItEnds(const Head::header_type& head);

  // Why the request cannot be proxied at all; nullopt if it can.
  std::optional<Refusal> FindRefusal() const;
  // The head for the function's server, without a framing of the body.
  Head MakeUpstreamHead(const std::string& target, const std::string& request_id) const;

  // Reads the whole body into the spool. Meets `Expect: 100-continue`. False if the request has
  // failed.
  boost::asio::awaitable<bool> ReadBody();
  // The body, whole after ReadBody.
  SpooledBody& body() { return body_; }
  // Gives the body's room back, once nobody needs the body any more.
  void DropBody() { body_.Clear(); }

  // Whether the whole body was read.
  bool is_read() const { return source_.parser.is_done(); }
  // Whether there is a body, if only an empty one. After ReadBody, before DropBody.
  bool has_body() const;
  bool is_head_request() const { return is_head_request_; }
  // Whether sending the request twice has the effect of sending it once.
  bool IsIdempotent() const;
  bool is_http_1_0() const { return source_.parser.get().version() == 10; }
  // Whether the client can send another request on the connection.
  bool WantsKeepAlive() const {
    return source_.parser.get().keep_alive() && is_read() &&
           SaysWhereItEnds(source_.parser.get().base());
  }
  std::string_view method() const;
  boost::beast::tcp_stream& stream() { return source_.stream; }

 private:
  boost::asio::awaitable<bool> MeetExpectation();
  boost::asio::awaitable<bool> ReadPiece(std::string& piece);
  std::size_t NextPieceBytes() const;
  void NoteError(const boost::system::error_code& error);

  Source source_;
  const RouterConfig& config_;
  RequestFailure& failure_;
  const bool is_head_request_;
  SenderPatience patience_;
  SpooledBody body_;
};

}  // namespace torpor::server
