#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/settings/setting.h"

// Settings as the text that torpord passes to its processes: a JSON object with a text for every
// key, such as {"gpu": "0", "chunk_bytes": "2MiB"}, on one line.
namespace torpor::server {

template <typename Target>
std::string FormatSettingsDocument(const Settings<Target>& table, const Target& settings) {
  nlohmann::ordered_json document;
  for (const Setting<Target>& setting : table) {
    document[std::string(setting.key)] = setting.text(settings);
  }
  return document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Reads such an object; only required keys must be present. InvalidArgument for other text than a
// JSON object, an unknown key, a missing key or a bad value; the message has one line per mistake.
template <typename Target>
absl::StatusOr<Target> ParseSettingsDocument(const Settings<Target>& table,
                                             std::string_view document) {
  const auto json = nlohmann::json::parse(document, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return absl::InvalidArgumentError(fmt::format(
        "settings: expected a JSON object, such as {{\"{}\": \"...\"}}", table.front().key));
  }
  Target settings;
  std::vector<std::string> findings;
  for (const auto& [key, value] : json.items()) {
    const Setting<Target>* const setting = FindSetting(table, key);
    if (setting == nullptr) {
      findings.push_back(fmt::format("settings: {}: no such setting", key));
    } else if (!value.is_string()) {
      findings.push_back(fmt::format("settings: {}: expected text ({})", key, setting->value_name));
    } else if (const absl::Status status =
                   setting->set(settings, value.template get_ref<const std::string&>());
               !status.ok()) {
      findings.push_back(fmt::format("settings: {}: {}", key, std::string(status.message())));
    }
  }
  for (const Setting<Target>& setting : table) {
    if (!setting.is_required || json.contains(std::string(setting.key))) continue;
    findings.push_back(fmt::format("settings: {} is missing", setting.key));
  }
  if (findings.empty()) return settings;
  return absl::InvalidArgumentError(fmt::format("{}", fmt::join(findings, "\n")));
}

}  // namespace torpor::server
