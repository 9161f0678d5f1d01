#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "nvidia/elf_file.h"

// The format of cubins on top of ELF: numbers in the header, and of sections, symbols and
// relocations.
namespace torpor::sass {

inline constexpr Elf64_Word kInfoSection = SHT_LOPROC;  // the type of sections .nv.info
inline constexpr unsigned char kEntrySymbol = 0x10;     // in st_other: the function is a kernel
// The type of a variable's symbol in a relocatable cubin; in a linked cubin the type is STT_OBJECT.
inline constexpr unsigned char kRelocatableObject = STT_LOPROC;

struct CubinHeader {
  bool is_cuda = false;        // its machine is a GPU
  bool has_known_abi = false;  // written by a known version of the toolkit
  bool is_linked = false;      // ET_EXEC
  unsigned architecture = 0;   // 75 of sm_75; meaningful only with a known ABI
};
// `file` must hold at least an ELF header, as after ElfFile::Open.
CubinHeader ReadCubinHeader(std::span<const std::byte> file);

enum class CubinSection {
  kCode,      // .text...
  kGlobal,    // .nv.global...: global variables
  kConstant,  // .nv.constant...: a bank of constants
  kShared,    // .nv.shared...
  kDebug,     // .debug_..., .nv_debug_...
  kOther,
};
CubinSection CubinSectionOf(std::string_view name);
inline constexpr bool HoldsVariables(CubinSection section) {
  return section == CubinSection::kGlobal || section == CubinSection::kConstant;
}

// Relocation types, "R_CUDA_…" in the toolkit's tools.
enum class RelocationType : std::uint32_t {
  k64 = 2,         // all of the address, in data
  kG64 = 4,        // the same, of global memory
  kLow32 = 0x38,   // the low word of the address, in bits 32 to 63 of an instruction
  kHigh32 = 0x39,  // the high word, there
  kAbs47 = 0x3a,   // bits 2 to 48 of the address, in an instruction from bit 34 on
};

// Whether `type` is one of the enumerators above.
bool IsKnownRelocation(std::uint32_t type);

// Number of entries of a section of relocations, SHT_REL or SHT_RELA.
std::uint64_t RelocationCount(const Elf64_Shdr& section);
// Returns entry `index`, with addend 0 in an SHT_REL section. Nullopt past the end of the section
// or of the file.
std::optional<Elf64_Rela> ReadRelocation(const ElfFile& cubin, const Elf64_Shdr& section,
                                         std::uint64_t index);

}  // namespace torpor::sass
