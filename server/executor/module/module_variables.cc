#include "server/executor/module/module_variables.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "nvidia/fatbin.h"
#include "server/executor/module/cubin_variables.h"
#include "server/executor/module/ptx_variables.h"

namespace torpor::executor {
namespace {

void FindInEntry(const FatbinEntry& entry, VariableNames& names) {
  const bool is_ptx = entry.kind == FatbinEntry::Kind::kPtx;
  if (!is_ptx && entry.kind != FatbinEntry::Kind::kElf) return;
  if (!names.MayRead(is_ptx ? std::max<Bytes>(entry.stored.size(), entry.uncompressed_size)
                            : entry.uncompressed_size)) {
    return;
  }
  if (is_ptx) {
    const auto text = DecodePtx(entry);
    if (text.ok()) FindPtxVariables(*text, names);
  } else {
    std::string storage;
    const auto cubin = DecodeEntry(entry, storage);
    if (cubin.ok()) FindCubinVariables(*cubin, names);
  }
}

void FindInText(std::span<const std::uint8_t> image, VariableNames& names) {
  if (!names.MayRead(image.size())) return;
  const auto* const text = reinterpret_cast<const char*>(image.data());
  FindPtxVariables({text, strnlen(text, image.size())}, names);
}

}  // namespace

absl::StatusOr<std::set<std::string>> VariablesOf(std::span<const std::uint8_t> image) {
  VariableNames names;
  if (image.empty()) return std::move(names).Finish();
  std::uint32_t magic = 0;
  std::memcpy(&magic, image.data(), std::min(image.size(), sizeof magic));
  if (magic == kFatbinMagic) {
    const auto entries = ReadFatbin(std::as_bytes(image));
    if (!entries.ok()) return std::set<std::string>();
    for (const FatbinEntry& entry : *entries) FindInEntry(entry, names);
  } else if (std::memcmp(&magic, ELFMAG, SELFMAG) == 0) {
    FindCubinVariables(std::as_bytes(image), names);
  } else {
    FindInText(image, names);
  }
  return std::move(names).Finish();
}

}  // namespace torpor::executor
