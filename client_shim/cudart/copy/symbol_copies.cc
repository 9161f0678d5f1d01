#include <mutex>
#include <vector>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/copy/beside_variables.h"
#include "client_shim/cudart/copy/memcpy.h"
#include "client_shim/cudart/managed/managed_variables.h"
#include "client_shim/cudart/memory/host_register.h"
#include "client_shim/cudart/module/modules.h"
#include "client_shim/cudart/module/variable_address.h"
#include "client_shim/cudart/module/variable_copies.h"
#include "client_shim/cudart/stream/capture.h"
#include "client_shim/cudart/stream/streams.h"

namespace torpor::shim {
namespace {

cudaError_t UseRange(const void* symbol, std::uint64_t offset, std::uint64_t bytes,
                     const Variable*& variable) {
  TORPOR_TRY(UseVariable(symbol, variable));
  const bool inside = offset <= variable->bytes && bytes <= variable->bytes - offset;
  return inside ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t GetAddress(void** address, const void* symbol) {
  if (!address) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  if (ManagedVariableBytes(symbol) > 0) {
    *address = const_cast<void*>(symbol);
    return cudaSuccess;
  }
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

// The copy has the variable on its device side.
bool IsDirection(cudaMemcpyKind kind, cudaMemcpyKind between_host_and_device) {
  return kind == between_host_and_device || kind == cudaMemcpyDeviceToDevice ||
         kind == cudaMemcpyDefault;
}

// Where a managed variable's bytes are: its block is memory as any other. Null if it is none.
cudaError_t FindManaged(const void* symbol, std::uint64_t offset, std::uint64_t bytes,
                        std::uint8_t*& begin) {
  begin = nullptr;
  const std::uint64_t room = ManagedVariableBytes(symbol);
  if (room == 0) return cudaSuccess;
  if (offset > room || bytes > room - offset) return cudaErrorInvalidValue;
  begin = static_cast<std::uint8_t*>(const_cast<void*>(symbol)) + offset;
  return cudaSuccess;
}

// What a copy has to do with a variable.
struct SymbolCopy {
  const void* symbol;
  std::uint64_t offset;
  std::uint64_t bytes;
  cudaMemcpyKind kind;
  cudaStream_t stream;
  Wait wait;
};

// The stream, which must be of the device whose variable is meant.
cudaError_t UseStreamOf(const ClientCore& core, cudaStream_t handle, StreamPtr& stream) {
  TORPOR_TRY(UseStream(handle, stream));
  return &core == &Core() ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

// Sends a copy to the variable from memory that executors see.
cudaError_t SendToVariable(const VariablePart& part, const void* from, Side side,
                           std::uint64_t bytes) {
  wire::MemcpyToSymbol command;
  command.module = part.module;
  command.variable = part.name;
  command.stream = part.stream;
  command.variable_offset = part.offset;
  command.bytes = bytes;
  if (side == Side::kDevice) {
    command.device_source = Address(from);
  } else {
    command.payload = wire::Payload::kArena;
    command.offset = ArenaOffset(from);
  }
  return Send(command);
}

cudaError_t ToVariable(const VariablePart& part, const void* from, Side side, std::uint64_t bytes,
                       Wait wait) {
  if (side == Side::kPageable) return UploadToVariable(part, from, bytes);
  TORPOR_TRY(SendToVariable(part, from, side, bytes));
  const bool waits = side == Side::kArena && wait == Wait::kYes;
  return waits ? Ask(wire::StreamSynchronize{part.stream}) : cudaSuccess;
}

cudaError_t ToSymbol(const void* from, const SymbolCopy& copy) {
  TORPOR_TRY(Begin());
  if (!from) return cudaErrorInvalidValue;
  std::uint8_t* managed = nullptr;
  TORPOR_TRY(FindManaged(copy.symbol, copy.offset, copy.bytes, managed));
  if (managed) return CopyLinear(managed, from, copy.bytes, copy.kind, copy.stream, copy.wait);
  const Variable* variable = nullptr;
  TORPOR_TRY(UseRange(copy.symbol, copy.offset, copy.bytes, variable));
  const ClientCore& core = Core();
  from = ArenaAlias(from);
  const Place source = PlaceOf(from);
  if (copy.bytes > source.room) return cudaErrorInvalidValue;
  if (!IsDirection(copy.kind, cudaMemcpyHostToDevice)) return cudaErrorInvalidMemcpyDirection;
  if (copy.bytes == 0) return cudaSuccess;
  if (copy.wait == Wait::kNo && IsCapturing(copy.stream)) {
    std::uint8_t* to = nullptr;
    TORPOR_TRY(AddressIn(copy.symbol, copy.offset, to));
    return Capture(copy.stream, LinearCopy(to, from, copy.bytes, copy.kind));
  }
  StreamPtr stream;
  TORPOR_TRY(UseStreamOf(core, copy.stream, stream));
  const VariablePart part{variable->module->wire.here(), variable->name, copy.offset, stream->wire};
  return CopyBesideVariables(nullptr, 0, from, copy.bytes, copy.wait, [&](Wait wait) {
    return ToVariable(part, from, source.side, copy.bytes, wait);
  });
}

cudaError_t FromVariable(const VariablePart& part, void* to, Side side, const SymbolCopy& copy) {
  if (side != Side::kDevice) return DownloadFromVariable(part, to, copy.bytes);
  // Onto the device by way of the client: rare, and variables are small.
  std::vector<std::uint8_t> staging(copy.bytes);
  TORPOR_TRY(DownloadFromVariable(part, staging.data(), copy.bytes));
  return CopyLinear(to, staging.data(), copy.bytes, cudaMemcpyHostToDevice, copy.stream, Wait::kNo);
}

cudaError_t FromSymbol(void* to, const SymbolCopy& copy) {
  TORPOR_TRY(Begin());
  if (!to) return cudaErrorInvalidValue;
  std::uint8_t* managed = nullptr;
  TORPOR_TRY(FindManaged(copy.symbol, copy.offset, copy.bytes, managed));
  if (managed) return CopyLinear(to, managed, copy.bytes, copy.kind, copy.stream, copy.wait);
  const Variable* variable = nullptr;
  TORPOR_TRY(UseRange(copy.symbol, copy.offset, copy.bytes, variable));
  const ClientCore& core = Core();
  const Place target = PlaceOf(to);
  if (copy.bytes > target.room) return cudaErrorInvalidValue;
  if (!IsDirection(copy.kind, cudaMemcpyDeviceToHost)) return cudaErrorInvalidMemcpyDirection;
  if (copy.bytes == 0) return cudaSuccess;
  if (copy.wait == Wait::kNo && IsCapturing(copy.stream)) {
    std::uint8_t* from = nullptr;
    TORPOR_TRY(AddressIn(copy.symbol, copy.offset, from));
    return Capture(copy.stream, LinearCopy(to, from, copy.bytes, copy.kind));
  }
  StreamPtr stream;
  TORPOR_TRY(UseStreamOf(core, copy.stream, stream));
  const VariablePart part{variable->module->wire.here(), variable->name, copy.offset, stream->wire};
  return CopyBesideVariables(to, copy.bytes, nullptr, 0, copy.wait,
                             [&](Wait) { return FromVariable(part, to, target.side, copy); });
}

cudaError_t GetSize(std::size_t* size, const void* symbol) {
  if (!size) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  *size = ManagedVariableBytes(symbol);
  if (*size > 0) return cudaSuccess;
  const Variable* variable = nullptr;
  TORPOR_TRY(UseVariable(symbol, variable));
  *size = variable->bytes;
  return cudaSuccess;
}

}  // namespace
}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                               enum cudaMemcpyKind kind) {
  return Entry([&] {
    return ToSymbol(from, {symbol, offset, bytes, kind, cudaStreamLegacy, Wait::kYes});
  });
}

cudaError_t cudaMemcpyToSymbol_ptds(const void* symbol, const void* from, size_t bytes,
                                    size_t offset, enum cudaMemcpyKind kind) {
  return Entry([&] {
    return ToSymbol(from, {symbol, offset, bytes, kind, cudaStreamPerThread, Wait::kYes});
  });
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes,
                                    size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream) {
  return Entry([&] { return ToSymbol(from, {symbol, offset, bytes, kind, stream, Wait::kNo}); });
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                 enum cudaMemcpyKind kind) {
  return Entry([&] {
    return FromSymbol(to, {symbol, offset, bytes, kind, cudaStreamLegacy, Wait::kYes});
  });
}

cudaError_t cudaMemcpyFromSymbol_ptds(void* to, const void* symbol, size_t bytes, size_t offset,
                                      enum cudaMemcpyKind kind) {
  return Entry([&] {
    return FromSymbol(to, {symbol, offset, bytes, kind, cudaStreamPerThread, Wait::kYes});
  });
}

cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream) {
  return Entry([&] { return FromSymbol(to, {symbol, offset, bytes, kind, stream, Wait::kNo}); });
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  return Entry([&] { return GetAddress(address, symbol); });
}

cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  return Entry([&] { return GetSize(size, symbol); });
}
