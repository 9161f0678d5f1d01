#pragma once

#include <lz4.h>
#include <zstd.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "nvidia/fatbin.h"

// Fatbins as nvcc writes them, or nearly.
namespace torpor {

struct TestEntry {
  std::uint16_t kind = 1;
  std::uint32_t architecture = 75;
  std::uint64_t flags = 0x11;
  std::string payload;
  std::uint64_t uncompressed_size = 0;
};

template <typename T>
void Patch(std::string& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

inline std::string MakeEntry(const TestEntry& entry) {
  std::string header(64, '\0');
  const std::size_t padded = (entry.payload.size() + 7) / 8 * 8;
  Patch(header, 0, entry.kind);
  Patch(header, 4, std::uint32_t{64});
  Patch(header, 8, std::uint64_t{padded});
  Patch(header, 16,
        static_cast<std::uint32_t>(entry.uncompressed_size != 0 ? entry.payload.size() : 0));
  Patch(header, 28, entry.architecture);
  Patch(header, 40, entry.flags);
  Patch(header, 56, entry.uncompressed_size);
  return header + entry.payload + std::string(padded - entry.payload.size(), '\0');
}

inline std::string MakeContainer(const std::vector<TestEntry>& entries) {
  std::string payload;
  for (const TestEntry& entry : entries) payload += MakeEntry(entry);
  std::string header(16, '\0');
  Patch(header, 0, kFatbinMagic);
  Patch(header, 4, std::uint16_t{1});
  Patch(header, 6, std::uint16_t{16});
  Patch(header, 8, std::uint64_t{payload.size()});
  return header + payload;
}

inline std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline TestEntry ZstdEntry(const std::string& text, std::uint16_t kind = 1) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return {.kind = kind, .flags = 0x8011, .payload = packed, .uncompressed_size = text.size()};
}

inline TestEntry Lz4Entry(const std::string& text, std::uint16_t kind = 1) {
  const int size = static_cast<int>(text.size());
  std::string packed(static_cast<std::size_t>(LZ4_compressBound(size)), '\0');
  packed.resize(static_cast<std::size_t>(
      LZ4_compress_default(text.data(), packed.data(), size, static_cast<int>(packed.size()))));
  return {.kind = kind, .flags = 0x2011, .payload = packed, .uncompressed_size = text.size()};
}

}  // namespace torpor
