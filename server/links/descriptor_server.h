#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "proto/wire/descriptor_socket.h"
#include "server/repository/repository.h"

namespace torpor::server {

// Hands the sessions' memory files to peers with the session's key
// (proto/wire/descriptor_socket.h). Serves on a thread of its own. Cuts off a peer that sends
// malformed requests, and the oldest client if there are too many.
class DescriptorServer {
 public:
  // Returns whether the process is one of this node's executors: only executors get images.
  using IsExecutor = std::function<bool(pid_t pid)>;

  // Listens on `path` and replaces an existing socket. `repository` must outlive the server;
  // `is_executor` is called on the server's thread. Errors as ListenOnUnixSocket's.
  static absl::StatusOr<std::unique_ptr<DescriptorServer>> Start(const std::string& path,
                                                                 mode_t mode,
                                                                 const Repository& repository,
                                                                 IsExecutor is_executor);
  ~DescriptorServer();

 private:
  struct Connection {
    UniqueFd socket;
    bool is_executor = false;
  };

  DescriptorServer(std::string path, UniqueFd listener, UniqueFd stop, const Repository& repository,
                   IsExecutor is_executor);

  void Serve();
  void Accept();
  void Close(int fd);
  // Returns false if the connection must be closed.
  bool Answer(const Connection& connection) const;

  const std::string path_;
  const UniqueFd listener_;
  const UniqueFd stop_;
  const Repository& repository_;
  const IsExecutor is_executor_;
  // Used by the thread only.
  std::map<int, Connection> connections_;
  std::list<int> clients_;  // connections of non-executors, oldest first
  std::thread thread_;
};

}  // namespace torpor::server
