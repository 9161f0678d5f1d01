#include <cstdlib>
#include <string>

#include "server/config/config_loader.h"
#include "server/config/setting_values.h"

// Whatever a file holds, it is a configuration or an error that names the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto config = torpor::server::ParseConfig(text, "fuzz.yaml");
  if (config.ok()) {
    for (const auto& [name, function] : config->functions) {
      if (!torpor::server::IsFunctionName(name) || name != function.name) std::abort();
    }
  } else if (std::string(config.status().message()).find("fuzz.yaml") == std::string::npos) {
    std::abort();
  }
  return 0;
}
