#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "client_shim/core/commands/command_channel.h"
#include "proto/cuda_api/cudart_commands.h"
#include "proto/wire/result_hash.h"
#include "tests/client_shim/core/commands/channel_world.h"
#include "tests/client_shim/fake_executor.h"

namespace torpor::shim {

inline constexpr std::uint32_t kSync = wire::DeviceSynchronize::kCallId;
inline constexpr std::uint32_t kLaunch = wire::LaunchKernel::kCallId;
inline constexpr std::uint32_t kDownload = wire::MemcpyDtoH::kCallId;
inline constexpr auto kAttach = static_cast<std::uint32_t>(wire::ProtocolCall::kAttach);
inline constexpr auto kDrain = static_cast<std::uint32_t>(wire::ProtocolCall::kDrain);
inline constexpr auto kCheckpoint = static_cast<std::uint32_t>(wire::ProtocolCall::kCheckpoint);

// A channel whose executors die, and whose torpord does. The test is the service thread and the
// daemon.
class ChannelThatLoses : public ChannelWorld {
 protected:
  static constexpr std::size_t kExecutors = 5;

  explicit ChannelThatLoses(std::size_t replay_bytes = 1 << 20, bool replays = true) {
    ChannelOptions options;
    options.batch = {std::size_t{64} << 10, 1000, std::chrono::hours(1)};
    options.lease_idle = std::chrono::hours(1);
    options.attach.session_id = 42;
    options.replays = replays;
    options.replay_bytes = replay_bytes;
    channel_ = std::make_unique<CommandChannel>(
        options, Parts([] {}, [this](std::uint64_t saved) { saved_ = saved; }));
    for (std::size_t i = 0; i < kExecutors; ++i) {
      executors_.push_back(std::make_unique<testing::FakeExecutor>(
          ::testing::TempDir() + "/replay-" + std::to_string(getpid()) + "-" + std::to_string(i) +
              ".sock",
          std::set<std::uint32_t>{kAttach, kDrain, kSync, kDownload, kCheckpoint}));
      executors_.back()->set_answer(
          [this, i](const testing::ReceivedCommand& command) { return AnswerTo(command, i); });
    }
  }

  // Downloads give the four bytes of `value_`.
  wire::Reply AnswerTo(const testing::ReceivedCommand& command, std::size_t executor) const {
    wire::Reply reply;
    if (command.call_id == kDownload) {
      wire::MemcpyDtoH copy;
      wire::Reader reader(command.fields);
      reader(copy);
      const std::uint32_t value = value_;
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&value);
      wire::MemcpyDtoHResult result;
      result.data.assign(bytes, bytes + sizeof value);
      if (copy.window_offset == wire::kReplyHash) {
        const std::uint64_t hash = wire::ResultHash(result.data);
        result.data.resize(sizeof hash);
        std::memcpy(result.data.data(), &hash, sizeof hash);
      }
      wire::Writer{reply.result}(result);
    }
    if (command.call_id == kCheckpoint) {
      wire::CheckpointReply saved;
      for (const testing::ReceivedCommand& earlier : executors_[executor]->commands())
        saved.saved_command = std::max(saved.saved_command, earlier.number);
      wire::Writer{reply.result}(saved);
    }
    return reply;
  }

  bool Grant(std::size_t executor, bool replays = false, std::uint64_t saved = 0) {
    wire::LeaseGrant grant;
    grant.lease_id = ++lease_;
    grant.is_explicit = true;
    grant.executor_socket = executors_[executor]->socket();
    grant.executor_epoch = 1;
    grant.replays = replays;
    grant.saved_command = saved;
    return channel_->OnGrant(grant);
  }
  // The executor of the present lease dies, and the daemon says so.
  void Die(std::size_t executor) {
    executors_[executor]->Die();
    wire::LeaseLost lost{lease_, cudaErrorDevicesUnavailable, false, "the executor died"};
    lost.replays = true;
    channel_->OnLost(lost);
  }
  cudaError_t Launch() { return channel_->Enqueue({kLaunch, {}}); }
  cudaError_t Synchronize() {
    CallReply reply;
    return channel_->Call({kSync, {}}, reply);
  }
  cudaError_t Download() {
    CallReply reply;
    const auto fields = wire::Encoded(wire::MemcpyDtoH{1, 0, 4, wire::kReplyInline});
    return channel_->Call({kDownload, fields}, reply);
  }
  // Begins a call that the executor receives and does not answer.
  std::future<cudaError_t> UnansweredCall(std::size_t executor) {
    executors_[executor]->Await(kAttach);
    executors_[executor]->Pause();
    auto call = std::async(std::launch::async, [this] { return Synchronize(); });
    executors_[executor]->Await(kSync);
    return call;
  }
  template <typename Condition>
  void Serve(const Condition& done) {
    while (!done()) {
      std::vector<CommandChannel::Watched> watched;
      channel_->Watch(watched);
      for (const auto& link : watched) channel_->OnReady(link.link, link.events);
      channel_->OnTimers();
    }
  }
  // Until the thread that waits has met the executor's end.
  void AwaitSuspension() {
    std::vector<CommandChannel::Watched> watched;
    while (!channel_->Watch(watched).has_value()) std::this_thread::yield();
  }
  // The end of the executor's connection has been noticed.
  void AwaitNoLink() {
    std::vector<CommandChannel::Watched> watched;
    do {
      watched.clear();
      channel_->Watch(watched);
      for (const CommandChannel::Watched& link : watched) Serve(link);
    } while (!watched.empty());
  }
  // As the service thread does, which may have been asked before the stream was there.
  void Serve(const CommandChannel::Watched& watched) {
    pollfd polled = {watched.link->fd(), watched.events, 0};
    poll(&polled, 1, watched.is_ready ? 0 : 1);
    const short events = watched.is_ready ? watched.events : polled.revents;
    if (events != 0) channel_->OnReady(watched.link, events);
  }
  // The commands with numbers that the executor has got, as "call:number".
  std::vector<std::string> Numbered(std::size_t executor) const {
    std::vector<std::string> found;
    for (const testing::ReceivedCommand& command : executors_[executor]->commands()) {
      if (command.number != 0)
        found.push_back(std::to_string(command.call_id) + ":" + std::to_string(command.number));
    }
    return found;
  }
  static std::string Of(std::uint32_t call, std::uint64_t number) {
    return std::to_string(call) + ":" + std::to_string(number);
  }
  using Strings = std::vector<std::string>;

  std::atomic<std::uint32_t> value_{5};
  std::atomic<std::uint64_t> saved_{0};
  std::uint64_t lease_ = 6;
  std::vector<std::unique_ptr<testing::FakeExecutor>> executors_;
  std::unique_ptr<CommandChannel> channel_;
};

}  // namespace torpor::shim
