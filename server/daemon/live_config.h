#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files.h"
#include "base/kept_file.h"
#include "base/mutex.h"
#include "server/config/config.h"
#include "server/config/config_loader.h"
#include "server/config/config_overlay.h"
#include "server/config/config_request.h"

namespace torpor::server {

// The configuration of a running torpord: what the configuration file says, and over that what was
// changed while torpord ran, which is kept in <state_dir>/changes.json. A change is applied as a
// whole or not at all. Thread-safe.
class LiveConfig {
 public:
  struct Parts {
    // Reads and completes the configuration of file, environment and flags, without changes.
    std::function<absl::StatusOr<Config>()> load;
    // Checks files that the configuration names.
    std::function<absl::Status(const Config&)> check;
    // Makes the configuration's functions and tenants the daemon's. On an error, or if `is_trial`,
    // the daemon stays as it was.
    std::function<absl::Status(const Config&, bool is_trial)> apply;
    // Returns the disk on which changes are kept, by the configuration without changes. Called
    // once; the disk outlives the object.
    std::function<absl::StatusOr<Files*>(const Config&)> disk = [](const Config&) {
      return &SystemFiles();
    };
  };
  // What a change has changed, or would change: a line each.
  using Lines = std::vector<std::string>;

  // Errors are `load`'s, or name the file of changes.
  static absl::StatusOr<std::unique_ptr<LiveConfig>> Load(Parts parts);

  // The configuration to start with, and which kept changes the configuration file has superseded.
  const Config& at_start() const { return at_start_; }
  const Lines& superseded() const { return superseded_; }
  // As of Parts.
  Files& disk() const { return *disk_; }
  // Takes superseded changes out of the kept ones: else a change would hold again once the file
  // says what it said then. Call once torpord has the state_dir to itself.
  absl::Status ForgetSuperseded();

  // Reads the file again. A change that was made meanwhile stays until the file says something else
  // about the same function or tenant. What only a restart applies is named, and left alone.
  absl::StatusOr<Lines> Reload();
  // AlreadyExists, NotFound, InvalidArgument (names setting, file and line), FailedPrecondition if
  // a part could only be applied by a restart, or Unavailable, which is logged, if the change
  // cannot be kept: the error says whether the change is applied.
  absl::StatusOr<Lines> Change(const ConfigRequest& request);

 private:
  explicit LiveConfig(Parts parts) : parts_(std::move(parts)) {}

  // The configuration that the request wants.
  absl::StatusOr<Config> WantedBy(const ConfigRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes `wanted` the configuration over the file's, `file`.
  absl::StatusOr<Lines> Apply(const Config& file, const Config& wanted, bool is_trial)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes the changes that make `wanted` of the file's, to be committed.
  absl::StatusOr<KeptFile> Keep(const Config& file, const Config& wanted) const;
  std::string changes_path() const { return at_start_.state_dir + "/changes.json"; }

  const Parts parts_;
  Config at_start_;        // constant after Load
  Files* disk_ = nullptr;  // likewise
  Lines superseded_;
  Mutex mutex_;  // held during a change
  Config file_ ABSL_GUARDED_BY(mutex_);
  Config wanted_ ABSL_GUARDED_BY(mutex_);   // the file's with changes
  Config running_ ABSL_GUARDED_BY(mutex_);  // `wanted_` but for what only a restart applies
};

}  // namespace torpor::server
