// Links what arbitrary bytes parse to; a NUL byte ends a part.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "emulator/ptx/link.h"
#include "emulator/ptx/parser.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace torpor::ptx;
  std::vector<LinkPart> parts;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty() && parts.size() < 8) {
    const std::string_view text = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(rest.size(), text.size() + 1));
    if (auto parsed = Parse(text)) parts.push_back({"part", std::move(*parsed)});
  }
  (void)Link(std::move(parts), [](std::string_view name) { return name == "vprintf"; });
  return 0;
}
