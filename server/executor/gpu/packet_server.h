#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/unique_fd.h"

namespace torpor::executor {

// Serves the connections to a Unix socket of type SOCK_SEQPACKET, all on the caller's thread.
class PacketServer {
 public:
  // Answers a packet on `connection`, without blocking; false: the connection is closed.
  using Answer = std::function<bool(int connection, std::span<const std::byte> packet)>;
  // Learns that `connection`, whose number may be another's next, is about to be closed.
  using Closing = std::function<void(int connection)>;

  // Of more connections the oldest is closed.
  static constexpr std::size_t kMaxConnections = 64;

  // A packet of other than `packet_bytes` ends its connection. `stop`: readable when serving is to
  // end.
  PacketServer(UniqueFd listener, UniqueFd stop, std::size_t packet_bytes, Answer answer,
               Closing closing = nullptr)
      : listener_(std::move(listener)),
        stop_(std::move(stop)),
        packet_(packet_bytes),
        answer_(std::move(answer)),
        closing_(std::move(closing)) {}

  // Waits at most `timeout_ms` (-1: any time) for packets and connections, and serves them. False
  // once serving is to end.
  bool Serve(int timeout_ms);
  // Lets Serve return false, from any thread.
  void Stop() const;

  std::size_t connections() const { return connections_.size(); }

 private:
  // Whether the connection stays open.
  bool AnswerOne(int connection);
  void Accept();
  void Close(std::size_t index);

  const UniqueFd listener_;
  const UniqueFd stop_;
  std::vector<std::byte> packet_;
  const Answer answer_;
  const Closing closing_;
  std::vector<UniqueFd> connections_;
};

// Sends a packet with up to kMaxDescriptors descriptors, which stay the caller's. Never blocks;
// false if it cannot be sent.
bool SendPacket(int connection, std::span<const std::byte> packet,
                std::span<const int> descriptors);

}  // namespace torpor::executor
