#pragma once

#include <string>
#include <vector>

#include "server/config/config.h"

namespace torpor::server {

// The differences of two configurations.
struct ConfigChange {
  // A setting's text before and after; empty where there is none.
  struct Field {
    std::string key;
    std::string from;
    std::string to;

    bool operator==(const Field&) const = default;
  };
  struct Item {
    std::string name;
    std::vector<Field> fields;

    bool operator==(const Item&) const = default;
  };
  // Named entries: functions, or tenants.
  struct Items {
    std::vector<std::string> added;
    std::vector<std::string> removed;
    std::vector<Item> changed;

    bool is_empty() const { return added.empty() && removed.empty() && changed.empty(); }
    bool operator==(const Items&) const = default;
  };
  // A difference that a running daemon does not apply.
  struct Fixed {
    std::string key;  // http_address, or digits.gpus of a function
    std::string reason;

    bool operator==(const Fixed&) const = default;
  };

  Items functions;
  Items tenants;
  std::vector<Fixed> fixed;

  // Whether a running daemon has nothing to apply.
  bool is_empty() const { return functions.is_empty() && tenants.is_empty(); }
};

// Returns what differs in `to`, for a daemon that runs under `from`.
ConfigChange Compare(const Config& from, const Config& to);

// Returns `to` with all that Compare calls fixed as it is in `from`.
Config Applicable(const Config& from, const Config& to);

// Returns a line for every difference: "function digits: deadline 80ms, was 100ms".
std::vector<std::string> Describe(const ConfigChange& change);

}  // namespace torpor::server
