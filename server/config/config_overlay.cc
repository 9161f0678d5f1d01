#include "server/config/config_overlay.h"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <utility>

#include "base/status_macros.h"
#include "server/config/settings.h"

namespace torpor::server {
namespace {

using Json = nlohmann::json;

constexpr int kFormat = 1;
constexpr const char* kInstancesKey = "instances";

// All settings not at their defaults, as text.
template <typename Target>
Json SettingsJson(const Settings<Target>& settings, const Target& target) {
  Json json = Json::object();
  for (const Setting<Target>& setting : settings) {
    const std::string text = setting.text(target);
    if (setting.is_required || text != setting.DefaultText()) {
      json[std::string(setting.key)] = text;
    }
  }
  return json;
}

Json ToJson(const TenantConfig& tenant) { return SettingsJson(TenantSettings(), tenant); }

Json ToJson(const FunctionConfig& function) {
  Json json = SettingsJson(FunctionSettings(), function);
  for (const auto& [name, instance] : function.instances) {
    json[kInstancesKey][name] = SettingsJson(InstanceSettings(), instance);
  }
  return json;
}

template <typename Target>
absl::Status Read(const Settings<Target>& settings, const std::string& key, const Json& value,
                  Target& target) {
  const Setting<Target>* const setting = FindSetting(settings, key);
  if (setting == nullptr || !value.is_string()) {
    return absl::InvalidArgumentError(fmt::format("{}: no such setting", key));
  }
  return setting->set(target, value.get_ref<const std::string&>());
}

template <typename Target>
absl::Status ReadAll(const Settings<Target>& settings, const Json& json, Target& target) {
  for (const auto& [key, value] : json.items()) {
    TORPOR_RETURN_IF_ERROR(Read(settings, key, value, target));
  }
  return absl::OkStatus();
}

absl::Status ReadItem(const Json& json, TenantConfig& tenant) {
  return ReadAll(TenantSettings(), json, tenant);
}

absl::Status ReadItem(const Json& json, FunctionConfig& function) {
  for (const auto& [key, value] : json.items()) {
    if (key != kInstancesKey) {
      TORPOR_RETURN_IF_ERROR(Read(FunctionSettings(), key, value, function));
      continue;
    }
    for (const auto& [name, instance] : value.items()) {
      TORPOR_RETURN_IF_ERROR(ReadAll(InstanceSettings(), instance, function.instances[name]));
    }
  }
  return absl::OkStatus();
}

template <typename T>
Json JsonOf(const std::map<std::string, T>& items, const std::string& name) {
  const auto found = items.find(name);
  return found == items.end() ? Json() : ToJson(found->second);
}

template <typename T>
std::map<std::string, ConfigOverlay::Entry> EntriesOf(const std::map<std::string, T>& file,
                                                      const std::map<std::string, T>& changed) {
  std::map<std::string, ConfigOverlay::Entry> entries;
  const auto add = [&](const std::string& name) {
    ConfigOverlay::Entry entry = {JsonOf(changed, name), JsonOf(file, name)};
    if (entry.changed != entry.of_file) entries[name] = std::move(entry);
  };
  for (const auto& [name, item] : file) add(name);
  for (const auto& [name, item] : changed) add(name);
  return entries;
}

template <typename T>
absl::Status Lay(std::string_view kind, const std::map<std::string, ConfigOverlay::Entry>& entries,
                 std::map<std::string, T>& items, std::vector<std::string>& superseded) {
  for (const auto& [name, entry] : entries) {
    if (JsonOf(items, name) != entry.of_file) {
      superseded.push_back(fmt::format("{} {}", kind, name));
      continue;
    }
    items.erase(name);
    if (entry.changed.is_null()) continue;
    const absl::Status status = ReadItem(entry.changed, items[name]);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          fmt::format("{} {}: {}", kind, name, std::string(status.message())));
    }
  }
  return absl::OkStatus();
}

Json EntriesJson(const std::map<std::string, ConfigOverlay::Entry>& entries) {
  Json json = Json::object();
  for (const auto& [name, entry] : entries) {
    json[name] = {{"changed", entry.changed}, {"of_file", entry.of_file}};
  }
  return json;
}

bool ReadEntries(const Json& json, std::map<std::string, ConfigOverlay::Entry>& entries) {
  if (!json.is_object()) return false;
  const auto is_item = [](const Json& item) {
    if (item.is_null()) return true;
    if (!item.is_object()) return false;
    const auto instances = item.find(kInstancesKey);
    if (instances == item.end()) return true;
    if (!instances->is_object()) return false;
    for (const auto& [name, instance] : instances->items()) {
      if (!instance.is_object()) return false;
    }
    return true;
  };
  for (const auto& [name, entry] : json.items()) {
    if (!entry.is_object() || !entry.contains("changed") || !entry.contains("of_file"))
      return false;
    if (!is_item(entry["changed"]) || !is_item(entry["of_file"])) return false;
    entries[name] = {entry["changed"], entry["of_file"]};
  }
  return true;
}

}  // namespace

ConfigOverlay OverlayOf(const Config& file, const Config& changed) {
  return {EntriesOf(file.functions, changed.functions), EntriesOf(file.tenants, changed.tenants)};
}

absl::StatusOr<OverlaidConfig> WithOverlay(const Config& file, const ConfigOverlay& overlay) {
  OverlaidConfig overlaid = {.config = file};
  TORPOR_RETURN_IF_ERROR(
      Lay("tenant", overlay.tenants, overlaid.config.tenants, overlaid.superseded));
  TORPOR_RETURN_IF_ERROR(
      Lay("function", overlay.functions, overlaid.config.functions, overlaid.superseded));
  return overlaid;
}

std::string FormatOverlay(const ConfigOverlay& overlay) {
  const Json json = {{"format", kFormat},
                     {"functions", EntriesJson(overlay.functions)},
                     {"tenants", EntriesJson(overlay.tenants)}};
  return json.dump(2) + "\n";
}

absl::StatusOr<ConfigOverlay> ParseOverlay(const std::string& text,
                                           const std::filesystem::path& file_name) {
  const auto wrong = [&](std::string_view what) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {}; changes that were made while torpord ran are kept there: mend it, or "
                    "remove it and make them again",
                    file_name.string(), what));
  };
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return wrong("not JSON");
  if (json.value("format", Json()) != kFormat) {
    return wrong(fmt::format("not of format {}, which this release reads", kFormat));
  }
  ConfigOverlay overlay;
  if (!json.contains("functions") || !ReadEntries(json["functions"], overlay.functions)) {
    return wrong("functions are not as torpord writes them");
  }
  if (!json.contains("tenants") || !ReadEntries(json["tenants"], overlay.tenants)) {
    return wrong("tenants are not as torpord writes them");
  }
  return overlay;
}

}  // namespace torpor::server
