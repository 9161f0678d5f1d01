#include "tools/torporctl/cuda_linkage.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace torpor::torporctl {
namespace {

constexpr std::string_view kRuntime = "libcudart.so.13";

// A bounds-checked view of a file; the bytes come from anybody.
class ElfFile {
 public:
  static std::optional<ElfFile> Open(std::span<const std::uint8_t> bytes) {
    ElfFile file(bytes);
    if (!file.Read(0, file.header_)) return std::nullopt;
    const bool is_elf = std::memcmp(file.header_.e_ident, ELFMAG, SELFMAG) == 0 &&
                        file.header_.e_ident[EI_CLASS] == ELFCLASS64 &&
                        file.header_.e_ident[EI_DATA] == ELFDATA2LSB;
    if (!is_elf) return std::nullopt;
    file.ReadSections();
    return file;
  }

  bool HasSection(std::string_view name) const {
    if (header_.e_shstrndx >= sections_.size()) return false;
    const Elf64_Shdr& names = sections_[header_.e_shstrndx];
    return std::ranges::any_of(sections_, [&](const Elf64_Shdr& section) {
      return TextAt(names, section.sh_name) == name;
    });
  }

  std::vector<std::string_view> NeededLibraries() const {
    std::vector<std::string_view> needed;
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_DYNAMIC || section.sh_link >= sections_.size()) continue;
      const Elf64_Shdr& texts = sections_[section.sh_link];
      Elf64_Dyn entry{};
      for (std::uint64_t at = 0; at + sizeof entry <= section.sh_size; at += sizeof entry) {
        if (!Read(section.sh_offset + at, entry) || entry.d_tag == DT_NULL) break;
        if (entry.d_tag == DT_NEEDED) needed.push_back(TextAt(texts, entry.d_un.d_val));
      }
    }
    return needed;
  }

 private:
  explicit ElfFile(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  template <typename T>
  bool Read(std::uint64_t offset, T& value) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof value) return false;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return true;
  }

  void ReadSections() {
    Elf64_Shdr section{};
    for (std::uint64_t i = 0; i < header_.e_shnum; ++i) {
      if (!Read(header_.e_shoff + i * sizeof section, section)) return;
      sections_.push_back(section);
    }
  }

  std::string_view TextAt(const Elf64_Shdr& table, std::uint64_t index) const {
    const std::uint64_t begin = table.sh_offset + index;
    if (begin < index || begin >= bytes_.size()) return {};
    const auto* const text = reinterpret_cast<const char*>(bytes_.data() + begin);
    return {text, strnlen(text, bytes_.size() - begin)};
  }

  std::span<const std::uint8_t> bytes_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
};

}  // namespace

std::string LinkageWarning(std::span<const std::uint8_t> elf) {
  const std::optional<ElfFile> file = ElfFile::Open(elf);
  if (!file) return {};
  const std::vector<std::string_view> needed = file->NeededLibraries();
  if (std::ranges::count(needed, kRuntime) != 0) return {};
  for (const std::string_view library : needed) {
    if (library.starts_with("libcudart.so.")) {
      return "it links " + std::string(library) + ", but Torpor replaces " + std::string(kRuntime) +
             ": build it with CUDA 13";
    }
  }
  // Kernels, but no runtime to launch them: it must be inside the program.
  if (file->HasSection(".nv_fatbin")) {
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
