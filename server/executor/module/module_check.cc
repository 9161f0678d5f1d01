#include "server/executor/module/module_check.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "nvidia/elf_file.h"
#include "nvidia/fatbin.h"

namespace torpor::executor {
namespace {

// Limit for the decompressed entries of a fatbin: several times the largest fatbin of PyTorch.
constexpr Bytes kMaxDecompressed = 1 * kGiB;

absl::Status CheckCubin(std::span<const std::byte> image) {
  const std::optional<ElfFile> file = ElfFile::Open(image);
  if (!file) return absl::InvalidArgumentError("no cubin: the tables of its header are not inside");
  if (file->IsWhole()) return absl::OkStatus();
  return absl::InvalidArgumentError("the cubin's lengths exceed its bytes");
}

absl::Status ToStatus(const Failure<FatbinError>& failure) {
  return absl::InvalidArgumentError(failure.message);
}

absl::Status CheckEntry(const FatbinEntry& entry) {
  if (entry.kind != FatbinEntry::Kind::kElf) return absl::OkStatus();
  std::string storage;
  const auto cubin = DecodeEntry(entry, storage);
  return cubin.ok() ? CheckCubin(*cubin) : ToStatus(cubin.failure());
}

// PTX begins with a directive, after blanks and comments. No other loadable format begins so; a
// driver would follow pointers and lengths in some of the other formats.
bool CanBeginPtx(std::uint8_t c) {
  return c == '.' || c == '/' || c == ' ' || (c >= '\t' && c <= '\r');
}

absl::Status CheckText(std::span<const std::uint8_t> image) {
  if (image.empty() || !CanBeginPtx(image.front())) {
    return absl::InvalidArgumentError("no module: neither fatbin nor cubin nor PTX");
  }
  if (std::find(image.begin(), image.end(), 0) == image.end() - 1) return absl::OkStatus();
  return absl::InvalidArgumentError("PTX text does not end with its one NUL");
}

}  // namespace

absl::Status CheckFatbin(std::span<const std::uint8_t> image) {
  const auto entries = ReadFatbin(std::as_bytes(image));
  if (!entries.ok()) return ToStatus(entries.failure());
  if (image.empty()) return absl::InvalidArgumentError("no fatbin: it has no bytes");
  Bytes decompressed = 0;
  for (const FatbinEntry& entry : *entries) {
    if (entry.uncompressed_size > kMaxDecompressed - decompressed) {
      return absl::InvalidArgumentError(absl::StrCat("a fatbin of more than ", kMaxDecompressed,
                                                     " bytes when it is decompressed"));
    }
    decompressed += entry.uncompressed_size;
    TORPOR_RETURN_IF_ERROR(CheckEntry(entry));
  }
  return absl::OkStatus();
}

absl::Status CheckModule(std::span<const std::uint8_t> image) {
  std::uint32_t magic = 0;
  if (!image.empty()) std::memcpy(&magic, image.data(), std::min(image.size(), sizeof magic));
  if (magic == kFatbinMagic) return CheckFatbin(image);
  if (std::memcmp(&magic, ELFMAG, SELFMAG) == 0) return CheckCubin(std::as_bytes(image));
  return CheckText(image);
}

}  // namespace torpor::executor
