#include "client_shim/cudart/memory/shared_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

namespace torpor::shim {
namespace {

void* At(std::uint64_t address) { return reinterpret_cast<void*>(address); }

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

enum class Sharing : char { kPrivate = 'p', kShared = 's' };

struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// The parts of [begin, end) that are writable, of the given sharing, and not a stack: stacks grow.
std::vector<Mapping> WritableParts(std::uint64_t begin, std::uint64_t end, Sharing sharing) {
  std::vector<Mapping> parts;
  const std::unique_ptr<std::FILE, CloseFile> maps(std::fopen("/proc/self/maps", "re"));
  if (!maps) return parts;
  char line[512];
  bool at_line_begin = true;
  while (std::fgets(line, sizeof line, maps.get())) {
    const bool is_new = at_line_begin;
    at_line_begin = std::strchr(line, '\n') != nullptr;
    unsigned long first = 0;
    unsigned long last = 0;
    char access[5] = {};
    if (!is_new || std::sscanf(line, "%lx-%lx %4s", &first, &last, access) != 3) continue;
    const bool is_fit = std::strncmp(access, "rw", 2) == 0 &&
                        access[3] == static_cast<char>(sharing) && !std::strstr(line, "[stack");
    if (is_fit && first < end && begin < last)
      parts.push_back({std::max<std::uint64_t>(first, begin), std::min<std::uint64_t>(last, end)});
  }
  return parts;
}

std::uint64_t Bytes(const std::vector<Mapping>& parts) {
  std::uint64_t bytes = 0;
  for (const Mapping& part : parts) bytes += part.end - part.begin;
  return bytes;
}

// Replaces shared pages by private pages with equal contents.
bool ReplaceByCopy(const Mapping& part) {
  const std::uint64_t bytes = part.end - part.begin;
  void* const copy =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return false;
  std::memcpy(copy, At(part.begin), bytes);
  if (mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, At(part.begin)) != MAP_FAILED)
    return true;
  munmap(copy, bytes);
  return false;
}

}  // namespace

bool SharePages(std::uint64_t pages, std::uint64_t bytes, std::uint64_t block) {
  if (Bytes(WritableParts(pages, pages + bytes, Sharing::kPrivate)) != bytes) return false;
  std::memcpy(At(block), At(pages), bytes);
  // With an old size of 0, mremap maps a shared mapping a second time instead of moving it.
  return mremap(At(block), 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, At(pages)) != MAP_FAILED;
}

bool UnsharePages(std::uint64_t pages, std::uint64_t bytes) {
  const std::vector<Mapping> parts = WritableParts(pages, pages + bytes, Sharing::kShared);
  return std::all_of(parts.begin(), parts.end(), ReplaceByCopy);
}

}  // namespace torpor::shim
