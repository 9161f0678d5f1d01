#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "client_shim/core/client_core.h"
#include "client_shim/core/commands/journal.h"

namespace torpor::shim {

// A change of the journal, kept to be made once more.
struct JournalChange {
  enum class Kind { kCreate, kConfigure, kDestroy };
  Kind kind = Kind::kCreate;
  std::uint64_t handle = 0;
  std::uint64_t key = 0;  // of kConfigure
  std::uint32_t call_id = 0;
  std::vector<std::uint8_t> fields;

  static JournalChange Of(Kind kind, std::uint64_t handle, const Command& command,
                          std::uint64_t key = 0) {
    return {kind, handle, key, command.call_id, {command.fields.begin(), command.fields.end()}};
  }
  Command command() const { return {call_id, fields}; }
  void ApplyTo(Journal& journal) const;
};

// What a session has done since its checkpoint, the command as of which the host image is: the
// numbered commands in order (wire::BatchHeader), changes of the journal in their places, and of
// each synchronous call what the program has seen. Beside that, the objects as of the checkpoint.
// An executor with the image, which first learns of the objects and then of the rest, comes to
// where the session is. Not thread-safe.
class ReplayLog {
 public:
  // What the program has seen of a call.
  struct Seen {
    std::int32_t status = 0;
    std::optional<std::uint64_t> hash;  // of the result, if the result must be the same again
  };

  // Appends a batch: `commands` holds CommandHeaders and fields, of which `count` are of the call
  // table and have the numbers from `first` on.
  void Append(std::uint64_t first, std::uint64_t count, std::span<const std::uint8_t> commands);
  // Notes a change of the journal behind all commands up to `number`. `is_command`: the command
  // with this number, of a batch appended before or later, tells executors of the change.
  void NoteChange(JournalChange change, std::uint64_t number, bool is_command);
  // Notes that the command is a synchronous call. Numbers grow.
  void NoteCall(std::uint64_t number);
  // Notes the answer of a call that the program has got.
  void NoteSeen(std::uint64_t number, const Seen& seen);

  // Whether the command is a synchronous call; then `seen` is what the program knows of the answer.
  bool FindCall(std::uint64_t number, std::optional<Seen>& seen) const;

  // The checkpoint is now at `saved`: forgets all up to there. False, without effect, if the log
  // does not reach back to `saved`, or has not come so far.
  bool TrimTo(std::uint64_t saved);
  // All memory of the session is gone: whatever the checkpoint, nothing up to `number` is replayed.
  void Restart(std::uint64_t number);

  // The parts of a replay, in order. Changes come without those that are commands too.
  struct Visitor {
    std::function<void(std::uint64_t number, const Command&)> on_command;
    std::function<void(const JournalChange&)> on_change;
  };
  void Visit(const Visitor& visitor) const;
  // The objects as of the checkpoint.
  Journal& objects() { return objects_; }

  std::uint64_t saved() const { return saved_; }
  std::uint64_t last() const { return last_; }
  // Whether a command stands in the log.
  bool has_commands() const { return last_ > saved_; }
  // Memory that the log takes, in bytes.
  std::size_t bytes() const { return bytes_; }

 private:
  // The first block is small, and enough for programs with short leases. A page fault for each page
  // of a longer record would cost as much as all else, so the others are huge pages.
  static constexpr std::size_t kFirstBlockBytes = std::size_t{256} << 10;
  static constexpr std::size_t kBlockBytes = std::size_t{2} << 20;
  // Blocks kept for later, so that a steady program allocates nothing.
  static constexpr std::size_t kMostSpares = 32;

  struct FreeMemory {
    void operator()(std::uint8_t* memory) const { std::free(memory); }
  };
  struct Block {
    std::unique_ptr<std::uint8_t, FreeMemory> data;
    std::size_t capacity = 0;
    std::size_t used = 0;
    std::size_t batches = 0;  // that lie here
  };
  struct Batch {
    std::uint64_t first = 0;
    std::uint64_t end = 0;  // the number behind the last command's
    const std::uint8_t* data = nullptr;
    std::size_t bytes = 0;
  };
  struct Change {
    std::uint64_t number = 0;
    bool is_command = false;
    JournalChange change;
  };
  struct Call {
    std::uint64_t number = 0;
    std::optional<Seen> seen;
  };

  static Block NewBlock(std::size_t capacity);
  void AddBlock(std::size_t bytes);
  std::uint8_t* Room(std::size_t bytes);
  void DropBatch();
  void DropBlock();
  const Call* Find(std::uint64_t number) const;

  std::uint64_t saved_ = 0;
  std::uint64_t last_ = 0;
  bool saved_is_free_ = true;  // any earlier checkpoint does as well
  std::size_t bytes_ = 0;
  std::deque<Block> blocks_;  // in the order of the batches
  std::vector<Block> spares_;
  std::deque<Batch> batches_;
  std::deque<Change> changes_;
  std::deque<Call> calls_;
  Journal objects_;
};

}  // namespace torpor::shim
