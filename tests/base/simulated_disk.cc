#include "tests/base/simulated_disk.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace torpor {
namespace {

std::string FolderOf(const std::string& path) { return std::filesystem::path(path).parent_path(); }

}  // namespace

struct SimulatedDisk::Inode {
  struct Written {
    std::uint64_t offset = 0;
    std::vector<std::uint8_t> bytes;
    bool empties = false;  // all that was there before
  };

  static void Apply(const Written& write, std::vector<std::uint8_t>& to) {
    if (write.empties) to.clear();
    to.resize(std::max<std::size_t>(to.size(), write.offset + write.bytes.size()));
    std::copy(write.bytes.begin(), write.bytes.end(),
              to.begin() + static_cast<std::ptrdiff_t>(write.offset));
  }
  void Write(Written write) {
    Apply(write, contents);
    unsynced.push_back(std::move(write));
  }
  void Sync() {
    if (!is_broken) synced = contents;
    unsynced.clear();
  }
  // What the disk has of the file after the cut.
  void Keep(PowerCut kept);

  std::vector<std::uint8_t> contents;
  std::vector<std::uint8_t> synced;
  std::vector<Written> unsynced;
  bool is_broken = false;  // a sync has failed
};

void SimulatedDisk::Inode::Keep(PowerCut kept) {
  contents = synced;
  const auto keep_sectors = [&](const Written& write, std::size_t sector) {
    contents.resize(std::max<std::size_t>(contents.size(), write.offset + write.bytes.size()));
    for (std::size_t i = 0; i < write.bytes.size(); ++i) {
      const std::uint64_t at = write.offset + i;
      if (at / sector % 2 == 1) contents[at] = write.bytes[i];
    }
  };
  for (Written& write : unsynced) {
    if (write.empties && kept != PowerCut::kNothing) contents.clear();
    switch (kept) {
      case PowerCut::kNothing:
        break;
      case PowerCut::kEverything:
      case PowerCut::kContents:
        Apply(write, contents);
        break;
      case PowerCut::kNames:
        contents.resize(std::max<std::size_t>(contents.size(), write.offset + write.bytes.size()));
        break;
      case PowerCut::kTorn512:
        keep_sectors(write, 512);
        break;
      case PowerCut::kTorn4096:
        keep_sectors(write, 4096);
        break;
      case PowerCut::kBeginnings:
        write.bytes.resize(write.bytes.size() / 2);
        Apply(write, contents);
        break;
    }
  }
  unsynced.clear();
  synced = contents;
}

class SimulatedDisk::Handle : public OpenFile {
 public:
  Handle(SimulatedDisk& disk, std::shared_ptr<Inode> inode, std::string path)
      : disk_(disk), inode_(std::move(inode)), path_(std::move(path)) {}

  absl::Status Write(std::uint64_t offset, std::span<const std::uint8_t> bytes) override {
    const absl::Status status = disk_.Begin("write", path_);
    const bool is_whole = status.ok() || disk_.IsCut();
    const std::span<const std::uint8_t> there = is_whole ? bytes : bytes.first(bytes.size() / 2);
    if (status.ok() || disk_.IsCut() || disk_.Fails()) {
      inode_->Write({offset, {there.begin(), there.end()}, false});
    }
    return status;
  }
  absl::Status Sync() override {
    const absl::Status status = disk_.Begin("sync", path_);
    if (status.ok()) inode_->Sync();
    if (disk_.Fails()) inode_->is_broken = true;
    return status;
  }

 private:
  SimulatedDisk& disk_;
  const std::shared_ptr<Inode> inode_;
  const std::string path_;
};

class SimulatedDisk::Reader : public InputFile {
 public:
  Reader(SimulatedDisk& disk, std::shared_ptr<const Inode> inode, std::string path)
      : disk_(disk), inode_(std::move(inode)), path_(std::move(path)) {}

  absl::Status Read(std::uint64_t offset, std::span<std::uint8_t> into) const override {
    TORPOR_RETURN_IF_ERROR(disk_.Begin("read", path_));
    const std::vector<std::uint8_t>& bytes = inode_->contents;
    if (offset > bytes.size() || into.size() > bytes.size() - offset) {
      return absl::UnavailableError(absl::StrCat(path_, " ends too early"));
    }
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    return absl::OkStatus();
  }

 private:
  SimulatedDisk& disk_;
  const std::shared_ptr<const Inode> inode_;
  const std::string path_;
};

SimulatedDisk::SimulatedDisk() = default;
SimulatedDisk::~SimulatedDisk() = default;

absl::Status SimulatedDisk::Begin(const char* what, const std::string& path) {
  ++operations_;
  const auto failure = [&](const std::string& why) {
    has_failed_ = true;
    return absl::UnavailableError(absl::StrCat("cannot ", what, " ", path, ": ", why));
  };
  if (cut_at_ && operations_ >= *cut_at_) return failure("the power is off");
  if (Fails()) return failure(std::generic_category().message(error_));
  return absl::OkStatus();
}

void SimulatedDisk::PowerOn(PowerCut kept) {
  const bool keeps_names = kept != PowerCut::kNothing && kept != PowerCut::kContents;
  Names names = keeps_names ? names_ : synced_names_;
  for (const Names* all : {&names_, &synced_names_}) {
    for (const auto& [path, inode] : *all) inode->Keep(kept);
  }
  names_ = names;
  synced_names_ = std::move(names);
  cut_at_.reset();
  has_failed_ = false;
}

absl::StatusOr<std::unique_ptr<OpenFile>> SimulatedDisk::Create(const std::string& path, unsigned,
                                                                Caching) {
  const absl::Status status = Begin("create", path);
  if (status.ok() || IsCut()) {
    std::shared_ptr<Inode>& inode = names_[path];
    if (inode == nullptr) {
      inode = std::make_shared<Inode>();
    } else {
      inode->Write({.offset = 0, .bytes = {}, .empties = true});
    }
  }
  TORPOR_RETURN_IF_ERROR(status);
  return std::make_unique<Handle>(*this, names_[path], path);
}

absl::StatusOr<std::unique_ptr<InputFile>> SimulatedDisk::Open(const std::string& path, Caching) {
  TORPOR_RETURN_IF_ERROR(Begin("open", path));
  const auto found = names_.find(path);
  if (found == names_.end()) return absl::NotFoundError(absl::StrCat("there is no ", path));
  return std::make_unique<Reader>(*this, found->second, path);
}

absl::StatusOr<std::vector<std::uint8_t>> SimulatedDisk::Read(const std::string& path) {
  TORPOR_RETURN_IF_ERROR(Begin("read", path));
  const auto found = names_.find(path);
  if (found == names_.end()) return absl::NotFoundError(absl::StrCat("there is no ", path));
  return found->second->contents;
}

absl::Status SimulatedDisk::Rename(const std::string& from, const std::string& to) {
  const absl::Status status = Begin("replace", to);
  if (!status.ok() && !IsCut()) return status;
  const auto found = names_.find(from);
  if (found == names_.end()) return absl::UnavailableError(absl::StrCat("there is no ", from));
  names_[to] = found->second;
  names_.erase(from);
  return status;
}

absl::Status SimulatedDisk::Remove(const std::string& path) {
  const absl::Status status = Begin("remove", path);
  if (status.ok() || IsCut()) names_.erase(path);
  return status;
}

absl::Status SimulatedDisk::SyncFolder(const std::string& path) {
  TORPOR_RETURN_IF_ERROR(Begin("sync", path));
  const auto is_here = [&](const auto& entry) { return FolderOf(entry.first) == path; };
  std::erase_if(synced_names_, is_here);
  for (const auto& entry : names_) {
    if (is_here(entry)) synced_names_.insert(entry);
  }
  return absl::OkStatus();
}

std::vector<std::string> SimulatedDisk::paths() const {
  std::vector<std::string> paths;
  for (const auto& [path, inode] : names_) paths.push_back(path);
  return paths;
}

std::vector<std::uint8_t>* SimulatedDisk::Find(const std::string& path) {
  const auto found = names_.find(path);
  return found == names_.end() ? nullptr : &found->second->contents;
}

}  // namespace torpor
