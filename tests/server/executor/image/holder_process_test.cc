#include "server/executor/image/holder_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

#include "server/unix_socket/unix_listener.h"
#include "tests/base/temporary_folder.h"

namespace torpor::executor {
namespace {

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Starts a process that connects to `address`, closes the connection if told, and lives on. Between
// fork and its end the process only calls the system.
pid_t StartConnected(const sockaddr_un& address, bool closes) {
  const pid_t child = fork();
  if (child != 0) return child;
  const int connection = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    _exit(1);
  }
  if (closes) close(connection);
  while (true) pause();
}

bool IsReadable(const UniqueFd& descriptor) {
  pollfd polled = {descriptor.get(), POLLIN, 0};
  return poll(&polled, 1, 0) == 1;
}

TEST(HolderProcessTest, IsReadableOnceTheProcessHasEnded) {
  const TemporaryFolder folder;
  const std::string path = folder.path("pool.sock");
  const UniqueFd listener = *server::ListenOnUnixSocket(path, SOCK_SEQPACKET, 0600);
  const sockaddr_un address = AddressOf(path);
  for (const bool closes : {false, true}) {
    const pid_t child = StartConnected(address, closes);
    ASSERT_GT(child, 0);
    pollfd arriving = {listener.get(), POLLIN, 0};
    EXPECT_EQ(poll(&arriving, 1, /*timeout=*/30'000), 1);
    const UniqueFd connection(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const absl::StatusOr<UniqueFd> process = OpenHolderProcess(connection.get());
    EXPECT_TRUE(process.ok()) << process.status();
    EXPECT_TRUE(process.ok() && !IsReadable(*process));
    kill(child, SIGKILL);
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
    EXPECT_TRUE(process.ok() && IsReadable(*process));
    EXPECT_FALSE(OpenHolderProcess(connection.get()).ok()) << "it has gone";
  }
}

TEST(HolderProcessTest, WhatIsNoSocketHasNoProcess) { EXPECT_FALSE(OpenHolderProcess(-1).ok()); }

}  // namespace
}  // namespace torpor::executor
