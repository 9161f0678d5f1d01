#include "tests/e2e/process_figures.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <system_error>

namespace torpor::e2e {
namespace {

// What a descriptor leads to, without numbers: "socket", "/memfd:torpor-image (deleted)".
std::string KindOf(const std::filesystem::path& descriptor) {
  std::error_code gone;
  const std::string target = std::filesystem::read_symlink(descriptor, gone).string();
  return target.substr(0, target.find(":[", 0) == std::string::npos || target.starts_with("anon")
                              ? target.size()
                              : target.find(":["));
}

}  // namespace

int ProcessFigures::descriptor_count() const {
  int count = 0;
  for (const auto& [kind, number] : descriptors) count += number;
  return count;
}

std::string ProcessFigures::DescriptorText() const {
  std::string text;
  for (const auto& [kind, number] : descriptors) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", number, kind);
  }
  return text;
}

ProcessFigures FiguresOf(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  ProcessFigures figures;
  std::ifstream status(folder + "/status");
  for (std::string word; status >> word;) {
    std::uint64_t value = 0;
    if (word == "RssAnon:" && status >> value) figures.anonymous = value * kKiB;
    if (word == "RssShmem:" && status >> value) figures.shared = value * kKiB;
    if (word == "Threads:" && status >> value) figures.threads = value;
  }
  std::ifstream rollup(folder + "/smaps_rollup");
  for (std::string word; rollup >> word;) {
    std::uint64_t value = 0;
    if (word == "Pss:" && rollup >> value) figures.proportional = value * kKiB;
  }
  std::error_code gone;
  for (const auto& descriptor : std::filesystem::directory_iterator(folder + "/fd", gone)) {
    ++figures.descriptors[KindOf(descriptor.path())];
  }
  return figures;
}

void AddMemoryFilesOf(pid_t pid, MemoryFiles& files) {
  constexpr Bytes kBlock = 512;  // of st_blocks
  std::error_code gone;
  for (const auto& descriptor :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", gone)) {
    if (!KindOf(descriptor.path()).starts_with("/memfd:")) continue;
    struct stat file {};
    if (stat(descriptor.path().c_str(), &file) != 0) continue;
    files[{file.st_dev, file.st_ino}] = static_cast<Bytes>(file.st_blocks) * kBlock;
  }
}

}  // namespace torpor::e2e
