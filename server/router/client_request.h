#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/config/config.h"
#include "server/router/answer.h"
#include "server/router/request_failure.h"

namespace torpor::server {

// The request of a client as it comes in: its head, and its body in pieces. Notes what goes wrong
// with the client in the request's failure. Used on the router's thread.
class ClientRequest {
 public:
  using Parser = boost::beast::http::request_parser<boost::beast::http::buffer_body>;
  using Head = boost::beast::http::request<boost::beast::http::buffer_body>;

  // Maximum bytes of a body per read.
  static constexpr std::size_t kPieceBytes = std::size_t{64} * 1024;

  // The client's connection. `parser` has read the header and nothing of the body.
  struct Source {
    boost::beast::tcp_stream& stream;
    boost::beast::flat_buffer& buffer;
    Parser& parser;
    std::string address;  // the client's, for X-Forwarded-For
  };

  // `config` and `failure` must outlive the request.
  ClientRequest(Source source, const RouterConfig& config, RequestFailure& failure);

  // Whether the request says where its body ends (RFC 9112, 6.3): after one that does not, what
  // follows on the connection may be its body, and is no request.
  static bool SaysWhereItEnds(const Head::header_type& head);

  // Why the request cannot be proxied at all; nullopt if it can.
  std::optional<Refusal> FindRefusal() const;
  // The head for the function's server, without a framing of the body.
  Head MakeUpstreamHead(const std::string& target, const std::string& request_id) const;

  // Reads the body, or request_buffer_bytes of it, before a GPU is asked for: a slow sender must
  // not hold one. Meets `Expect: 100-continue`. False if the request has failed.
  boost::asio::awaitable<bool> ReadAhead();
  // Reads the next piece of the body, which may be empty, into `piece`. Returns the client's error,
  // for NoteError unless the rest of the body does not matter any more.
  boost::asio::awaitable<boost::system::error_code> ReadPiece(std::string& piece);
  // Notes an error of the client's connection in the failure.
  void NoteError(const boost::system::error_code& error);

  // What ReadAhead has read.
  const std::string& ahead() const { return ahead_; }
  // Whether ahead() is the whole body: the request can be sent more than once.
  bool is_held() const { return is_held_; }
  // Whether the whole body was read.
  bool is_read() const { return source_.parser.is_done(); }
  bool has_body() const;
  // The body's length, if the head tells it.
  std::optional<std::uint64_t> length() const;
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
  boost::asio::awaitable<bool> ReadToBuffer();

  Source source_;
  const RouterConfig& config_;
  RequestFailure& failure_;
  const bool is_head_request_;
  std::string ahead_;
  bool is_held_ = false;
};

}  // namespace torpor::server
