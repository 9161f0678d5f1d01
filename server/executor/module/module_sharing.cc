#include "server/executor/module/module_sharing.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "nvidia/fatbin.h"
#include "proto/wire/relocatable_module.h"
#include "server/executor/module/cubin_references.h"
#include "server/executor/module/ptx_variables.h"

namespace torpor::executor {
namespace {

bool PtxEntryMayUseVariables(const FatbinEntry& entry, unsigned compute_capability) {
  if (entry.architecture > compute_capability) return false;
  const auto text = DecodePtx(entry);
  return !text.ok() || PtxMayUseVariables(*text);
}

bool CubinEntryMayUseVariables(const FatbinEntry& entry, unsigned compute_capability) {
  if (!RunsMachineCode(entry.architecture, compute_capability)) return false;
  std::string storage;
  const auto cubin = DecodeEntry(entry, storage);
  return !cubin.ok() || CubinMayUseVariables(*cubin);
}

// Examines all entries that run on the device, because the driver may choose any of them.
bool FatbinMayUseVariables(std::span<const std::byte> image, unsigned compute_capability) {
  const auto entries = ReadFatbin(image);
  if (!entries.ok()) return true;
  return std::ranges::any_of(*entries, [&](const FatbinEntry& entry) {
    switch (entry.kind) {
      case FatbinEntry::Kind::kPtx:
        return PtxEntryMayUseVariables(entry, compute_capability);
      case FatbinEntry::Kind::kElf:
        return CubinEntryMayUseVariables(entry, compute_capability);
      default:
        return true;
    }
  });
}

template <typename Magic>
bool BeginsWith(std::span<const std::uint8_t> image, Magic magic) {
  return image.size() >= sizeof magic && std::memcmp(image.data(), &magic, sizeof magic) == 0;
}

}  // namespace

bool CodeMayUseVariables(std::span<const std::uint8_t> image, unsigned compute_capability) {
  if (BeginsWith(image, wire::RelocatableModule::kMagic)) return true;
  if (BeginsWith(image, kFatbinMagic)) {
    return FatbinMayUseVariables(std::as_bytes(image), compute_capability);
  }
  if (image.size() >= SELFMAG && std::memcmp(image.data(), ELFMAG, SELFMAG) == 0) {
    return CubinMayUseVariables(std::as_bytes(image));
  }
  const std::string_view text(reinterpret_cast<const char*>(image.data()), image.size());
  return PtxMayUseVariables(text.substr(0, text.find('\0')));
}

}  // namespace torpor::executor
