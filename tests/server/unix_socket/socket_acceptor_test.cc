#include "server/unix_socket/socket_acceptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/mailbox.h"
#include "server/unix_socket/unix_listener.h"
#include "tests/base/temporary_folder.h"

namespace torpor::server {
namespace {

class SocketAcceptorTest : public testing::Test {
 protected:
  ~SocketAcceptorTest() override {
    acceptor_.reset();
    setrlimit(RLIMIT_NOFILE, &limit_before_);
  }

  void Start(SocketAcceptor::Options options = {}) {
    auto acceptor =
        SocketAcceptor::Start(std::move(listener_), std::move(options),
                              [this](UniqueFd connection) { taken_.Send(std::move(connection)); });
    ASSERT_TRUE(acceptor.ok()) << acceptor.status();
    acceptor_ = *std::move(acceptor);
  }
  // The process may have `more` descriptors than now.
  static void LimitTo(int more) {
    rlimit limit = LimitNow();
    for (limit.rlim_cur = 0;; ++limit.rlim_cur) {
      const bool is_free = fcntl(static_cast<int>(limit.rlim_cur), F_GETFD) < 0;
      if (is_free && more-- == 0) break;
    }
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  static UniqueFd NewSocket() { return UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }
  UniqueFd Connect(UniqueFd socket = NewSocket()) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      socket.Reset();
    }
    return socket;
  }
  // Whether the other end closes the connection.
  static bool IsClosed(const UniqueFd& connection) {
    constexpr int kPatienceMs = 10'000;
    pollfd end{connection.get(), POLLIN, 0};
    char byte = 0;
    return poll(&end, 1, kPatienceMs) == 1 && recv(connection.get(), &byte, 1, 0) == 0;
  }
  static rlimit LimitNow() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit;
  }

  const rlimit limit_before_ = LimitNow();
  const TemporaryFolder folder_;
  const std::string path_ = folder_.path("a.sock");
  UniqueFd listener_ = ListenOnUnixSocket(path_, SOCK_STREAM, 0600).value();
  Mailbox<UniqueFd> taken_{/*capacity=*/8};
  std::unique_ptr<SocketAcceptor> acceptor_;
};

TEST_F(SocketAcceptorTest, ConnectionsArePassedOn) {
  Start();
  const UniqueFd client = Connect();
  const std::optional<UniqueFd> server = taken_.Receive();
  ASSERT_TRUE(server);
  ASSERT_EQ(send(server->get(), "x", 1, 0), 1);
  char read = 0;
  EXPECT_EQ(recv(client.get(), &read, 1, 0), 1);
  EXPECT_EQ(read, 'x');
}

TEST_F(SocketAcceptorTest, PeersAreKnown) {
  pid_t process = 0;
  uid_t user = ~uid_t{0};
  Start({.admits = [&](const PeerCredentials& peer) {
    process = peer.process;
    user = peer.user;
    return false;
  }});
  const UniqueFd client = Connect();
  EXPECT_TRUE(IsClosed(client)) << "not admitted";
  acceptor_.reset();
  EXPECT_EQ(process, getpid());
  EXPECT_EQ(user, getuid());
}

TEST_F(SocketAcceptorTest, WithoutDescriptorsConnectionsAreRefusedAndLaterTakenAgain) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "UndefinedBehaviorSanitizer looks at objects through a pipe of its own";
#endif
  Start();
  UniqueFd socket = NewSocket();
  LimitTo(0);
  const UniqueFd client = Connect(std::move(socket));
  ASSERT_TRUE(client);
  EXPECT_TRUE(IsClosed(client));
  EXPECT_EQ(acceptor_->refused(), 1u);
  setrlimit(RLIMIT_NOFILE, &limit_before_);
  const UniqueFd next = Connect();
  EXPECT_TRUE(taken_.Receive());
}

TEST_F(SocketAcceptorTest, TheLastDescriptorsAreForOthers) {
  LimitTo(40);
  Start({.reserved_descriptors = 40});
  const UniqueFd client = Connect();
  ASSERT_TRUE(client);
  EXPECT_TRUE(IsClosed(client));
  EXPECT_EQ(acceptor_->refused(), 1u);
  setrlimit(RLIMIT_NOFILE, &limit_before_);
  const UniqueFd next = Connect();
  EXPECT_TRUE(taken_.Receive());
}

}  // namespace
}  // namespace torpor::server
