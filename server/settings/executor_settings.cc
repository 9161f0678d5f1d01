#include "server/settings/executor_settings.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "server/settings/value_kinds.h"

namespace torpor::server {
namespace {

Settings<ExecutorSettings> MakeExecutorTable() {
  using Target = ExecutorSettings;
  Settings<Target> table = {
      Required(MakeSetting("gpu", CountKind{.min = 0, .max = 1023}, &Target::gpu,
                           "Index of the GPU to own, as the driver counts")),
      Required(MakeSetting("epoch", NumberKind(), &Target::epoch,
                           "Given back to torpord, which tells starts apart by this number")),
      Required(MakeSetting("daemon_socket", PathKind{{"PATH"}}, &Target::daemon_socket,
                           "torpord's node socket to dial")),
      Required(MakeSetting("socket", PathKind{{"PATH"}}, &Target::socket,
                           "Where to serve functions; an existing socket is replaced")),
      MakeSetting("socket_mode", FileModeKind(), &Target::socket_mode, "Octal mode of that socket"),
      Required(MakeSetting("descriptor_socket", PathKind{{"PATH"}}, &Target::descriptor_socket,
                           "Where torpord hands out memory files")),
      Required(MakeSetting("module_dir", PathKind{{"DIR"}}, &Target::module_dir,
                           "Folder of the node's modules")),
      MakeSetting("link_profile_dir", PathKind{{"DIR"}}, &Target::link_profile_dir,
                  "Folder that keeps measurements of the GPU's links; empty: not kept"),
      MakeSetting("compute_cache_dir", PathKind{{"DIR"}}, &Target::compute_cache_dir,
                  "Folder that keeps code compiled by the driver (CUDA_CACHE_PATH); empty: the "
                  "driver's own choice"),
      MakeSetting("cuda_library_dir", PathKind{{"DIR"}}, &Target::cuda_library_dir,
                  "Folder of libcuda.so.1 and the libraries beside it; empty: where the dynamic "
                  "linker finds them"),
  };
  AddSettingsOf(table, &Target::addresses, NodeAddressTable());
  AddSettingsOf(table, &Target::device, DeviceSettingTable());
  AddSettingsOf(table, &Target::log, LogSettingTable());
  return table;
}

}  // namespace

const Settings<ExecutorSettings>& ExecutorSettingTable() {
  static const Settings<ExecutorSettings> table = MakeExecutorTable();
  return table;
}

std::string FormatExecutorSettings(const ExecutorSettings& settings) {
  nlohmann::ordered_json document;
  for (const Setting<ExecutorSettings>& setting : ExecutorSettingTable()) {
    document[std::string(setting.key)] = setting.text(settings);
  }
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::StatusOr<ExecutorSettings> ParseExecutorSettings(std::string_view document) {
  const auto json = nlohmann::json::parse(document, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError("settings: expected a JSON object, such as {\"gpu\": \"0\"}");
  }
  ExecutorSettings settings;
  std::vector<std::string> findings;
  for (const auto& [key, value] : json.items()) {
    const Setting<ExecutorSettings>* const setting = FindSetting(ExecutorSettingTable(), key);
    if (setting == nullptr) {
      findings.push_back(fmt::format("settings: {}: no such setting", key));
    } else if (!value.is_string()) {
      findings.push_back(fmt::format("settings: {}: expected text ({})", key, setting->value_name));
    } else if (const absl::Status status =
                   setting->set(settings, value.get_ref<const std::string&>());
               !status.ok()) {
      findings.push_back(fmt::format("settings: {}: {}", key, std::string(status.message())));
    }
  }
  for (const Setting<ExecutorSettings>& setting : ExecutorSettingTable()) {
    if (!setting.is_required || json.contains(std::string(setting.key))) continue;
    findings.push_back(fmt::format("settings: {} is missing", setting.key));
  }
  if (findings.empty()) return settings;
  return absl::InvalidArgumentError(fmt::format("{}", fmt::join(findings, "\n")));
}

}  // namespace torpor::server
