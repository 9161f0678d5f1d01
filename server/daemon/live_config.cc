#include "server/daemon/live_config.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/status_macros.h"
#include "server/config/config_change.h"
#include "server/config/function_command.h"

namespace torpor::server {
namespace {

// An empty overlay if there is no file.
absl::StatusOr<ConfigOverlay> ReadChanges(Files& files, const std::string& path) {
  const absl::StatusOr<std::vector<std::uint8_t>> bytes = files.Read(path);
  if (absl::IsNotFound(bytes.status())) return ConfigOverlay();
  TORPOR_RETURN_IF_ERROR(bytes.status());
  return ParseOverlay(std::string(bytes->begin(), bytes->end()), path);
}

// Tells the operator, whoever asked for the change.
absl::Status NotKept(const absl::Status& why, std::string_view outcome) {
  const std::string text =
      fmt::format("{}: {}; make room in state_dir, or mend its disk, and change it again", outcome,
                  std::string(why.message()));
  spdlog::error("a change of the configuration is not kept: {}", text);
  return absl::UnavailableError(text);
}

// Changes settings of an instance, `name`: FUNCTION/INSTANCE.
absl::Status ChangeInstance(const std::string& name, const std::vector<SettingText>& settings,
                            Config& config) {
  const std::size_t slash = name.find('/');
  const auto function = config.functions.find(name.substr(0, slash));
  if (function != config.functions.end()) {
    const auto instance = function->second.instances.find(name.substr(slash + 1));
    if (instance != function->second.instances.end())
      return SetInstance(instance->second, settings);
  }
  return absl::NotFoundError(
      fmt::format("there is no instance {}; `torporctl functions` lists them", name));
}

auto CommandOf(const InstanceConfig& instance) {
  return std::tie(instance.name, instance.command, instance.environment);
}

// Members of torpord's group reach the admin socket, functions among them: they may not choose what
// torpord runs, and as whom.
absl::Status RefuseNewCommands(const Config& from, const Config& to) {
  for (const auto& [name, function] : to.functions) {
    if (!HasCommand(function)) continue;
    const auto known = from.functions.find(name);
    const bool is_same = known != from.functions.end() && known->second.user == function.user &&
                         std::ranges::equal(InstancesOf(known->second), InstancesOf(function), {},
                                            CommandOf, CommandOf);
    if (is_same) continue;
    return absl::FailedPreconditionError(
        fmt::format("function {}: what torpord runs comes from its configuration file alone; write "
                    "command, env and user there, and send SIGHUP",
                    name));
  }
  return absl::OkStatus();
}

void NoteSuperseded(const std::vector<std::string>& superseded, std::vector<std::string>& lines) {
  for (const std::string& what : superseded) {
    lines.push_back(fmt::format(
        "{}: as in the configuration file, which has changed since it was changed here", what));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<LiveConfig>> LiveConfig::Load(Parts parts) {
  std::unique_ptr<LiveConfig> live(new LiveConfig(std::move(parts)));
  TORPOR_ASSIGN_OR_RETURN(Config file, live->parts_.load());
  TORPOR_ASSIGN_OR_RETURN(live->disk_, live->parts_.disk(file));
  live->at_start_ = file;  // for the path
  TORPOR_ASSIGN_OR_RETURN(const ConfigOverlay overlay,
                          ReadChanges(*live->disk_, live->changes_path()));
  TORPOR_ASSIGN_OR_RETURN(OverlaidConfig overlaid, WithOverlay(file, overlay));
  TORPOR_RETURN_IF_ERROR(CheckConfig(overlaid.config, live->changes_path()));
  TORPOR_RETURN_IF_ERROR(live->parts_.check(overlaid.config));
  NoteSuperseded(overlaid.superseded, live->superseded_);
  live->at_start_ = overlaid.config;
  MutexLock lock(&live->mutex_);
  live->file_ = std::move(file);
  live->wanted_ = overlaid.config;
  live->running_ = std::move(overlaid.config);
  return live;
}

absl::StatusOr<KeptFile> LiveConfig::Keep(const Config& file, const Config& wanted) const {
  return KeptFile::Write(*disk_, changes_path(), BytesOf(FormatOverlay(OverlayOf(file, wanted))),
                         {});
}

absl::Status LiveConfig::ForgetSuperseded() {
  if (superseded_.empty()) return absl::OkStatus();
  MutexLock lock(&mutex_);
  TORPOR_ASSIGN_OR_RETURN(KeptFile kept, Keep(file_, wanted_));
  return kept.Commit();
}

absl::StatusOr<LiveConfig::Lines> LiveConfig::Apply(const Config& file, const Config& wanted,
                                                    bool is_trial) {
  TORPOR_RETURN_IF_ERROR(parts_.check(wanted));
  const Lines lines = Describe(Compare(running_, wanted));
  const Config running = Applicable(running_, wanted);
  if (is_trial) {
    TORPOR_RETURN_IF_ERROR(parts_.apply(running, /*is_trial=*/true));
    return lines;
  }
  // What may fail comes first: then the daemon and the kept changes are in step.
  absl::StatusOr<KeptFile> kept = Keep(file, wanted);
  if (!kept.ok()) return NotKept(kept.status(), "not applied");
  TORPOR_RETURN_IF_ERROR(parts_.apply(running, /*is_trial=*/false));
  running_ = running;
  wanted_ = wanted;
  file_ = file;
  if (const absl::Status status = kept->Commit(); !status.ok()) {
    return NotKept(status, "applied, but may be lost with the next restart");
  }
  return lines;
}

absl::StatusOr<LiveConfig::Lines> LiveConfig::Reload() {
  MutexLock lock(&mutex_);
  TORPOR_ASSIGN_OR_RETURN(const Config file, parts_.load());
  TORPOR_ASSIGN_OR_RETURN(OverlaidConfig overlaid, WithOverlay(file, OverlayOf(file_, wanted_)));
  TORPOR_RETURN_IF_ERROR(CheckConfig(overlaid.config, changes_path()));
  TORPOR_ASSIGN_OR_RETURN(Lines lines, Apply(file, overlaid.config, /*is_trial=*/false));
  NoteSuperseded(overlaid.superseded, lines);
  return lines;
}

absl::StatusOr<Config> LiveConfig::WantedBy(const ConfigRequest& request) {
  using Kind = ConfigRequest::Kind;
  const std::string& name = request.function;
  if (request.kind == Kind::kApply) {
    return ParseOver(request.text, request.file_name, wanted_, request.prune);
  }
  Config wanted = wanted_;
  for (const auto& [key, text] : request.settings) {
    if (key != "name") continue;
    return absl::InvalidArgumentError(
        "name: cannot be changed; add a function of that name and remove this one");
  }
  if (request.kind == Kind::kSet && name.find('/') != std::string::npos) {
    TORPOR_RETURN_IF_ERROR(ChangeInstance(name, request.settings, wanted));
    TORPOR_RETURN_IF_ERROR(CheckConfig(wanted, fmt::format("instance {}", name)));
    return wanted;
  }
  const bool is_known = wanted.functions.contains(name);
  if (request.kind == Kind::kAdd && is_known) {
    return absl::AlreadyExistsError(
        fmt::format("there is a function {}; change it with `torporctl function set`", name));
  }
  if (request.kind != Kind::kAdd && !is_known) {
    return absl::NotFoundError(
        fmt::format("there is no function {}; `torporctl functions` lists them", name));
  }
  if (request.kind == Kind::kRemove) {
    wanted.functions.erase(name);
  } else {
    FunctionConfig& function = wanted.functions[name];
    TORPOR_RETURN_IF_ERROR(SetFunction(function, std::vector<SettingText>{{"name", name}}));
    TORPOR_RETURN_IF_ERROR(SetFunction(function, request.settings));
  }
  TORPOR_RETURN_IF_ERROR(CheckConfig(wanted, fmt::format("function {}", name)));
  return wanted;
}

absl::StatusOr<LiveConfig::Lines> LiveConfig::Change(const ConfigRequest& request) {
  MutexLock lock(&mutex_);
  TORPOR_ASSIGN_OR_RETURN(const Config wanted, WantedBy(request));
  TORPOR_RETURN_IF_ERROR(RefuseNewCommands(wanted_, wanted));
  const ConfigChange change = Compare(wanted_, wanted);
  if (!change.fixed.empty()) {
    return absl::FailedPreconditionError(fmt::format("{} cannot be changed while torpord runs: {}",
                                                     change.fixed.front().key,
                                                     change.fixed.front().reason));
  }
  const Config file = file_;
  return Apply(file, wanted, request.is_trial);
}

}  // namespace torpor::server
