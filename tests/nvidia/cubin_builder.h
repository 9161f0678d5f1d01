#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace torpor {

// A symbol of a cubin, in a section of its own.
struct CubinSymbol {
  std::string name;
  std::string section;  // .nv.global, .nv.constant3, .text.kernel, ...
  unsigned char type = STT_OBJECT;
  bool has_address = false;  // its first value is one
};

// An ELF file of symbols: behind the header their table, the texts, the relocations of those that
// hold addresses, and the headers of the sections (nothing, texts, table, one a symbol, one a
// relocation).
inline std::string MakeCubin(const std::vector<CubinSymbol>& symbols) {
  constexpr std::size_t kTexts = 1;
  constexpr std::size_t kTable = 2;
  std::string texts(1, '\0');
  const auto add_text = [&texts](const std::string& text) {
    texts += text + '\0';
    return static_cast<Elf64_Word>(texts.size() - text.size() - 1);
  };
  std::vector<Elf64_Shdr> sections(3 + symbols.size());
  std::vector<Elf64_Sym> table;
  std::vector<Elf64_Rela> relocations;
  std::vector<Elf64_Word> relocated;  // sections
  for (const CubinSymbol& symbol : symbols) {
    Elf64_Shdr& home = sections[3 + table.size()];
    home.sh_name = add_text(symbol.section);
    home.sh_type = SHT_NOBITS;
    Elf64_Sym& entry = table.emplace_back();
    entry.st_name = add_text(symbol.name);
    entry.st_info = static_cast<unsigned char>(ELF64_ST_INFO(STB_LOCAL, symbol.type));
    entry.st_shndx = static_cast<Elf64_Section>(2 + table.size());
    entry.st_size = 16;
    if (!symbol.has_address) continue;
    relocations.emplace_back().r_offset = 8;
    relocated.push_back(entry.st_shndx);
  }
  texts.resize((texts.size() + 7) / 8 * 8);

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  sections[kTable].sh_type = SHT_SYMTAB;
  sections[kTable].sh_link = kTexts;
  sections[kTable].sh_offset = sizeof header;
  sections[kTable].sh_size = table.size() * sizeof(Elf64_Sym);
  sections[kTexts].sh_type = SHT_STRTAB;
  sections[kTexts].sh_offset = sizeof header + sections[kTable].sh_size;
  sections[kTexts].sh_size = texts.size();
  const std::uint64_t relocations_at = sections[kTexts].sh_offset + texts.size();
  for (std::size_t i = 0; i < relocations.size(); ++i) {
    Elf64_Shdr& section = sections.emplace_back();
    section.sh_type = SHT_RELA;
    section.sh_info = relocated[i];
    section.sh_offset = relocations_at + i * sizeof(Elf64_Rela);
    section.sh_size = sizeof(Elf64_Rela);
  }
  header.e_shoff = relocations_at + relocations.size() * sizeof(Elf64_Rela);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(sections.size());
  header.e_shstrndx = kTexts;

  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  file.append(reinterpret_cast<const char*>(table.data()), sections[kTable].sh_size);
  file += texts;
  file.append(reinterpret_cast<const char*>(relocations.data()),
              relocations.size() * sizeof(Elf64_Rela));
  return file.append(reinterpret_cast<const char*>(sections.data()),
                     sections.size() * sizeof(Elf64_Shdr));
}

}  // namespace torpor
