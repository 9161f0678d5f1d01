#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace torpor::memory {

// A physical handle of the driver, by its 64 bits.
using Handle = unsigned long long;

// The physical handles of a GPU that are free, all of one size. Not thread-safe.
class HandlePool {
 public:
  // Adds a new handle, free.
  void Add(Handle handle);

  // Moves `count` free handles to the end of `taken`; or takes none and returns false.
  bool Take(std::size_t count, std::vector<Handle>& taken);

  // Makes handles that Take gave out free again. The most recently used handles are taken first:
  // their page-table entries and, on the emulator, their pages are warm.
  void Return(std::span<const Handle> handles);

  std::size_t free() const { return free_.size(); }
  // Free handles and those that Take gave out.
  std::size_t total() const { return total_; }

 private:
  std::vector<Handle> free_;  // the next to be taken last
  std::size_t total_ = 0;
};

}  // namespace torpor::memory
