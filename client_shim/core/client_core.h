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

// The seam between the replacement libraries (libcudart, libcublas, ...) and libtorpor_client.so,
// which holds the session: transport, batches, leases, shared memory and the journal.
namespace torpor::shim {

// Kinds of client-minted handles; part of the handle's value, so that a handle of the wrong kind
// is recognised without a look-up.
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
  kImageObject = 17,  // a texture or surface
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

// What a SYNC command was answered.
struct CallReply {
  std::int32_t status = 0;  // the call's own result, in its library's enumeration
  std::string message;
  std::vector<std::uint8_t> result;
};

// A piece of the payload ring, in which bulk bytes travel.
struct WindowPiece {
  std::uint8_t* data = nullptr;
  std::uint64_t offset = 0;  // from the window's begin, as commands name it
  std::uint64_t bytes = 0;   // may be less than asked for; at least 1
  // A command that reads the piece asynchronously must carry these; the piece is free again when
  // the executor has written `value` to completion slot `slot`.
  std::uint32_t slot = 0;
  std::uint64_t value = 0;
};

// What the other libraries' work on a stream must pass: libcudart turns the work of streams into
// graphs, and holds back what comes behind functions of the program. Streams are named by their
// handles. Thread-safe.
class StreamGate {
 public:
  virtual ~StreamGate() = default;
  virtual bool IsCapturing(std::uint64_t stream) = 0;
  // Takes a STREAM command in place of Enqueue. Graphs that have it keep `needed`, which may be
  // null, alive.
  virtual cudaError_t Capture(std::uint64_t stream, const Command& command,
                              std::shared_ptr<const void> needed) = 0;
  // Before Enqueue or Call: waits for what a command of the stream must follow and the client has
  // still to do. CUDA's error, upon which nothing may be sent, where the command would disturb a
  // capture, which breaks.
  virtual cudaError_t Await(std::uint64_t stream) = 0;
};

// The session for one device of the program. Handles are unique in the process, addresses on the
// node. Thread-safe. Every function that can fail returns a cudaError_t: cudaErrorNoDevice where no
// daemon answers, the session's sticky error once there is one, an initialisation error in a
// forked child. None hangs for ever.
class ClientCore {
 public:
  virtual ~ClientCore() = default;

  // Opens the session if it is not open yet. Called first by every entry point that needs it.
  virtual cudaError_t Start() = 0;

  // Whether Start has succeeded.
  virtual bool IsOpen() const = 0;

  // What the daemon said of the session; valid after Start succeeded.
  virtual const wire::HelloReply& session() const = 0;

  // The program's devices: those of the function that CUDA_VISIBLE_DEVICES leaves, in its order.
  // Valid after Start succeeded.
  virtual const std::vector<wire::DeviceDescription>& devices() const = 0;

  // The device's index in devices(), and the core of another one: null if there is none of that
  // index. Valid after Start succeeded; what it gives is started by itself.
  virtual int device() const = 0;
  virtual ClientCore* OfDevice(int device) = 0;
  // torpor_client_core() is this one from now on, on the calling thread.
  virtual void MakeCurrent() = 0;

  // What the daemon says of all devices of the function now. Opens no session and works in a forked
  // child too. Start's errors.
  virtual cudaError_t Inquire(wire::InquiryReply& reply) const = 0;
  // The core for one of those devices, by its index there; null unless it is open in this process.
  virtual ClientCore* FindOpen(int index) = 0;

  virtual std::uint64_t MintHandle(HandleKind kind) = 0;

  // Appends a STREAM command to the batch. May wait for room or for a lease.
  virtual cudaError_t Enqueue(const Command& command) = 0;

  // Flushes, sends a SYNC command and waits for its reply. The return value is the transport's:
  // cudaSuccess means that `reply` is filled in and says how the call itself went. An error of an
  // earlier asynchronous call that the reply reports is kept for TakeAsyncError.
  virtual cudaError_t Call(const Command& command, CallReply& reply) = 0;

  // Sends what is batched without waiting for it.
  virtual cudaError_t Flush() = 0;

  // How many commands were enqueued or called so far, by all threads and libraries.
  virtual std::uint64_t CommandCount() const = 0;

  // True if no lease is held, and therefore everything that was ever enqueued is complete.
  virtual bool IsDrained() const = 0;

  // How far this process uses the device; valid after Start succeeded.
  struct Use {
    std::uint64_t allocated_bytes = 0;  // device memory that it has allocated and not freed
    double recent_share = 0;            // of the last second, the part in which it held a lease
  };
  virtual Use CurrentUse() const = 0;

  // The journal: what an executor must be told before it can serve this session. `Create` and
  // `Configure` also enqueue the command now (with no wait for a lease where there is none: then
  // the journal alone is enough). A later Configure with the same call id and key replaces the
  // earlier one.
  virtual cudaError_t Create(std::uint64_t handle, const Command& create) = 0;
  cudaError_t Configure(std::uint64_t handle, const Command& setting) {
    return Configure(handle, setting, 0);
  }
  virtual cudaError_t Configure(std::uint64_t handle, const Command& setting,
                                std::uint64_t key) = 0;
  // Forgets the handle and enqueues `destroy`. One without a call id is not sent: executors
  // forget the object with the one that it belongs to. cudaErrorInvalidResourceHandle if the
  // handle is unknown.
  virtual cudaError_t Destroy(std::uint64_t handle, const Command& destroy) = 0;
  virtual bool IsLive(std::uint64_t handle) const = 0;

  // The first unreported error of an asynchronous call, and forgets it unless it is sticky.
  virtual cudaError_t TakeAsyncError() = 0;

  // Whether the calling thread's calls are the shim's own from now on: of an error that meets them
  // the program has still to be told, and TakeAsyncError takes none. Gives what was so before.
  virtual bool SetQuiet(bool quiet) = 0;

  // Room in the payload ring for up to `bytes`; waits until earlier pieces are free.
  virtual cudaError_t AcquireWindow(std::uint64_t bytes, WindowPiece& piece) = 0;
  // Frees a piece that no asynchronous command reads (downloads, failed calls).
  virtual void ReleaseWindow(const WindowPiece& piece) = 0;

  // Completion slots; 0 is none and is answered where all are taken (but for those of pieces).
  // Commands carry a slot with its next value; the current value is read without a system call.
  // Values of a lost lease count as reached: TakeAsyncError tells.
  virtual std::uint32_t AllotSlot() = 0;
  virtual void FreeSlot(std::uint32_t slot) = 0;
  virtual std::uint64_t NextSlotValue(std::uint32_t slot) = 0;
  virtual std::uint64_t SlotValue(std::uint32_t slot) const = 0;

  // Memory; answered by torpord, no lease needed. Addresses are the program's own.
  virtual cudaError_t Malloc(std::uint64_t bytes, std::uint64_t& address) = 0;
  virtual cudaError_t Free(std::uint64_t address) = 0;
  virtual cudaError_t HostAlloc(std::uint64_t bytes, std::uint64_t& address) = 0;
  virtual cudaError_t HostFree(std::uint64_t address) = 0;
  // Frees all device and pinned memory that was allocated here, and closes what is open, which
  // nothing uses any more. Stops at the first error. Free and HostFree take any device's.
  virtual cudaError_t FreeAll() = 0;
  virtual cudaError_t MemGetInfo(std::uint64_t& free_bytes, std::uint64_t& total_bytes) = 0;

  // Where an address lies: the live allocation [begin, begin + bytes) that contains it, whether it
  // is device or host-arena memory, and for which device it was allocated. False: no memory of
  // this process.
  struct Allocation {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    bool on_device = false;
    int device = 0;
    bool is_foreign = false;  // another process's, which this one has open
  };
  virtual bool FindAllocation(std::uint64_t address, Allocation& allocation) const = 0;

  // Memory that processes of the function share. The handle lets others open the allocation of this
  // device that begins at `address`; with OpenMemory it is one of theirs too, at the same address,
  // until as many CloseMemory, when nothing of theirs uses it any more.
  // cudaErrorDeviceUninitialized from the process that allocated it.
  struct MemoryHandle {
    std::uint64_t owner_session = 0;
    std::uint64_t address = 0;
    std::array<std::uint8_t, 16> token{};
  };
  virtual cudaError_t ShareMemory(std::uint64_t address, MemoryHandle& handle) = 0;
  virtual cudaError_t OpenMemory(const MemoryHandle& handle, Allocation& opened) = 0;
  virtual cudaError_t CloseMemory(std::uint64_t address) = 0;
  // Whether nobody but this session reaches its device's memory: the program has no other device,
  // and none of it was ever shared.
  virtual bool HasMemoryAlone() const = 0;

  // The handle of the calling thread's per-thread default stream, created at first use and
  // destroyed with the thread, which a core that can end must outlive.
  virtual std::uint64_t PerThreadStream() = 0;

  // A line on stderr, prefixed, at most once for the same `key`.
  virtual void WarnOnce(const std::string& key, const std::string& message) = 0;

  // Of the first device's core, for all. Null until a program first captures or queues a function
  // of its own; then the same for ever.
  StreamGate* stream_gate() const { return stream_gate_.load(std::memory_order_acquire); }
  void SetStreamGate(StreamGate* gate) { stream_gate_ = gate; }

 private:
  std::atomic<StreamGate*> stream_gate_{nullptr};
};

}  // namespace torpor::shim

// What libtorpor_client.so exports (version node TORPOR_CLIENT_1), beside the tracer: the core of
// the calling thread's current device. Never null; nothing is started before ClientCore::Start.
extern "C" torpor::shim::ClientCore* torpor_client_core();
