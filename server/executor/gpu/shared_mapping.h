#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "memory/extent_set.h"
#include "server/executor/gpu/address_window.h"
#include "server/executor/gpu/file_parts.h"

namespace torpor::executor {

// A section of a memory file mapped into the process, readable and writable, whole or in parts;
// unmapped by the destructor.
class SharedMapping {
 public:
  SharedMapping() = default;
  // Maps `bytes` of `file`, from byte `from` (whole pages) on, at any address or, if `address` is
  // not 0, exactly there. AlreadyExists if `address` is in use.
  static absl::StatusOr<SharedMapping> Map(const UniqueFd& file, Bytes bytes,
                                           std::uint64_t address = 0, Bytes from = 0);
  // Maps parts of the file's section from byte `from` on, of whole `unit`s, as Ensure asks for
  // them, at a place of the section's size in `window`, which must outlive the mapping.
  static absl::StatusOr<SharedMapping> InParts(UniqueFd file, const AddressWindow& window,
                                               memory::Extent place, Bytes unit, Bytes from = 0);
  SharedMapping(SharedMapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)),
        parts_(std::move(other.parts_)) {}
  SharedMapping& operator=(SharedMapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(parts_, other.parts_);
    return *this;
  }
  ~SharedMapping();

  // Return the address of the section's first byte, whether mapped or not, and the section's size.
  std::uint8_t* data() const { return data_; }
  Bytes bytes() const { return bytes_; }

  // Maps the parts with bytes of `extent`, from the section's begin, inside the section. Any
  // thread.
  absl::Status Ensure(memory::Extent extent) const;
  // Whether [offset, offset + bytes) is mapped. Safe for untrusted numbers. Any thread.
  bool Holds(std::uint64_t offset, Bytes bytes) const {
    const bool is_inside = offset <= bytes_ && bytes <= bytes_ - offset;
    return is_inside && (!parts_ || parts_->Holds({offset, offset + bytes}));
  }

  // Return the parts of the file that may hold other bytes than zeros, mapped or not, ascending;
  // and the bytes of the file's pages. Of a file mapped whole, all and nullopt. Any thread.
  std::vector<memory::Extent> WithPages() const;
  std::optional<Bytes> PageBytes() const;

 private:
  SharedMapping(std::uint8_t* data, Bytes bytes, std::unique_ptr<FileParts> parts)
      : data_(data), bytes_(bytes), parts_(std::move(parts)) {}

  std::uint8_t* data_ = nullptr;
  Bytes bytes_ = 0;
  std::unique_ptr<FileParts> parts_;  // null: all is mapped
};

}  // namespace torpor::executor
