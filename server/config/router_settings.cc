#include "server/config/router_settings.h"

#include "server/config/settings.h"
#include "server/settings/settings_document.h"
#include "server/settings/value_kinds.h"

namespace torpor::server {
namespace {

Settings<RouterProcessSettings> MakeTable() {
  using Target = RouterProcessSettings;
  Settings<Target> table = {
      Required(MakeSetting("torpord_socket", PathKind{{"PATH"}}, &Target::torpord_socket,
                           "torpord's router socket to dial")),
      MakeSetting("drain_timeout", DurationKind(), &Target::drain_timeout,
                  "Maximum time for requests in progress after SIGTERM"),
  };
  AddSettingsOf(table, &Target::router, RouterSettings());
  AddSettingsOf(table, &Target::log, LogSettingTable());
  return table;
}

}  // namespace

const Settings<RouterProcessSettings>& RouterProcessSettingTable() {
  static const Settings<RouterProcessSettings> table = MakeTable();
  return table;
}

std::string FormatRouterSettings(const RouterProcessSettings& settings) {
  return FormatSettingsDocument(RouterProcessSettingTable(), settings);
}

absl::StatusOr<RouterProcessSettings> ParseRouterSettings(std::string_view document) {
  return ParseSettingsDocument(RouterProcessSettingTable(), document);
}

}  // namespace torpor::server
