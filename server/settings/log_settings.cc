#include "server/settings/log_settings.h"

#include "server/settings/value_kinds.h"

namespace torpor::server {

const Settings<LogSettings>& LogSettingTable() {
  static const Settings<LogSettings> table = {
      MakeSetting("log_level", ChoiceKind<LogLevel>(), &LogSettings::level,
                  "Least severe level of events in the log"),
      MakeSetting("log_format", ChoiceKind<LogFormat>(), &LogSettings::format,
                  "Form of a line of the log"),
  };
  return table;
}

}  // namespace torpor::server
