#include "client_shim/core/transport/unix_socket.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace torpor::shim {
namespace {

using std::chrono::milliseconds;

Failure<int> Errno(const std::string& what) {
  const int code = errno;
  return {code, what + ": " + std::strerror(code)};
}

// The descriptor attached to `message`; invalid without one.
UniqueFd TakeDescriptor(msghdr& message) {
  UniqueFd fd;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int received = -1;
      std::memcpy(&received, CMSG_DATA(part) + i * sizeof(int), sizeof received);
      fd.Reset(received);
    }
  }
  return fd;
}

Result<UniqueFd, int> ReceiveDescriptor(int socket, std::uint64_t bytes) {
  wire::DescriptorReply reply;
  Result<UniqueFd, int> fd = ReceiveWithDescriptor(socket, &reply, sizeof reply);
  if (!fd) return fd;
  if (reply.error != 0) return Failure<int>{reply.error, std::strerror(reply.error)};
  struct stat file {};
  if (!*fd || fstat(fd->get(), &file) != 0 || static_cast<std::uint64_t>(file.st_size) < bytes)
    return Failure<int>{EPROTO, "descriptor socket: the memory file is missing or too short"};
  return fd;
}

}  // namespace

Result<UniqueFd, int> ReceiveWithDescriptor(int socket, void* reply, std::size_t bytes) {
  iovec into{reply, bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &into;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (got < 0) return Errno("descriptor socket");
  UniqueFd fd = TakeDescriptor(message);
  if (static_cast<std::size_t>(got) != bytes)
    return Failure<int>{EPROTO, "descriptor socket: a malformed reply"};
  return fd;
}

std::string SocketBeside(const std::string& daemon_socket, const std::string& path) {
  if (daemon_socket.empty()) return path;
  const std::size_t folder = daemon_socket.rfind('/') + 1;  // 0 without one
  return daemon_socket.substr(0, folder) + path.substr(path.rfind('/') + 1);
}

Result<UniqueFd, int> ConnectUnix(const std::string& path, int type, Deadline deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Failure<int>{ENAMETOOLONG, path};
  std::memcpy(address.sun_path, path.c_str(), path.size());
  UniqueFd fd(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Errno("socket");
  // A Unix socket connects at once, or fails with EAGAIN while the listener's queue is full.
  while (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN || std::chrono::steady_clock::now() >= deadline) return Errno(path);
    std::this_thread::sleep_for(milliseconds(1));
  }
  // Blocking from here on: a thread waits for a reply in a single recv().
  int non_blocking = 0;
  if (ioctl(fd.get(), FIONBIO, &non_blocking) != 0) return Errno("FIONBIO");
  return fd;
}

bool PollUntil(int fd, short events, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd wanted{fd, events, 0};
    const int ready = poll(&wanted, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready > 0) return true;
    if (ready == 0) return false;
  }
}

ssize_t Receive(int fd, void* data, std::size_t bytes, int flags) {
  for (;;) {
    const ssize_t got = recv(fd, data, bytes, flags);
    if (got >= 0) return got;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return -1;
    if (errno != EINTR) return -2;
  }
}

Result<UniqueFd, int> FetchDescriptor(const wire::HelloReply& session, wire::SharedMemory what,
                                      std::uint64_t bytes, Deadline deadline) {
  Result<UniqueFd, int> socket = ConnectUnix(session.descriptor_socket, SOCK_SEQPACKET, deadline);
  if (!socket) return socket;
  wire::DescriptorRequest request;
  request.session_id = session.session_id;
  request.key = session.session_key;
  request.what = what;
  if (send(socket->get(), &request, sizeof request, MSG_NOSIGNAL) != sizeof request)
    return Errno("descriptor socket");
  if (!PollUntil(socket->get(), POLLIN, deadline))
    return Failure<int>{ETIMEDOUT, "descriptor socket: no answer"};
  return ReceiveDescriptor(socket->get(), bytes);
}

}  // namespace torpor::shim
