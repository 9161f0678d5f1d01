#include "server/executor/gpu/packet_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "server/executor/gpu/packet_socket.h"

namespace torpor::executor {

bool PacketServer::Serve(int timeout_ms) {
  std::vector<pollfd> polled = {{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
  for (const UniqueFd& connection : connections_) polled.push_back({connection.get(), POLLIN, 0});
  if (poll(polled.data(), polled.size(), timeout_ms) <= 0) return true;  // in time, or EINTR
  if (polled[0].revents != 0) return false;
  for (std::size_t i = polled.size(); i-- > 2;) {
    if (polled[i].revents == 0 || AnswerOne(polled[i].fd)) continue;
    Close(i - 2);
  }
  if (polled[1].revents != 0) Accept();
  return true;
}

bool PacketServer::AnswerOne(int connection) {
  const ssize_t received =
      recv(connection, packet_.data(), packet_.size(), MSG_DONTWAIT | MSG_TRUNC);
  if (received < 0) return errno == EAGAIN || errno == EINTR;
  return received == static_cast<ssize_t>(packet_.size()) && answer_(connection, packet_);
}

void PacketServer::Accept() {
  UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!connection) return;
  if (connections_.size() >= kMaxConnections) Close(0);
  connections_.push_back(std::move(connection));
}

void PacketServer::Close(std::size_t index) {
  if (closing_) closing_(connections_[index].get());
  connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(index));
}

void PacketServer::Stop() const { eventfd_write(stop_.get(), 1); }

bool SendPacket(int connection, std::span<const std::byte> packet,
                std::span<const int> descriptors) {
  iovec data{const_cast<std::byte*>(packet.data()), packet.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxDescriptors)> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  return sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(packet.size());
}

}  // namespace torpor::executor
