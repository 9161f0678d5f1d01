#include "server/executor/image_check.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/fatbin.h"
#include "base/status_macros.h"

namespace torpor::executor {
namespace {

constexpr std::size_t kFatbinHeaderBytes = 16;

bool IsInside(std::span<const std::uint8_t> image, std::uint64_t offset, std::uint64_t bytes) {
  return offset <= image.size() && bytes <= image.size() - offset;
}

template <typename T>
T Load(std::span<const std::uint8_t> image, std::uint64_t offset) {
  T value;
  std::memcpy(&value, image.data() + offset, sizeof value);
  return value;
}

absl::Status CheckCubin(std::span<const std::uint8_t> image) {
  if (image.size() < sizeof(Elf64_Ehdr)) return absl::InvalidArgumentError("no cubin: too short");
  const auto header = Load<Elf64_Ehdr>(image, 0);
  const std::uint64_t sections = header.e_shnum * sizeof(Elf64_Shdr);
  const std::uint64_t segments = header.e_phnum * sizeof(Elf64_Phdr);
  bool inside = header.e_ident[EI_CLASS] == ELFCLASS64 &&
                IsInside(image, header.e_shoff, sections) &&
                IsInside(image, header.e_phoff, segments);
  for (std::uint64_t at = 0; inside && at < sections; at += sizeof(Elf64_Shdr)) {
    const auto section = Load<Elf64_Shdr>(image, header.e_shoff + at);
    inside = section.sh_type == SHT_NOBITS || IsInside(image, section.sh_offset, section.sh_size);
  }
  for (std::uint64_t at = 0; inside && at < segments; at += sizeof(Elf64_Phdr)) {
    const auto segment = Load<Elf64_Phdr>(image, header.e_phoff + at);
    inside = IsInside(image, segment.p_offset, segment.p_filesz);
  }
  return inside ? absl::OkStatus()
                : absl::InvalidArgumentError("the cubin's lengths exceed its bytes");
}

absl::Status CheckText(std::span<const std::uint8_t> image) {
  const auto is_text = [](std::uint8_t c) { return c >= ' ' || (c >= '\t' && c <= '\r'); };
  if (image.empty() || !is_text(image.front())) {
    return absl::InvalidArgumentError("no module: neither fatbin nor cubin nor PTX");
  }
  return image.back() == 0 ? absl::OkStatus()
                           : absl::InvalidArgumentError("PTX text that no NUL ends");
}

}  // namespace

absl::Status CheckFatbin(std::span<const std::uint8_t> image) {
  if (image.size() < kFatbinHeaderBytes) return absl::InvalidArgumentError("no fatbin: too short");
  if (Load<std::uint32_t>(image, 0) != kFatbinMagic) {
    return absl::InvalidArgumentError("no fatbin: wrong magic number");
  }
  const auto header_bytes = Load<std::uint16_t>(image, 6);
  const auto payload_bytes = Load<std::uint64_t>(image, 8);
  if (header_bytes < kFatbinHeaderBytes || !IsInside(image, header_bytes, payload_bytes)) {
    return absl::InvalidArgumentError("the fatbin's lengths exceed its bytes");
  }
  return absl::OkStatus();
}

absl::Status CheckImage(std::span<const std::uint8_t> image) {
  std::uint32_t magic = 0;
  if (!image.empty()) std::memcpy(&magic, image.data(), std::min(image.size(), sizeof magic));
  if (magic == kFatbinMagic) return CheckFatbin(image);
  if (std::memcmp(&magic, ELFMAG, SELFMAG) == 0) return CheckCubin(image);
  return CheckText(image);
}

}  // namespace torpor::executor
