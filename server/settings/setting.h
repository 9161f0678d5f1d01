#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace torpor::server {

// A key of a record of settings. Only the record's table knows the key: the configuration file, the
// environment, the command line, --help, the test of the documentation and the document for
// executors all follow from the table. The record's initializers are the defaults.
template <typename Target>
struct Setting {
  std::string_view key;    // http_address: TORPOR_HTTP_ADDRESS, --http-address
  std::string value_name;  // for help: SIZE, DURATION, map|translate, ...
  std::string_view help;
  bool is_path = false;      // relative paths in a file are relative to the file's folder
  bool is_required = false;  // has no default
  bool is_words = false;     // a list of words, whose text is a JSON array
  // Reads the text into the target. An error (InvalidArgument) tells the mistake in the text and
  // leaves the target unchanged.
  std::function<absl::Status(Target&, std::string_view text)> set;
  // Writes the target's value as text for `set`.
  std::function<std::string(const Target&)> text;

  // Empty if the setting is required or unset by default.
  std::string DefaultText() const { return is_required ? std::string() : text(Target()); }
};

template <typename Target>
using Settings = std::vector<Setting<Target>>;

// Makes the setting of one member. `Kind` (server/settings/value_kinds.h) is the member's type,
// range and text.
template <typename Target, typename Kind>
Setting<Target> MakeSetting(std::string_view key, Kind kind, typename Kind::Value Target::*member,
                            std::string_view help) {
  Setting<Target> setting;
  setting.key = key;
  setting.value_name = kind.value_name();
  setting.help = help;
  setting.is_path = Kind::kIsPath;
  setting.is_words = requires { Kind::kIsWords; };
  setting.set = [kind, member](Target& target, std::string_view text) {
    auto value = kind.Parse(text);
    if (!value.ok()) return value.status();
    target.*member = *std::move(value);
    return absl::OkStatus();
  };
  setting.text = [kind, member](const Target& target) { return kind.Format(target.*member); };
  return setting;
}

template <typename Target>
Setting<Target> Required(Setting<Target> setting) {
  setting.is_required = true;
  return setting;
}

// Appends the settings of a record that is a member of Target. `inner` must outlive `settings`.
template <typename Target, typename Inner>
void AddSettingsOf(Settings<Target>& settings, Inner Target::*member,
                   const Settings<Inner>& inner) {
  for (const Setting<Inner>& setting : inner) {
    settings.push_back(
        {.key = setting.key,
         .value_name = setting.value_name,
         .help = setting.help,
         .is_path = setting.is_path,
         .is_required = setting.is_required,
         .is_words = setting.is_words,
         .set = [&setting, member](
                    Target& target,
                    std::string_view text) { return setting.set(target.*member, text); },
         .text = [&setting,
                  member](const Target& target) { return setting.text(target.*member); }});
  }
}

// Returns the setting of this key, or nullptr.
template <typename Target>
const Setting<Target>* FindSetting(const Settings<Target>& settings, std::string_view key) {
  for (const Setting<Target>& setting : settings) {
    if (setting.key == key) return &setting;
  }
  return nullptr;
}

}  // namespace torpor::server
