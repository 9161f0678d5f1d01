#include "tests/e2e/preset_topology.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <regex>

namespace torpor::e2e {
namespace {

std::string WithMemory(const std::string& line, Bytes memory) {
  static const std::regex kMemory("memory: [0-9.A-Za-z]+");
  return std::regex_replace(line, kMemory, fmt::format("memory: {}MiB", memory / kMiB));
}

}  // namespace

std::string PresetTopology(const ScaledPreset& scaled) {
  const std::string path = std::string(TORPOR_PRESETS) + "/" + scaled.preset + ".yaml";
  std::ifstream file(path);
  if (!file) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    std::exit(1);
  }
  std::string text;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("time_scale:") && scaled.time_scale > 0)
      line = fmt::format("time_scale: {}", scaled.time_scale);
    text += (scaled.gpu_memory > 0 ? WithMemory(line, scaled.gpu_memory) : line) + "\n";
  }
  if (!scaled.kernels.empty()) text += "kernels:\n";
  for (const emulator::KernelTime& kernel : scaled.kernels) {
    text += fmt::format("  - {{name: '{}', us: {}}}\n", kernel.name, kernel.us);
  }
  return text;
}

}  // namespace torpor::e2e
