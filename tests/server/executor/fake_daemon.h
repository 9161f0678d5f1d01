#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/ids.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "proto/torpor/v1/node.grpc.pb.h"
#include "proto/wire/descriptor_socket.h"

namespace torpor::executor {

// torpord as an executor sees it: the node socket and the descriptor socket.
class FakeDaemon final : public v1::Node::Service {
 public:
  // Sockets go into `folder`.
  explicit FakeDaemon(const std::string& folder);
  ~FakeDaemon() override;

  std::string node_socket() const { return folder_ + "/node.sock"; }
  std::string descriptor_socket() const { return folder_ + "/files.sock"; }

  // Waits for the executor to dial; nothing after 20 s.
  std::optional<v1::ExecutorMessage::Register> WaitForExecutor();
  // Sends an operation and waits for its answer; code -1 if the stream ends first.
  v1::ExecutorMessage::OperationDone Do(v1::DaemonMessage operation);
  // Waits for the report of a lost context.
  std::optional<v1::ExecutorMessage::ContextLost> WaitForContextLost();
  // Waits for word of memory of which so much is fragmented.
  bool WaitForFragmented(Bytes bytes);
  // Ends the node stream, as torpord's death would.
  void Hang();

  // The file that an executor gets for it.
  void Offer(std::uint64_t session, wire::SharedMemory what, int file, Bytes bytes);

  grpc::Status Attach(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::DaemonMessage, v1::ExecutorMessage>* stream) override;

 private:
  void ServeDescriptors();
  template <typename Ready>
  bool WaitFor(std::unique_lock<std::mutex>& lock, Ready ready);

  const std::string folder_;
  UniqueFd descriptor_listener_;
  std::thread descriptor_thread_;
  std::unique_ptr<grpc::Server> server_;

  std::mutex mutex_;
  std::condition_variable changed_;
  grpc::ServerContext* context_ = nullptr;
  grpc::ServerReaderWriter<v1::DaemonMessage, v1::ExecutorMessage>* stream_ = nullptr;
  bool ended_ = false;
  std::optional<v1::ExecutorMessage::Register> registration_;
  std::optional<v1::ExecutorMessage::ContextLost> lost_;
  std::optional<v1::MemoryUse> memory_use_;
  std::map<std::uint64_t, v1::ExecutorMessage::OperationDone> answers_;
  std::uint64_t next_operation_ = 1;
  std::map<std::pair<std::uint64_t, wire::SharedMemory>, std::pair<int, Bytes>> files_;
};

}  // namespace torpor::executor
