#pragma once

#include <cuda.h>

#include <map>
#include <mutex>
#include <optional>

#include "emulator/driver/base/driver_result.h"
#include "emulator/driver/texture/make_texture.h"

namespace torpor::emulator {

// The texture and surface objects of the process, published to kernels through TextureTable under
// the same handles. An object keeps the memory of its array alive; linear memory remains the
// application's. Thread-safe.
class TextureObjects {
 public:
  // The tables in `resources` must outlive the objects.
  explicit TextureObjects(const ResourceTables& resources) : resources_(resources) {}

  // Fail as MakeTexture and MakeSurface do.
  DriverResult<CUtexObject> CreateTexture(const TextureRequest& request);
  DriverResult<CUsurfObject> CreateSurface(const CUDA_RESOURCE_DESC& resource);
  // Return false if there is no such object.
  bool DestroyTexture(CUtexObject handle);
  bool DestroySurface(CUsurfObject handle);
  std::optional<TextureRequest> FindTexture(CUtexObject handle) const;
  std::optional<CUDA_RESOURCE_DESC> FindSurface(CUsurfObject handle) const;

 private:
  const ResourceTables resources_;

  mutable std::mutex mutex_;
  std::map<CUtexObject, TextureRequest> textures_;
  std::map<CUsurfObject, CUDA_RESOURCE_DESC> surfaces_;
};

}  // namespace torpor::emulator
