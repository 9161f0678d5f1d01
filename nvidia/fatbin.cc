#include "nvidia/fatbin.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

namespace torpor {
namespace {

constexpr std::size_t kMinEntryHeader = 64;
// A hostile header may claim any size; the largest PTX of PyTorch is below 100 MB.
constexpr std::uint64_t kMaxPtxBytes = std::uint64_t{1} << 30;
// Bounds on decompression: the bytes that one compressed byte can become. A zstd block of four
// bytes may be 128 KiB of equal bytes.
constexpr std::uint64_t kLz4Expansion = 255;
constexpr std::uint64_t kZstdExpansion = std::uint64_t{1} << 15;
constexpr std::uint64_t kFlagLz4 = 0x2000;
constexpr std::uint64_t kFlagZstd = 0x8000;

Failure<FatbinError> Malformed(std::string message) {
  return {FatbinError::kMalformed, "malformed fatbin: " + std::move(message)};
}

// Loads a T from bytes without alignment; the caller has checked the bounds.
template <typename T>
T Load(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// Reads the header of an entry at the begin of `bytes` and checks its sizes.
FatbinResult<FatbinEntry> ReadEntry(std::span<const std::byte> bytes, std::size_t header_size,
                                    std::uint64_t payload_size) {
  FatbinEntry entry;
  entry.kind = static_cast<FatbinEntry::Kind>(Load<std::uint16_t>(bytes, 0));
  entry.architecture = Load<std::uint32_t>(bytes, 28);
  entry.flags = Load<std::uint64_t>(bytes, 40);
  entry.stored = bytes.subspan(header_size, payload_size);
  if ((entry.flags & (kFlagLz4 | kFlagZstd)) == 0) return entry;
  entry.coding =
      (entry.flags & kFlagZstd) != 0 ? FatbinEntry::Coding::kZstd : FatbinEntry::Coding::kLz4;
  const auto compressed_size = Load<std::uint32_t>(bytes, 16);
  if (compressed_size > payload_size) return Malformed("compressed size beyond the entry");
  entry.stored = entry.stored.first(compressed_size);
  entry.uncompressed_size = Load<std::uint64_t>(bytes, 56);
  return entry;
}

// Appends the entries of one container's payload.
FatbinResult<void> ReadPayload(std::span<const std::byte> payload,
                               std::vector<FatbinEntry>& entries) {
  while (!payload.empty()) {
    if (payload.size() < kMinEntryHeader) return Malformed("truncated entry header");
    const auto header_size = Load<std::uint32_t>(payload, 4);
    const auto stored_size = Load<std::uint64_t>(payload, 8);
    if (header_size < kMinEntryHeader || header_size > payload.size()) {
      return Malformed("entry header size " + std::to_string(header_size));
    }
    if (stored_size > payload.size() - header_size) return Malformed("entry beyond the container");
    auto entry = ReadEntry(payload, header_size, stored_size);
    if (!entry.ok()) return entry.failure();
    entries.push_back(*entry);
    payload = payload.subspan(header_size + stored_size);
  }
  return {};
}

// Decompresses an entry. The size in the header is checked against bounds before memory is
// allocated.
FatbinResult<std::string> Decompress(const FatbinEntry& entry) {
  const std::uint64_t expansion =
      entry.coding == FatbinEntry::Coding::kZstd ? kZstdExpansion : kLz4Expansion;
  if (entry.uncompressed_size == 0 || entry.uncompressed_size > kMaxPtxBytes ||
      entry.uncompressed_size / expansion > entry.stored.size() ||
      entry.stored.size() > std::numeric_limits<int>::max()) {
    return Malformed("uncompressed size " + std::to_string(entry.uncompressed_size));
  }
  std::string text(entry.uncompressed_size, '\0');
  const auto* source = reinterpret_cast<const char*>(entry.stored.data());
  std::size_t produced = 0;
  if (entry.coding == FatbinEntry::Coding::kZstd) {
    produced = ZSTD_decompress(text.data(), text.size(), source, entry.stored.size());
    if (ZSTD_isError(produced) != 0) {
      return Malformed(std::string("zstd: ") + ZSTD_getErrorName(produced));
    }
  } else {
    const int count = LZ4_decompress_safe(
        source, text.data(), static_cast<int>(entry.stored.size()), static_cast<int>(text.size()));
    if (count < 0) return Malformed("LZ4 block does not decode");
    produced = static_cast<std::size_t>(count);
  }
  if (produced != text.size()) return Malformed("payload is shorter than its header says");
  return text;
}

// sm_90a and sm_100f code runs on that architecture, or family, only.
bool RunsOn(const FatbinEntry& entry, unsigned compute_capability) {
  constexpr std::uint64_t kArchitectureSpecific = 0x100000;
  constexpr std::uint64_t kFamilySpecific = 0x200000;
  if ((entry.flags & kArchitectureSpecific) != 0) return entry.architecture == compute_capability;
  if ((entry.flags & kFamilySpecific) != 0 && entry.architecture / 10 != compute_capability / 10) {
    return false;
  }
  return entry.architecture <= compute_capability;
}

}  // namespace

std::uint64_t FatbinSize(const void* data) {
  const std::span header(static_cast<const std::byte*>(data), kFatbinHeaderBytes);
  if (Load<std::uint32_t>(header, 0) != kFatbinMagic) return 0;
  const auto payload_size = Load<std::uint64_t>(header, 8);
  const auto header_size = Load<std::uint16_t>(header, 6);
  if (payload_size > std::numeric_limits<std::uint64_t>::max() - header_size) return 0;
  return header_size + payload_size;
}

FatbinResult<std::vector<FatbinEntry>> ReadFatbin(std::span<const std::byte> fatbin) {
  std::vector<FatbinEntry> entries;
  while (fatbin.size() >= kFatbinHeaderBytes) {
    if (Load<std::uint32_t>(fatbin, 0) != kFatbinMagic) return Malformed("no container magic");
    const auto header_size = Load<std::uint16_t>(fatbin, 6);
    const auto payload_size = Load<std::uint64_t>(fatbin, 8);
    if (header_size < kFatbinHeaderBytes || header_size > fatbin.size() ||
        payload_size > fatbin.size() - header_size) {
      return Malformed("container beyond the fatbin");
    }
    const auto read = ReadPayload(fatbin.subspan(header_size, payload_size), entries);
    if (!read.ok()) return read.failure();
    fatbin = fatbin.subspan(header_size + payload_size);
  }
  if (!fatbin.empty()) return Malformed("truncated container header");
  return entries;
}

FatbinResult<std::span<const std::byte>> DecodeEntry(const FatbinEntry& entry,
                                                     std::string& storage) {
  if (entry.coding == FatbinEntry::Coding::kRaw) return entry.stored;
  auto decompressed = Decompress(entry);
  if (!decompressed.ok()) return decompressed.failure();
  storage = std::move(decompressed).value();
  return std::as_bytes(std::span(std::as_const(storage)));
}

FatbinResult<std::string> DecodePtx(const FatbinEntry& entry) {
  std::string text;
  const auto content = DecodeEntry(entry, text);
  if (!content.ok()) return content.failure();
  if (entry.coding == FatbinEntry::Coding::kRaw) {
    text.assign(reinterpret_cast<const char*>(content->data()), content->size());
  }
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

namespace {

std::string CapabilityText(unsigned capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

// Explains which PTX the module holds instead.
Failure<FatbinError> NoPtxFor(unsigned compute_capability,
                              const std::vector<FatbinEntry>& entries) {
  std::string text = "the module holds no PTX for compute capability " +
                     CapabilityText(compute_capability) + " or lower";
  for (const FatbinEntry& entry : entries) {
    if (entry.kind != FatbinEntry::Kind::kPtx) continue;
    text += ", only for " + CapabilityText(entry.architecture);
    break;
  }
  return {FatbinError::kNoPtx,
          text + "; build it with PTX, for example -gencode arch=compute_75,code=compute_75"};
}

}  // namespace

FatbinResult<std::string> SelectPtx(std::span<const std::byte> fatbin,
                                    unsigned compute_capability) {
  const auto entries = ReadFatbin(fatbin);
  if (!entries.ok()) return entries.failure();
  const FatbinEntry* best = nullptr;
  for (const FatbinEntry& entry : *entries) {
    if (entry.kind != FatbinEntry::Kind::kPtx || !RunsOn(entry, compute_capability)) continue;
    if (best == nullptr || entry.architecture > best->architecture) best = &entry;
  }
  if (best == nullptr) return NoPtxFor(compute_capability, *entries);
  return DecodePtx(*best);
}

FatbinResult<std::string> SelectCubin(std::span<const std::byte> fatbin,
                                      unsigned compute_capability,
                                      std::span<const unsigned> architectures) {
  const auto entries = ReadFatbin(fatbin);
  if (!entries.ok()) return entries.failure();
  const auto suits = [&](const FatbinEntry& entry) {
    return entry.kind == FatbinEntry::Kind::kElf && RunsOn(entry, compute_capability) &&
           RunsMachineCode(entry.architecture, compute_capability) &&
           std::ranges::find(architectures, entry.architecture) != architectures.end();
  };
  const FatbinEntry* best = nullptr;
  for (const FatbinEntry& entry : *entries) {
    if (!suits(entry)) continue;
    if (best == nullptr || entry.architecture > best->architecture) best = &entry;
  }
  if (best == nullptr) {
    return Failure<FatbinError>{FatbinError::kNoCode, "the module holds no such machine code"};
  }
  std::string storage;
  const auto content = DecodeEntry(*best, storage);
  if (!content.ok()) return content.failure();
  if (best->coding != FatbinEntry::Coding::kRaw) return storage;
  return std::string(reinterpret_cast<const char*>(content->data()), content->size());
}

std::vector<unsigned> CubinArchitectures(std::span<const std::byte> fatbin) {
  const auto entries = ReadFatbin(fatbin);
  if (!entries.ok()) return {};
  std::set<unsigned> architectures;
  for (const FatbinEntry& entry : *entries) {
    if (entry.kind == FatbinEntry::Kind::kElf) architectures.insert(entry.architecture);
  }
  return {architectures.begin(), architectures.end()};
}

bool IsDeviceRuntime(std::span<const std::byte> fatbin) {
  // All kernels of libcudadevrt have this in their names.
  constexpr std::string_view kTranslationUnit = "cuda_device_runtime_cu";
  const auto entries = ReadFatbin(fatbin);
  if (!entries.ok()) return false;
  for (const FatbinEntry& entry : *entries) {
    if (entry.kind != FatbinEntry::Kind::kPtx) continue;
    const auto text = DecodePtx(entry);
    return text.ok() && text->find(kTranslationUnit) != std::string::npos;
  }
  return false;
}

}  // namespace torpor
