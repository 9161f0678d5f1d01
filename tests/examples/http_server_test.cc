#include "examples/service/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <thread>

namespace torpor::examples {
namespace {

class HttpServerTest : public testing::Test {
 protected:
  HttpServerTest()
      : server_([](const HttpRequest& request) -> HttpResponse {
          if (request.path == "/throw") throw std::runtime_error("cudaError\"X\"");
          return {200, request.method + " " + request.path + " " + request.body, "text/plain"};
        }) {
    const std::uint16_t port = server_.Listen("127.0.0.1", 0);
    thread_ = std::thread([this] { server_.Run(); });
    socket_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }

  ~HttpServerTest() override {
    close(socket_);
    server_.Stop();
    thread_.join();
  }

  void Send(const std::string& bytes) const {
    ASSERT_EQ(send(socket_, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }

  // Reads until the received text ends with `end` or the connection is closed.
  std::string ReadUntil(const std::string& end) const {
    std::string text;
    char byte = 0;
    while (!text.ends_with(end) && recv(socket_, &byte, 1, 0) == 1) text += byte;
    return text;
  }

  HttpServer server_;
  std::thread thread_;
  int socket_ = -1;
};

TEST_F(HttpServerTest, ServesSeveralRequestsOnAConnection) {
  Send("POST /a?b=c HTTP/1.1\r\nContent-Length: 3\r\n\r\nxyz");
  EXPECT_TRUE(ReadUntil("POST /a xyz").starts_with("HTTP/1.1 200 OK\r\n"));
  Send("GET /d HTTP/1.1\r\n\r\nGET /e HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_NE(ReadUntil("GET /d ").find("Content-Length: 7\r\n"), std::string::npos);
  EXPECT_NE(ReadUntil("never").find("Connection: close"), std::string::npos);
}

TEST_F(HttpServerTest, BodiesMayComeInPieces) {
  Send("POST /a HTTP/1.1\r\ncontent-le");
  Send("ngth: 4\r\n\r\nab");
  Send("cd");
  EXPECT_TRUE(ReadUntil("POST /a abcd").starts_with("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, AnExceptionIsA500AndTheServerGoesOn) {
  Send("GET /throw HTTP/1.1\r\n\r\n");
  const std::string answer = ReadUntil("}\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 500"));
  EXPECT_NE(answer.find(R"({"error":"cudaError\"X\""})"), std::string::npos);
  Send("GET /d HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(ReadUntil("GET /d ").starts_with("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, RefusesWhatItCannotRead) {
  Send("POST /a HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n");
  EXPECT_TRUE(ReadUntil("never").starts_with("HTTP/1.1 413"));
}

TEST_F(HttpServerTest, RefusesChunkedBodies) {
  Send("POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_TRUE(ReadUntil("never").starts_with("HTTP/1.1 411"));
}

}  // namespace
}  // namespace torpor::examples
