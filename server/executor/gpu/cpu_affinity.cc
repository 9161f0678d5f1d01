#include "server/executor/gpu/cpu_affinity.h"

#include <charconv>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace torpor::executor {
namespace {

std::optional<int> ParseCpu(const std::string& text) {
  int cpu = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cpu);
  const bool is_cpu = error == std::errc() && end == text.data() + text.size() && cpu >= 0;
  return is_cpu && cpu < CPU_SETSIZE ? std::optional(cpu) : std::nullopt;
}

// Returns the file's first line; empty if there is none.
std::string ReadLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::optional<cpu_set_t> ParseCpuList(std::string_view text) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (text.ends_with('\n')) text.remove_suffix(1);
  const std::string list(text);
  for (const std::string& range : std::vector<std::string>(absl::StrSplit(list, ','))) {
    const std::size_t dash = range.find('-');
    const std::optional<int> first = ParseCpu(range.substr(0, dash));
    const std::optional<int> last = dash == range.npos ? first : ParseCpu(range.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    for (int cpu = *first; cpu <= *last; ++cpu) CPU_SET(static_cast<std::size_t>(cpu), &cpus);
  }
  return cpus;
}

int RunNearDevice(const std::string& pci_bus_id, const std::string& devices) {
  // The kernel writes the number in lower case, the driver in upper case.
  const std::string device = devices + "/" + absl::AsciiStrToLower(pci_bus_id);
  // For a device without a node the kernel lists all CPUs.
  if (ReadLine(device + "/numa_node") == "-1") return 0;
  const std::string list = ReadLine(device + "/local_cpulist");
  const std::optional<cpu_set_t> near = ParseCpuList(list);
  cpu_set_t usable;
  if (!near || sched_getaffinity(0, sizeof usable, &usable) != 0) return 0;
  cpu_set_t chosen;
  CPU_AND(&chosen, &*near, &usable);
  if (CPU_EQUAL(&chosen, &usable)) return 0;
  const int count = CPU_COUNT(&chosen);
  return count > 0 && sched_setaffinity(0, sizeof chosen, &chosen) == 0 ? count : 0;
}

}  // namespace torpor::executor
