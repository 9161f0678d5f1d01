#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client_shim/core/client_core.h"
#include "client_shim/core/commands/replay_log.h"
#include "client_shim/core/memory/completion_slots.h"
#include "client_shim/core/memory/kept_uploads.h"
#include "client_shim/core/memory/pinned_extents.h"
#include "proto/cuda_api/cudart_commands.h"

namespace torpor::shim {

// Where a process's pinned memory lies.
struct HostArena {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;
};

// Records what a session does, so that another executor can do the same again from the checkpoint
// on: the log of commands, the bytes of uploads, marks behind copies to pinned memory; and says
// what stands in the way of a replay. Not thread-safe, except where noted.
class ReplayRecord {
 public:
  // `max_bytes` 0: nothing is recorded. `slots` and `uploads` must outlive this object.
  ReplayRecord(std::size_t max_bytes, HostArena arena, CompletionSlots& slots,
               KeptUploads& uploads);

  // Whether the session is recorded at all.
  bool is_on() const { return max_bytes_ > 0; }
  // Ends recording for good: the session cannot be replayed any more.
  void Stop();

  // --- What the session does. All do nothing unless is_on() ---
  // A command is about to be batched with this number.
  void OnCommand(const Command& command, std::uint64_t number) {
    // Most commands are launches, of which a replay needs no more than the command.
    const bool is_plain = command.call_id == wire::LaunchKernel::kCallId && pinned_.IsEmpty();
    if (is_on() && !is_plain) Inspect(command, number);
  }
  // If the command copies to pinned memory, returns a mark that must come right behind, with the
  // number after; else a mark with the value 0. A replay leaves out copies whose mark was reached.
  wire::StreamMark MarkBehind(const Command& command, std::uint64_t number) {
    const bool is_launch = command.call_id == wire::LaunchKernel::kCallId;
    if (is_launch || !is_on() || !CopiesToArena(command)) return {};
    return MakeMark(command, number);
  }
  void OnCall(std::uint64_t number) {
    if (is_on()) log_.NoteCall(number);
  }
  void OnBatch(std::uint64_t first, std::uint64_t count, std::span<const std::uint8_t> commands) {
    if (is_on()) log_.Append(first, count, commands);
  }
  void OnSeen(std::uint64_t number, const ReplayLog::Seen& seen) {
    if (is_on()) log_.NoteSeen(number, seen);
  }
  void OnChange(JournalChange change, std::uint64_t number, bool is_command) {
    if (is_on()) log_.NoteChange(std::move(change), number, is_command);
  }
  // The program has pinned memory there, which kernels may reach, from now on.
  void NotePinned(std::uint64_t address, std::uint64_t bytes) { pinned_.Add(address, bytes); }
  // Nothing from this command on up to the next checkpoint can be replayed; `why` completes the
  // sentence "... cannot be replayed: ".
  void NoteObstacle(std::uint64_t number, const std::string& why);
  // As NoteObstacle, for ever.
  void NoteLastingObstacle(const std::string& why);

  // --- The checkpoint ---
  bool TrimTo(std::uint64_t saved);
  void Restart(std::uint64_t number);
  // Whether the record has reached its limit of bytes, or twice the limit.
  bool IsFull() const { return is_on() && bytes() >= max_bytes_; }
  bool IsOverfull() const { return is_on() && bytes() >= 2 * max_bytes_; }
  std::size_t bytes() const { return log_.bytes() + uploads_.bytes(); }

  // --- The replay ---
  // Why the session cannot be replayed from the checkpoint; empty if it can.
  const std::string& obstacle() const { return obstacle_; }
  // Whether no checkpoint ends the obstacle.
  bool has_lasting_obstacle() const { return obstacle_at_ == kForEver; }
  // A command of the replay: one with the number of the original, after others without numbers that
  // together do the same.
  struct Step {
    std::uint64_t number = 0;
    std::uint32_t call_id = 0;
    std::vector<std::vector<std::uint8_t>> fields;  // of commands with the same call id; in order
    bool is_call = false;
  };
  struct Visitor {
    std::function<void(const Step&)> on_step;
    std::function<void(const JournalChange&)> on_change;
  };
  // `is_awaited` tells of a call's number whether a thread waits for the answer.
  void Visit(const std::function<bool(std::uint64_t)>& is_awaited, const Visitor& visitor) const;
  // Compares an answer of the replay with what the program has seen. Returns what differs; empty if
  // nothing does.
  std::string Compare(std::uint64_t number, std::uint32_t call_id, std::int32_t status,
                      std::span<const std::uint8_t> result) const;

  ReplayLog& log() { return log_; }
  const ReplayLog& log() const { return log_; }

  // Whether a replay must find the same result again, and the hash of that result. `window` holds
  // the bytes of a download that came through the window.
  static std::optional<std::uint64_t> HashOf(const Command& command,
                                             std::span<const std::uint8_t> result,
                                             std::span<const std::uint8_t> window);
  // Returns the bytes of the answer in the window, 0 if none, and their place.
  static std::uint64_t WindowBytes(const Command& command, std::uint64_t& offset);

 private:
  static constexpr std::uint64_t kForEver = ~std::uint64_t{0};

  struct ArenaCopy {
    std::uint64_t number = 0;
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    std::uint32_t slot = 0;
    std::uint64_t value = 0;
  };

  void Inspect(const Command& command, std::uint64_t number);
  void InspectUpload(const Command& command, std::uint64_t number);
  void InspectRows(const Command& command, std::uint64_t number);
  void InspectGraph(const Command& command, std::uint64_t number);
  void LookForPinned(const Command& command, std::uint64_t number);
  void Snapshot(std::uint64_t number, std::uint64_t address, std::uint64_t bytes);
  static bool CopiesToArena(const Command& command);
  ArenaCopy ArenaCopyOf(const Command& command, std::uint64_t& stream) const;
  wire::StreamMark MakeMark(const Command& command, std::uint64_t number);
  bool HasReached(std::uint32_t slot, std::uint64_t value) const {
    return value != 0 && slots_.Value(slot) >= value;
  }
  // Fill in the step's fields; none: the replay leaves the command out.
  void FillStep(const Command& command, bool is_awaited, Step& step) const;
  template <typename Copy>
  void FillParts(Copy copy, std::uint64_t Copy::*place, Step& step) const;
  void FillUpload(const Command& command, Step& step) const;
  void FillRows(const Command& command, Step& step) const;
  bool IsCompleteArenaCopy(std::uint64_t number) const;

  std::size_t max_bytes_;
  const HostArena arena_;
  CompletionSlots& slots_;
  KeptUploads& uploads_;
  ReplayLog log_;
  PinnedExtents pinned_;
  std::map<std::uint64_t, std::uint32_t> stream_slots_;  // of streams with copies to pinned memory
  std::deque<ArenaCopy> arena_copies_;
  std::deque<std::pair<std::uint64_t, std::uint32_t>> retired_slots_;  // free after this number
  std::set<std::uint64_t> host_graphs_;  // graphs that read or write pinned memory
  std::uint64_t obstacle_at_ = 0;        // the last command that cannot be replayed
  std::string obstacle_;
};

}  // namespace torpor::shim
