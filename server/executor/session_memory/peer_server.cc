#include "server/executor/session_memory/peer_server.h"

#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/thread_name.h"
#include "server/executor/session_memory/session_memory.h"
#include "server/unix_socket/unix_listener.h"

namespace torpor::executor {
namespace {

// Only torpord's user may connect: functions run as other users, or present no key.
constexpr mode_t kSocketMode = 0600;

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
    : device_(device),
      pool_(pool),
      directory_(directory),
      description_(Describe(pool)),
      server_(std::move(listener), std::move(stop), sizeof(ChunkRequest),
              [this](int connection, std::span<const std::byte> packet) {
                ChunkRequest request;
                std::memcpy(&request, packet.data(), sizeof request);
                return Answer(connection, request);
              }),
      thread_([this] { Serve(); }) {}

PeerServer::~PeerServer() {
  server_.Stop();
  thread_.join();
}

void PeerServer::Serve() {
  NameThread("peer-server");
  if (const absl::Status current = device_.MakeCurrent(); !current.ok()) {
    spdlog::error("no memory for peers: {}", current.ToString());
    return;
  }
  while (server_.Serve(/*timeout_ms=*/-1)) {
  }
}

bool PeerServer::Answer(int connection, const ChunkRequest& request) const {
  ChunkReply reply;
  const std::vector<UniqueFd> descriptors = Export(request, reply);
  std::vector<int> sent;
  sent.reserve(descriptors.size());
  for (const UniqueFd& descriptor : descriptors) sent.push_back(descriptor.get());
  return SendPacket(connection, std::as_bytes(std::span(&reply, 1)), sent);
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
  const std::optional<std::uint32_t> number = pool_.NumberOf(chunk);
  TORPOR_CHECK(number.has_value());
  if (request.use != ChunkUse::kLocate) {
    TORPOR_ASSIGN_OR_RETURN(UniqueFd descriptor, pool_.Export(*number));
    descriptors.push_back(std::move(descriptor));
  }
  reply.numbers[index] = *number;
  return absl::OkStatus();
}

}  // namespace torpor::executor
