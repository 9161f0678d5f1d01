#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace torpor {

// The fate of everything unsynced in a power cut.
enum class PowerCut {
  kNothing,
  kEverything,
  kNames,       // but no contents: what was written reads as zeros
  kContents,    // but no names
  kTorn512,     // every other sector of what was written, and names
  kTorn4096,    // likewise
  kBeginnings,  // the first half of each write, and names
};
inline constexpr std::array kPowerCuts = {
    PowerCut::kNothing, PowerCut::kEverything, PowerCut::kNames,      PowerCut::kContents,
    PowerCut::kTorn512, PowerCut::kTorn4096,   PowerCut::kBeginnings,
};

// Files in memory that behave as a disk does when the power goes or the disk fails. Operations are
// counted from 1. Folders are there when a file in them is. Not thread-safe.
class SimulatedDisk : public Files {
 public:
  SimulatedDisk();
  ~SimulatedDisk() override;

  // The power goes in the midst of the `operation`th operation from now: this and all later ones
  // fail, until PowerOn.
  void CutPowerAt(int operation) { cut_at_ = operations_ + operation; }
  void PowerOn(PowerCut kept);
  // The `operation`th operation from now fails, with a reason as errno's. A write leaves half of
  // the bytes; a failed sync loses the file's unsynced bytes for good.
  void FailAt(int operation, int error) {
    fail_at_ = operations_ + operation;
    fail_count_ = 1;
    error_ = error;
  }
  // `count` operations fail, from the `operation`th on.
  void FailFrom(int operation, int error, int count) {
    FailAt(operation, error);
    fail_count_ = count;
  }
  // No operation fails from now on.
  void Heal() { fail_at_.reset(); }
  int operations() const { return operations_; }
  bool has_failed() const { return has_failed_; }

  absl::StatusOr<std::unique_ptr<OpenFile>> Create(const std::string& path, unsigned mode,
                                                   Caching caching) override;
  absl::StatusOr<std::unique_ptr<InputFile>> Open(const std::string& path,
                                                  Caching caching) override;
  absl::StatusOr<std::vector<std::uint8_t>> Read(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status SyncFolder(const std::string& path) override;

  // Not operations: the files of running programs, and damage to them.
  std::vector<std::string> paths() const;
  std::vector<std::uint8_t>* Find(const std::string& path);

 private:
  struct Inode;
  class Handle;
  class Reader;
  using Names = std::map<std::string, std::shared_ptr<Inode>>;

  // Counts an operation. An error: it fails.
  absl::Status Begin(const char* what, const std::string& path);
  // Whether the present operation fails.
  bool Fails() const {
    return fail_at_ && operations_ >= *fail_at_ && operations_ < *fail_at_ + fail_count_;
  }
  // Whether the power goes in the midst of the present operation.
  bool IsCut() const { return cut_at_ == operations_; }

  Names names_;         // as programs see them
  Names synced_names_;  // after a power cut
  int operations_ = 0;
  std::optional<int> cut_at_;
  std::optional<int> fail_at_;
  int fail_count_ = 1;  // operations from there on
  int error_ = 0;
  bool has_failed_ = false;
};

}  // namespace torpor
