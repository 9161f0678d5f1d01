#include "tests/e2e/paper_topology.h"

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

std::string PaperTopology(const PaperNode& node) {
  const std::string path = std::string(TORPOR_PRESETS) + "/" + node.preset + ".yaml";
  std::ifstream file(path);
  if (!file) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    std::exit(1);
  }
  std::string text;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("time_scale:") && node.time_scale > 0)
      line = fmt::format("time_scale: {}", node.time_scale);
    text += (node.gpu_memory > 0 ? WithMemory(line, node.gpu_memory) : line) + "\n";
  }
  if (!node.kernels.empty()) text += "kernels:\n";
  for (const emulator::KernelTime& kernel : node.kernels) {
    text += fmt::format("  - {{name: '{}', us: {}}}\n", kernel.name, kernel.us);
  }
  return text;
}

}  // namespace torpor::e2e
