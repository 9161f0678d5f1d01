#pragma once

#include <cuda.h>

#include <map>
#include <mutex>
#include <optional>

#include "emulator/driver/base/driver_result.h"
#include "emulator/driver/texture/make_texture.h"

namespace torpor::emulator {

// The texture and surface objects of the process; kernels find them in ImageTable by the same
// values. An object keeps its array's memory, linear memory stays the application's. Thread-safe.
class TextureObjects {
 public:
  // What `resources` refers to must outlive the objects.
  explicit TextureObjects(const ResourceTables& resources) : resources_(resources) {}

  // InvalidValue, or NotSupported for what no object here can do.
  DriverResult<CUtexObject> CreateTexture(const TextureRequest& request);
  DriverResult<CUsurfObject> CreateSurface(const CUDA_RESOURCE_DESC& resource);
  // False if it is none.
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
