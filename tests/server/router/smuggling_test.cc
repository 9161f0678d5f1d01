// Requests whose end two readers see in different places: what follows them on the connection must
// never be served as a request of its own.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/router/router_test.h"

namespace torpor::server {
namespace {

// Answered by the router itself, so that its answer tells that it was taken for a request.
constexpr const char* kSmuggled = "GET /livez HTTP/1.1\r\nHost: smuggled\r\n\r\n";

class SmugglingTest : public RouterTest {
 protected:
  void SetUp() override {
    StartWithUpstream([](RawConnection& connection, const RawMessage&) {
      return connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
  }

  // Sends the request, and what is to be its body or nothing. Returns all answers.
  std::string AnswersTo(const std::string& request) {
    RawConnection connection = Connect();
    connection.Send(request + kSmuggled);
    return connection.ReadToEnd();
  }
  static std::size_t CountOf(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++count;
    }
    return count;
  }
  void ExpectOneAnswer(const std::string& request) {
    const std::string answers = AnswersTo(request);
    EXPECT_EQ(CountOf(answers, "HTTP/1.1 "), 1u) << request << "\n" << answers;
    EXPECT_EQ(CountOf(answers, "\"live\""), 0u) << request << "\n" << answers;
  }
};

TEST_F(SmugglingTest, WhereNobodyKnowsTheEndTheConnectionEnds) {
  const std::vector<std::string> framings = {
      "Transfer-Encoding: gzip\r\n",
      "Transfer-Encoding: gzip, chunked\r\n",
      "Transfer-Encoding: chunked, gzip\r\n",
      "Transfer-Encoding: identity\r\n",
      "Transfer-Encoding: chunked, identity\r\n",
      "Transfer-Encoding: xchunked\r\n",
      "Transfer-Encoding: chunkedx\r\n",
      "Transfer-Encoding: \013chunked\r\n",
      "Transfer-Encoding: \"chunked\"\r\n",
      "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n",
      "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
      "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
      "Transfer-Encoding:\r\n",
      "Transfer-Encoding: gzip\r\nContent-Length: 0\r\n",
      "Content-Length: 0\r\nTransfer-Encoding: gzip\r\n",
      "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
      "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
      "Transfer-Encoding : chunked\r\n",
      " Transfer-Encoding: chunked\r\n",
      "Content-Length: 0\r\nContent-Length: 5\r\n",
      "Content-Length: 0, 5\r\n",
      "Content-Length: +0\r\n",
      "Content-Length: 0x0\r\n",
      "Content-Length: -1\r\n",
      "Content-Length:\r\n",
      "Content-Length: 99999999999999999999\r\n",
      "Content-Length : 0\r\n",
  };
  for (const std::string& framing : framings) {
    for (const char* const target :
         {"/function/f/", "/function/none/", "/livez/x", "/v2/health/x"}) {
      ExpectOneAnswer(std::string("POST ") + target + " HTTP/1.1\r\nHost: n\r\n" + framing +
                      "\r\n");
    }
  }
  EXPECT_EQ(broker_.acquired(), 0u) << "none was passed on";
}

// HTTP/1.0 has no transfer codings: a proxy before the router may have passed the body on as it is.
TEST_F(SmugglingTest, OfHttp10ThereAreNoChunks) {
  for (const char* const connection : {"", "Connection: keep-alive\r\n"}) {
    ExpectOneAnswer(std::string("POST /function/f/ HTTP/1.0\r\nHost: n\r\n") + connection +
                    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  }
}

TEST_F(SmugglingTest, ABrokenChunkEndsTheConnection) {
  for (const char* const body :
       {"0x5\r\nhello\r\n0\r\n\r\n", "-5\r\nhello\r\n0\r\n\r\n", "5\r\nhelloXX0\r\n\r\n",
        "ffffffffffffffffff\r\nhello\r\n0\r\n\r\n", "\r\n0\r\n\r\n",
        "5 ;\x01\r\nhello\r\n0\r\n\r\n"}) {
    ExpectOneAnswer(std::string("POST /function/f/ HTTP/1.1\r\nHost: n\r\n"
                                "Transfer-Encoding: chunked\r\n\r\n") +
                    body);
  }
}

TEST_F(SmugglingTest, ABodyThatIsNotReadIsNoRequest) {
  const std::string body = kSmuggled;
  for (const char* const target : {"/function/none/", "/livez", "/nowhere"}) {
    RawConnection connection = Connect();
    connection.Send(Post(target, body));
    const std::string answers = connection.ReadToEnd();
    EXPECT_EQ(CountOf(answers, "HTTP/1.1 "), 1u) << target << "\n" << answers;
  }
}

// What is framed well is two requests.
TEST_F(SmugglingTest, HonestRequestsAreServedOneAfterTheOther) {
  for (const std::string& request :
       {Post("/function/f/", "hello"), Post("/function/f/", ""),
        std::string("POST /function/f/ HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: Chunked\r\n\r\n"
                    "5\r\nhello\r\n0\r\n\r\n")}) {
    RawConnection connection = Connect();
    connection.Send(request + Get("/livez", "Connection: close\r\n"));
    const std::string answers = connection.ReadToEnd();
    EXPECT_EQ(CountOf(answers, "HTTP/1.1 200"), 2u) << request << "\n" << answers;
  }
}

}  // namespace
}  // namespace torpor::server
