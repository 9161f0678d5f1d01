#include "client_shim/core/batch.h"

#include <cstring>

#include "client_shim/core/frame_codec.h"

namespace torpor::shim {
namespace {

constexpr std::size_t kEmptyBytes = kFrameRoom + sizeof(wire::BatchHeader);
// Room for the command that makes a batch full.
constexpr std::size_t kSlackBytes = std::size_t{32} * 1024;

}  // namespace

Batch::Batch(std::size_t expected_bytes) : expected_bytes_(expected_bytes + kSlackBytes) {
  Clear();
}

void Batch::Clear() {
  count_ = 0;
  frame_.reserve(expected_bytes_);
  frame_.resize(kEmptyBytes);
}

void Batch::Append(std::uint32_t call_id, std::span<const std::uint8_t> fields) {
  const std::size_t padded = wire::Padded(fields.size());
  const wire::CommandHeader header{
      call_id, static_cast<std::uint32_t>(sizeof(wire::CommandHeader) + padded)};
  const auto* header_bytes = reinterpret_cast<const std::uint8_t*>(&header);
  frame_.insert(frame_.end(), header_bytes, header_bytes + sizeof header);
  frame_.insert(frame_.end(), fields.begin(), fields.end());
  frame_.resize(frame_.size() + (padded - fields.size()));
  ++count_;
}

std::vector<std::uint8_t> Batch::Take(std::uint64_t lease_id) {
  wire::BatchHeader header;
  header.lease_id = lease_id;
  header.command_count = count_;
  std::memcpy(frame_.data() + kFrameRoom, &header, sizeof header);
  std::vector<std::uint8_t> frame = std::move(frame_);
  frame_ = {};
  Clear();
  return frame;
}

}  // namespace torpor::shim
