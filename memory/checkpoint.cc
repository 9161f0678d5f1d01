#include "memory/checkpoint.h"

#include <algorithm>
#include <atomic>

namespace torpor::memory {

std::uint32_t Checkpoint::number() const {
  return std::atomic_ref(record_.number).load(std::memory_order_acquire);
}

std::uint64_t Checkpoint::saved_command() const {
  return std::atomic_ref(record_.commands[number() % 2]).load(std::memory_order_relaxed);
}

bool Checkpoint::is_whole() const {
  return std::atomic_ref(record_.is_overwritten).load(std::memory_order_acquire) == 0;
}

bool Checkpoint::is_exceeded() const {
  return std::atomic_ref(record_.is_exceeded).load(std::memory_order_acquire) != 0;
}

// Before any byte of the image changes, whoever looks after this process's death must see the note.
void Checkpoint::NoteExceeded() {
  std::atomic_ref(record_.is_exceeded).store(1, std::memory_order_seq_cst);
}

void Checkpoint::NoteOverwritten() {
  std::atomic_ref(record_.is_overwritten).store(1, std::memory_order_seq_cst);
}

void Checkpoint::NoteUndone() {
  std::atomic_ref(record_.is_exceeded).store(0, std::memory_order_release);
}

void Checkpoint::Commit(std::uint64_t command) {
  const std::uint32_t next = number() + 1;
  std::atomic_ref(record_.commands[next % 2])
      .store(std::max(command, saved_command()), std::memory_order_relaxed);
  std::atomic_ref(record_.number).store(next, std::memory_order_release);
  std::atomic_ref(record_.is_overwritten).store(0, std::memory_order_release);
  NoteUndone();
}

}  // namespace torpor::memory
