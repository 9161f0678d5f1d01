#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "server/executor/gpu/device.h"
#include "server/executor/image/peer_socket.h"
#include "server/executor/session_memory/memory_directory.h"

namespace torpor::executor {

// Gives chunks of resident images to the executors of other GPUs, on a separate thread. A request
// must show the session's peer key, which torpord tells to executors only.
class PeerServer {
 public:
  // `device` and `directory` must outlive the server.
  static absl::StatusOr<std::unique_ptr<PeerServer>> Start(const std::string& path,
                                                           const Device& device,
                                                           const MemoryDirectory& directory);
  ~PeerServer();
  PeerServer(const PeerServer&) = delete;
  PeerServer& operator=(const PeerServer&) = delete;

 private:
  PeerServer(UniqueFd listener, UniqueFd stop, const Device& device,
             const MemoryDirectory& directory);

  void Serve();
  // Returns false if the connection is to be closed.
  bool Answer(int connection) const;
  // Fills in the reply, and returns the reply's descriptors.
  std::vector<UniqueFd> Export(const ChunkRequest& request, ChunkReply& reply) const;

  const UniqueFd listener_;
  const UniqueFd stop_;
  const Device& device_;
  const MemoryDirectory& directory_;
  std::thread thread_;
};

}  // namespace torpor::executor
