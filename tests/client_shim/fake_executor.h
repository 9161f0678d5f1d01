#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "proto/torpor/v1/transport.grpc.pb.h"
#include "proto/wire/batch.h"
#include "proto/wire/session_window.h"

namespace torpor::testing {

// What a client sent, decoded.
struct ReceivedCommand {
  std::uint64_t lease_id = 0;
  std::uint32_t call_id = 0;
  std::vector<std::uint8_t> fields;
  std::uint64_t number = 0;  // wire::BatchHeader; 0: none
};

// An executor that carries nothing out: it keeps the commands and answers the synchronous ones.
class FakeExecutor final : public v1::Execution::Service {
 public:
  // Answers a synchronous command; the reply's call_id is filled in.
  using Answer = std::function<wire::Reply(const ReceivedCommand&)>;

  FakeExecutor(std::string socket, std::set<std::uint32_t> synchronous_calls);
  ~FakeExecutor() override;

  const std::string& socket() const { return socket_; }
  void set_answer(Answer answer);
  // Where (slot, value) commands write; without it nothing is written.
  void set_page(wire::CompletionPage* page);
  // Holds all answers but to kAttach, and all completions, back until Resume.
  void Pause();
  void Resume();
  // Sends raw bytes as the next frame to every client.
  void SendRaw(std::string payload);
  // Ends as a killed process would.
  void Die();

  // Waits until `count` commands with this id have come, and gives all that came.
  std::vector<ReceivedCommand> Await(std::uint32_t call_id, std::size_t count = 1);
  std::vector<ReceivedCommand> commands() const;
  std::size_t frames() const;

 private:
  using Stream = grpc::ServerReaderWriter<v1::Frame, v1::Frame>;

  grpc::Status Run(grpc::ServerContext* context, Stream* stream) override;
  bool OnFrame(const std::string& payload, Stream* stream);
  wire::Reply AnswerTo(const ReceivedCommand& command);
  void Complete(const ReceivedCommand& command);

  const std::string socket_;
  const std::set<std::uint32_t> synchronous_calls_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ReceivedCommand> commands_;
  std::size_t frames_ = 0;
  bool paused_ = false;
  Answer answer_;
  wire::CompletionPage* page_ = nullptr;
  std::set<Stream*> streams_;
  std::set<grpc::ServerContext*> contexts_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace torpor::testing
