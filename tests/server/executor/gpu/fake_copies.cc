// Copies and fills of plain memory.
#include "tests/server/executor/gpu/fake_driver_calls.h"

namespace torpor::executor {

struct FakeDriverCalls::Copies {
  // A copy that spans the end of a registration is refused, as the real driver does.
  static bool Spans(std::uint64_t begin, std::uint64_t bytes) {
    for (const auto& [at, size] : fake->registered_) {
      const bool begin_in = begin >= at && begin < at + size;
      const bool end_in = begin + bytes > at && begin + bytes <= at + size;
      if (begin_in != end_in) return true;
    }
    return false;
  }
  static CUresult HtoD(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
    const auto source = reinterpret_cast<std::uint64_t>(from);
    if (Spans(source, bytes)) return CUDA_ERROR_INVALID_VALUE;
    fake->Enqueue(stream, {FakeCuda::Work::Kind::kCopy, to, source, bytes});
    return Ok();
  }
  static CUresult DtoH(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    const auto target = reinterpret_cast<std::uint64_t>(to);
    if (Spans(target, bytes)) return CUDA_ERROR_INVALID_VALUE;
    fake->Enqueue(stream, {FakeCuda::Work::Kind::kCopy, target, from, bytes});
    return Ok();
  }
  static CUresult DtoD(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    if (fake->refuse_device_copies_) return CUDA_ERROR_NOT_PERMITTED;
    fake->Enqueue(stream, {FakeCuda::Work::Kind::kCopy, to, from, bytes});
    return Ok();
  }
  static CUresult Copy2D(const CUDA_MEMCPY2D* copy, CUstream stream) {
    const auto at = [](CUmemorytype type, CUdeviceptr device, const void* host) {
      return type == CU_MEMORYTYPE_DEVICE ? device : reinterpret_cast<std::uint64_t>(host);
    };
    for (std::size_t row = 0; row < copy->Height; ++row) {
      fake->Enqueue(stream,
                    {FakeCuda::Work::Kind::kCopy,
                     at(copy->dstMemoryType, copy->dstDevice, copy->dstHost) + row * copy->dstPitch,
                     at(copy->srcMemoryType, copy->srcDevice, copy->srcHost) + row * copy->srcPitch,
                     copy->WidthInBytes});
    }
    return Ok();
  }
  static CUresult Fill8(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
    fake->Enqueue(stream, {FakeCuda::Work::Kind::kFill, to, 0, count, value});
    return Ok();
  }
  static CUresult Fill16(CUdeviceptr to, unsigned short value, std::size_t count, CUstream stream) {
    if (value == 0) return Fill8(to, 0, 2 * count, stream);
    for (std::size_t i = 0; i < count; ++i) {
      Fill8(to + 2 * i, static_cast<unsigned char>(value), 1, stream);
      Fill8(to + 2 * i + 1, static_cast<unsigned char>(value >> 8), 1, stream);
    }
    return Ok();
  }
  static CUresult Fill32(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
    if (value == 0) return Fill8(to, 0, 4 * count, stream);
    for (std::size_t i = 0; i < count; ++i) {
      Fill16(to + 4 * i, static_cast<unsigned short>(value), 1, stream);
      Fill16(to + 4 * i + 2, static_cast<unsigned short>(value >> 16), 1, stream);
    }
    return Ok();
  }
  template <typename Value, CUresult (*FillRow)(CUdeviceptr, Value, std::size_t, CUstream)>
  static CUresult Fill2D(CUdeviceptr to, std::size_t pitch, Value value, std::size_t width,
                         std::size_t height, CUstream stream) {
    for (std::size_t row = 0; row < height; ++row) FillRow(to + row * pitch, value, width, stream);
    return Ok();
  }
};

void FakeDriverCalls::AddCopies(CudaDriver& driver) {
  driver.MemcpyHtoDAsync = Copies::HtoD;
  driver.MemcpyDtoHAsync = Copies::DtoH;
  driver.MemcpyDtoDAsync = Copies::DtoD;
  driver.Memcpy2DAsync = Copies::Copy2D;
  driver.MemsetD8Async = Copies::Fill8;
  driver.MemsetD16Async = Copies::Fill16;
  driver.MemsetD32Async = Copies::Fill32;
  driver.MemsetD2D8Async = Copies::Fill2D<unsigned char, Copies::Fill8>;
  driver.MemsetD2D16Async = Copies::Fill2D<unsigned short, Copies::Fill16>;
  driver.MemsetD2D32Async = Copies::Fill2D<unsigned, Copies::Fill32>;
}

}  // namespace torpor::executor
