#include "client_shim/cudart/symbols.h"

#include <mutex>
#include <vector>

#include "client_shim/cudart/entry.h"
#include "client_shim/cudart/graph/capture.h"
#include "client_shim/cudart/modules.h"
#include "client_shim/cudart/streams.h"
#include "client_shim/cudart/variable_copies.h"

namespace torpor::shim {
namespace {

cudaError_t UseRange(const void* symbol, std::uint64_t offset, std::uint64_t bytes,
                     const Variable*& variable) {
  TORPOR_TRY(UseVariable(symbol, variable));
  const bool inside = offset <= variable->bytes && bytes <= variable->bytes - offset;
  return inside ? cudaSuccess : cudaErrorInvalidValue;
}

// The address on the GPU that serves us now; the journal tells every other one what it stands for.
cudaError_t AskAddress(const Variable& variable, std::uint64_t& address, std::uint64_t& bytes) {
  const std::uint64_t module = variable.module->wire;
  wire::SymbolAddressResult result;
  TORPOR_TRY(Ask(wire::SymbolAddress{module, variable.name}, result));
  bytes = result.bytes;
  if (!RememberSymbolAddress(&variable, result.address, result.bytes)) {
    Core().WarnOnce("symbol address", "two variables of different GPUs have the same address");
    return cudaErrorNotSupported;
  }
  address = result.address;
  const wire::SymbolPublish publish{module, variable.name, address};
  return Core().Configure(module, Encode(publish), address);
}

cudaError_t GetAddress(void** address, const void* symbol) {
  if (!address) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  const Variable* variable = nullptr;
  TORPOR_TRY(UseVariable(symbol, variable));
  SymbolSpan span;
  TORPOR_TRY(FindVariable(*variable, span));
  *address = reinterpret_cast<void*>(span.begin);
  return cudaSuccess;
}

// A variable in a graph is copied by its address.
cudaError_t AddressIn(const void* symbol, std::uint64_t offset, std::uint8_t*& address) {
  void* begin = nullptr;
  TORPOR_TRY(GetAddress(&begin, symbol));
  address = static_cast<std::uint8_t*>(begin) + offset;
  return cudaSuccess;
}

cudaError_t ToSymbol(const void* symbol, const void* from, std::uint64_t bytes,
                     std::uint64_t offset, cudaMemcpyKind kind, cudaStream_t handle) {
  TORPOR_TRY(Begin());
  if (!from) return cudaErrorInvalidValue;
  const Variable* variable = nullptr;
  TORPOR_TRY(UseRange(symbol, offset, bytes, variable));
  const Place source = PlaceOf(from);
  const bool from_device = source.side == Side::kDevice;
  if (bytes > source.room) return cudaErrorInvalidValue;
  if (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost)
    return cudaErrorInvalidMemcpyDirection;
  if (bytes == 0) return cudaSuccess;
  if (IsCapturing(handle)) {
    std::uint8_t* to = nullptr;
    TORPOR_TRY(AddressIn(symbol, offset, to));
    return Capture(handle, LinearCopy(to, from, bytes, kind));
  }
  StreamPtr stream;
  TORPOR_TRY(UseStream(handle, stream));
  const VariablePart part{variable->module->wire, variable->name, offset, stream->wire};
  // Pinned sources too are read now: variables are small.
  if (!from_device) return UploadToVariable(part, from, bytes);
  wire::MemcpyToSymbol command;
  command.module = part.module;
  command.variable = part.name;
  command.stream = part.stream;
  command.variable_offset = part.offset;
  command.bytes = bytes;
  command.device_source = Address(from);
  return Send(command);
}

cudaError_t FromSymbol(void* to, const void* symbol, std::uint64_t bytes, std::uint64_t offset,
                       cudaMemcpyKind kind, cudaStream_t handle) {
  TORPOR_TRY(Begin());
  if (!to) return cudaErrorInvalidValue;
  const Variable* variable = nullptr;
  TORPOR_TRY(UseRange(symbol, offset, bytes, variable));
  const Place target = PlaceOf(to);
  if (bytes > target.room) return cudaErrorInvalidValue;
  if (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost)
    return cudaErrorInvalidMemcpyDirection;
  if (bytes == 0) return cudaSuccess;
  if (IsCapturing(handle)) {
    std::uint8_t* from = nullptr;
    TORPOR_TRY(AddressIn(symbol, offset, from));
    return Capture(handle, LinearCopy(to, from, bytes, kind));
  }
  StreamPtr stream;
  TORPOR_TRY(UseStream(handle, stream));
  const VariablePart part{variable->module->wire, variable->name, offset, stream->wire};
  if (target.side != Side::kDevice) return DownloadFromVariable(part, to, bytes);
  // Onto the device by way of the client: rare, and variables are small.
  std::vector<std::uint8_t> staging(bytes);
  TORPOR_TRY(DownloadFromVariable(part, staging.data(), bytes));
  return cudaMemcpyAsync(to, staging.data(), bytes, cudaMemcpyHostToDevice, handle);
}

cudaError_t GetSize(std::size_t* size, const void* symbol) {
  if (!size) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  const Variable* variable = nullptr;
  TORPOR_TRY(UseVariable(symbol, variable));
  *size = variable->bytes;
  return cudaSuccess;
}

}  // namespace

cudaError_t FindVariable(const Variable& variable, SymbolSpan& span) {
  const std::lock_guard lock(variable.module->mutex);  // what is known is published, too
  span = SymbolSpanOf(&variable);
  return span.begin != 0 ? cudaSuccess : AskAddress(variable, span.begin, span.bytes);
}

}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                               enum cudaMemcpyKind kind) {
  return Entry([&] { return ToSymbol(symbol, from, bytes, offset, kind, cudaStreamLegacy); });
}

cudaError_t cudaMemcpyToSymbol_ptds(const void* symbol, const void* from, size_t bytes,
                                    size_t offset, enum cudaMemcpyKind kind) {
  return Entry([&] { return ToSymbol(symbol, from, bytes, offset, kind, cudaStreamPerThread); });
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes,
                                    size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream) {
  return Entry([&] { return ToSymbol(symbol, from, bytes, offset, kind, stream); });
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                 enum cudaMemcpyKind kind) {
  return Entry([&] { return FromSymbol(to, symbol, bytes, offset, kind, cudaStreamLegacy); });
}

cudaError_t cudaMemcpyFromSymbol_ptds(void* to, const void* symbol, size_t bytes, size_t offset,
                                      enum cudaMemcpyKind kind) {
  return Entry([&] { return FromSymbol(to, symbol, bytes, offset, kind, cudaStreamPerThread); });
}

cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream) {
  return Entry([&] { return FromSymbol(to, symbol, bytes, offset, kind, stream); });
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  return Entry([&] { return GetAddress(address, symbol); });
}

cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  return Entry([&] { return GetSize(size, symbol); });
}
