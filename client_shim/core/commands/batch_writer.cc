#include "client_shim/core/commands/batch_writer.h"

#include <cstring>
#include <utility>

#include "client_shim/core/transport/frame_codec.h"

namespace torpor::shim {
namespace {

constexpr std::size_t kEmptyBytes = kFrameRoom + sizeof(wire::BatchHeader);
// Room for the command that makes a batch full.
constexpr std::size_t kSlackBytes = std::size_t{32} * 1024;

}  // namespace

BatchWriter::BatchWriter(const BatchLimits& limits) : limits_(limits) { Clear(); }

void BatchWriter::Clear() {
  count_ = numbered_ = 0;
  first_number_ = 0;
  frame_.reserve(limits_.bytes + kSlackBytes);
  frame_.resize(kEmptyBytes);
}

void BatchWriter::Append(std::uint32_t call_id, std::span<const std::uint8_t> fields,
                         std::uint64_t number) {
  if (number != 0 && numbered_++ == 0) first_number_ = number;
  const std::size_t padded = wire::Padded(fields.size());
  const wire::CommandHeader header{
      call_id, static_cast<std::uint32_t>(sizeof(wire::CommandHeader) + padded)};
  const auto* header_bytes = reinterpret_cast<const std::uint8_t*>(&header);
  frame_.insert(frame_.end(), header_bytes, header_bytes + sizeof header);
  frame_.insert(frame_.end(), fields.begin(), fields.end());
  frame_.resize(frame_.size() + (padded - fields.size()));
  ++count_;
}

void BatchWriter::AppendLater(const Command& command, std::uint64_t number) {
  if (empty()) oldest_ = std::chrono::steady_clock::now();
  Append(command.call_id, command.fields, number);
}

std::span<const std::uint8_t> BatchWriter::commands() const {
  return std::span(frame_).subspan(kEmptyBytes);
}

std::optional<BatchWriter::Time> BatchWriter::Deadline() const {
  if (empty()) return std::nullopt;
  return oldest_ + limits_.age;
}

std::vector<std::uint8_t> BatchWriter::Take(std::uint64_t lease_id) {
  wire::BatchHeader header;
  header.lease_id = lease_id;
  header.command_count = count_;
  header.first_command = first_number_;
  std::memcpy(frame_.data() + kFrameRoom, &header, sizeof header);
  std::vector<std::uint8_t> frame = std::exchange(frame_, std::exchange(spare_, {}));
  Clear();
  return frame;
}

}  // namespace torpor::shim
