#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "client_shim/core/client_core.h"
#include "proto/wire/batch.h"

namespace torpor::shim {

// The limit of a command's fields in bytes; fields and header must fit a frame.
inline constexpr std::size_t kMaxCommandFields = wire::kMaxFrameBytes / 4;

// A batch leaves when any of these is reached.
struct BatchLimits {
  std::size_t bytes = 0;
  std::size_t calls = 0;  // 0: learned (BatchRhythm)
  std::chrono::microseconds age{};
};

// The commands that were not sent yet, encoded as a frame's payload behind room for the frame's own
// prefix. Not thread-safe.
class BatchWriter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit BatchWriter(const BatchLimits& limits);

  // Appends a command that the caller sends at once. `fields` is at most kMaxCommandFields long.
  // `number` is the command's (wire::BatchHeader), one more than the last command's unless the
  // batch is empty; 0: the command has none.
  void Append(std::uint32_t call_id, std::span<const std::uint8_t> fields,
              std::uint64_t number = 0);
  // Appends a command that may wait until Deadline; reads the clock for the first one only.
  void AppendLater(const Command& command, std::uint64_t number);

  bool empty() const { return count_ == 0; }
  std::uint32_t count() const { return count_; }
  // The number of the first command with a number, 0 if there is none, and how many have numbers.
  std::uint64_t first_number() const { return first_number_; }
  std::uint32_t numbered() const { return numbered_; }
  // The encoded commands.
  std::span<const std::uint8_t> commands() const;
  // When the oldest command of AppendLater came; valid unless empty.
  Time oldest() const { return oldest_; }
  void set_max_calls(std::size_t calls) { limits_.calls = calls; }
  // Whether the batch has reached its limit of bytes, or of bytes or calls.
  bool HasMaxBytes() const { return frame_.size() >= limits_.bytes; }
  bool IsFull() const { return HasMaxBytes() || count_ >= limits_.calls; }
  // When the oldest command reaches the limit of age; nullopt if the batch is empty.
  std::optional<Time> Deadline() const;

  // Returns the frame for FrameStream::Send and empties the batch.
  std::vector<std::uint8_t> Take(std::uint64_t lease_id);
  // Keeps the memory of a frame that has been sent for a later batch.
  void Reuse(std::vector<std::uint8_t> sent) { spare_ = std::move(sent); }
  void Clear();

 private:
  BatchLimits limits_;
  std::uint32_t count_ = 0;
  std::uint32_t numbered_ = 0;
  std::uint64_t first_number_ = 0;
  std::vector<std::uint8_t> frame_;
  std::vector<std::uint8_t> spare_;  // without content
  Time oldest_;                      // of AppendLater
};

}  // namespace torpor::shim
