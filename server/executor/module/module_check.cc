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

absl::Status CheckCubin(std::span<const std::byte> code) {
  const std::optional<ElfFile> file = ElfFile::Open(code);
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

absl::Status CheckText(std::span<const std::uint8_t> code) {
  if (code.empty() || !CanBeginPtx(code.front())) {
    return absl::InvalidArgumentError("no module: neither fatbin nor cubin nor PTX");
  }
  if (std::find(code.begin(), code.end(), 0) == code.end() - 1) return absl::OkStatus();
  return absl::InvalidArgumentError("PTX text does not end with its one NUL");
}

}  // namespace

absl::Status CheckFatbin(std::span<const std::uint8_t> code) {
  const auto entries = ReadFatbin(std::as_bytes(code));
  if (!entries.ok()) return ToStatus(entries.failure());
  if (code.empty()) return absl::InvalidArgumentError("no fatbin: it has no bytes");
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

absl::Status CheckModule(std::span<const std::uint8_t> code) {
  std::uint32_t magic = 0;
  if (!code.empty()) std::memcpy(&magic, code.data(), std::min(code.size(), sizeof magic));
  if (magic == kFatbinMagic) return CheckFatbin(code);
  if (std::memcmp(&magic, ELFMAG, SELFMAG) == 0) return CheckCubin(std::as_bytes(code));
  return CheckText(code);
}

}  // namespace torpor::executor
