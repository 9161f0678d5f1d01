#include "server/executor/module/cubin_references.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "nvidia/elf_file.h"
#include "nvidia/machine_code/address_bank.h"
#include "nvidia/machine_code/cubin_format.h"
#include "server/executor/gpu/compiler_constant.h"

namespace torpor::executor {
namespace {

// Evaluates a linked cubin's relocations of variables' addresses.
class References {
 public:
  References(const ElfFile& cubin, Bytes file_bytes) : cubin_(cubin), bytes_left_(file_bytes) {
    for (const Elf64_Shdr& section : cubin.sections()) {
      if (section.sh_type == SHT_RELA || section.sh_type == SHT_REL) Read(section);
    }
    std::ranges::sort(bank_places_);
  }

  // Whether code or data holds a variable's address, or the cubin is too unclear to exclude a
  // reference.
  bool any() const { return any_; }
  // Offsets of variables' addresses in the bank of addresses, ascending.
  const std::vector<std::uint64_t>& bank_places() const { return bank_places_; }

 private:
  void Read(const Elf64_Shdr& section) {
    const Elf64_Shdr* const place = cubin_.Section(section.sh_info);
    const Elf64_Shdr* const symbols = cubin_.Section(section.sh_link);
    // Sections of an honest file do not overlap.
    any_ |= place == nullptr || symbols == nullptr || section.sh_size > bytes_left_;
    if (any_ || sass::CubinSectionOf(cubin_.NameOf(*place)) == sass::CubinSection::kDebug) return;
    bytes_left_ -= section.sh_size;
    const bool is_bank = cubin_.NameOf(*place) == ".nv.constant4";
    const std::uint64_t count = sass::RelocationCount(section);
    for (std::uint64_t i = 0; !any_ && i < count; ++i) {
      const auto relocation = sass::ReadRelocation(cubin_, section, i);
      // A relocation beyond the end of the file is unreadable and counts as a reference.
      any_ = !relocation;
      if (any_ || !IsToVariable(*symbols, ELF64_R_SYM(relocation->r_info))) continue;
      any_ = !is_bank;
      bank_places_.push_back(relocation->r_offset);
    }
  }

  bool IsToVariable(const Elf64_Shdr& symbols, std::uint64_t index) const {
    Elf64_Sym symbol;
    if (!cubin_.Read(symbols, index, symbol)) return true;
    // An undefined symbol is a system function, or a variable without memory.
    if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) == STT_FUNC) return false;
    const Elf64_Shdr* const home = cubin_.Section(symbol.st_shndx);
    if (home == nullptr) return true;
    const sass::CubinSection section = sass::CubinSectionOf(cubin_.NameOf(*home));
    if (section == sass::CubinSection::kCode || section == sass::CubinSection::kShared) {
      return false;
    }
    const Elf64_Shdr* const texts = cubin_.Section(symbols.sh_link);
    return texts == nullptr ||
           !IsCompilerConstant(cubin_.TextAt(*texts, symbol.st_name, kMaxCompilerConstantPrefix));
  }

  const ElfFile& cubin_;
  Bytes bytes_left_;
  bool any_ = false;
  std::vector<std::uint64_t> bank_places_;
};

bool MayReadBank(const ElfFile& cubin, Bytes file_bytes, std::span<const std::uint64_t> places) {
  for (const Elf64_Shdr& section : cubin.sections()) {
    if (sass::CubinSectionOf(cubin.NameOf(section)) != sass::CubinSection::kCode) continue;
    const auto code = cubin.Content(section);
    if (!code || code->size() > file_bytes || sass::MayReadAddress(*code, places)) return true;
    file_bytes -= code->size();
  }
  return false;
}

}  // namespace

bool CubinMayUseVariables(std::span<const std::byte> bytes) {
  const std::optional<ElfFile> cubin = ElfFile::Open(bytes);
  if (!cubin) return true;
  const sass::CubinHeader header = sass::ReadCubinHeader(bytes);
  // Code linked later may use the addresses.
  if (!header.is_linked) return true;
  const References references(*cubin, bytes.size());
  if (references.any()) return true;
  if (references.bank_places().empty()) return false;
  return !sass::IsKnownMachineCode(header.architecture) ||
         MayReadBank(*cubin, bytes.size(), references.bank_places());
}

}  // namespace torpor::executor
