#include "server/daemon/faulty_files.h"

#include <cerrno>
#include <span>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "server/log/structured_log.h"

namespace torpor::server {
namespace {

using emulator::DiskError;
using emulator::DiskFault;
using emulator::DiskOperation;

// As the system's files name it in messages.
const char* VerbOf(DiskOperation operation) {
  switch (operation) {
    case DiskOperation::kCreate:
      return "create";
    case DiskOperation::kRead:
      return "read";
    case DiskOperation::kRename:
      return "replace";
    case DiskOperation::kRemove:
      return "remove";
    case DiskOperation::kWrite:
    case DiskOperation::kSync:
      break;
  }
  return "write";
}

absl::Status FailureOf(DiskOperation operation, const std::string& path, DiskError error) {
  const int reason = error == DiskError::kNoSpace ? ENOSPC : EIO;
  return absl::UnavailableError(absl::StrCat("cannot ", VerbOf(operation), " ", path, ": ",
                                             std::generic_category().message(reason)));
}

// Half of what is written, in the units of a write past the page cache.
std::span<const std::uint8_t> HalfOf(std::span<const std::uint8_t> bytes) {
  const Bytes unit = bytes.size() % kDirectBytes == 0 ? kDirectBytes : 1;
  return bytes.first(RoundDown(bytes.size() / 2, unit));
}

void FlipABit(std::span<std::uint8_t> bytes) {
  if (!bytes.empty()) bytes[bytes.size() / 2] ^= 1;
}

}  // namespace

class FaultyFiles::Output final : public OpenFile {
 public:
  Output(FaultyFiles& disk, std::string path, std::unique_ptr<OpenFile> file)
      : disk_(disk), path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Write(std::uint64_t offset, std::span<const std::uint8_t> bytes) override {
    const auto error = disk_.Count(DiskOperation::kWrite, path_);
    if (!error) return file_->Write(offset, bytes);
    if (*error == DiskError::kTorn) {
      TORPOR_RETURN_IF_ERROR(file_->Write(offset, HalfOf(bytes)));
    }
    return FailureOf(DiskOperation::kWrite, path_, *error);
  }
  absl::Status Sync() override {
    TORPOR_RETURN_IF_ERROR(disk_.Begin(DiskOperation::kSync, path_));
    return file_->Sync();
  }

 private:
  FaultyFiles& disk_;
  const std::string path_;
  const std::unique_ptr<OpenFile> file_;
};

class FaultyFiles::Input final : public InputFile {
 public:
  Input(FaultyFiles& disk, std::string path, std::unique_ptr<InputFile> file)
      : disk_(disk), path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Read(std::uint64_t offset, std::span<std::uint8_t> into) const override {
    const auto error = disk_.Count(DiskOperation::kRead, path_);
    const bool fails = error && *error != DiskError::kWrongBytes;
    if (fails) return FailureOf(DiskOperation::kRead, path_, *error);
    TORPOR_RETURN_IF_ERROR(file_->Read(offset, into));
    if (error) FlipABit(into);
    return absl::OkStatus();
  }

 private:
  FaultyFiles& disk_;
  const std::string path_;
  const std::unique_ptr<InputFile> file_;
};

FaultyFiles::FaultyFiles(Files& files, std::vector<DiskFault> plan)
    : files_(files), plan_(std::move(plan)), counts_(plan_.size()) {}

std::optional<DiskError> FaultyFiles::Count(DiskOperation operation, const std::string& path) {
  std::optional<DiskError> met;
  for (std::size_t i = 0; i < plan_.size(); ++i) {
    if (!plan_[i].Counts(operation, path)) continue;
    const std::uint64_t number = counts_[i].fetch_add(1, std::memory_order_relaxed) + 1;
    if (!met && plan_[i].IsMetBy(number)) met = plan_[i].error;
  }
  if (met) {
    LogEvent(spdlog::level::warn, "the fault plan's disk fails",
             {{"operation", NameOf(operation)}, {"path", path}, {"error", NameOf(*met)}});
  }
  return met;
}

absl::Status FaultyFiles::Begin(DiskOperation operation, const std::string& path) {
  const auto error = Count(operation, path);
  return error ? FailureOf(operation, path, *error) : absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<OpenFile>> FaultyFiles::Create(const std::string& path,
                                                              unsigned mode, Caching caching) {
  TORPOR_RETURN_IF_ERROR(Begin(DiskOperation::kCreate, path));
  TORPOR_ASSIGN_OR_RETURN(auto file, files_.Create(path, mode, caching));
  return std::make_unique<Output>(*this, path, std::move(file));
}

absl::StatusOr<std::unique_ptr<InputFile>> FaultyFiles::Open(const std::string& path,
                                                             Caching caching) {
  TORPOR_ASSIGN_OR_RETURN(auto file, files_.Open(path, caching));
  return std::make_unique<Input>(*this, path, std::move(file));
}

absl::StatusOr<std::vector<std::uint8_t>> FaultyFiles::Read(const std::string& path) {
  const auto error = Count(DiskOperation::kRead, path);
  const bool fails = error && *error != DiskError::kWrongBytes;
  if (fails) return FailureOf(DiskOperation::kRead, path, *error);
  TORPOR_ASSIGN_OR_RETURN(auto bytes, files_.Read(path));
  if (error) FlipABit(bytes);
  return bytes;
}

absl::Status FaultyFiles::Rename(const std::string& from, const std::string& to) {
  TORPOR_RETURN_IF_ERROR(Begin(DiskOperation::kRename, to));
  return files_.Rename(from, to);
}

absl::Status FaultyFiles::Remove(const std::string& path) {
  TORPOR_RETURN_IF_ERROR(Begin(DiskOperation::kRemove, path));
  return files_.Remove(path);
}

absl::Status FaultyFiles::SyncFolder(const std::string& path) {
  TORPOR_RETURN_IF_ERROR(Begin(DiskOperation::kSync, path));
  return files_.SyncFolder(path);
}

}  // namespace torpor::server
