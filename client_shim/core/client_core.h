#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "proto/wire/control_messages.h"

// The seam between the replacement libraries (libcudart, libcublas, ...) and libtorpor_client.so.
// The latter holds the sessions: transport, batches, leases, shared memory and the journal.
namespace torpor::shim {

// Kinds of client-minted handles. The kind is part of the handle's value, so that a handle of the
// wrong kind is recognised without a look-up.
enum class HandleKind : std::uint8_t {
  kStream = 1,
  kEvent = 2,
  kModule = 3,
  kKernel = 4,
  kCublas = 5,
  kCublasLt = 6,
  kCudnn = 7,
  kGraph = 8,
  kArray = 16,
  kTextureObject = 17,  // texture or surface
};

constexpr std::uint64_t kHandleSerialBits = 48;
constexpr HandleKind KindOf(std::uint64_t handle) {
  return static_cast<HandleKind>(handle >> kHandleSerialBits);
}

struct WindowPiece;

// The encoded fields of a command (without its CommandHeader), see proto/wire/batch.h.
struct Command {
  std::uint32_t call_id = 0;
  std::span<const std::uint8_t> fields;
  const WindowPiece* piece = nullptr;  // the piece whose slot and value the command carries
};

// The executor's reply to a SYNC command.
struct CallReply {
  std::int32_t status = 0;  // the call's own result, in its library's enumeration
  std::string message;
  std::vector<std::uint8_t> result;
};

// A piece of the payload ring, through which bulk bytes travel.
struct WindowPiece {
  std::uint8_t* data = nullptr;
  std::uint64_t offset = 0;  // from the window's begin, as in commands
  std::uint64_t bytes = 0;   // at least 1, at most the requested size
  // A command that reads the piece asynchronously must carry both. The piece is free again when the
  // executor has written `value` to completion slot `slot`.
  std::uint32_t slot = 0;
  std::uint64_t value = 0;
};

// The gate in front of every stream for the work of the other libraries: libcudart captures the
// work of streams into graphs, and delays work behind host functions of the program. Streams are
// named by their handles. Thread-safe.
class StreamGate {
 public:
  virtual ~StreamGate() = default;
  virtual bool IsCapturing(std::uint64_t stream) = 0;
  // Takes a STREAM command in place of Enqueue. Graphs with this command keep `needed` alive, which
  // may be null.
  virtual cudaError_t Capture(std::uint64_t stream, const Command& command,
                              std::shared_ptr<const void> needed) = 0;
  // Called before Enqueue or Call: waits until the client has done all earlier work of the stream,
  // such as host functions. Returns CUDA's error, upon which nothing may be sent, if the command
  // would disturb a capture; the capture is then invalid.
  virtual cudaError_t Await(std::uint64_t stream) = 0;
};

// The session for one device of the program. Handles are unique in the process, addresses on the
// node. Thread-safe. Every function that can fail returns a cudaError_t: cudaErrorNoDevice if no
// daemon answers, the session's sticky error after a fatal failure, an initialisation error in a
// forked child. No call hangs for ever.
class ClientCore {
 public:
  virtual ~ClientCore() = default;

  // Opens the session unless it is open. Every entry point that needs the session calls Start
  // first.
  virtual cudaError_t Start() = 0;

  // Whether Start has succeeded.
  virtual bool IsOpen() const = 0;

  // The daemon's description of the session; valid after Start succeeded.
  virtual const wire::HelloReply& session() const = 0;

  // The program's devices: the function's devices as filtered and ordered by CUDA_VISIBLE_DEVICES.
  // Valid after Start succeeded.
  virtual const std::vector<wire::DeviceDescription>& devices() const = 0;

  // The device's index in devices(). OfDevice returns the core for another index, null if the index
  // is out of range; the caller starts that core. Valid after Start succeeded.
  virtual int device() const = 0;
  virtual ClientCore* OfDevice(int device) = 0;
  // Makes torpor_client_core() return this core on the calling thread.
  virtual void MakeCurrent() = 0;

  // Asks the daemon for the present state of all devices of the function. Opens no session and
  // works in a forked child too. Returns Start's errors.
  virtual cudaError_t Inquire(wire::InquiryReply& reply) const = 0;
  // The core for device `index` of Inquire's reply; null unless that core is open in this process.
  virtual ClientCore* FindOpen(int index) = 0;

  virtual std::uint64_t MintHandle(HandleKind kind) = 0;

  // Appends a STREAM command to the batch. May wait for room or for a lease.
  virtual cudaError_t Enqueue(const Command& command) = 0;

  // Flushes, sends a SYNC command and waits for the reply. The return value is the transport's:
  // after cudaSuccess `reply` holds the result of the call itself. An error of an earlier
  // asynchronous call in the reply is kept for TakeAsyncError.
  virtual cudaError_t Call(const Command& command, CallReply& reply) = 0;

  // Sends the batch without waiting for completion.
  virtual cudaError_t Flush() = 0;

  // The number of commands enqueued or called so far by all threads and libraries.
  virtual std::uint64_t CommandCount() const = 0;

  // True if no lease is held: every command ever enqueued is then complete.
  virtual bool IsDrained() const = 0;

  // This process's use of the device; valid after Start succeeded.
  struct Use {
    std::uint64_t allocated_bytes = 0;  // device memory allocated and not freed
    double recent_share = 0;            // fraction of the last second with a lease held, 0 to 1
  };
  virtual Use CurrentUse() const = 0;

  // The journal: the objects and settings that an executor must know before it can serve this
  // session. `Create` and `Configure` also enqueue the command if a lease is held, and never wait
  // for one. A later Configure with the same call id and key replaces the earlier one.
  virtual cudaError_t Create(std::uint64_t handle, const Command& create) = 0;
  cudaError_t Configure(std::uint64_t handle, const Command& setting) {
    return Configure(handle, setting, 0);
  }
  virtual cudaError_t Configure(std::uint64_t handle, const Command& setting,
                                std::uint64_t key) = 0;
  // Forgets the handle and enqueues `destroy`. A `destroy` without a call id is not sent: executors
  // forget the object together with its owner. Returns cudaErrorInvalidResourceHandle if the handle
  // is unknown.
  virtual cudaError_t Destroy(std::uint64_t handle, const Command& destroy) = 0;
  virtual bool IsLive(std::uint64_t handle) const = 0;

  // Returns the first unreported error of an asynchronous call and clears the error unless sticky.
  virtual cudaError_t TakeAsyncError() = 0;

  // Marks the calling thread's further calls as the shim's own (`quiet`) or the program's. Errors
  // of quiet calls are still unreported to the program, and TakeAsyncError returns cudaSuccess to a
  // quiet thread. Returns the previous mark.
  virtual bool SetQuiet(bool quiet) = 0;

  // Reserves room in the payload ring for up to `bytes`; waits until earlier pieces are free.
  virtual cudaError_t AcquireWindow(std::uint64_t bytes, WindowPiece& piece) = 0;
  // Frees a piece that no asynchronous command reads (after downloads and failed calls).
  virtual void ReleaseWindow(const WindowPiece& piece) = 0;

  // Completion slots. AllotSlot returns 0 if all are taken but the ones kept for pieces. A command
  // carries a slot with the slot's next value; SlotValue needs no system call. After the loss of a
  // lease all values count as reached, and TakeAsyncError returns the loss.
  virtual std::uint32_t AllotSlot() = 0;
  virtual void FreeSlot(std::uint32_t slot) = 0;
  virtual std::uint64_t NextSlotValue(std::uint32_t slot) = 0;
  virtual std::uint64_t SlotValue(std::uint32_t slot) const = 0;

  // Memory, in bytes and addresses of the program; answered by torpord without a lease.
  virtual cudaError_t Malloc(std::uint64_t bytes, std::uint64_t& address) = 0;
  virtual cudaError_t Free(std::uint64_t address) = 0;
  virtual cudaError_t HostAlloc(std::uint64_t bytes, std::uint64_t& address) = 0;
  virtual cudaError_t HostFree(std::uint64_t address) = 0;
  // Frees all device and pinned memory of this device, and closes its opened memory of other
  // processes; the caller has ended all use. Stops at the first error. Free and HostFree accept
  // addresses of any device.
  virtual cudaError_t FreeAll() = 0;
  virtual cudaError_t MemGetInfo(std::uint64_t& free_bytes, std::uint64_t& total_bytes) = 0;

  // A live allocation [begin, begin + bytes) of device or host-arena memory. FindAllocation finds
  // the allocation that contains `address`; false if the address is no memory of this process.
  struct Allocation {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    bool on_device = false;
    int device = 0;           // the device that the memory was allocated for
    bool is_foreign = false;  // allocated by another process and opened here
  };
  virtual bool FindAllocation(std::uint64_t address, Allocation& allocation) const = 0;

  // Memory that processes of the function share. ShareMemory's handle lets other processes open the
  // allocation of this device that begins at `address`. OpenMemory adds the allocation to the
  // opening process at the same address, until as many CloseMemory; the caller has then ended all
  // use. OpenMemory returns cudaErrorDeviceUninitialized in the process that allocated the memory.
  struct MemoryHandle {
    std::uint64_t owner_session = 0;
    std::uint64_t address = 0;
    std::array<std::uint8_t, 16> token{};
  };
  virtual cudaError_t ShareMemory(std::uint64_t address, MemoryHandle& handle) = 0;
  virtual cudaError_t OpenMemory(const MemoryHandle& handle, Allocation& opened) = 0;
  virtual cudaError_t CloseMemory(std::uint64_t address) = 0;
  // Whether only this session reaches its device's memory: the function has no other device, and
  // no memory was ever shared.
  virtual bool HasMemoryAlone() const = 0;

  // The handle of the calling thread's per-thread default stream, created at first use and
  // destroyed with the thread. A core must outlive all threads with such a stream.
  virtual std::uint64_t PerThreadStream() = 0;

  // Writes `message` to stderr, prefixed, at most once for the same `key`.
  virtual void WarnOnce(const std::string& key, const std::string& message) = 0;

  // The gate for all devices, held by the first device's core. Null until a program first captures
  // a stream or enqueues a host function; constant from then on.
  StreamGate* stream_gate() const { return stream_gate_.load(std::memory_order_acquire); }
  void SetStreamGate(StreamGate* gate) { stream_gate_ = gate; }

 private:
  std::atomic<StreamGate*> stream_gate_{nullptr};
};

}  // namespace torpor::shim

// The core of the calling thread's current device; never null, and nothing is started before
// ClientCore::Start. Exported by libtorpor_client.so (version node TORPOR_CLIENT_1), as is the
// tracer.
extern "C" torpor::shim::ClientCore* torpor_client_core();
