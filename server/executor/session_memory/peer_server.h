#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "server/executor/gpu/device.h"
#include "server/executor/gpu/packet_server.h"
#include "server/executor/image/device_image.h"
#include "server/executor/image/peer_socket.h"
#include "server/executor/image/physical_pool.h"
#include "server/executor/session_memory/memory_directory.h"

namespace torpor::executor {

// Gives chunks of resident images to the executors of other GPUs, on a separate thread. A request
// must show the session's peer key, which torpord tells to executors only.
class PeerServer {
 public:
  // `device`, `pool` and `directory` must outlive the server.
  static absl::StatusOr<std::unique_ptr<PeerServer>> Start(const std::string& path,
                                                           const Device& device,
                                                           const PhysicalPool& pool,
                                                           MemoryDirectory& directory);
  ~PeerServer();
  PeerServer(const PeerServer&) = delete;
  PeerServer& operator=(const PeerServer&) = delete;

 private:
  PeerServer(UniqueFd listener, UniqueFd stop, const Device& device, const PhysicalPool& pool,
             MemoryDirectory& directory);

  void Serve();
  // Returns false if the connection is to be closed.
  bool Answer(int connection, const ChunkRequest& request) const;
  // Fills in the reply, and returns the reply's descriptors.
  std::vector<UniqueFd> Export(const ChunkRequest& request, ChunkReply& reply) const;
  // As Export, from a session's image. NotFound for a chunk that is not there.
  absl::Status ExportChunk(const ChunkRequest& request, std::uint32_t index, DeviceImage& image,
                           ChunkReply& reply, std::vector<UniqueFd>& descriptors) const;

  const Device& device_;
  const PhysicalPool& pool_;
  MemoryDirectory& directory_;
  const PoolDescription description_;
  PacketServer server_;
  std::thread thread_;
};

}  // namespace torpor::executor
