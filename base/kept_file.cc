#include "base/kept_file.h"

#include <spdlog/spdlog.h>

#include <filesystem>
#include <memory>

#include "base/status_macros.h"

namespace torpor {

absl::StatusOr<KeptFile> KeptFile::Write(Files& files, const std::string& path,
                                         std::span<const std::uint8_t> bytes,
                                         const Options& options) {
  KeptFile kept(files, path, path + options.suffix);
  TORPOR_ASSIGN_OR_RETURN(const std::unique_ptr<OpenFile> file,
                          files.Create(kept.temporary_, options.mode, Caching::kPageCache));
  TORPOR_RETURN_IF_ERROR(file->Write(0, bytes));
  // Before the name: else the new name may survive without the contents.
  TORPOR_RETURN_IF_ERROR(file->Sync());
  return kept;
}

KeptFile::~KeptFile() {
  if (path_.empty()) return;
  // What stays is overwritten by the next version.
  const absl::Status removed = files_->Remove(temporary_);
  if (!removed.ok()) spdlog::warn("{}", std::string(removed.message()));
}

absl::Status KeptFile::Commit() {
  TORPOR_RETURN_IF_ERROR(files_->Rename(temporary_, path_));
  return files_->SyncFolder(std::filesystem::path(std::exchange(path_, {})).parent_path());
}

absl::Status ReplaceFile(Files& files, const std::string& path, std::span<const std::uint8_t> bytes,
                         const KeptFile::Options& options) {
  TORPOR_ASSIGN_OR_RETURN(KeptFile kept, KeptFile::Write(files, path, bytes, options));
  return kept.Commit();
}

}  // namespace torpor
