// Arrays, and objects that textures and surfaces are read by.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"
#include "tests/server/executor/gpu/fake_driver_calls.h"

namespace torpor::executor {

struct FakeDriverCalls::Arrays {
  static FakeCuda::Array& ArrayOf(CUarray array) {
    auto* found = reinterpret_cast<FakeCuda::Array*>(array);
    TORPOR_CHECK(fake->arrays_.contains(found));
    return *found;
  }
  // Channels of 4 bytes only. A new array holds what another may have left there.
  static CUresult CreateArray(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* description) {
    if (fake->refuse_arrays_) return CUDA_ERROR_OUT_OF_MEMORY;
    auto made = std::make_unique<FakeCuda::Array>();
    made->row_bytes = description->Width * description->NumChannels * 4;
    made->rows = std::max<std::size_t>(description->Height, 1);
    made->texels.assign(made->row_bytes * made->rows * std::max<std::size_t>(description->Depth, 1),
                        0xcd);
    fake->arrays_.insert(made.get());
    *array = reinterpret_cast<CUarray>(made.get());
    fake->array_memory_.push_back(std::move(made));
    return Ok();
  }
  static CUresult DestroyArray(CUarray array) {
    fake->arrays_.erase(&ArrayOf(array));
    return CUDA_SUCCESS;
  }
  static CUresult CreateMipmapped(CUmipmappedArray* mipmapped,
                                  const CUDA_ARRAY3D_DESCRIPTOR* description, unsigned levels) {
    CUDA_ARRAY3D_DESCRIPTOR level = *description;
    std::vector<FakeCuda::Array*> made;
    for (unsigned i = 0; i < levels; ++i) {
      CUarray array = nullptr;
      if (const CUresult result = CreateArray(&array, &level); result != CUDA_SUCCESS)
        return result;
      made.push_back(&ArrayOf(array));
      level.Width = std::max<std::size_t>(level.Width / 2, 1);
      level.Height = std::max<std::size_t>(level.Height / 2, 1);
      if ((level.Flags & CUDA_ARRAY3D_LAYERED) == 0) {
        level.Depth = std::max<std::size_t>(level.Depth / 2, 1);
      }
    }
    fake->mipmapped_.push_back(std::move(made));
    return *mipmapped = reinterpret_cast<CUmipmappedArray>(fake->mipmapped_.size()), Ok();
  }
  static std::vector<FakeCuda::Array*>& LevelsOf(CUmipmappedArray mipmapped) {
    return fake->mipmapped_.at(reinterpret_cast<std::size_t>(mipmapped) - 1);
  }
  static CUresult GetLevel(CUarray* level, CUmipmappedArray mipmapped, unsigned index) {
    if (fake->refuse_levels_ && index == 1) return CUDA_ERROR_INVALID_VALUE;
    return *level = reinterpret_cast<CUarray>(LevelsOf(mipmapped).at(index)), Ok();
  }
  static CUresult DestroyMipmapped(CUmipmappedArray mipmapped) {
    for (FakeCuda::Array* const level : LevelsOf(mipmapped)) fake->arrays_.erase(level);
    return CUDA_SUCCESS;
  }
  static CUresult Copy3D(const CUDA_MEMCPY3D* copy, CUstream stream) {
    const auto row = [](CUmemorytype type, CUdeviceptr device, const void* host, CUarray array,
                        std::size_t x, std::size_t y, std::size_t z, std::size_t pitch,
                        std::size_t rows) {
      if (type == CU_MEMORYTYPE_ARRAY) {
        FakeCuda::Array& from = ArrayOf(array);
        return reinterpret_cast<std::uint64_t>(from.texels.data()) +
               (z * from.rows + y) * from.row_bytes + x;
      }
      const std::uint64_t base =
          type == CU_MEMORYTYPE_DEVICE ? device : reinterpret_cast<std::uint64_t>(host);
      return base + (z * rows + y) * pitch + x;
    };
    for (std::size_t z = 0; z < copy->Depth; ++z) {
      for (std::size_t y = 0; y < copy->Height; ++y) {
        fake->Enqueue(stream, {FakeCuda::Work::Kind::kCopy,
                               row(copy->dstMemoryType, copy->dstDevice, copy->dstHost,
                                   copy->dstArray, copy->dstXInBytes, copy->dstY + y,
                                   copy->dstZ + z, copy->dstPitch, copy->dstHeight),
                               row(copy->srcMemoryType, copy->srcDevice, copy->srcHost,
                                   copy->srcArray, copy->srcXInBytes, copy->srcY + y,
                                   copy->srcZ + z, copy->srcPitch, copy->srcHeight),
                               copy->WidthInBytes});
      }
    }
    return Ok();
  }
  static CUresult CreateImageObject(std::uint64_t* value) {
    *value = fake->next_image_object_;
    if (fake->reuse_image_objects_) {
      while (fake->image_objects_.contains(*value)) ++*value;
    } else {
      ++fake->next_image_object_;
    }
    fake->image_objects_.insert(*value);
    return Ok();
  }
  static CUresult CreateTexture(CUtexObject* texture, const CUDA_RESOURCE_DESC*,
                                const CUDA_TEXTURE_DESC*, const CUDA_RESOURCE_VIEW_DESC*) {
    std::uint64_t value = 0;
    const CUresult made = CreateImageObject(&value);
    return *texture = value, made;
  }
  static CUresult CreateSurface(CUsurfObject* surface, const CUDA_RESOURCE_DESC*) {
    std::uint64_t value = 0;
    const CUresult made = CreateImageObject(&value);
    return *surface = value, made;
  }
  static CUresult DestroyImageObject(unsigned long long value) {
    return fake->image_objects_.erase(value) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
};

void FakeDriverCalls::AddArrays(CudaDriver& driver) {
  driver.Memcpy3DAsync = Arrays::Copy3D;
  driver.Array3DCreate = Arrays::CreateArray;
  driver.ArrayDestroy = Arrays::DestroyArray;
  driver.MipmappedArrayCreate = Arrays::CreateMipmapped;
  driver.MipmappedArrayGetLevel = Arrays::GetLevel;
  driver.MipmappedArrayDestroy = Arrays::DestroyMipmapped;
  driver.TexObjectCreate = Arrays::CreateTexture;
  driver.TexObjectDestroy = Arrays::DestroyImageObject;
  driver.SurfObjectCreate = Arrays::CreateSurface;
  driver.SurfObjectDestroy = Arrays::DestroyImageObject;
}

}  // namespace torpor::executor
