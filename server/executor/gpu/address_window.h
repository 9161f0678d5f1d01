#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "memory/extent_set.h"

namespace torpor::executor {

// Addresses of this process that are kept free for parts of memory files. Thread-safe.
class AddressWindow {
 public:
  // Keeps `bytes` free, anywhere or exactly at `address`. AlreadyExists if these are in use.
  static absl::StatusOr<std::unique_ptr<AddressWindow>> Reserve(Bytes bytes,
                                                                std::uint64_t address = 0);
  // Keeps `bytes` free at a multiple of a huge page, and asks the system for huge pages behind what
  // is mapped at multiples of their size.
  static absl::StatusOr<std::unique_ptr<AddressWindow>> ReserveForHugePages(Bytes bytes);
  ~AddressWindow();
  AddressWindow(const AddressWindow&) = delete;
  AddressWindow& operator=(const AddressWindow&) = delete;

  std::uint8_t* data() const { return data_; }
  Bytes bytes() const { return bytes_; }

  // Maps the file's bytes from `offset` on at `part` of the window: whole pages, where no other
  // file is mapped at present.
  absl::Status Map(const UniqueFd& file, Bytes offset, memory::Extent part) const;
  // Unmaps the part and keeps the addresses free.
  void Unmap(memory::Extent part) const;

 private:
  enum class Pages { kSmall, kHuge };  // wanted behind what is mapped

  AddressWindow(std::uint8_t* data, Bytes bytes, Pages pages)
      : data_(data), bytes_(bytes), pages_(pages) {}

  std::uint8_t* const data_;
  const Bytes bytes_;
  const Pages pages_;
};

}  // namespace torpor::executor
