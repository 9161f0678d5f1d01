#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace torpor {

// A bounds-checked view of a little-endian 64-bit ELF file, a program or a cubin. Safe on hostile
// bytes. Borrows the bytes, which must outlive the view.
class ElfFile {
 public:
  // Returns nullopt for other files, and if the tables of sections and segments have entries of
  // other sizes than in <elf.h> or lie outside the file, or if there are more sections than the
  // header can count.
  static std::optional<ElfFile> Open(std::span<const std::byte> bytes);

  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  // Returns null past the last section.
  const Elf64_Shdr* Section(std::uint64_t index) const {
    return index < sections_.size() ? &sections_[index] : nullptr;
  }
  // Names are cut at kMaxSectionName characters: thousands of sections may share one endless name.
  static constexpr std::size_t kMaxSectionName = 1024;
  std::string_view NameOf(const Elf64_Shdr& section) const;

  // Whether all contents of sections and segments lie inside the file.
  bool IsWhole() const;

  // Returns a section's content, empty for SHT_NOBITS; nullopt if a part lies outside the file.
  std::optional<std::span<const std::byte>> Content(const Elf64_Shdr& section) const;

  // Returns the text at `index` of a string table, cut at `max` characters and at the end of the
  // file. Empty outside the table.
  std::string_view TextAt(const Elf64_Shdr& table, std::uint64_t index,
                          std::size_t max = std::string_view::npos) const;

  // Reads entry `index` of a section that is a table of T. Returns false past the end of the
  // section or of the file.
  template <typename T>
  bool Read(const Elf64_Shdr& section, std::uint64_t index, T& entry) const {
    if (index >= section.sh_size / sizeof entry) return false;
    const std::uint64_t at = index * sizeof entry;
    if (!IsInside(section.sh_offset, at + sizeof entry)) return false;
    std::memcpy(&entry, bytes_.data() + section.sh_offset + at, sizeof entry);
    return true;
  }

 private:
  explicit ElfFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool IsInside(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= bytes_.size() && bytes <= bytes_.size() - offset;
  }
  template <typename T>
  bool ReadTable(std::uint64_t offset, std::size_t count, std::size_t entry_bytes,
                 std::vector<T>& table) const;

  std::span<const std::byte> bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Phdr> segments_;
  std::uint64_t names_ = 0;  // section
};

// Returns the size of the ELF file at `file`, by its own header and tables, for callers who only
// have the address of a cubin. Reads as far as header and tables reach. Returns 0 for other data;
// text of any length is recognised safely.
std::uint64_t ElfFileBytes(const void* file);

}  // namespace torpor
