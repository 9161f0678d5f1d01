#include "client_shim/core/commands/replay_record.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/cuda_api/cudart_commands.h"
#include "proto/wire/result_hash.h"

namespace torpor::shim {
namespace {

// The longest part of an upload in one command of a replay.
constexpr std::uint64_t kPartBytes = std::uint64_t{512} * 1024;
// Calls of cuBLAS, whose answers are results of the program.
constexpr std::uint32_t kFirstCublasCall = 1024;
constexpr std::uint32_t kLastCublasCall = 2047;

template <typename Message>
Message Decoded(const Command& command) {
  Message message;
  wire::Reader reader(command.fields);
  reader(message);
  return message;
}

const std::uint8_t* At(std::uint64_t address) {
  return reinterpret_cast<const std::uint8_t*>(address);
}

// Whether commands inside a graph name pinned memory or the window.
bool NamesHostMemory(std::uint32_t call_id) {
  return call_id == wire::MemcpyHtoD::kCallId || call_id == wire::MemcpyDtoHArena::kCallId;
}

}  // namespace

ReplayRecord::ReplayRecord(std::size_t max_bytes, HostArena arena, CompletionSlots& slots,
                           KeptUploads& uploads)
    : max_bytes_(max_bytes), arena_(arena), slots_(slots), uploads_(uploads) {
  if (!is_on()) obstacle_ = "nothing is recorded (TORPOR_REPLAY_BYTES is 0)";
}

void ReplayRecord::Stop() {
  max_bytes_ = 0;
  if (obstacle_.empty()) obstacle_ = "an earlier replay failed";
  obstacle_at_ = kForEver;
}

void ReplayRecord::NoteObstacle(std::uint64_t number, const std::string& why) {
  if (!is_on() || has_lasting_obstacle()) return;
  obstacle_at_ = number;
  obstacle_ = why;
}

void ReplayRecord::NoteLastingObstacle(const std::string& why) { NoteObstacle(kForEver, why); }

bool ReplayRecord::TrimTo(std::uint64_t saved) {
  if (!log_.TrimTo(saved)) return false;
  uploads_.TrimTo(saved);
  while (!arena_copies_.empty() && arena_copies_.front().number <= saved) arena_copies_.pop_front();
  while (!retired_slots_.empty() && retired_slots_.front().first <= saved) {
    slots_.Free(retired_slots_.front().second);
    retired_slots_.pop_front();
  }
  if (is_on() && obstacle_at_ <= saved) obstacle_.clear();
  return true;
}

void ReplayRecord::Restart(std::uint64_t number) {
  log_.Restart(number);
  TrimTo(number);
}

// --- Recording -----------------------------------------------------------------------------------

void ReplayRecord::Inspect(const Command& command, std::uint64_t number) {
  switch (command.call_id) {
    case wire::MemcpyHtoD::kCallId:
    case wire::MemcpyToSymbol::kCallId:
      return InspectUpload(command, number);
    case wire::MemcpyDtoHArena::kCallId:
    case wire::StreamMark::kCallId:
    case wire::ModuleUpload::kCallId:
      return;
    case wire::Memcpy2D::kCallId:
      return InspectRows(command, number);
    case wire::Memcpy3D::kCallId:
      if (Decoded<wire::Memcpy3D>(command).src_side == wire::MemorySide::kArena)
        NoteObstacle(number, "a volume or array was copied out of pinned memory");
      return;
    case wire::GraphDestroy::kCallId:
      host_graphs_.erase(Decoded<wire::GraphDestroy>(command).graph);
      return;
    case wire::StreamDestroy::kCallId: {
      const auto slot = stream_slots_.extract(Decoded<wire::StreamDestroy>(command).stream);
      if (!slot.empty()) retired_slots_.emplace_back(number, slot.mapped());
      return;
    }
    case wire::StreamWaitMark::kCallId:
    case wire::SharedEventRecord::kCallId:
    case wire::SharedEventWait::kCallId:
    case wire::SharedEventQuery::kCallId:
      return NoteObstacle(number, "an event was shared with another device or process");
    case wire::GraphAddNodes::kCallId:
    case wire::GraphSetNode::kCallId:
      return InspectGraph(command, number);
    case wire::GraphLaunch::kCallId:
      if (host_graphs_.contains(Decoded<wire::GraphLaunch>(command).graph))
        NoteObstacle(number, "a graph used pinned or managed memory");
      return;
    default:
      if (!pinned_.IsEmpty()) LookForPinned(command, number);
  }
}

void ReplayRecord::InspectUpload(const Command& command, std::uint64_t number) {
  if (command.piece) {
    const bool may_be_saved = command.call_id == wire::MemcpyHtoD::kCallId;
    return uploads_.NoteSent(number, *command.piece, may_be_saved);
  }
  if (command.call_id == wire::MemcpyToSymbol::kCallId) {
    const auto copy = Decoded<wire::MemcpyToSymbol>(command);
    if (copy.payload == wire::Payload::kArena && copy.device_source == 0)
      Snapshot(number, arena_.base + copy.offset, copy.bytes);
    return;
  }
  const auto copy = Decoded<wire::MemcpyHtoD>(command);
  if (copy.payload == wire::Payload::kArena)
    Snapshot(number, arena_.base + copy.offset, copy.bytes);
}

// Keeps bytes of pinned memory as they are now. Work that may still write them is an obstacle.
void ReplayRecord::Snapshot(std::uint64_t number, std::uint64_t address, std::uint64_t bytes) {
  const bool is_written_by_earlier_work =
      std::ranges::any_of(arena_copies_, [&](const ArenaCopy& copy) {
        const bool meets = copy.begin < address + bytes && address < copy.begin + copy.bytes;
        return meets && !HasReached(copy.slot, copy.value);
      });
  if (is_written_by_earlier_work)
    return NoteObstacle(number, "pinned memory was copied from while a copy there was under way");
  if (bytes >= max_bytes_)
    return NoteObstacle(number, "a copy out of pinned memory was longer than the record");
  std::memcpy(uploads_.Keep(number, bytes).data(), At(address), bytes);
}

void ReplayRecord::InspectRows(const Command& command, std::uint64_t number) {
  const auto copy = Decoded<wire::Memcpy2D>(command);
  if (copy.src_side != wire::MemorySide::kArena) return;
  if (copy.width == 0 || copy.height == 0) return;
  Snapshot(number, copy.src, (copy.height - 1) * copy.src_pitch + copy.width);
}

void ReplayRecord::InspectGraph(const Command& command, std::uint64_t number) {
  std::uint64_t graph = 0;
  std::vector<wire::GraphCommand> commands;
  if (command.call_id == wire::GraphSetNode::kCallId) {
    auto set = Decoded<wire::GraphSetNode>(command);
    graph = set.graph;
    commands = std::move(set.commands);
  } else {
    auto add = Decoded<wire::GraphAddNodes>(command);
    graph = add.graph;
    for (wire::GraphNode& node : add.nodes)
      for (wire::GraphCommand& one : node.commands) commands.push_back(one);
  }
  const std::string before = std::exchange(obstacle_, {});
  const std::uint64_t before_at = std::exchange(obstacle_at_, 0);
  bool names_host = false;
  for (const wire::GraphCommand& one : commands) {
    names_host = names_host || NamesHostMemory(one.call_id);
    if (!pinned_.IsEmpty()) LookForPinned({one.call_id, one.fields}, number);
  }
  // Memory named by a graph counts at the launch.
  names_host = names_host || !obstacle_.empty();
  obstacle_ = before;
  obstacle_at_ = before_at;
  if (names_host) host_graphs_.insert(graph);
}

// Any word of a command may be an address: of a parameter, of an operand.
void ReplayRecord::LookForPinned(const Command& command, std::uint64_t number) {
  std::uint64_t word = 0;
  for (std::size_t at = 0; at + sizeof word <= command.fields.size(); at += sizeof word) {
    std::memcpy(&word, command.fields.data() + at, sizeof word);
    if (pinned_.Contain(word))
      return NoteObstacle(number, "work of the GPU was given pinned or managed memory");
  }
}

bool ReplayRecord::CopiesToArena(const Command& command) {
  switch (command.call_id) {
    case wire::MemcpyDtoHArena::kCallId:
      return true;
    case wire::Memcpy2D::kCallId:
      return Decoded<wire::Memcpy2D>(command).dst_side == wire::MemorySide::kArena;
    case wire::Memcpy3D::kCallId:
      return Decoded<wire::Memcpy3D>(command).dst_side == wire::MemorySide::kArena;
    default:
      return false;
  }
}

// The stream of a copy to pinned memory, and where in that memory the copy may write.
ReplayRecord::ArenaCopy ReplayRecord::ArenaCopyOf(const Command& command,
                                                  std::uint64_t& stream) const {
  if (command.call_id == wire::MemcpyDtoHArena::kCallId) {
    const auto copy = Decoded<wire::MemcpyDtoHArena>(command);
    stream = copy.stream;
    return {.begin = arena_.base + copy.arena_offset, .bytes = copy.bytes};
  }
  if (command.call_id == wire::Memcpy2D::kCallId) {
    const auto copy = Decoded<wire::Memcpy2D>(command);
    stream = copy.stream;
    return {.begin = copy.dst, .bytes = copy.height * copy.dst_pitch};
  }
  const auto copy = Decoded<wire::Memcpy3D>(command);
  stream = copy.stream;
  const std::uint64_t slice = copy.dst_pitch * std::max(copy.dst_rows, copy.height);
  return {.begin = copy.dst, .bytes = slice * copy.depth};
}

wire::StreamMark ReplayRecord::MakeMark(const Command& command, std::uint64_t number) {
  std::uint64_t stream = 0;
  ArenaCopy copy = ArenaCopyOf(command, stream);
  copy.number = number;
  std::uint32_t& slot = stream_slots_[stream];
  if (slot == 0) slot = slots_.Allot();
  if (slot == 0) {
    NoteObstacle(number, "no completion slot was left for a copy to pinned memory");
  } else {
    copy.slot = slot;
    copy.value = slots_.NextValue(slot);
  }
  arena_copies_.push_back(copy);
  return {stream, copy.slot, copy.value};
}

bool ReplayRecord::IsCompleteArenaCopy(std::uint64_t number) const {
  const auto found = std::ranges::lower_bound(arena_copies_, number, {}, &ArenaCopy::number);
  if (found == arena_copies_.end() || found->number != number) return false;
  return HasReached(found->slot, found->value);
}

// --- Replaying -----------------------------------------------------------------------------------

void ReplayRecord::Visit(const std::function<bool(std::uint64_t)>& is_awaited,
                         const Visitor& visitor) const {
  log_.Visit({.on_command =
                  [&](std::uint64_t number, const Command& command) {
                    Step step;
                    step.number = number;
                    step.call_id = command.call_id;
                    std::optional<ReplayLog::Seen> seen;
                    step.is_call = log_.FindCall(number, seen);
                    FillStep(command, step.is_call && is_awaited(number), step);
                    if (!step.fields.empty()) visitor.on_step(step);
                  },
              .on_change = visitor.on_change});
}

void ReplayRecord::FillStep(const Command& command, bool is_awaited, Step& step) const {
  const auto one = [&](const auto& message) { step.fields.push_back(wire::Encoded(message)); };
  switch (command.call_id) {
    case wire::MemcpyHtoD::kCallId:
    case wire::MemcpyToSymbol::kCallId:
      return FillUpload(command, step);
    case wire::ModuleUpload::kCallId:
      // The node has the bytes; a thread that waits still has them in the window.
      if (is_awaited) break;
      return;
    case wire::MemcpyDtoHArena::kCallId:
    case wire::Memcpy3D::kCallId:
      if (IsCompleteArenaCopy(step.number)) return;
      break;
    case wire::Memcpy2D::kCallId:
      return FillRows(command, step);
    case wire::StreamMark::kCallId: {
      const auto mark = Decoded<wire::StreamMark>(command);
      // The program must not see a mark go back.
      if (HasReached(mark.slot, mark.value)) return;
      break;
    }
    case wire::EventRecord::kCallId: {
      auto record = Decoded<wire::EventRecord>(command);
      if (HasReached(record.slot, record.value)) record.slot = 0, record.value = 0;
      return one(record);
    }
    case wire::MemcpyDtoH::kCallId: {
      if (is_awaited) break;
      auto copy = Decoded<wire::MemcpyDtoH>(command);
      copy.window_offset = wire::kReplyHash;
      return one(copy);
    }
    case wire::MemcpyFromSymbol::kCallId: {
      if (is_awaited) break;
      auto copy = Decoded<wire::MemcpyFromSymbol>(command);
      copy.window_offset = wire::kReplyHash;
      return one(copy);
    }
    default:
      break;
  }
  step.fields.emplace_back(command.fields.begin(), command.fields.end());
}

// Fills in the upload as parts, of which each begins `place` further on. The bytes travel inside of
// the commands: the window belongs to the program's threads. The last part carries the mark.
template <typename Copy>
void ReplayRecord::FillParts(Copy copy, std::uint64_t Copy::*place, Step& step) const {
  std::optional<std::vector<std::uint8_t>> bytes;
  if (copy.payload != wire::Payload::kInline) {
    bytes = uploads_.Find(step.number);
    if (!bytes) return;  // the image has them
    copy.payload = wire::Payload::kInline;
    copy.offset = 0;
    copy.data = *bytes;
  }
  const std::span<const std::uint8_t> all = copy.data;
  const std::uint64_t begin = copy.*place;
  std::uint32_t slot = std::exchange(copy.slot, 0);
  std::uint64_t value = std::exchange(copy.value, 0);
  if (HasReached(slot, value)) slot = 0, value = 0;
  for (std::uint64_t done = 0; done < all.size(); done += copy.bytes) {
    copy.data = all.subspan(done, std::min<std::uint64_t>(kPartBytes, all.size() - done));
    copy.bytes = copy.data.size();
    copy.*place = begin + done;
    if (done + copy.bytes == all.size()) copy.slot = slot, copy.value = value;
    step.fields.push_back(wire::Encoded(copy));
  }
}

void ReplayRecord::FillUpload(const Command& command, Step& step) const {
  if (command.call_id == wire::MemcpyHtoD::kCallId)
    return FillParts(Decoded<wire::MemcpyHtoD>(command), &wire::MemcpyHtoD::dst, step);
  const auto copy = Decoded<wire::MemcpyToSymbol>(command);
  if (copy.device_source == 0) return FillParts(copy, &wire::MemcpyToSymbol::variable_offset, step);
  step.fields.emplace_back(command.fields.begin(), command.fields.end());
}

// Rows out of pinned memory become an upload each.
void ReplayRecord::FillRows(const Command& command, Step& step) const {
  const auto copy = Decoded<wire::Memcpy2D>(command);
  if (IsCompleteArenaCopy(step.number)) return;
  if (copy.src_side != wire::MemorySide::kArena) {
    step.fields.emplace_back(command.fields.begin(), command.fields.end());
    return;
  }
  const auto bytes = uploads_.Find(step.number);
  if (!bytes) return;
  step.call_id = wire::MemcpyHtoD::kCallId;
  for (std::uint64_t row = 0; row < copy.height; ++row) {
    wire::MemcpyHtoD upload;
    upload.dst = copy.dst + row * copy.dst_pitch;
    upload.stream = copy.stream;
    upload.bytes = copy.width;
    upload.data = std::span(*bytes).subspan(row * copy.src_pitch, copy.width);
    step.fields.push_back(wire::Encoded(upload));
  }
}

std::uint64_t ReplayRecord::WindowBytes(const Command& command, std::uint64_t& offset) {
  std::uint64_t bytes = 0;
  offset = wire::kReplyInline;
  if (command.call_id == wire::MemcpyDtoH::kCallId) {
    const auto copy = Decoded<wire::MemcpyDtoH>(command);
    bytes = copy.bytes;
    offset = copy.window_offset;
  } else if (command.call_id == wire::MemcpyFromSymbol::kCallId) {
    const auto copy = Decoded<wire::MemcpyFromSymbol>(command);
    bytes = copy.bytes;
    offset = copy.window_offset;
  }
  return offset == wire::kReplyInline ? 0 : bytes;
}

std::optional<std::uint64_t> ReplayRecord::HashOf(const Command& command,
                                                  std::span<const std::uint8_t> result,
                                                  std::span<const std::uint8_t> window) {
  const bool is_download = command.call_id == wire::MemcpyDtoH::kCallId ||
                           command.call_id == wire::MemcpyFromSymbol::kCallId;
  if (is_download) {
    if (!window.empty()) return wire::ResultHash(window);
    wire::MemcpyDtoHResult downloaded;  // MemcpyFromSymbolResult is the same
    wire::Reader reader(result);
    reader(downloaded);
    return wire::ResultHash(downloaded.data);
  }
  const bool is_cublas = command.call_id >= kFirstCublasCall && command.call_id <= kLastCublasCall;
  return is_cublas ? std::optional(wire::ResultHash(result)) : std::nullopt;
}

std::string ReplayRecord::Compare(std::uint64_t number, std::uint32_t call_id, std::int32_t status,
                                  std::span<const std::uint8_t> result) const {
  std::optional<ReplayLog::Seen> seen;
  if (!log_.FindCall(number, seen) || !seen) return {};
  const std::string which =
      "call " + std::to_string(call_id) + " (command " + std::to_string(number) + ")";
  if (status != seen->status)
    return which + " returned " + std::to_string(status) + " where the program has seen " +
           std::to_string(seen->status);
  if (status != 0 || !seen->hash) return {};
  std::uint64_t hash = 0;
  if (call_id >= kFirstCublasCall && call_id <= kLastCublasCall) {
    hash = wire::ResultHash(result);
  } else {
    wire::MemcpyDtoHResult hashed;  // by kReplyHash
    wire::Reader reader(result);
    reader(hashed);
    if (hashed.data.size() != sizeof hash) return which + " gave no hash of its result";
    std::memcpy(&hash, hashed.data.data(), sizeof hash);
  }
  return hash == *seen->hash ? std::string() : which + " gave another result than before";
}

}  // namespace torpor::shim
