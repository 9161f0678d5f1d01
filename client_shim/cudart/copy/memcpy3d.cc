#include <utility>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/copy/linear_volume.h"
#include "client_shim/cudart/copy/submit_copy.h"
#include "client_shim/cudart/copy/volume_copy.h"

namespace torpor::shim {
namespace {

// Reads a side of cudaMemcpy3D's parameters: either array or pointer. Positions are in texels for
// arrays, in bytes for linear memory.
cudaError_t ToPlace(cudaArray_t array, const cudaPitchedPtr& pointer, const cudaPos& position,
                    CopyPlace& place) {
  if ((array != nullptr) == (pointer.ptr != nullptr)) return cudaErrorInvalidValue;
  if (array) {
    TORPOR_TRY(FindArray(array, place.array));
    place.x = position.x * place.array->format.texel_bytes();
    place.y = position.y;
    place.z = position.z;
    return cudaSuccess;
  }
  place.pitch = pointer.pitch;
  place.rows = pointer.ysize;
  place.memory = static_cast<std::uint8_t*>(pointer.ptr) + position.x +
                 (position.z * place.rows + position.y) * place.pitch;
  return cudaSuccess;
}

// Reads the extent: a width in texels if an array takes part, else in bytes.
cudaError_t ToVolume(const cudaExtent& extent, const CopyPlace& to, const CopyPlace& from,
                     CopyVolume& volume) {
  const auto texel = [](const CopyPlace& place) {
    return place.array ? place.array->format.texel_bytes() : 0;
  };
  if (to.array && from.array && texel(to) != texel(from)) return cudaErrorInvalidValue;
  const std::uint64_t unit = to.array ? texel(to) : from.array ? texel(from) : 1;
  volume = {0, extent.height, extent.depth};
  return __builtin_mul_overflow(extent.width, unit, &volume.width) ? cudaErrorInvalidValue
                                                                   : cudaSuccess;
}

template <typename Parameters>
cudaError_t Copy(const Parameters* parameters, cudaMemcpyKind kind, cudaStream_t stream,
                 Wait wait) {
  CopyPlace to;
  TORPOR_TRY(ToPlace(parameters->dstArray, parameters->dstPtr, parameters->dstPos, to));
  CopyPlace from;
  TORPOR_TRY(ToPlace(parameters->srcArray, parameters->srcPtr, parameters->srcPos, from));
  CopyVolume volume;
  TORPOR_TRY(ToVolume(parameters->extent, to, from, volume));
  return CopyVolumes(to, from, volume, kind, stream, wait);
}

// cudaMemcpy3D's copy. A graph's node is made from the parameters as they are given; a plain copy
// is checked before its stream is looked up.
struct Copy3DWork {
  const cudaMemcpy3DParms& parameters;
  Wait wait = Wait::kNo;

  cudaError_t MakeNode(NodeWork& node) const { return MakeCopyWork(parameters, node); }
  cudaError_t Send(cudaStream_t stream) const {
    return Copy(&parameters, parameters.kind, stream, wait);
  }
};

// cudaMemcpy3D and cudaMemcpy3DAsync.
cudaError_t Copy3D(const cudaMemcpy3DParms* parameters, cudaStream_t stream, Wait wait) {
  return parameters ? SubmitCopy(stream, Copy3DWork{*parameters, wait}) : cudaErrorInvalidValue;
}

// Ignores the device numbers: arrays and addresses identify the devices.
cudaError_t Copy3DPeer(const cudaMemcpy3DPeerParms* parameters, cudaStream_t stream, Wait wait) {
  return parameters ? Copy(parameters, cudaMemcpyDefault, stream, wait) : cudaErrorInvalidValue;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms* parameters) {
  return Entry([&] { return Copy3D(parameters, cudaStreamLegacy, Wait::kYes); });
}

cudaError_t cudaMemcpy3D_ptds(const struct cudaMemcpy3DParms* parameters) {
  return Entry([&] { return Copy3D(parameters, cudaStreamPerThread, Wait::kYes); });
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms* parameters, cudaStream_t stream) {
  return Entry([&] { return Copy3D(parameters, stream, Wait::kNo); });
}

cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms* parameters) {
  return Entry([&] { return Copy3DPeer(parameters, cudaStreamLegacy, Wait::kYes); });
}

cudaError_t cudaMemcpy3DPeer_ptds(const struct cudaMemcpy3DPeerParms* parameters) {
  return Entry([&] { return Copy3DPeer(parameters, cudaStreamPerThread, Wait::kYes); });
}

cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms* parameters,
                                  cudaStream_t stream) {
  return Entry([&] { return Copy3DPeer(parameters, stream, Wait::kNo); });
}
