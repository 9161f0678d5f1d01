#include "server/executor/session_memory/peer_server.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/status_macros.h"
#include "server/executor/session_memory/session_memory.h"
#include "server/unix_socket/unix_listener.h"

namespace torpor::executor {
namespace {

// Only torpord's user may connect: functions run as other users, or present no key.
constexpr mode_t kSocketMode = 0600;
constexpr std::size_t kMaxConnections = 64;

bool Send(int connection, const ChunkReply& reply, const std::vector<UniqueFd>& descriptors) {
  iovec data{const_cast<ChunkReply*>(&reply), sizeof reply};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxChunks)> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
    for (std::size_t i = 0; i < descriptors.size(); ++i) {
      const int fd = descriptors[i].get();
      std::memcpy(CMSG_DATA(header) + i * sizeof fd, &fd, sizeof fd);
    }
  }
  return sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof reply);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PeerServer>> PeerServer::Start(const std::string& path,
                                                              const Device& device,
                                                              const MemoryDirectory& directory) {
  TORPOR_ASSIGN_OR_RETURN(UniqueFd listener,
                          server::ListenOnUnixSocket(path, SOCK_SEQPACKET, kSocketMode));
  UniqueFd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop) return absl::ErrnoToStatus(errno, "cannot create an eventfd");
  return std::unique_ptr<PeerServer>(
      new PeerServer(std::move(listener), std::move(stop), device, directory));
}

PeerServer::PeerServer(UniqueFd listener, UniqueFd stop, const Device& device,
                       const MemoryDirectory& directory)
    : listener_(std::move(listener)),
      stop_(std::move(stop)),
      device_(device),
      directory_(directory),
      thread_([this] { Serve(); }) {}

PeerServer::~PeerServer() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void PeerServer::Serve() {
  if (const absl::Status current = device_.MakeCurrent(); !current.ok()) {
    spdlog::error("no memory for peers: {}", current.ToString());
    return;
  }
  std::vector<UniqueFd> connections;
  while (true) {
    std::vector<pollfd> polled = {{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const UniqueFd& connection : connections) polled.push_back({connection.get(), POLLIN, 0});
    if (poll(polled.data(), polled.size(), -1) < 0) continue;  // EINTR
    if (polled[0].revents != 0) return;
    for (std::size_t i = polled.size(); i-- > 2;) {
      if (polled[i].revents == 0 || Answer(polled[i].fd)) continue;
      connections.erase(connections.begin() + static_cast<std::ptrdiff_t>(i - 2));
    }
    if (polled[1].revents == 0) continue;
    UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) continue;
    if (connections.size() >= kMaxConnections) connections.erase(connections.begin());
    connections.push_back(std::move(connection));
  }
}

bool PeerServer::Answer(int connection) const {
  ChunkRequest request;
  const ssize_t received = recv(connection, &request, sizeof request, MSG_DONTWAIT | MSG_TRUNC);
  if (received < 0) return errno == EAGAIN || errno == EINTR;
  if (received != static_cast<ssize_t>(sizeof request)) return false;
  ChunkReply reply;
  const std::vector<UniqueFd> descriptors = Export(request, reply);
  return Send(connection, reply, descriptors);
}

std::vector<UniqueFd> PeerServer::Export(const ChunkRequest& request, ChunkReply& reply) const {
  std::vector<UniqueFd> descriptors;
  if (request.count == 0 || request.count > kMaxChunks) {
    reply.error = EINVAL;
    return descriptors;
  }
  const bool is_known = directory_.UseAsPeer(
      SessionId{request.session_id}, request.peer_key, [&](SessionMemory& memory) {
        for (std::uint32_t i = 0; i < request.count; ++i) {
          DeviceImage& image = memory.image();
          absl::StatusOr<UniqueFd> chunk = request.is_for_copy != 0
                                               ? image.ExportForCopy(request.first + i)
                                               : image.Export(request.first + i);
          if (!chunk.ok() && !absl::IsNotFound(chunk.status())) {
            spdlog::error("session {}: {}", request.session_id, chunk.status().ToString());
            reply.error = EIO;
            return true;
          }
          if (!chunk.ok()) continue;
          reply.is_there[i] = 1;
          descriptors.push_back(*std::move(chunk));
        }
        return true;
      });
  if (!is_known) reply.error = EACCES;
  if (reply.error != 0) descriptors.clear();
  return descriptors;
}

}  // namespace torpor::executor
