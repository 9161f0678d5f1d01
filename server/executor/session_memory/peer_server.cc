#include "server/executor/session_memory/peer_server.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/thread_name.h"
#include "server/executor/gpu/device_mapping.h"
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

PoolDescription Describe(const PhysicalPool& pool) {
  PoolDescription description{0, pool.chunk_bytes(), pool.chunks()};
  TORPOR_CHECK(getrandom(&description.id, sizeof description.id, 0) == sizeof description.id);
  return description;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PeerServer>> PeerServer::Start(const std::string& path,
                                                              const Device& device,
                                                              const PhysicalPool& pool,
                                                              MemoryDirectory& directory) {
  TORPOR_ASSIGN_OR_RETURN(UniqueFd listener,
                          server::ListenOnUnixSocket(path, SOCK_SEQPACKET, kSocketMode));
  UniqueFd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop) return absl::ErrnoToStatus(errno, "cannot create an eventfd");
  return std::unique_ptr<PeerServer>(
      new PeerServer(std::move(listener), std::move(stop), device, pool, directory));
}

PeerServer::PeerServer(UniqueFd listener, UniqueFd stop, const Device& device,
                       const PhysicalPool& pool, MemoryDirectory& directory)
    : listener_(std::move(listener)),
      stop_(std::move(stop)),
      device_(device),
      pool_(pool),
      directory_(directory),
      description_(Describe(pool)),
      thread_([this] { Serve(); }) {}

PeerServer::~PeerServer() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void PeerServer::Serve() {
  NameThread("peer-server");
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
  reply.pool = description_;
  reply.numbers.fill(kNoChunk);
  if (request.count == 0 || request.count > kMaxChunks || request.use > ChunkUse::kCopy) {
    reply.error = EINVAL;
    return descriptors;
  }
  const bool is_known = directory_.UseAsPeer(
      SessionId{request.session_id}, request.peer_key, [&](SessionMemory& memory) {
        for (std::uint32_t i = 0; i < request.count && reply.error == 0; ++i) {
          const absl::Status given = ExportChunk(request, i, memory.image(), reply, descriptors);
          if (given.ok() || absl::IsNotFound(given)) continue;
          spdlog::error("session {}: {}", request.session_id, given.ToString());
          reply.error = EIO;
        }
        return true;
      });
  if (!is_known) reply.error = EACCES;
  if (reply.error != 0) descriptors.clear();
  return descriptors;
}

absl::Status PeerServer::ExportChunk(const ChunkRequest& request, std::uint32_t index,
                                     DeviceImage& image, ChunkReply& reply,
                                     std::vector<UniqueFd>& descriptors) const {
  TORPOR_ASSIGN_OR_RETURN(const CUmemGenericAllocationHandle chunk,
                          request.use == ChunkUse::kShare
                              ? image.ShareChunk(request.first + index)
                              : image.ChunkForCopy(request.first + index));
  if (request.use != ChunkUse::kLocate) {
    TORPOR_ASSIGN_OR_RETURN(UniqueFd descriptor, ExportMemory(device_, chunk));
    descriptors.push_back(std::move(descriptor));
  }
  const std::optional<std::uint32_t> number = pool_.NumberOf(chunk);
  TORPOR_CHECK(number.has_value());
  reply.numbers[index] = *number;
  return absl::OkStatus();
}

}  // namespace torpor::executor
