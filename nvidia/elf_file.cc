#include "nvidia/elf_file.h"

#include <algorithm>

namespace torpor {

// Reads `count` entries at `offset` of the file. Returns false if the size of an entry is not T's,
// or if the table lies outside the file.
template <typename T>
bool ElfFile::ReadTable(std::uint64_t offset, std::size_t count, std::size_t entry_bytes,
                        std::vector<T>& table) const {
  if (count == 0) return true;
  if (entry_bytes != sizeof(T) || !IsInside(offset, count * sizeof(T))) return false;
  table.resize(count);
  std::memcpy(table.data(), bytes_.data() + offset, count * sizeof(T));
  return true;
}

std::optional<ElfFile> ElfFile::Open(std::span<const std::byte> bytes) {
  ElfFile file(bytes);
  Elf64_Ehdr header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  const bool is_elf = std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                      header.e_ident[EI_CLASS] == ELFCLASS64 &&
                      header.e_ident[EI_DATA] == ELFDATA2LSB;
  // Then the numbers stand in the first section.
  const bool has_more = (header.e_shnum == 0 && header.e_shoff != 0) || header.e_phnum == PN_XNUM;
  if (!is_elf || has_more ||
      !file.ReadTable(header.e_shoff, header.e_shnum, header.e_shentsize, file.sections_) ||
      !file.ReadTable(header.e_phoff, header.e_phnum, header.e_phentsize, file.segments_)) {
    return std::nullopt;
  }
  file.names_ = header.e_shstrndx;
  return file;
}

std::string_view ElfFile::NameOf(const Elf64_Shdr& section) const {
  const Elf64_Shdr* const names = Section(names_);
  return names == nullptr ? std::string_view() : TextAt(*names, section.sh_name, kMaxSectionName);
}

bool ElfFile::IsWhole() const {
  const auto section_is_inside = [&](const Elf64_Shdr& section) {
    return section.sh_type == SHT_NOBITS || IsInside(section.sh_offset, section.sh_size);
  };
  const auto segment_is_inside = [&](const Elf64_Phdr& segment) {
    return IsInside(segment.p_offset, segment.p_filesz);
  };
  return std::ranges::all_of(sections_, section_is_inside) &&
         std::ranges::all_of(segments_, segment_is_inside);
}

std::optional<std::span<const std::byte>> ElfFile::Content(const Elf64_Shdr& section) const {
  if (section.sh_type == SHT_NOBITS) return std::span<const std::byte>();
  if (!IsInside(section.sh_offset, section.sh_size)) return std::nullopt;
  return bytes_.subspan(section.sh_offset, section.sh_size);
}

std::string_view ElfFile::TextAt(const Elf64_Shdr& table, std::uint64_t index,
                                 std::size_t max) const {
  const std::uint64_t begin = table.sh_offset + index;
  if (begin < index || begin >= bytes_.size()) return {};
  const auto* const text = reinterpret_cast<const char*>(bytes_.data() + begin);
  return {text, strnlen(text, std::min<std::size_t>(max, bytes_.size() - begin))};
}

std::uint64_t ElfFileBytes(const void* file) {
  const auto* const bytes = static_cast<const char*>(file);
  // PTX text may be shorter than the header, but never begins with these bytes.
  constexpr char kIdentification[] = {'\x7f', 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB};
  if (std::strncmp(bytes, kIdentification, sizeof kIdentification) != 0) return 0;
  Elf64_Ehdr header;
  std::memcpy(&header, file, sizeof header);
  std::uint64_t end = sizeof header;
  end = std::max(end, header.e_phoff + std::uint64_t{header.e_phnum} * header.e_phentsize);
  if (header.e_shentsize != sizeof(Elf64_Shdr)) return end;
  end = std::max(end, header.e_shoff + std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, bytes + header.e_shoff + i * sizeof section, sizeof section);
    if (section.sh_type != SHT_NOBITS) end = std::max(end, section.sh_offset + section.sh_size);
  }
  return end;
}

}  // namespace torpor
