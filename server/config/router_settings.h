#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/config/config.h"
#include "server/settings/setting.h"

namespace torpor::server {

// The settings of the router's process. torpord passes them as one document at the start, and
// whenever the process has connected.
struct RouterProcessSettings {
  std::string torpord_socket;  // where torpord serves Routing, for the router to dial
  RouterConfig router;
  Duration drain_timeout{std::chrono::seconds(30)};
  LogSettings log;

  bool operator==(const RouterProcessSettings&) const = default;
};

// The table of RouterProcessSettings, in the order of help.
const Settings<RouterProcessSettings>& RouterProcessSettingTable();

// As in server/settings/settings_document.h.
std::string FormatRouterSettings(const RouterProcessSettings& settings);
absl::StatusOr<RouterProcessSettings> ParseRouterSettings(std::string_view document);

}  // namespace torpor::server
