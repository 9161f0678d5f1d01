#pragma once

#include <atomic>
#include <cstdint>

namespace torpor::memory {

// As of which command of its session a host image is, and whether a write-back is under way: then
// the image is as of no command. A view of a word in memory that torpord and all executors share
// and that outlives each process; zero describes a new image. One process at a time writes.
class Checkpoint {
 public:
  // `word` must outlive this object.
  explicit Checkpoint(std::uint64_t& word) : word_(word) {}

  // Call before a write-back copies the first block.
  void BeginWriting() { word_.fetch_or(kIsWriting, std::memory_order_seq_cst); }
  // The image has all changes up to the command with this number. Smaller numbers than known, from
  // an executor that has not had the session's latest commands, only end the write-back.
  void Commit(std::uint64_t command) {
    const std::uint64_t known = saved_command();
    word_.store(command > known ? command : known, std::memory_order_seq_cst);
  }

  std::uint64_t saved_command() const { return word_.load() & ~kIsWriting; }
  // Whether the image is as of saved_command(), apart from uploads that are final.
  bool is_whole() const { return (word_.load() & kIsWriting) == 0; }

 private:
  static constexpr std::uint64_t kIsWriting = std::uint64_t{1} << 63;

  std::atomic_ref<std::uint64_t> word_;
};

}  // namespace torpor::memory
