#include "tests/chaos/tcp_connections.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/unique_fd.h"

namespace torpor::chaos {
namespace {

sockaddr* Generic(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

TEST(TcpConnectionsTest, AConnectionCountsUntilItsServerHasClosedIt) {
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(listener.get(), Generic(address), size), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  ASSERT_EQ(getsockname(listener.get(), Generic(address), &size), 0);
  const std::uint16_t port = ntohs(address.sin_port);
  EXPECT_EQ(ConnectionsTo(port), 0);

  UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(client.get(), Generic(address), size), 0);
  EXPECT_EQ(ConnectionsTo(port), 1) << "which nobody has accepted";
  UniqueFd accepted(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  client.Reset();
  char byte = 0;
  ASSERT_EQ(recv(accepted.get(), &byte, 1, 0), 0);
  EXPECT_EQ(ConnectionsTo(port), 1) << "whose client has gone";
  accepted.Reset();
  EXPECT_EQ(ConnectionsTo(port), 0);
}

}  // namespace
}  // namespace torpor::chaos
