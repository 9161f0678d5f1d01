#include "emulator/driver/linked_image.h"

#include <cstring>
#include <string_view>

namespace torpor::emulator {
namespace {

struct Header {
  std::uint32_t magic = kLinkedImageMagic;
  std::uint32_t strings = 0;  // a name and a text for each part
  std::uint64_t bytes = 0;    // behind the header
};
static_assert(sizeof(Header) == 16);

void Append(std::vector<char>& image, std::string_view text) {
  const std::uint64_t length = text.size();
  const auto* const bytes = reinterpret_cast<const char*>(&length);
  image.insert(image.end(), bytes, bytes + sizeof(length));
  image.insert(image.end(), text.begin(), text.end());
}

// False: the image ends early.
bool Take(std::string_view& image, std::string& text) {
  std::uint64_t length = 0;
  if (image.size() < sizeof(length)) return false;
  std::memcpy(&length, image.data(), sizeof(length));
  image.remove_prefix(sizeof(length));
  if (length > image.size()) return false;
  text = image.substr(0, length);
  image.remove_prefix(length);
  return true;
}

}  // namespace

std::vector<char> EncodeLinkedImage(std::span<const PtxPart> parts) {
  std::vector<char> image(sizeof(Header));
  for (const PtxPart& part : parts) {
    Append(image, part.name);
    Append(image, part.text);
  }
  Header header;
  header.strings = static_cast<std::uint32_t>(2 * parts.size());
  header.bytes = image.size() - sizeof(header);
  std::memcpy(image.data(), &header, sizeof(header));
  return image;
}

std::optional<std::vector<PtxPart>> DecodeLinkedImage(const void* image) {
  Header header;
  std::memcpy(&header, image, sizeof(header));
  if (header.magic != kLinkedImageMagic) return std::nullopt;
  std::string_view rest(static_cast<const char*>(image) + sizeof(header), header.bytes);
  std::vector<PtxPart> parts;
  while (!rest.empty()) {
    PtxPart& part = parts.emplace_back();
    if (!Take(rest, part.name) || !Take(rest, part.text)) return std::nullopt;
  }
  if (2 * parts.size() != header.strings) return std::nullopt;
  return parts;
}

}  // namespace torpor::emulator
