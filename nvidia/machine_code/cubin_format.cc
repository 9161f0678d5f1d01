#include "nvidia/machine_code/cubin_format.h"

#include <cstring>

namespace torpor::sass {
namespace {

constexpr Elf64_Half kMachineCuda = 190;
// EI_OSABI tells where e_flags have the architecture: CUDA 13 writes the second.
constexpr unsigned char kAbiOld = 0x33;
constexpr unsigned char kAbiNew = 0x41;

}  // namespace

CubinHeader ReadCubinHeader(std::span<const std::byte> file) {
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof header);
  const unsigned char abi = header.e_ident[EI_OSABI];
  return {.is_cuda = header.e_machine == kMachineCuda,
          .has_known_abi = abi == kAbiOld || abi == kAbiNew,
          .is_linked = header.e_type == ET_EXEC,
          .architecture = (abi == kAbiNew ? header.e_flags >> 8 : header.e_flags) & 0xff};
}

CubinSection CubinSectionOf(std::string_view name) {
  if (name.starts_with(".text")) return CubinSection::kCode;
  if (name.starts_with(".nv.global")) return CubinSection::kGlobal;
  if (name.starts_with(".nv.constant")) return CubinSection::kConstant;
  if (name.starts_with(".nv.shared")) return CubinSection::kShared;
  if (name.starts_with(".debug_") || name.starts_with(".nv_debug_")) return CubinSection::kDebug;
  return CubinSection::kOther;
}

bool IsKnownRelocation(std::uint32_t type) {
  switch (static_cast<RelocationType>(type)) {
    case RelocationType::k64:
    case RelocationType::kG64:
    case RelocationType::kLow32:
    case RelocationType::kHigh32:
    case RelocationType::kAbs47:
      return true;
  }
  return false;
}

std::uint64_t RelocationCount(const Elf64_Shdr& section) {
  return section.sh_size / (section.sh_type == SHT_RELA ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel));
}

std::optional<Elf64_Rela> ReadRelocation(const ElfFile& cubin, const Elf64_Shdr& section,
                                         std::uint64_t index) {
  Elf64_Rela entry{};
  if (section.sh_type == SHT_RELA) {
    return cubin.Read(section, index, entry) ? std::optional(entry) : std::nullopt;
  }
  Elf64_Rel without{};
  if (!cubin.Read(section, index, without)) return std::nullopt;
  return Elf64_Rela{without.r_offset, without.r_info, 0};
}

}  // namespace torpor::sass
