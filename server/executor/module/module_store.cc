#include "server/executor/module/module_store.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "base/kept_file.h"
#include "base/status_macros.h"

namespace torpor::executor {
namespace {

// Makes names of processes that store the same module at one time different.
std::string RandomSuffix() {
  std::random_device random;
  return absl::StrCat(".", absl::Hex(random(), absl::kZeroPad8),
                      absl::Hex(random(), absl::kZeroPad8));
}

}  // namespace

std::string ModuleStore::PathOf(const Sha256Digest& digest) const {
  return absl::StrCat(directory_, "/", ToHex(digest));
}

std::string ModuleStore::HolderPathOf(const Sha256Digest& digest, const std::string& tenant) const {
  return absl::StrCat(PathOf(digest), ".held-by-", ToHex(Sha256(tenant.data(), tenant.size())));
}

absl::StatusOr<bool> ModuleStore::IsHeldBy(const Sha256Digest& digest,
                                           const std::string& tenant) const {
  const absl::Status found = files_.Read(HolderPathOf(digest, tenant)).status();
  if (absl::IsNotFound(found)) return false;
  TORPOR_RETURN_IF_ERROR(found);
  return true;
}

absl::Status ModuleStore::NoteHolder(const Sha256Digest& digest, const std::string& tenant) const {
  return ReplaceFile(files_, HolderPathOf(digest, tenant), {},
                     {.mode = 0600, .suffix = RandomSuffix()});
}

absl::StatusOr<std::vector<std::uint8_t>> ModuleStore::Read(const Sha256Digest& digest) const {
  const std::string path = PathOf(digest);
  TORPOR_ASSIGN_OR_RETURN(std::vector<std::uint8_t> bytes, files_.Read(path));
  if (Sha256(bytes.data(), bytes.size()) != digest) {
    TORPOR_RETURN_IF_ERROR(files_.Remove(path));
    return absl::NotFoundError(absl::StrCat("module ", path, " is damaged; removed"));
  }
  return bytes;
}

absl::Status ModuleStore::Write(const Sha256Digest& digest,
                                std::span<const std::uint8_t> bytes) const {
  const Sha256Digest actual = Sha256(bytes.data(), bytes.size());
  if (actual != digest) {
    return absl::InvalidArgumentError(
        absl::StrCat("the uploaded module has SHA-256 ", ToHex(actual), ", not ", ToHex(digest)));
  }
  return ReplaceFile(files_, PathOf(digest), bytes, {.mode = 0600, .suffix = RandomSuffix()});
}

absl::StatusOr<bool> ModuleUploadBuffer::Add(const Sha256Digest& digest, std::uint64_t total_bytes,
                                             std::uint64_t at,
                                             std::span<const std::uint8_t> piece) {
  if (at == 0) {
    if (total_bytes > kMaxBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a module of ", total_bytes, " bytes is larger than ", kMaxBytes));
    }
    *this = {};
    digest_ = digest;
    total_bytes_ = total_bytes;
  }
  if (digest != digest_ || total_bytes != total_bytes_ || at != bytes_.size() ||
      piece.size() > total_bytes_ - bytes_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("piece [", at, ", +", piece.size(),
                                                   ") does not continue an upload that has ",
                                                   bytes_.size(), " of ", total_bytes_, " bytes"));
  }
  bytes_.insert(bytes_.end(), piece.begin(), piece.end());
  return bytes_.size() == total_bytes_;
}

}  // namespace torpor::executor
