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

// A bounds-checked view of a little-endian 64-bit ELF file, a program or a cubin, whose bytes may
// be anything. Borrows the bytes.
class ElfFile {
 public:
  // Nothing if it is no such file, if its tables of sections and segments have entries of other
  // sizes than <elf.h> says or lie outside, or if it has more sections than the header can count.
  static std::optional<ElfFile> Open(std::span<const std::byte> bytes);

  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  // Null if there is none.
  const Elf64_Shdr* Section(std::uint64_t index) const {
    return index < sections_.size() ? &sections_[index] : nullptr;
  }
  // Cut at kMaxSectionName characters: thousands of sections may share one endless name.
  static constexpr std::size_t kMaxSectionName = 1024;
  std::string_view NameOf(const Elf64_Shdr& section) const;

  // Whether all that the sections and segments have in the file lies inside it.
  bool IsWhole() const;

  // What a section has in the file; nothing if that is not all inside it. Empty for SHT_NOBITS.
  std::optional<std::span<const std::byte>> Content(const Elf64_Shdr& section) const;

  // The text at `index` of a table of texts; cut at `most` characters and where the file ends,
  // empty outside of it.
  std::string_view TextAt(const Elf64_Shdr& table, std::uint64_t index,
                          std::size_t most = std::string_view::npos) const;

  // Entry `index` of a section that is a table of T. False behind its end or the file's.
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

// The size of the ELF file at `image`, by its own header and tables: how those who are given no
// size learn where a cubin in memory ends. As far as these say, it is read. 0 if it is no such
// file, which text of any length is not.
std::uint64_t ElfFileBytes(const void* image);

}  // namespace torpor
