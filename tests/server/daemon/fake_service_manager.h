#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string>

#include "base/unique_fd.h"

namespace torpor::server {

// The socket of a service manager, to which NOTIFY_SOCKET points as long as it lives.
class FakeServiceManager {
 public:
  struct Message {
    std::string text = "nothing";
    UniqueFd descriptor = UniqueFd();
  };

  // `name`: a path, or an abstract name that begins with @.
  explicit FakeServiceManager(const std::string& name = "@torpor-manager-" +
                                                        std::to_string(getpid()))
      : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  FakeServiceManager(const FakeServiceManager&) = delete;
  FakeServiceManager& operator=(const FakeServiceManager&) = delete;
  ~FakeServiceManager() { unsetenv("NOTIFY_SOCKET"); }

  // The next message; waits for a minute at most.
  Message Await() const {
    pollfd readable = {socket_.get(), POLLIN, 0};
    poll(&readable, 1, 60'000);
    return Receive();
  }

  // The next message that has come.
  Message Receive() const {
    std::array<char, 512> text{};
    iovec data = {text.data(), text.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr datagram = {};
    datagram.msg_iov = &data;
    datagram.msg_iovlen = 1;
    datagram.msg_control = control.data();
    datagram.msg_controllen = control.size();
    const ssize_t bytes = recvmsg(socket_.get(), &datagram, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (bytes < 0) return {};
    Message message{.text = std::string(text.data(), static_cast<std::size_t>(bytes))};
    if (const cmsghdr* const header = CMSG_FIRSTHDR(&datagram); header != nullptr) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
      message.descriptor.Reset(descriptor);
    }
    return message;
  }

 private:
  UniqueFd socket_;
};

}  // namespace torpor::server
