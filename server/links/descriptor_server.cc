#include "server/links/descriptor_server.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/thread_name.h"
#include "server/unix_socket/unix_listener.h"

namespace torpor::server {
namespace {

// A client sends a request right after connecting: only a connection that stays silent while so
// many others come is cut off.
constexpr std::size_t kMaxClients = 256;

pid_t PeerProcess(int socket) {
  ucred credentials = {};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return -1;
  return credentials.pid;
}

bool IsForExecutors(wire::SharedMemory what) {
  return what == wire::SharedMemory::kImage || what == wire::SharedMemory::kBlockStates ||
         what == wire::SharedMemory::kTenantFile;
}

bool IsKnown(wire::SharedMemory what) {
  return what == wire::SharedMemory::kWindow || what == wire::SharedMemory::kHostArena ||
         IsForExecutors(what);
}

bool SendReply(int socket, const wire::DescriptorReply& reply, int descriptor) {
  iovec data = {const_cast<wire::DescriptorReply*>(&reply), sizeof reply};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof reply);
}

}  // namespace

absl::StatusOr<std::unique_ptr<DescriptorServer>> DescriptorServer::Start(
    const std::string& path, mode_t mode, const Repository& repository, IsExecutor is_executor) {
  TORPOR_ASSIGN_OR_RETURN(UniqueFd listener, ListenOnUnixSocket(path, SOCK_SEQPACKET, mode));
  UniqueFd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop) return absl::ErrnoToStatus(errno, "cannot create an eventfd");
  return std::unique_ptr<DescriptorServer>(new DescriptorServer(
      path, std::move(listener), std::move(stop), repository, std::move(is_executor)));
}

DescriptorServer::DescriptorServer(std::string path, UniqueFd listener, UniqueFd stop,
                                   const Repository& repository, IsExecutor is_executor)
    : path_(std::move(path)),
      listener_(std::move(listener)),
      stop_(std::move(stop)),
      repository_(repository),
      is_executor_(std::move(is_executor)),
      thread_([this] { Serve(); }) {}

DescriptorServer::~DescriptorServer() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
  unlink(path_.c_str());
}

void DescriptorServer::Serve() {
  NameThread("descriptors");
  while (true) {
    std::vector<pollfd> polled = {{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const auto& [fd, connection] : connections_) polled.push_back({fd, POLLIN, 0});
    if (poll(polled.data(), polled.size(), -1) < 0) continue;  // EINTR
    if (polled[0].revents != 0) return;
    for (std::size_t i = 2; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      if (!Answer(connections_.at(polled[i].fd))) Close(polled[i].fd);
    }
    if (polled[1].revents != 0) Accept();
  }
}

void DescriptorServer::Accept() {
  UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) return;
  const bool is_executor = is_executor_(PeerProcess(socket.get()));
  const int fd = socket.get();
  if (!is_executor) {
    if (clients_.size() >= kMaxClients) Close(clients_.front());
    clients_.push_back(fd);
  }
  connections_.emplace(fd, Connection{std::move(socket), is_executor});
}

void DescriptorServer::Close(int fd) {
  clients_.remove(fd);
  connections_.erase(fd);
}

bool DescriptorServer::Answer(const Connection& connection) const {
  wire::DescriptorRequest request;
  const ssize_t received =
      recv(connection.socket.get(), &request, sizeof request, MSG_DONTWAIT | MSG_TRUNC);
  if (received < 0) return errno == EAGAIN || errno == EINTR;
  if (received != static_cast<ssize_t>(sizeof request) || !IsKnown(request.what)) {
    if (received > 0) spdlog::warn("a peer of the descriptor socket sends no request; cut off");
    return false;
  }
  wire::DescriptorReply reply;
  const auto memory = repository_.Find(SessionId{request.session_id}, request.key);
  if (!memory.ok()) {
    reply.error = absl::IsNotFound(memory.status()) ? ENOENT : EACCES;
    return SendReply(connection.socket.get(), reply, -1);
  }
  if (IsForExecutors(request.what) && !connection.is_executor) {
    spdlog::warn("session {}: a process that is no executor asked for the image",
                 request.session_id);
    reply.error = EACCES;
    return SendReply(connection.socket.get(), reply, -1);
  }
  const MemoryFile& file = (*memory)->file(request.what);
  if (file.descriptor() < 0) reply.error = ENOENT;
  reply.bytes = file.size();
  return SendReply(connection.socket.get(), reply, file.descriptor());
}

}  // namespace torpor::server
