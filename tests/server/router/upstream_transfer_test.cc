#include "server/router/upstream_transfer.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>

#include "tests/server/router/fake_broker.h"
#include "tests/server/router/raw_http.h"

namespace torpor::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Cause = RequestFailure::Cause;

// A transfer of its own between a connected client and a server of the test.
class UpstreamTransferTest : public testing::Test {
 protected:
  explicit UpstreamTransferTest(Durability durability = Durability::kEviction)
      : response_(kMiB, true, durability == Durability::kRequest) {
    function_.durability = durability;
  }
  // Transfers `request` to a server that answers with `handler`, as Run of a proxied request does.
  void Transfer(const std::string& request, FakeUpstream::Handler handler) {
    FakeUpstream upstream(std::move(handler));
    const auto pool =
        std::make_shared<UpstreamPool>(io_, ParseHostAndPort(upstream.address()).value());
    tcp::acceptor acceptor(io_, {asio::ip::address_v4::loopback(), 0});
    tcp::socket client(io_);
    client.connect(acceptor.local_endpoint());
    acceptor.accept(stream_.socket());
    asio::write(client, asio::buffer(request));
    boost::beast::http::read_header(stream_, buffer_, parser_);
    BodySpool spool(io_, config_, metrics_);
    ClientRequest client_request({stream_, buffer_, parser_, "10.0.0.1"}, config_, spool, failure_);
    UpstreamTransfer transfer({.io = io_,
                               .function = function_,
                               .request = client_request,
                               .response = response_,
                               .lease = lease_,
                               .failure = failure_,
                               .changed = changed_},
                              client_request.MakeUpstreamHead("/", "id"), [this] { ++answered_; });
    interrupt_ = [&] { transfer.Interrupt(); };
    const RequestBroker::Demand demand{.function = "f", .id = "id", .give_up = {}};
    const auto run = [&]() -> asio::awaitable<void> {
      co_await client_request.ReadBody();
      co_await lease_.Acquire(demand);
      co_await transfer.Forward(upstream.address(), pool);
      if (on_forwarded_) on_forwarded_();
      may_go_elsewhere_ = transfer.MayGoElsewhere();
      co_await transfer.End();
      lease_.Release(scheduler::Ending::kAnswered);
      body_bytes_ = spool.used();
      pool->CloseIdle();
    };
    asio::co_spawn(io_, run, [](const std::exception_ptr&) {});
    io_.run();
    interrupt_ = nullptr;
  }

  asio::io_context io_;
  RouterConfig config_;
  FunctionConfig function_;
  RequestMetrics metrics_;
  FakeBroker broker_;
  LeaseDesk desk_{io_, broker_};
  LoopEvent changed_{io_};
  std::function<void()> interrupt_;
  std::function<void()> on_forwarded_;  // when the client gets the head, or a failure
  RequestFailure failure_{[this] {
    if (interrupt_) interrupt_();
    changed_.Notify();
    lease_.Wake();
  }};
  RequestLease lease_{io_, desk_, failure_};
  ResponseBuffer response_;
  boost::beast::tcp_stream stream_{io_};
  boost::beast::flat_buffer buffer_;
  ClientRequest::Parser parser_;
  int answered_ = 0;
  bool may_go_elsewhere_ = false;
  BodyBytes body_bytes_;  // after the transfer
};

TEST_F(UpstreamTransferTest, TheAnswerIsWholeInTheBuffer) {
  std::string body;
  Transfer("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
           [&](RawConnection& connection, const RawMessage& message) {
             body = message.body;
             return connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
           });
  EXPECT_FALSE(failure_) << failure_.detail();
  EXPECT_EQ(body, "abc");
  EXPECT_TRUE(response_.is_complete());
  EXPECT_EQ(response_.TakeBody(), "hello");
  EXPECT_EQ(answered_, 1);
}

TEST_F(UpstreamTransferTest, AnAnswerThatBreaksOffIsAFailure) {
  Transfer("GET / HTTP/1.1\r\n\r\n", [](RawConnection& connection, const RawMessage&) {
    connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe");
    return false;
  });
  EXPECT_EQ(failure_.cause(), Cause::kUpstreamBroken);
  EXPECT_EQ(answered_, 0);
}

TEST_F(UpstreamTransferTest, ABrokenOffRequestMayGoElsewhere) {
  config_.request_buffer_bytes = 2;
  Transfer("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
           [](RawConnection&, const RawMessage&) { return false; });
  EXPECT_EQ(failure_.cause(), Cause::kUpstreamBroken);
  EXPECT_TRUE(may_go_elsewhere_);
  EXPECT_EQ(body_bytes_.disk, 1u) << "the body is still at hand";
}

TEST_F(UpstreamTransferTest, TheBodyHasALengthAndIsDroppedWhenTheAnswerHasBegun) {
  config_.request_buffer_bytes = 2;
  RawMessage seen;
  Transfer("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
           [&](RawConnection& connection, const RawMessage& message) {
             seen = message;
             return connection.Send(Ok("x"));
           });
  EXPECT_FALSE(failure_) << failure_.detail();
  EXPECT_EQ(seen.Field("content-length"), "3");
  EXPECT_EQ(seen.body, "abc");
  EXPECT_EQ(body_bytes_, BodyBytes());
}

TEST_F(UpstreamTransferTest, WithoutSecondTriesItMayNot) {
  function_.second_tries = false;
  Transfer("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
           [](RawConnection&, const RawMessage&) { return false; });
  EXPECT_EQ(failure_.cause(), Cause::kUpstreamBroken);
  EXPECT_FALSE(may_go_elsewhere_);
}

TEST_F(UpstreamTransferTest, NorMayARequestWhoseAnswerHasBegun) {
  Transfer("GET / HTTP/1.1\r\n\r\n", [](RawConnection& connection, const RawMessage&) {
    connection.Send("HTTP/1.1 200");
    return false;
  });
  EXPECT_EQ(failure_.cause(), Cause::kUpstreamBroken);
  EXPECT_FALSE(may_go_elsewhere_);
}

TEST_F(UpstreamTransferTest, ALostLeaseIsFoundOutWhenTheServerDies) {
  broker_.on_confirm = [this](RequestId request) {
    broker_.Lose(request.value, absl::UnavailableError("its executor died"));
  };
  Transfer("GET / HTTP/1.1\r\n\r\n", [](RawConnection&, const RawMessage&) { return false; });
  EXPECT_EQ(failure_.cause(), Cause::kLeaseLost);
}

TEST_F(UpstreamTransferTest, ALateAnswerIsATimeout) {
  function_.upstream_timeout = std::chrono::milliseconds(20);
  Transfer("GET / HTTP/1.1\r\n\r\n", [](RawConnection& connection, const RawMessage&) {
    connection.ReadToEnd();  // until the router gives up
    return false;
  });
  EXPECT_EQ(failure_.cause(), Cause::kUpstreamTimeout);
}

class TransferThatSaves : public UpstreamTransferTest {
 protected:
  TransferThatSaves() : UpstreamTransferTest(Durability::kRequest) {}
};

TEST_F(TransferThatSaves, AReplyIsWholeOnceItsWorkIsSaved) {
  bool was_complete = true;
  std::string before;
  broker_.on_save = [&](RequestId) {
    was_complete = response_.is_complete();
    before = response_.has_pieces() ? response_.TakeBody() : "";
  };
  Transfer("GET / HTTP/1.1\r\n\r\n", [](RawConnection& connection, const RawMessage&) {
    return connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  });
  EXPECT_FALSE(failure_) << failure_.detail();
  EXPECT_FALSE(was_complete);
  EXPECT_LT(before.size(), 5u) << "nobody may take it for whole";
  EXPECT_EQ(before + response_.TakeBody(), "hello");
  EXPECT_EQ(answered_, 1);
}

TEST_F(TransferThatSaves, AReplyWhoseWorkIsNotSavedIsNone) {
  broker_.on_save = [this](RequestId request) {
    broker_.Lose(request.value, absl::UnavailableError("its memory could not be saved"));
  };
  Transfer("GET / HTTP/1.1\r\n\r\n", [](RawConnection& connection, const RawMessage&) {
    return connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  });
  EXPECT_EQ(failure_.cause(), Cause::kLeaseLost);
  EXPECT_FALSE(response_.is_complete());
  EXPECT_EQ(answered_, 0);
}

TEST_F(TransferThatSaves, AHeadAloneIsNoReplyBeforeItsWorkIsSaved) {
  broker_.on_save = [this](RequestId request) {
    broker_.Lose(request.value, absl::UnavailableError("its memory could not be saved"));
  };
  bool has_begun = false;
  on_forwarded_ = [&] { has_begun = !failure_; };
  Transfer("GET / HTTP/1.1\r\n\r\n", [](RawConnection& connection, const RawMessage&) {
    return connection.Send("HTTP/1.1 204 No Content\r\n\r\n");
  });
  EXPECT_FALSE(has_begun) << "a 204 would have left";
  EXPECT_EQ(failure_.cause(), Cause::kLeaseLost);
}

TEST_F(TransferThatSaves, ASaveIsLateAsAnAnswerIs) {
  function_.run_limit = std::chrono::milliseconds(300);
  broker_.saves = false;
  Transfer("GET / HTTP/1.1\r\n\r\n", [](RawConnection& connection, const RawMessage&) {
    return connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  });
  EXPECT_EQ(failure_.cause(), Cause::kUpstreamTimeout);
  EXPECT_EQ(answered_, 0);
}

}  // namespace
}  // namespace torpor::server
