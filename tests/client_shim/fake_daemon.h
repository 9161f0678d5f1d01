#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "proto/torpor/v1/transport.grpc.pb.h"
#include "proto/wire/control_messages.h"
#include "proto/wire/session_window.h"
#include "tests/client_shim/fake_executor.h"
#include "tests/device_base.h"

namespace torpor::testing {

// The client side of torpord, scripted: it opens sessions, hands out shared memory and addresses,
// and grants leases when the test says so, or by itself on the executor in `auto_grant`.
class FakeDaemon final : public v1::Control::Service {
 public:
  struct Script {
    bool answers_hello = true;
    bool answers_memory = true;
    bool dies_before_ack = false;  // when it is asked for the session's memory files
    std::int32_t hello_error = 0;
    std::string hello_message{};
    FakeExecutor* auto_grant = nullptr;
    std::uint64_t window_bytes = std::uint64_t{1} << 20;
    std::size_t devices = 1;
    std::int32_t open_error = 0;  // of memory of another process
    bool replays = false;         // sessions are recorded
  };

  explicit FakeDaemon(Script script);
  ~FakeDaemon() override;

  const std::string& folder() const { return folder_; }
  std::string socket() const { return folder_ + "/torpor.sock"; }
  wire::CompletionPage* page() const { return page_; }

  // To the session that was opened last.
  void Send(const wire::ServerMessage& message);
  void SendRaw(std::string payload);
  // Grants a fresh lease, with the work up to `saved_command` in the host; returns its id.
  std::uint64_t Grant(const FakeExecutor& executor, bool is_explicit,
                      std::uint64_t saved_command = 0);
  void set_auto_grant(FakeExecutor* executor);
  void set_answers_memory(bool answers);
  // The answer to a Resume; at first an acceptance. nullopt: no answer.
  void set_resume_answer(std::optional<wire::ServerMessage> answer);
  // Ends as a killed process would.
  void Stop();
  // Listens again, as the next process would, with the sessions and memory of the one before.
  void Restart();

  // Waits for the next message of the type, dropping others before it.
  template <typename Message>
  Message Await() {
    std::unique_lock lock(mutex_);
    for (;;) {
      while (!received_.empty()) {
        const wire::ClientMessage next = std::move(received_.front());
        received_.pop_front();
        if (const auto* found = std::get_if<Message>(&next)) return *found;
      }
      AwaitAny(lock);
    }
  }
  // Counts what was received and not yet awaited.
  template <typename Message>
  std::size_t Count() const {
    std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const auto& message : received_) count += std::holds_alternative<Message>(message) ? 1 : 0;
    return count;
  }

  static constexpr std::uint64_t kDeviceBase = kTestDeviceBase;
  static constexpr std::uint64_t kDeviceBytes = 0x4000'0000;
  static constexpr std::uint64_t kHostBase = kDeviceBase + 0x8'0000'0000;
  static constexpr std::uint64_t kHostBytes = 0x100'0000;
  // A segment of a second session, and the memory shared at its begin.
  static constexpr std::uint64_t kForeignBase = kDeviceBase + 0x2000'0000;
  static constexpr std::uint64_t kForeignBytes = 4096;

 private:
  using Stream = grpc::ServerReaderWriter<v1::Frame, v1::Frame>;

  grpc::Status Connect(grpc::ServerContext* context, Stream* stream) override;
  void OnMessage(Stream& stream, const wire::ClientMessage& message);
  void AnswerHello(Stream& stream, const wire::ClientMessage& message);
  void AnswerMemory(Stream& stream, const wire::ClientMessage& message);
  void Answer(Stream& stream, const wire::ServerMessage& message);
  wire::HelloReply HelloAnswer() const;
  wire::InquiryReply InquiryAnswer() const;
  void AwaitAny(std::unique_lock<std::mutex>& lock);
  void ServeDescriptors();
  void Serve();

  const Script script_;
  std::string folder_;
  wire::CompletionPage* page_ = nullptr;
  UniqueFd window_;
  UniqueFd arena_;
  UniqueFd descriptor_listener_;
  std::thread descriptor_server_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<wire::ClientMessage> received_;
  Stream* stream_ = nullptr;
  FakeExecutor* auto_grant_ = nullptr;
  bool answers_memory_ = true;
  std::optional<wire::ServerMessage> resume_answer_ = wire::ResumeReply{};
  std::uint64_t next_lease_ = 1;
  std::uint64_t next_device_ = kDeviceBase;
  std::uint64_t next_host_ = kHostBase;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace torpor::testing
