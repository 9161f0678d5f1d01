#include "server/executor/gpu/address_window.h"

#include <spdlog/spdlog.h>
#include <sys/mman.h>

#include <cerrno>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace torpor::executor {
namespace {

constexpr Bytes kHugePageBytes = 2 * kMiB;
constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

absl::StatusOr<std::uint8_t*> KeepFree(Bytes bytes, std::uint64_t address) {
  const int flags = kReserve | (address != 0 ? MAP_FIXED_NOREPLACE : 0);
  void* const wanted = reinterpret_cast<void*>(address);
  void* const data = mmap(wanted, bytes, PROT_NONE, flags, -1, 0);
  if (data != MAP_FAILED && (address == 0 || data == wanted)) {
    return static_cast<std::uint8_t*>(data);
  }
  const int error = data == MAP_FAILED ? errno : EEXIST;
  if (data != MAP_FAILED) munmap(data, bytes);
  const std::string where = address != 0 ? absl::StrFormat(" at %#x", address) : std::string();
  const std::string message =
      absl::StrCat("cannot keep ", bytes, " bytes of addresses free", where, ": ",
                   std::generic_category().message(error),
                   "; raise the limit of addresses (ulimit -v) or lower address_space");
  return error == EEXIST ? absl::AlreadyExistsError(message)
                         : absl::ResourceExhaustedError(message);
}

}  // namespace

absl::StatusOr<std::unique_ptr<AddressWindow>> AddressWindow::Reserve(Bytes bytes,
                                                                      std::uint64_t address) {
  TORPOR_ASSIGN_OR_RETURN(std::uint8_t* const data, KeepFree(bytes, address));
  return std::unique_ptr<AddressWindow>(new AddressWindow(data, bytes, Pages::kSmall));
}

absl::StatusOr<std::unique_ptr<AddressWindow>> AddressWindow::ReserveForHugePages(Bytes bytes) {
  TORPOR_ASSIGN_OR_RETURN(std::uint8_t* const begin, KeepFree(bytes + kHugePageBytes, 0));
  const auto address = reinterpret_cast<std::uint64_t>(begin);
  const Bytes before = RoundUp(address, kHugePageBytes) - address;
  std::uint8_t* const data = begin + before;
  if (before > 0) munmap(begin, before);
  munmap(data + bytes, kHugePageBytes - before);
  return std::unique_ptr<AddressWindow>(new AddressWindow(data, bytes, Pages::kHuge));
}

AddressWindow::~AddressWindow() { munmap(data_, bytes_); }

absl::Status AddressWindow::Map(const UniqueFd& file, Bytes offset, memory::Extent part) const {
  TORPOR_CHECK(part.begin <= part.end && part.end <= bytes_);
  void* const mapped =
      mmap(data_ + part.begin, part.bytes(), PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file.get(), static_cast<off_t>(offset));
  if (mapped != MAP_FAILED) {
    // In vain where the system has none; the pages are small then.
    if (pages_ == Pages::kHuge) madvise(mapped, part.bytes(), MADV_HUGEPAGE);
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot map ", part.bytes(),
                   " bytes of a session's memory: ", std::generic_category().message(errno)));
}

void AddressWindow::Unmap(memory::Extent part) const {
  void* const freed =
      mmap(data_ + part.begin, part.bytes(), PROT_NONE, kReserve | MAP_FIXED, -1, 0);
  // The old bytes stay mapped, until the next file of these addresses replaces them.
  if (freed == MAP_FAILED) spdlog::error("cannot unmap a session's memory: errno {}", errno);
}

}  // namespace torpor::executor
