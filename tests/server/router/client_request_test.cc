#include "server/router/client_request.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>
#include <thread>

namespace torpor::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

// A client that has sent a header and may send more, over a connection of the test's own.
class ClientRequestTest : public testing::Test {
 protected:
  ClientRequestTest() {
    tcp::acceptor acceptor(io_, {asio::ip::address_v4::loopback(), 0});
    client_.connect(acceptor.local_endpoint());
    acceptor.accept(stream_.socket());
  }

  void Send(const std::string& text) { asio::write(client_, asio::buffer(text)); }
  std::string Received() {
    std::string text(client_.available(), '\0');
    asio::read(client_, asio::buffer(text));
    return text;
  }

  // Reads the header that was sent.
  ClientRequest& Begin() {
    http::read_header(stream_, buffer_, parser_);
    return request_.emplace(ClientRequest::Source{stream_, buffer_, parser_, "10.0.0.1"}, config_,
                            spool_, failure_, min_bytes_per_second_);
  }

  template <typename T>
  T Run(asio::awaitable<T> work) {
    std::optional<T> result;
    asio::co_spawn(io_, std::move(work),
                   [&](const std::exception_ptr&, T value) { result = value; });
    io_.restart();
    io_.run();
    return *result;
  }

  std::string Piece(std::uint64_t offset) {
    std::string piece;
    EXPECT_TRUE(Run(request_->body().Read(offset, piece)).ok());
    return piece;
  }

  asio::io_context io_;
  RouterConfig config_;
  Bytes min_bytes_per_second_ = ClientRequest::kMinBytesPerSecond;
  RequestMetrics metrics_;
  BodySpool spool_{io_, config_, metrics_};
  RequestFailure failure_{[] {}};
  tcp::socket client_{io_};
  boost::beast::tcp_stream stream_{io_};
  boost::beast::flat_buffer buffer_;
  ClientRequest::Parser parser_;
  std::optional<ClientRequest> request_;
};

TEST_F(ClientRequestTest, TheUpstreamsHeadNamesTheClient) {
  Send(
      "GET /function/f/a HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 10.9.9.9\r\n"
      "Connection: close\r\n\r\n");
  const ClientRequest::Head head = Begin().MakeUpstreamHead("/a?b", "id-7");
  EXPECT_EQ(head.target(), "/a?b");
  EXPECT_EQ(head["Host"], "h");
  EXPECT_EQ(head["X-Forwarded-For"], "10.9.9.9, 10.0.0.1");
  EXPECT_EQ(head["X-Forwarded-Proto"], "http");
  EXPECT_EQ(head["X-Request-Id"], "id-7");
  EXPECT_EQ(head.count("Connection"), 0u);
  EXPECT_FALSE(request_->WantsKeepAlive());
  EXPECT_FALSE(request_->has_body());
  EXPECT_TRUE(request_->IsIdempotent());
}

TEST_F(ClientRequestTest, OnlyWhatTheProxyKnowsIsTaken) {
  Send("GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n");
  EXPECT_EQ(Begin().FindRefusal()->status, 501u);
}

TEST_F(ClientRequestTest, OtherExpectationsAreRefused) {
  Send("POST / HTTP/1.1\r\nContent-Length: 1\r\nExpect: more\r\n\r\n");
  EXPECT_EQ(Begin().FindRefusal()->status, 417u);
}

TEST_F(ClientRequestTest, TheBodyIsReadAheadOfTheGpu) {
  Send("POST / HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello");
  EXPECT_TRUE(Run(Begin().ReadBody()));
  EXPECT_EQ(Piece(0), "hello");
  EXPECT_TRUE(request_->is_read());
  EXPECT_TRUE(request_->has_body());
  EXPECT_EQ(Received(), "HTTP/1.1 100 Continue\r\n\r\n");
}

TEST_F(ClientRequestTest, BeyondTheBufferTheBodyIsOnTheDisk) {
  config_.request_buffer_bytes = 4;
  Send("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n0\r\n\r\n");
  EXPECT_TRUE(Run(Begin().ReadBody()));
  EXPECT_EQ(spool_.used().disk, 2u);
  EXPECT_EQ(Piece(0), "abcd");
  EXPECT_EQ(Piece(4), "ef");
  EXPECT_TRUE(request_->is_read());
  request_->DropBody();
  EXPECT_EQ(spool_.used(), BodyBytes());
}

TEST_F(ClientRequestTest, AnEmptyBodyIsABodyIfTheLengthSaysSo) {
  Send("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(Run(Begin().ReadBody()));
  EXPECT_TRUE(request_->has_body());
  EXPECT_EQ(request_->body().size(), 0u);
}

TEST_F(ClientRequestTest, ABodyWithoutRoomIsTheRoutersFailure) {
  config_.request_buffer_bytes = 4;
  config_.spool_limit = 1;
  spool_.Configure(config_);
  Send("POST / HTTP/1.1\r\nContent-Length: 6\r\n\r\nabcdef");
  EXPECT_FALSE(Run(Begin().ReadBody()));
  EXPECT_EQ(failure_.cause(), RequestFailure::Cause::kNoRoomForBody);
}

TEST_F(ClientRequestTest, AClientThatStallsIsGone) {
  config_.client_timeout = std::chrono::milliseconds(20);
  Send("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhe");
  EXPECT_FALSE(Run(Begin().ReadBody()));
  EXPECT_EQ(failure_.cause(), RequestFailure::Cause::kClientGone);
}

TEST_F(ClientRequestTest, AClientThatDripsIsGone) {
  config_.client_timeout = std::chrono::milliseconds(200);
  // More than single bytes come to, however fast.
  min_bytes_per_second_ = kGiB;
  Send("POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n");
  Begin();
  std::thread dripping([this] {
    boost::system::error_code error;
    while (!error) asio::write(client_, asio::buffer("x", 1), error);
  });
  EXPECT_FALSE(Run(request_->ReadBody()));
  stream_.close();
  dripping.join();
  EXPECT_EQ(failure_.cause(), RequestFailure::Cause::kClientGone);
}

TEST_F(ClientRequestTest, AClientThatClosesIsGone) {
  Send("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhe");
  Begin();
  client_.close();
  EXPECT_FALSE(Run(request_->ReadBody()));
  EXPECT_EQ(failure_.cause(), RequestFailure::Cause::kClientGone);
}

TEST_F(ClientRequestTest, AMalformedBodyIsToldFromALostClient) {
  Send("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
  EXPECT_FALSE(Run(Begin().ReadBody()));
  EXPECT_EQ(failure_.cause(), RequestFailure::Cause::kClientBodyMalformed);
}

TEST_F(ClientRequestTest, ABodyBeyondTheLimitIsTooLarge) {
  parser_.body_limit(3);
  Send("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n");
  EXPECT_FALSE(Run(Begin().ReadBody()));
  EXPECT_EQ(failure_.cause(), RequestFailure::Cause::kClientBodyTooLarge);
}

}  // namespace
}  // namespace torpor::server
