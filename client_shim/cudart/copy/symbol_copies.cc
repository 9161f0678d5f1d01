#include <mutex>
#include <vector>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/copy/memcpy.h"
#include "client_shim/cudart/copy/submit_copy.h"
#include "client_shim/cudart/managed/managed_variables.h"
#include "client_shim/cudart/memory/host_register.h"
#include "client_shim/cudart/module/modules.h"
#include "client_shim/cudart/module/variable_address.h"
#include "client_shim/cudart/module/variable_copies.h"
#include "client_shim/cudart/stream/streams.h"

namespace torpor::shim {
namespace {

// Finds a variable, loads the module, and checks the range of bytes.
cudaError_t UseRange(const void* symbol, std::uint64_t offset, std::uint64_t bytes,
                     const ClientVariable*& variable) {
  TORPOR_TRY(UseVariable(symbol, variable));
  const bool inside = offset <= variable->bytes && bytes <= variable->bytes - offset;
  return inside ? cudaSuccess : cudaErrorInvalidValue;
}

// cudaGetSymbolAddress. A managed variable has the address of the program's block.
cudaError_t GetAddress(void** address, const void* symbol) {
  if (!address) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  if (ManagedVariableBytes(symbol) > 0) {
    *address = const_cast<void*>(symbol);
    return cudaSuccess;
  }
  const ClientVariable* variable = nullptr;
  TORPOR_TRY(UseVariable(symbol, variable));
  SymbolSpan span;
  TORPOR_TRY(FindVariable(*variable, span));
  *address = reinterpret_cast<void*>(span.begin);
  return cudaSuccess;
}

// Nodes of graphs copy variables by address.
cudaError_t AddressIn(const void* symbol, std::uint64_t offset, std::uint8_t*& address) {
  void* begin = nullptr;
  TORPOR_TRY(GetAddress(&begin, symbol));
  address = static_cast<std::uint8_t*>(begin) + offset;
  return cudaSuccess;
}

// Whether `kind` has the variable on the device side.
bool IsDirection(cudaMemcpyKind kind, cudaMemcpyKind between_host_and_device) {
  return kind == between_host_and_device || kind == cudaMemcpyDeviceToDevice ||
         kind == cudaMemcpyDefault;
}

// Finds the bytes of a managed variable, whose block is ordinary memory; null for other variables.
cudaError_t FindManaged(const void* symbol, std::uint64_t offset, std::uint64_t bytes,
                        std::uint8_t*& begin) {
  begin = nullptr;
  const std::uint64_t room = ManagedVariableBytes(symbol);
  if (room == 0) return cudaSuccess;
  if (offset > room || bytes > room - offset) return cudaErrorInvalidValue;
  begin = static_cast<std::uint8_t*>(const_cast<void*>(symbol)) + offset;
  return cudaSuccess;
}

// The arguments of a copy that concern the variable.
struct SymbolCopy {
  const void* symbol;
  std::uint64_t offset;
  std::uint64_t bytes;
  cudaMemcpyKind kind;
  cudaStream_t stream;
  Wait wait;
};

// Names the part of the variable, in the order of a stream of the variable's device.
cudaError_t UsePart(const ClientCore& core, const ClientVariable& variable, const SymbolCopy& copy,
                    cudaStream_t handle, VariablePart& part) {
  ClientStreamPtr stream;
  TORPOR_TRY(UseStream(handle, stream));
  if (&core != &Core()) return cudaErrorInvalidResourceHandle;
  part = {variable.module->wire.here(), variable.name, copy.offset, stream->wire};
  return cudaSuccess;
}

// Sends a copy to the variable from device memory or the arena.
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

// Copies to a variable from any kind of memory. Waits only for the arena, and only on request;
// pageable memory is read before the return.
cudaError_t ToVariable(const VariablePart& part, const void* from, Side side, std::uint64_t bytes,
                       Wait wait) {
  if (side == Side::kPageable) return UploadToVariable(part, from, bytes);
  TORPOR_TRY(SendToVariable(part, from, side, bytes));
  const bool waits = side == Side::kArena && wait == Wait::kYes;
  return waits ? Ask(wire::StreamSynchronize{part.stream}) : cudaSuccess;
}

// The work of a checked copy to a variable. Call with the module loaded.
struct ToSymbolWork {
  const SymbolCopy& copy;
  const ClientVariable& variable;
  const void* from = nullptr;
  Side side = Side::kPageable;
  const ClientCore& core;  // of the variable's device
  Wait wait = copy.wait;

  cudaError_t MakeNode(NodeWork& node) const {
    std::uint8_t* to = nullptr;
    TORPOR_TRY(AddressIn(copy.symbol, copy.offset, to));
    node = LinearCopyWork(to, from, copy.bytes, copy.kind);
    return cudaSuccess;
  }
  cudaError_t Send(cudaStream_t handle) const {
    VariablePart part;
    TORPOR_TRY(UsePart(core, variable, copy, handle, part));
    return CopyBesideVariables(nullptr, 0, from, copy.bytes, wait, [&](Wait needed) {
      return ToVariable(part, from, side, copy.bytes, needed);
    });
  }
};

cudaError_t ToSymbol(const void* from, const SymbolCopy& copy) {
  TORPOR_TRY(Begin());
  if (!from) return cudaErrorInvalidValue;
  std::uint8_t* managed = nullptr;
  TORPOR_TRY(FindManaged(copy.symbol, copy.offset, copy.bytes, managed));
  if (managed) return CopyLinear(managed, from, copy.bytes, copy.kind, copy.stream, copy.wait);
  const ClientVariable* variable = nullptr;
  TORPOR_TRY(UseRange(copy.symbol, copy.offset, copy.bytes, variable));
  const ClientCore& core = Core();
  from = ArenaAlias(from);
  const Place source = PlaceOf(from);
  if (copy.bytes > source.room) return cudaErrorInvalidValue;
  if (!IsDirection(copy.kind, cudaMemcpyHostToDevice)) return cudaErrorInvalidMemcpyDirection;
  if (copy.bytes == 0) return cudaSuccess;
  return SubmitCopy(copy.stream, ToSymbolWork{copy, *variable, from, source.side, core});
}

cudaError_t FromVariable(const VariablePart& part, void* to, Side side, const SymbolCopy& copy) {
  if (side != Side::kDevice) return DownloadFromVariable(part, to, copy.bytes);
  // To device memory by way of the client: such copies are rare, and variables small.
  std::vector<std::uint8_t> staging(copy.bytes);
  TORPOR_TRY(DownloadFromVariable(part, staging.data(), copy.bytes));
  return CopyLinear(to, staging.data(), copy.bytes, cudaMemcpyHostToDevice, copy.stream, Wait::kNo);
}

// The work of a checked copy from a variable. Call with the module loaded.
struct FromSymbolWork {
  const SymbolCopy& copy;
  const ClientVariable& variable;
  void* to = nullptr;
  Side side = Side::kPageable;
  const ClientCore& core;  // of the variable's device
  Wait wait = copy.wait;

  cudaError_t MakeNode(NodeWork& node) const {
    std::uint8_t* from = nullptr;
    TORPOR_TRY(AddressIn(copy.symbol, copy.offset, from));
    node = LinearCopyWork(to, from, copy.bytes, copy.kind);
    return cudaSuccess;
  }
  cudaError_t Send(cudaStream_t handle) const {
    VariablePart part;
    TORPOR_TRY(UsePart(core, variable, copy, handle, part));
    return CopyBesideVariables(to, copy.bytes, nullptr, 0, wait,
                               [&](Wait) { return FromVariable(part, to, side, copy); });
  }
};

cudaError_t FromSymbol(void* to, const SymbolCopy& copy) {
  TORPOR_TRY(Begin());
  if (!to) return cudaErrorInvalidValue;
  std::uint8_t* managed = nullptr;
  TORPOR_TRY(FindManaged(copy.symbol, copy.offset, copy.bytes, managed));
  if (managed) return CopyLinear(to, managed, copy.bytes, copy.kind, copy.stream, copy.wait);
  const ClientVariable* variable = nullptr;
  TORPOR_TRY(UseRange(copy.symbol, copy.offset, copy.bytes, variable));
  const ClientCore& core = Core();
  const Place target = PlaceOf(to);
  if (copy.bytes > target.room) return cudaErrorInvalidValue;
  if (!IsDirection(copy.kind, cudaMemcpyDeviceToHost)) return cudaErrorInvalidMemcpyDirection;
  if (copy.bytes == 0) return cudaSuccess;
  return SubmitCopy(copy.stream, FromSymbolWork{copy, *variable, to, target.side, core});
}

// cudaGetSymbolSize, for managed and other variables. In bytes.
cudaError_t GetSize(std::size_t* size, const void* symbol) {
  if (!size) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  *size = ManagedVariableBytes(symbol);
  if (*size > 0) return cudaSuccess;
  const ClientVariable* variable = nullptr;
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
