#include "client_shim/cudart/module/module_image.h"

#include <elf.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

#include "nvidia/elf_file.h"
#include "nvidia/fatbin_format.h"

namespace torpor::shim {
namespace {

std::uint32_t MagicOf(const void* image) {
  std::uint32_t magic = 0;
  // Text may be shorter, but NUL ends it.
  std::memcpy(&magic, image, strnlen(static_cast<const char*>(image), sizeof magic));
  return magic;
}

bool IsText(char c) { return (c >= ' ' && c <= '~') || c == '\t' || c == '\n' || c == '\r'; }

std::uint64_t ImageBytes(const void* image) {
  const std::uint32_t magic = MagicOf(image);
  if (magic == kFatbinMagic) return FatbinAt(image).size();
  if (std::memcmp(&magic, ELFMAG, SELFMAG) == 0) return ElfFileBytes(image);
  const auto* const text = static_cast<const char*>(image);
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

cudaError_t CopyImage(const void* image, std::vector<std::uint8_t>& copy) {
  if (!image) return cudaErrorInvalidValue;
  if (MagicOf(image) == kFatbinWrapperMagic) {
    FatbinWrapper wrapper{};
    // The rest belongs to relocatable code alone.
    std::memcpy(&wrapper, image, offsetof(FatbinWrapper, relocatable));
    if (wrapper.version != kPlainWrapper) return cudaErrorNotSupported;
    image = wrapper.data;
  }
  const std::uint64_t bytes = ImageBytes(image);
  const auto* const begin = static_cast<const std::uint8_t*>(image);
  copy.assign(begin, begin + bytes);
  return bytes > 0 ? cudaSuccess : cudaErrorInvalidKernelImage;
}

cudaError_t ReadImageFile(const char* path, std::vector<std::uint8_t>& copy) {
  if (!path) return cudaErrorInvalidValue;
  std::FILE* const file = std::fopen(path, "rbe");
  if (!file) return cudaErrorFileNotFound;
  copy.clear();
  std::uint8_t piece[1 << 16];
  while (const std::size_t count = std::fread(piece, 1, sizeof piece, file))
    copy.insert(copy.end(), piece, piece + count);
  const bool is_broken = std::ferror(file) != 0;
  std::fclose(file);
  // PTX text of a file has no NUL of its own; behind the other kinds it does no harm.
  copy.push_back(0);
  return is_broken ? cudaErrorOperatingSystem : cudaSuccess;
}

}  // namespace torpor::shim
