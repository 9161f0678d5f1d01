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
bool FatbinMayUseVariables(std::span<const std::byte> code, unsigned compute_capability) {
  const auto entries = ReadFatbin(code);
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
bool BeginsWith(std::span<const std::uint8_t> code, Magic magic) {
  return code.size() >= sizeof magic && std::memcmp(code.data(), &magic, sizeof magic) == 0;
}

}  // namespace

bool CodeMayUseVariables(std::span<const std::uint8_t> code, unsigned compute_capability) {
  if (BeginsWith(code, wire::RelocatableModule::kMagic)) return true;
  if (BeginsWith(code, kFatbinMagic)) {
    return FatbinMayUseVariables(std::as_bytes(code), compute_capability);
  }
  if (code.size() >= SELFMAG && std::memcmp(code.data(), ELFMAG, SELFMAG) == 0) {
    return CubinMayUseVariables(std::as_bytes(code));
  }
  const std::string_view text(reinterpret_cast<const char*>(code.data()), code.size());
  return PtxMayUseVariables(text.substr(0, text.find('\0')));
}

}  // namespace torpor::executor
