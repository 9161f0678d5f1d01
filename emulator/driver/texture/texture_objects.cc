#include "emulator/driver/texture/texture_objects.h"

#include <memory>
#include <string>
#include <utility>

#include "emulator/driver/base/messages.h"
#include "emulator/exec/texture/texture_table.h"

namespace torpor::emulator {
namespace {

// Makes the handle by which kernels find the object.
template <typename Object>
DriverResult<std::uint64_t> Publish(DriverResult<Object> object) {
  if (!object.ok()) {
    if (object.failure().code == CUDA_ERROR_NOT_SUPPORTED) {
      Say("not supported: " + object.failure().message);
    }
    return object.failure();
  }
  const std::uint64_t handle =
      TextureTable::Instance().Add(std::make_shared<const TextureObject>(std::move(*object)));
  if (handle == 0) {
    return Failure<CUresult>{CUDA_ERROR_OUT_OF_MEMORY, "too many texture and surface objects"};
  }
  return handle;
}

template <typename Map>
auto Find(const Map& map, std::uint64_t handle) {
  const auto found = map.find(handle);
  return found == map.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

DriverResult<CUtexObject> TextureObjects::CreateTexture(const TextureRequest& request) {
  auto handle = Publish(MakeTexture(request, resources_));
  if (!handle.ok()) return handle.failure();
  const std::lock_guard lock(mutex_);
  textures_[*handle] = request;
  return CUtexObject{*handle};
}

DriverResult<CUsurfObject> TextureObjects::CreateSurface(const CUDA_RESOURCE_DESC& resource) {
  auto handle = Publish(MakeSurface(resource, resources_));
  if (!handle.ok()) return handle.failure();
  const std::lock_guard lock(mutex_);
  surfaces_[*handle] = resource;
  return CUsurfObject{*handle};
}

bool TextureObjects::DestroyTexture(CUtexObject handle) {
  const std::lock_guard lock(mutex_);
  return textures_.erase(handle) != 0 && TextureTable::Instance().Remove(handle);
}

bool TextureObjects::DestroySurface(CUsurfObject handle) {
  const std::lock_guard lock(mutex_);
  return surfaces_.erase(handle) != 0 && TextureTable::Instance().Remove(handle);
}

std::optional<TextureRequest> TextureObjects::FindTexture(CUtexObject handle) const {
  const std::lock_guard lock(mutex_);
  return Find(textures_, handle);
}

std::optional<CUDA_RESOURCE_DESC> TextureObjects::FindSurface(CUsurfObject handle) const {
  const std::lock_guard lock(mutex_);
  return Find(surfaces_, handle);
}

}  // namespace torpor::emulator
