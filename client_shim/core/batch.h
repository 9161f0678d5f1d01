#pragma once

#include <cstdint>
#include <vector>

#include "client_shim/core/client_core.h"
#include "proto/wire/batch.h"

namespace torpor::shim {

// The longest command that fits a frame with its header.
inline constexpr std::size_t kMaxCommandFields = wire::kMaxFrameBytes / 4;

// The commands that were not sent yet, already encoded as a frame's payload behind room for the
// frame's own prefix.
class Batch {
 public:
  explicit Batch(std::size_t expected_bytes);

  // `fields` is at most kMaxCommandFields long.
  void Append(std::uint32_t call_id, std::span<const std::uint8_t> fields);
  bool empty() const { return count_ == 0; }
  std::size_t calls() const { return count_; }
  std::size_t bytes() const { return frame_.size(); }
  // The frame for GrpcStream::Send; the batch is empty again.
  std::vector<std::uint8_t> Take(std::uint64_t lease_id);
  void Clear();

 private:
  std::size_t expected_bytes_;
  std::uint32_t count_ = 0;
  std::vector<std::uint8_t> frame_;
};

}  // namespace torpor::shim
