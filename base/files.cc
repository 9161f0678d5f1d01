#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "base/whole_io.h"

namespace torpor {
namespace {

absl::Status Failure(const char* what, const std::string& path) {
  return absl::UnavailableError(
      absl::StrCat("cannot ", what, " ", path, ": ", std::generic_category().message(errno)));
}

class SystemFile : public OpenFile {
 public:
  SystemFile(UniqueFd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

  absl::Status Write(std::uint64_t offset, std::span<const std::uint8_t> bytes) override {
    return WriteWhole(file_.get(), offset, bytes) ? absl::OkStatus() : Failure("write", path_);
  }
  absl::Status Sync() override {
    return fsync(file_.get()) == 0 ? absl::OkStatus() : Failure("write", path_);
  }

 private:
  const UniqueFd file_;
  const std::string path_;
};

class SystemInputFile : public InputFile {
 public:
  SystemInputFile(UniqueFd file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  absl::Status Read(std::uint64_t offset, std::span<std::uint8_t> into) const override {
    return ReadWhole(file_.get(), offset, into) ? absl::OkStatus() : Failure("read", path_);
  }

 private:
  const UniqueFd file_;
  const std::string path_;
};

// Opens past the page cache if asked to, and through the cache on file systems that know no other
// way.
UniqueFd OpenWith(Caching caching, const std::string& path, int flags, unsigned mode = 0) {
  if (caching == Caching::kDirect) {
    UniqueFd file(open(path.c_str(), flags | O_DIRECT | O_CLOEXEC, mode));
    if (file || errno != EINVAL) return file;
  }
  return UniqueFd(open(path.c_str(), flags | O_CLOEXEC, mode));
}

class System : public Files {
 public:
  absl::StatusOr<std::unique_ptr<OpenFile>> Create(const std::string& path, unsigned mode,
                                                   Caching caching) override {
    UniqueFd file = OpenWith(caching, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    if (!file) return Failure("create", path);
    return std::make_unique<SystemFile>(std::move(file), path);
  }
  absl::StatusOr<std::unique_ptr<InputFile>> Open(const std::string& path,
                                                  Caching caching) override {
    UniqueFd file = OpenWith(caching, path, O_RDONLY);
    if (!file && errno == ENOENT) return absl::NotFoundError(absl::StrCat("there is no ", path));
    if (!file) return Failure("read", path);
    return std::make_unique<SystemInputFile>(std::move(file), path);
  }
  absl::StatusOr<std::vector<std::uint8_t>> Read(const std::string& path) override {
    const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file && errno == ENOENT) return absl::NotFoundError(absl::StrCat("there is no ", path));
    struct stat status {};
    if (!file || fstat(file.get(), &status) != 0) return Failure("read", path);
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(status.st_size));
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t got = read(file.get(), bytes.data() + done, bytes.size() - done);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Failure("read", path);
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    bytes.resize(done);
    return bytes;
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return rename(from.c_str(), to.c_str()) == 0 ? absl::OkStatus() : Failure("replace", to);
  }
  absl::Status Remove(const std::string& path) override {
    const bool is_gone = unlink(path.c_str()) == 0 || errno == ENOENT;
    return is_gone ? absl::OkStatus() : Failure("remove", path);
  }
  absl::Status SyncFolder(const std::string& path) override {
    const UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const bool is_synced = folder && fsync(folder.get()) == 0;
    return is_synced ? absl::OkStatus() : Failure("write", path);
  }
};

}  // namespace

Files& SystemFiles() {
  static System system;
  return system;
}

}  // namespace torpor
