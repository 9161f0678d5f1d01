#pragma once

#include <cstddef>

#include "base/unique_fd.h"

namespace torpor::probe {

// Kinds of pages of a memory file.
enum class Pages { kSmall, kAdvised, kHuge };

// A sealed-off memory file as torpord makes for images, mapped from construction to destruction.
// kAdvised asks for huge pages where the system gives any, kHuge fails without reserved huge pages.
class MemoryFile {
 public:
  MemoryFile(std::size_t size, Pages pages);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // Null if there is no such memory.
  void* begin() const { return begin_; }
  std::size_t size() const { return size_; }
  // Gives every page its memory.
  void Touch();

 private:
  const std::size_t size_;
  UniqueFd file_;
  void* begin_ = nullptr;
};

}  // namespace torpor::probe
