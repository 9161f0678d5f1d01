#pragma once

#include <grpcpp/grpcpp.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "proto/torpor/v1/node.grpc.pb.h"
#include "server/executor/executor_loop.h"

namespace torpor::executor {

// The executor's stream to torpord, and to the next one after the first has gone. Sends Register
// first; posts torpord's messages and the end of the stream to the loop, from a thread of its own.
class NodeLink final : public DaemonUplink {
 public:
  // Of a file among those at one path: inode and time of change.
  using FileIdentity = std::array<std::uint64_t, 3>;

  // `socket_path`: torpord's node socket.
  explicit NodeLink(std::string socket_path);
  ~NodeLink() override;

  // Opens the stream with `registration`; the loop learns whether opening succeeds. Call once,
  // before the first Send. `loop` must outlive the link.
  void Start(const v1::ExecutorMessage& registration, ExecutorLoop& loop);

  // The process serves this domain, as later registrations say.
  void NoteDomain(const std::string& domain);
  void Send(const v1::ExecutorMessage& message) override;
  void AwaitNext(Duration patience) override;
  void RegisterAgain() override;

  // Waits briefly until torpord has read all sent messages, then ends the stream.
  void Finish();

 private:
  // One call of Node.Attach.
  struct Stream {
    std::unique_ptr<v1::Node::Stub> stub;
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<v1::ExecutorMessage, v1::DaemonMessage>> call;
  };

  // Opens a stream, and posts what comes until its end.
  void Open();
  void Listen(const std::shared_ptr<Stream>& stream);
  // Whether a torpord listens that is not the one that has gone.
  bool IsAnotherThere() const;
  // Runs on the link's thread, which is idle.
  void InBackground(std::function<void()> work);
  std::shared_ptr<Stream> stream();

  const std::string socket_path_;
  ExecutorLoop* loop_ = nullptr;
  FileIdentity daemon_{};  // the socket of the latest stream; written while no thread runs
  Mutex mutex_;
  v1::ExecutorMessage registration_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Stream> stream_ ABSL_GUARDED_BY(mutex_);  // null while no torpord is there
  std::thread thread_;
  std::atomic<bool> is_idle_{true};     // of the thread
  std::atomic<bool> is_ending_{false};  // waits are of no use any more
};

}  // namespace torpor::executor
