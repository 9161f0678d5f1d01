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

// Hands the sessions' memory files to those who show the session's key
// (proto/wire/descriptor_socket.h). One thread of its own; a peer that sends anything else than
// requests is cut off, and the client that came first where there are too many.
class DescriptorServer {
 public:
  // Whether the process is one of this node's executors: only they get images.
  using IsExecutor = std::function<bool(pid_t pid)>;

  // Listens on `path`, which is replaced if it exists. `repository` must outlive the server;
  // `is_executor` is called on the server's thread.
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
  // False where the connection is to be closed.
  bool Answer(const Connection& connection) const;

  const std::string path_;
  const UniqueFd listener_;
  const UniqueFd stop_;
  const Repository& repository_;
  const IsExecutor is_executor_;
  // Of the thread.
  std::map<int, Connection> connections_;
  std::list<int> clients_;  // those that are no executors, oldest first
  std::thread thread_;
};

}  // namespace torpor::server
