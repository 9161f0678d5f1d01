#pragma once

#include <chrono>
#include <string>

namespace torpor::soak {

// The settings of a run, from the environment or these defaults.
struct SoakRun {
  std::chrono::seconds length{600};  // SOAK_SECONDS
  unsigned seed = 0;                 // SOAK_SEED, or else random
  std::string settings{};            // SOAK_SETTINGS: further lines of torpord's configuration

  static SoakRun FromEnvironment();
  bool is_translating() const {
    return settings.find("address_mode: translate") != std::string::npos;
  }
};

}  // namespace torpor::soak
