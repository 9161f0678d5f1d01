#include "emulator/exec/runtime/device_reader.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace torpor::emulator {
namespace {

bool Within(std::uint64_t address, std::uint64_t bytes, std::uint64_t begin, std::uint64_t size) {
  return address - begin < size && size - (address - begin) >= bytes;
}

}  // namespace

bool MayAccess(const Warp& warp, std::uint64_t address, std::uint64_t bytes) {
  return Within(address, bytes, warp.window_begin, warp.window_bytes) ||
         Within(address, bytes, warp.arena_begin, warp.arena_bytes) ||
         warp.runner->job().memory.device->IsAccessible(address, bytes);
}

bool DeviceReader::Read(void* to, std::uint64_t address, std::size_t bytes) const {
  return MayAccess(warp_, address, bytes) && warp_.runner->CopyUnlessFault(to, address, bytes);
}

// Reads piece by piece, as the length is unknown.
bool DeviceReader::ReadText(std::string& text, std::uint64_t address, std::size_t limit) const {
  text.clear();
  // A piece never crosses a multiple of its size, so reading stays in the pages of the string.
  std::array<char, 64> piece;
  while (text.size() < limit) {
    const std::size_t room = piece.size() - address % piece.size();
    std::size_t bytes = std::min(room, limit - text.size());
    // Registered memory may end anywhere.
    if (!MayAccess(warp_, address, bytes)) bytes = 1;
    if (!Read(piece.data(), address, bytes)) return false;
    const std::size_t length = strnlen(piece.data(), bytes);
    text.append(piece.data(), length);
    if (length < bytes) return true;
    address += bytes;
  }
  return true;
}

}  // namespace torpor::emulator
