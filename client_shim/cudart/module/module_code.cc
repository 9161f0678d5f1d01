#include "client_shim/cudart/module/module_code.h"

#include <elf.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

#include "nvidia/elf_file.h"
#include "nvidia/fatbin_format.h"

namespace torpor::shim {
namespace {

std::uint32_t MagicOf(const void* code) {
  std::uint32_t magic = 0;
  // PTX text may be shorter than a header, but ends with NUL.
  std::memcpy(&magic, code, strnlen(static_cast<const char*>(code), sizeof magic));
  return magic;
}

bool IsText(char c) { return (c >= ' ' && c <= '~') || c == '\t' || c == '\n' || c == '\r'; }

std::uint64_t CodeBytes(const void* code) {
  const std::uint32_t magic = MagicOf(code);
  if (magic == kFatbinMagic) return FatbinAt(code).size();
  if (std::memcmp(&magic, ELFMAG, SELFMAG) == 0) return ElfFileBytes(code);
  const auto* const text = static_cast<const char*>(code);
  return IsText(text[0]) ? std::strlen(text) + 1 : 0;
}

}  // namespace

std::span<const std::uint8_t> FatbinAt(const void* fatbin) {
  constexpr std::size_t kHeaderSizeAt = 6;
  constexpr std::size_t kPayloadSizeAt = 8;
  const auto* bytes = static_cast<const std::uint8_t*>(fatbin);
  std::uint16_t header = 0;
  std::uint64_t payload = 0;
  std::memcpy(&header, bytes + kHeaderSizeAt, sizeof header);
  std::memcpy(&payload, bytes + kPayloadSizeAt, sizeof payload);
  return {bytes, header + payload};
}

cudaError_t CopyModuleCode(const void* code, std::vector<std::uint8_t>& copy) {
  if (!code) return cudaErrorInvalidValue;
  if (MagicOf(code) == kFatbinWrapperMagic) {
    FatbinWrapper wrapper{};
    // The remaining fields belong to relocatable code alone.
    std::memcpy(&wrapper, code, offsetof(FatbinWrapper, relocatable));
    if (wrapper.version != kPlainWrapper) return cudaErrorNotSupported;
    code = wrapper.data;
  }
  const std::uint64_t bytes = CodeBytes(code);
  const auto* const begin = static_cast<const std::uint8_t*>(code);
  copy.assign(begin, begin + bytes);
  return bytes > 0 ? cudaSuccess : cudaErrorInvalidKernelImage;
}

cudaError_t ReadModuleFile(const char* path, std::vector<std::uint8_t>& copy) {
  if (!path) return cudaErrorInvalidValue;
  std::FILE* const file = std::fopen(path, "rbe");
  if (!file) return cudaErrorFileNotFound;
  copy.clear();
  std::uint8_t piece[1 << 16];
  while (const std::size_t count = std::fread(piece, 1, sizeof piece, file))
    copy.insert(copy.end(), piece, piece + count);
  const bool is_broken = std::ferror(file) != 0;
  std::fclose(file);
  // PTX text in a file lacks the NUL; behind other kinds of code a NUL does no harm.
  copy.push_back(0);
  return is_broken ? cudaErrorOperatingSystem : cudaSuccess;
}

}  // namespace torpor::shim
