#pragma once

#include <string>
#include <vector>

#include "server/config/settings.h"

namespace torpor::server {

// An administrator's request to change functions or tenants. A plain record.
struct ConfigRequest {
  enum class Kind {
    kAdd,     // a function of this name, with these settings
    kSet,     // these settings of the function, or of its instance FUNCTION/INSTANCE
    kRemove,  // the function
    kApply,   // all functions and tenants of a text in the configuration file's form
  };

  Kind kind = Kind::kSet;
  std::string function{};
  std::vector<SettingText> settings{};
  // Of kApply.
  std::string text{};
  std::string file_name{};  // absolute: for messages and relative paths
  bool prune = false;       // remove functions and tenants that the text lacks
  bool is_trial = false;    // only say what would change
};

}  // namespace torpor::server
