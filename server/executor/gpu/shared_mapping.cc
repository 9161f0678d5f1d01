#include "server/executor/gpu/shared_mapping.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace torpor::executor {

namespace {

absl::Status CheckSize(const UniqueFd& file, Bytes bytes) {
  struct stat status {};
  if (fstat(file.get(), &status) == 0 && static_cast<Bytes>(status.st_size) >= bytes) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("a memory file of ", status.st_size,
                                                 " bytes was sent where ", bytes, " are needed"));
}

}  // namespace

absl::StatusOr<SharedMapping> SharedMapping::Map(const UniqueFd& file, Bytes bytes,
                                                 std::uint64_t address, Bytes from) {
  TORPOR_RETURN_IF_ERROR(CheckSize(file, from + bytes));
  const int flags = MAP_SHARED | MAP_NORESERVE | (address != 0 ? MAP_FIXED_NOREPLACE : 0);
  void* data = mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE, flags,
                    file.get(), static_cast<off_t>(from));
  if (data == MAP_FAILED) {
    const int error = errno;
    const std::string where = address != 0 ? absl::StrFormat(" at %#x", address) : std::string();
    const std::string message = absl::StrCat("cannot map ", bytes, " bytes", where, ": ",
                                             std::generic_category().message(error));
    return error == EEXIST ? absl::AlreadyExistsError(message)
                           : absl::ResourceExhaustedError(message);
  }
  return SharedMapping(static_cast<std::uint8_t*>(data), bytes, nullptr);
}

absl::StatusOr<SharedMapping> SharedMapping::InParts(UniqueFd file, const AddressWindow& window,
                                                     memory::Extent place, Bytes unit, Bytes from) {
  TORPOR_RETURN_IF_ERROR(CheckSize(file, from + place.bytes()));
  auto parts = std::make_unique<FileParts>(std::move(file), from, window, place, unit);
  std::uint8_t* const data = parts->data();
  return SharedMapping(data, place.bytes(), std::move(parts));
}

absl::Status SharedMapping::Ensure(memory::Extent extent) const {
  return parts_ ? parts_->Ensure(extent) : absl::OkStatus();
}

std::vector<memory::Extent> SharedMapping::WithPages() const {
  return parts_ ? parts_->WithPages() : std::vector<memory::Extent>{{0, bytes_}};
}

std::optional<Bytes> SharedMapping::PageBytes() const {
  return parts_ ? std::optional(parts_->PageBytes()) : std::nullopt;
}

SharedMapping::~SharedMapping() {
  if (data_ != nullptr && !parts_) munmap(data_, bytes_);
}

}  // namespace torpor::executor
