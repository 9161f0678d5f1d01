#include "server/executor/module/cubin_variables.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "nvidia/elf_file.h"
#include "nvidia/machine_code/cubin_format.h"

namespace torpor::executor {
namespace {

bool HoldsVariables(const ElfFile& cubin, const Elf64_Shdr* section) {
  return section != nullptr && sass::HoldsVariables(sass::CubinSectionOf(cubin.NameOf(*section)));
}

// Places inside variables' sections, ascending by (section, offset), to which the driver writes
// addresses at load time.
class AddressPlaces {
 public:
  AddressPlaces(const ElfFile& cubin, Bytes file_bytes) {
    for (const Elf64_Shdr& section : cubin.sections()) {
      if (section.sh_type != SHT_RELA || !HoldsVariables(cubin, cubin.Section(section.sh_info)))
        continue;
      // Sections of an honest file do not overlap.
      if (section.sh_size > file_bytes) break;
      file_bytes -= section.sh_size;
      Elf64_Rela relocation;
      for (std::uint64_t i = 0; cubin.Read(section, i, relocation); ++i) {
        places_.emplace_back(section.sh_info, relocation.r_offset);
      }
    }
    std::ranges::sort(places_);
  }

  bool AnyIn(const Elf64_Sym& symbol) const {
    const auto place = std::ranges::lower_bound(
        places_, std::pair<std::uint64_t, std::uint64_t>(symbol.st_shndx, symbol.st_value));
    return place != places_.end() && place->first == symbol.st_shndx &&
           place->second - symbol.st_value < symbol.st_size;
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places_;
};

bool IsVariable(const ElfFile& cubin, const Elf64_Sym& symbol) {
  const auto type = ELF64_ST_TYPE(symbol.st_info);
  return (type == STT_OBJECT || type == sass::kRelocatableObject) &&
         HoldsVariables(cubin, cubin.Section(symbol.st_shndx));
}

}  // namespace

void FindCubinVariables(std::span<const std::byte> bytes, VariableNames& names) {
  const std::optional<ElfFile> cubin = ElfFile::Open(bytes);
  if (!cubin) return;
  // A valid file has one symbol table; a hostile file may have thousands of headers for the same
  // bytes.
  const auto table = std::ranges::find(cubin->sections(), Elf64_Word{SHT_SYMTAB},
                                       [](const Elf64_Shdr& section) { return section.sh_type; });
  if (table == cubin->sections().end()) return;
  const Elf64_Shdr* const texts = cubin->Section(table->sh_link);
  if (texts == nullptr) return;
  const AddressPlaces addresses(*cubin, bytes.size());
  Elf64_Sym symbol;
  for (std::uint64_t i = 0; !names.is_full() && cubin->Read(*table, i, symbol); ++i) {
    if (!IsVariable(*cubin, symbol) || addresses.AnyIn(symbol)) continue;
    const std::string_view name = cubin->TextAt(*texts, symbol.st_name);
    // A dollar begins the compiler's own constants.
    if (!name.empty() && !name.starts_with('$')) names.Add(name);
  }
}

}  // namespace torpor::executor
