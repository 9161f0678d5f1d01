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
  AddressWindow(std::uint8_t* data, Bytes bytes) : data_(data), bytes_(bytes) {}

  std::uint8_t* const data_;
  const Bytes bytes_;
};

}  // namespace torpor::executor
