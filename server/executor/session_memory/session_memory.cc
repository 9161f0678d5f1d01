#include "server/executor/session_memory/session_memory.h"

#include <spdlog/spdlog.h>

#include <cstring>
#include <utility>

#include "base/status_macros.h"

namespace torpor::executor {
namespace {

constexpr Bytes kPageBytes = 4 * kKiB;

}  // namespace

absl::StatusOr<std::unique_ptr<SessionMemory>> SessionMemory::Open(
    const Device& device, ImageMemory& gpu_memory, BlockHasher& hasher,
    const SessionIdentity& identity, MappedSessionFiles files, MemoryDirectory& directory,
    const SwapOptions& swap) {
  TORPOR_ASSIGN_OR_RETURN(std::unique_ptr<SessionWindow> window,
                          SessionWindow::Open(device, std::move(files.window)));
  TORPOR_ASSIGN_OR_RETURN(
      std::unique_ptr<ImageBacking> backing,
      gpu_memory.Open(identity.id, identity.device_base, identity.device_bytes));
  SwapOptions options = swap;
  options.keeps_checkpoints = !identity.is_stateless;
  auto image =
      std::make_unique<DeviceImage>(device, std::move(backing), hasher, identity.device_base,
                                    identity.device_bytes, std::move(files.image), options);
  return std::unique_ptr<SessionMemory>(new SessionMemory(
      device, identity, std::move(files.arena), std::move(image), std::move(window), directory));
}

SessionMemory::SessionMemory(const Device& device, const SessionIdentity& identity,
                             SharedMapping arena, std::unique_ptr<DeviceImage> image,
                             std::shared_ptr<SessionWindow> window, MemoryDirectory& directory)
    : id_(identity.id),
      first_(identity.first),
      function_(identity.function),
      tenant_(identity.tenant),
      host_base_(identity.host_base),
      is_stateless_(identity.is_stateless),
      directory_(directory),
      arena_(std::move(arena)),
      arena_pins_(device, arena_.data(), arena_.bytes(), kPageBytes),
      image_(std::move(image)),
      window_(std::move(window)) {
  directory_.Add(id_, function_, identity.peer_key, *this);
}

SessionMemory::~SessionMemory() { directory_.Remove(id_); }

CUdeviceptr SessionMemory::Resolve(std::uint64_t address, Bytes bytes) const {
  CUdeviceptr found = ResolveOwn(address, bytes);
  if (found != 0) return found;
  directory_.UseSiblings(function_, id_, [&](const SessionMemory& memory) {
    found = memory.ResolveOwn(address, bytes);
    return found != 0;
  });
  return found;
}

void SessionMemory::NoteUpload(std::uint64_t address, std::span<const std::uint8_t> bytes) {
  if (!image_->Contains(address, bytes.size())) return;
  if (image_->uploads().Note(address, bytes)) NoteAddressesAt(address);
}

void SessionMemory::NoteAddressesAt(std::uint64_t address) {
  image_->KeepInPlace();
  if (!is_translating() || has_warned_.exchange(true)) return;
  spdlog::warn(
      "function {}, session {}: its GPU memory at {:#x} seems to hold addresses of its GPU memory, "
      "which address_mode: translate cannot translate. Kernels that use them fail or read wrong "
      "memory; set address_mode: map if it has such kernels",
      function_, id_.value, address);
}

bool SessionMemory::has_siblings() const {
  return directory_.UseSiblings(function_, id_, [](const SessionMemory&) { return true; });
}

std::uint64_t SessionMemory::TranslateSiblings(std::uint64_t word) const {
  CUdeviceptr found = 0;
  directory_.UseSiblings(function_, id_, [&](SessionMemory& memory) {
    found = memory.image().addresses().TranslateForSibling(word);
    return found != 0;
  });
  return found == 0 ? word : found;
}

CUdeviceptr SessionMemory::Use(std::uint64_t address, Bytes bytes, cuda_api::Access access) {
  const CUdeviceptr found = Resolve(address, bytes);
  if (found == 0) return 0;
  ImageTouches& touches = image_->touches();
  if (touches.is_watching() && image_->Contains(address, bytes)) {
    const Bytes begin = address - image_->base();
    touches.Use({begin, begin + bytes}, access != cuda_api::Access::kWrite);
  }
  return found;
}

void SessionMemory::UseParameters(std::span<const std::uint8_t> parameters) {
  ImageTouches& touches = image_->touches();
  std::uint64_t word = 0;
  for (; parameters.size() >= sizeof word; parameters = parameters.subspan(sizeof word)) {
    std::memcpy(&word, parameters.data(), sizeof word);
    if (image_->Contains(word, 1)) {
      touches.UsePointee(word - image_->base());
    } else if (ArenaAt(word, 1) != nullptr) {
      touches.UseAll();
    }
  }
}

CUdeviceptr SessionMemory::ResolveOwn(std::uint64_t address, Bytes bytes) const {
  if (const CUdeviceptr found = image_->Resolve(address, bytes); found != 0) return found;
  const auto base = reinterpret_cast<std::uint64_t>(arena_.data());
  if (address < base || !arena_.Holds(address - base, bytes)) return 0;
  const Bytes begin = address - base;
  return arena_pins_.Contains({begin, begin + bytes}) ? address : 0;
}

absl::Status SessionMemory::MapHost(memory::Extent extent) {
  TORPOR_RETURN_IF_ERROR(arena_.Ensure(extent));
  return arena_pins_.Register(extent);
}

std::uint8_t* SessionMemory::Arena(std::uint64_t offset, Bytes bytes) const {
  if (id_ == first_) return arena_.Holds(offset, bytes) ? arena_.data() + offset : nullptr;
  // The sessions of a process are closed together, after all work has ended.
  std::uint8_t* found = nullptr;
  directory_.UseSibling(function_, first_, [&](const SessionMemory& first) {
    found = first.Arena(offset, bytes);
    return true;
  });
  return found;
}

std::uint8_t* SessionMemory::ArenaAt(std::uint64_t address, Bytes bytes) const {
  if (id_ == first_) return address < host_base_ ? nullptr : Arena(address - host_base_, bytes);
  std::uint8_t* found = nullptr;
  directory_.UseSibling(function_, first_, [&](const SessionMemory& first) {
    found = first.ArenaAt(address, bytes);
    return true;
  });
  return found;
}

std::shared_ptr<SessionWindow> SessionMemory::WindowOf(SessionId session) const {
  std::shared_ptr<SessionWindow> window;
  directory_.UseSibling(function_, session, [&](const SessionMemory& memory) {
    window = memory.window_;
    return true;
  });
  return window;
}

}  // namespace torpor::executor
