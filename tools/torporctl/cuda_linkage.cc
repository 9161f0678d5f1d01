#include "tools/torporctl/cuda_linkage.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "nvidia/elf_file.h"

namespace torpor::torporctl {
namespace {

constexpr std::string_view kRuntime = "libcudart.so.13";

bool HasSection(const ElfFile& file, std::string_view name) {
  return std::ranges::any_of(
      file.sections(), [&](const Elf64_Shdr& section) { return file.NameOf(section) == name; });
}

// Returns the DT_NEEDED names of the dynamic section; views into the file.
std::vector<std::string_view> NeededLibraries(const ElfFile& file) {
  std::vector<std::string_view> needed;
  for (const Elf64_Shdr& section : file.sections()) {
    const Elf64_Shdr* const texts = file.Section(section.sh_link);
    if (section.sh_type != SHT_DYNAMIC || texts == nullptr) continue;
    Elf64_Dyn entry{};
    for (std::uint64_t i = 0; file.Read(section, i, entry) && entry.d_tag != DT_NULL; ++i) {
      if (entry.d_tag == DT_NEEDED) needed.push_back(file.TextAt(*texts, entry.d_un.d_val));
    }
  }
  return needed;
}

}  // namespace

std::string LinkageWarning(std::span<const std::uint8_t> elf) {
  const std::optional<ElfFile> file = ElfFile::Open(std::as_bytes(elf));
  if (!file) return {};
  const std::vector<std::string_view> needed = NeededLibraries(*file);
  if (std::ranges::count(needed, kRuntime) != 0) return {};
  for (const std::string_view library : needed) {
    if (library.starts_with("libcudart.so.")) {
      return "it links " + std::string(library) + ", but Torpor replaces " + std::string(kRuntime) +
             ": build it with CUDA 13";
    }
  }
  // The program registers kernels without a shared runtime, so a runtime is linked inside. A
  // program that nvcc linked for the driver API has .nv_fatbin, but registers nothing.
  if (HasSection(*file, ".nvFatBinSegment")) {
    return "it has the CUDA runtime inside, where Torpor cannot replace it: link it with `nvcc "
           "-cudart shared`";
  }
  return {};
}

std::string LinkageWarningOfFile(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size <= 0) {
    return {};
  }
  const auto bytes = static_cast<std::size_t>(status.st_size);
  void* const data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) return {};
  std::string warning = LinkageWarning({static_cast<const std::uint8_t*>(data), bytes});
  munmap(data, bytes);
  return warning;
}

}  // namespace torpor::torporctl
