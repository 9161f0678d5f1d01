#pragma once

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "base/units.h"

namespace torpor::executor {

// A memory file mapped into the process, readable and writable; unmapped by the destructor.
class SharedMapping {
 public:
  SharedMapping() = default;
  // Maps `bytes` of `file` at any address or, if `address` is not 0, exactly there. AlreadyExists
  // if `address` is in use.
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
  // Whether [offset, offset + bytes) lies inside the mapping. Safe for untrusted numbers.
  bool Holds(std::uint64_t offset, Bytes bytes) const {
    return offset <= bytes_ && bytes <= bytes_ - offset;
  }

 private:
  SharedMapping(std::uint8_t* data, Bytes bytes) : data_(data), bytes_(bytes) {}

  std::uint8_t* data_ = nullptr;
  Bytes bytes_ = 0;
};

}  // namespace torpor::executor
