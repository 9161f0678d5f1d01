#include <cstdint>
#include <cstdlib>
#include <string>

#include "server/config/config_loader.h"
#include "server/config/config_overlay.h"

// Whatever changes.json holds, it is an error that names the file, or changes that read the same
// when they are written again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace torpor::server;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto overlay = ParseOverlay(text, "changes.json");
  if (!overlay.ok()) {
    if (!std::string(overlay.status().message()).starts_with("changes.json: ")) std::abort();
    return 0;
  }
  const std::string written = FormatOverlay(*overlay);
  const auto read = ParseOverlay(written, "changes.json");
  if (!read.ok() || FormatOverlay(*read) != written) std::abort();
  static const auto* const file = new Config(
      ParseConfig("version: v1\nfunctions: [{name: a, memory_limit: 1GiB, token_file: t}]\n",
                  "config.yaml")
          .value());
  const auto overlaid = WithOverlay(*file, *overlay);
  if (overlaid.ok()) (void)CheckConfig(overlaid->config, "changes.json");
  return 0;
}
