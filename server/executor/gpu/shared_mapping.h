#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "base/units.h"

namespace torpor::executor {

// A memory file mapped into this process, readable and writable.
class SharedMapping {
 public:
  SharedMapping() = default;
  // Anywhere, or with `address` exactly there: AlreadyExists if something else is there already.
  static absl::StatusOr<SharedMapping> Map(const UniqueFd& file, Bytes bytes,
                                           std::uint64_t address = 0);
  SharedMapping(SharedMapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  SharedMapping& operator=(SharedMapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~SharedMapping();

  std::uint8_t* data() const { return data_; }
  Bytes bytes() const { return bytes_; }
  // Whether [offset, offset + bytes) lies inside; safe for any numbers.
  bool Holds(std::uint64_t offset, Bytes bytes) const {
    return offset <= bytes_ && bytes <= bytes_ - offset;
  }

 private:
  SharedMapping(std::uint8_t* data, Bytes bytes) : data_(data), bytes_(bytes) {}

  std::uint8_t* data_ = nullptr;
  Bytes bytes_ = 0;
};

}  // namespace torpor::executor
