#include "tests/server/executor/gpu/module_walk.h"

#include <elf.h>

#include <cstdint>
#include <cstring>

#include "nvidia/fatbin.h"

namespace torpor::executor {
namespace {

constexpr std::uint32_t kLinkedMagic = 0x4b4c5054;  // what the emulator's linker makes

template <typename T>
T Load(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

void Touch(const std::uint8_t* bytes, std::uint64_t count) {
  [[maybe_unused]] const volatile std::uint8_t* const at = bytes;
  if (count > 0) (void)(at[0] + at[count - 1]);
}

void WalkCubin(const std::uint8_t* cubin) {
  const auto header = Load<Elf64_Ehdr>(cubin);
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto section = Load<Elf64_Shdr>(cubin + header.e_shoff + i * header.e_shentsize);
    if (section.sh_type != SHT_NOBITS) Touch(cubin + section.sh_offset, section.sh_size);
  }
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = Load<Elf64_Phdr>(cubin + header.e_phoff + i * header.e_phentsize);
    Touch(cubin + segment.p_offset, segment.p_filesz);
  }
}

void WalkFatbin(const std::uint8_t* fatbin) {
  const std::uint8_t* at = fatbin + Load<std::uint16_t>(fatbin + 6);
  const std::uint8_t* const end = fatbin + FatbinSize(fatbin);
  while (at != end) {
    const auto header_bytes = Load<std::uint32_t>(at + 4);
    const auto payload_bytes = Load<std::uint64_t>(at + 8);
    const bool is_raw = (Load<std::uint64_t>(at + 40) & 0xa000) == 0;
    const bool is_cubin = Load<std::uint16_t>(at) == 2;
    Touch(at + header_bytes, payload_bytes);
    if (is_cubin && is_raw) WalkCubin(at + header_bytes);
    at += header_bytes + payload_bytes;
  }
}

}  // namespace

void WalkModule(const void* image) {
  const auto* const bytes = static_cast<const std::uint8_t*>(image);
  std::uint32_t magic = 0;
  std::memcpy(&magic, bytes, strnlen(static_cast<const char*>(image), sizeof magic));
  if (magic == kFatbinMagic) return WalkFatbin(bytes);
  if (magic == kFatbinWrapperMagic) {
    return WalkFatbin(static_cast<const std::uint8_t*>(Load<FatbinWrapper>(bytes).data));
  }
  if (magic == kLinkedMagic) return Touch(bytes + 16, Load<std::uint64_t>(bytes + 8));
  if (std::memcmp(&magic, ELFMAG, SELFMAG) == 0) return WalkCubin(bytes);
  Touch(bytes, std::strlen(static_cast<const char*>(image)) + 1);
}

}  // namespace torpor::executor
