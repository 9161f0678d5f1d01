#include "emulator/driver/module/linked_module.h"

#include <cstring>
#include <string_view>

namespace torpor::emulator {
namespace {

struct Header {
  std::uint32_t magic = kLinkedModuleMagic;
  std::uint32_t strings = 0;  // a name and a text for each part
  std::uint64_t bytes = 0;    // behind the header
};
static_assert(sizeof(Header) == 16);

// Appends a length of 8 bytes, and the text.
void Append(std::vector<char>& module, std::string_view text) {
  const std::uint64_t length = text.size();
  const auto* const bytes = reinterpret_cast<const char*>(&length);
  module.insert(module.end(), bytes, bytes + sizeof(length));
  module.insert(module.end(), text.begin(), text.end());
}

// False: the module ends early.
bool Take(std::string_view& module, std::string& text) {
  std::uint64_t length = 0;
  if (module.size() < sizeof(length)) return false;
  std::memcpy(&length, module.data(), sizeof(length));
  module.remove_prefix(sizeof(length));
  if (length > module.size()) return false;
  text = module.substr(0, length);
  module.remove_prefix(length);
  return true;
}

}  // namespace

std::vector<char> EncodeLinkedModule(std::span<const PtxPart> parts) {
  std::vector<char> module(sizeof(Header));
  for (const PtxPart& part : parts) {
    Append(module, part.name);
    Append(module, part.text);
  }
  Header header;
  header.strings = static_cast<std::uint32_t>(2 * parts.size());
  header.bytes = module.size() - sizeof(header);
  std::memcpy(module.data(), &header, sizeof(header));
  return module;
}

Bytes LinkedModuleBytes(const void* module) {
  Header header;
  std::memcpy(&header, module, sizeof(header));
  return sizeof(header) + header.bytes;
}

std::optional<std::vector<PtxPart>> DecodeLinkedModule(const void* module) {
  Header header;
  std::memcpy(&header, module, sizeof(header));
  if (header.magic != kLinkedModuleMagic) return std::nullopt;
  std::string_view rest(static_cast<const char*>(module) + sizeof(header), header.bytes);
  std::vector<PtxPart> parts;
  while (!rest.empty()) {
    PtxPart& part = parts.emplace_back();
    if (!Take(rest, part.name) || !Take(rest, part.text)) return std::nullopt;
  }
  if (2 * parts.size() != header.strings) return std::nullopt;
  return parts;
}

}  // namespace torpor::emulator
