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
  // Answers what has come on `connection`, without blocking; false: the connection is closed.
  using Answer = std::function<bool(int connection)>;

  // Of more connections the oldest is closed.
  static constexpr std::size_t kMaxConnections = 64;

  // `stop`: readable when serving is to end.
  PacketServer(UniqueFd listener, UniqueFd stop, Answer answer)
      : listener_(std::move(listener)), stop_(std::move(stop)), answer_(std::move(answer)) {}

  // Waits at most `timeout_ms` (-1: any time) for packets and connections, and serves them. False
  // once serving is to end.
  bool Serve(int timeout_ms);
  // Lets Serve return false, from any thread.
  void Stop() const;

  std::size_t connections() const { return connections_.size(); }

 private:
  void Accept();

  const UniqueFd listener_;
  const UniqueFd stop_;
  const Answer answer_;
  std::vector<UniqueFd> connections_;
};

// Receives a packet of exactly the size of `packet`. Never blocks.
enum class Received { kPacket, kNothing, kEnd };
Received ReceivePacket(int connection, std::span<std::byte> packet);

// Sends a packet with up to kMaxDescriptors descriptors, which stay the caller's. Never blocks;
// false if it cannot be sent.
bool SendPacket(int connection, std::span<const std::byte> packet,
                std::span<const int> descriptors);

}  // namespace torpor::executor
