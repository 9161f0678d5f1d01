#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "proto/wire/codec.h"

// Messages between a session (client shim) and torpord on the Control stream. A frame is a u64
// message type, the index in the variant below, followed by the message's fields.
//
// The order of a session's life:
//   client  Hello                      ->  daemon opens the session on every executor
//   daemon  HelloReply                 ->  client reserves the addresses, maps the shared memory
//   client  HelloAck                   (not ok: the daemon closes the session)
//   client  LeaseRequest               a call needs a GPU and there is no lease
//   daemon  LeaseGrant                 explicit (a request came) or implicit (on demand)
//   client  LeaseAck                   only then does the router forward the request
//   daemon  SaveMemory                 a request was answered whose work must be in host memory
//   client  SaveMemoryReply            before the reply leaves
//   daemon  LeaseRevoke                explicit: the request is over; implicit: others wait
//   client  LeaseReturned              all batches flushed, the executor drained
//   daemon  LeaseLost                  the executor died; calls of this lease fail, or wait for the
//                                      next grant, which lets the client replay
// The life of a session whose torpord has died goes on with the next torpord:
//   client  Resume                     on a new connection
//   daemon  ResumeReply                whatever lease the session had is over, as by
//                                      LeaseLost{replays}
//   client  every request without an answer again, in the old order, under its old request_id; the
//           daemon answers each once, with the effect of one
// If the client was in the middle of a call that needs a GPU, or an explicit lease was suspended,
// it goes on as after LeaseLost{replays = HelloReply::replays}: it waits for the next LeaseGrant.
// That is an explicit one for a running request, which torpord queues again by itself; otherwise
// the client sends LeaseRequest anew.
// A program that sees several devices opens a session for each: the primary session as above, and a
// secondary session at the first use of another device, with a DeviceHello that names the primary
// session. A program that only lists devices sends an Inquiry instead and has no session.
// Requests with a request_id get exactly one reply with the same id, in any order.
namespace torpor::wire {

// Version of all messages between processes, the call table included. Grows with a release that
// changes fields of a message or command, since both sides refuse bytes that do not decode whole;
// new commands do not need a new version. Hello, and a HelloReply that refuses, are the same in all
// versions, as both report a difference of versions.
inline constexpr std::uint32_t kProtocolVersion = 6;
inline constexpr int kMaxDevices = 16;  // of one program

// A device as presented to the program.
struct DeviceDescription {
  std::string name;
  std::array<std::uint8_t, 16> uuid{};
  std::uint64_t total_bytes = 0;
  std::vector<std::int32_t> attributes;  // indexed by CUdevice_attribute
  std::int32_t driver_version = 0;
  std::string pci_bus_id;

  template <typename V>
  void Visit(V& v) {
    v(name), v(uuid), v(total_bytes), v(attributes), v(driver_version), v(pci_bus_id);
  }
};

struct Hello {
  std::uint32_t protocol_version = kProtocolVersion;
  std::string token;  // names the function; may be empty if the daemon allows
  std::uint64_t process_id = 0;
  std::string program;  // for logs

  template <typename V>
  void Visit(V& v) {
    v(protocol_version), v(token), v(process_id), v(program);
  }
};

// In place of Hello, opens a secondary session of a process.
struct DeviceHello {
  Hello hello;
  std::uint64_t primary_session = 0;  // the process's primary session, with the key
  std::array<std::uint8_t, 16> primary_key{};
  std::int32_t device = 0;  // index in the primary session's HelloReply::devices; not 0

  template <typename V>
  void Visit(V& v) {
    v(hello), v(primary_session), v(primary_key), v(device);
  }
};

// A refusal ends behind `message`.
struct HelloReply {
  std::int32_t error = 0;  // cudaError_t; not 0: not open, for the reason in `message`
  std::string message;
  std::uint64_t session_id = 0;
  std::array<std::uint8_t, 16> session_key{};  // shown to executors and the descriptor socket
  std::string function;
  std::string descriptor_socket;  // path of the descriptor socket
  // Where memory of sessions can lie, the same for all sessions of the node: keep
  // [device_base, device_base + device_bytes) free, and map the host arena at host_base.
  std::uint64_t device_base = 0;
  std::uint64_t device_bytes = 0;
  std::uint64_t memory_limit = 0;  // bytes the session's function may allocate
  std::uint64_t host_base = 0;
  std::uint64_t host_bytes = 0;            // 0 for a secondary session
  std::uint64_t window_bytes = 0;          // completion page and payload ring, anywhere
  std::vector<DeviceDescription> devices;  // what cudaGetDeviceCount counts
  bool is_emulated = false;                // the devices run PTX, no machine code
  bool has_peer_access = false;            // devices reach each other's memory
  bool replays = false;                    // after a loss of the GPU the client replays its calls

  template <typename V>
  void Visit(V& v) {
    v(error), v(message);
    if (error != 0) return;
    v(session_id), v(session_key), v(function), v(descriptor_socket);
    v(device_base), v(device_bytes), v(memory_limit), v(host_base), v(host_bytes), v(window_bytes);
    v(devices), v(is_emulated), v(has_peer_access), v(replays);
  }
};

// In place of Hello, asks for the function's devices. The daemon answers with an InquiryReply, or
// with a HelloReply that refuses, and closes the connection.
struct Inquiry {
  Hello hello;

  template <typename V>
  void Visit(V& v) {
    v(hello);
  }
};

struct InquiryReply {
  std::vector<DeviceDescription> devices;  // as in a HelloReply
  std::vector<std::uint64_t> free_bytes;   // of each device: bytes left to allocate
  bool is_emulated = false;

  template <typename V>
  void Visit(V& v) {
    v(devices), v(free_bytes), v(is_emulated);
  }
};

// In place of Hello, goes on with a session whose torpord has gone, on a new connection. A client
// sends it until a torpord has answered, for as long as it is patient.
struct Resume {
  Hello hello;  // as the session's own
  std::uint64_t session_id = 0;
  std::array<std::uint8_t, 16> session_key{};

  template <typename V>
  void Visit(V& v) {
    v(hello), v(session_id), v(session_key);
  }
};

// A refusal ends behind `message`: the session is lost for good.
struct ResumeReply {
  std::int32_t error = 0;  // cudaError_t
  std::string message;
  std::uint64_t saved_command = 0;  // as LeaseGrant::saved_command

  template <typename V>
  void Visit(V& v) {
    v(error), v(message);
    if (error != 0) return;
    v(saved_command);
  }
};

struct HelloAck {
  std::int32_t error = 0;  // cudaError_t
  std::string message;

  template <typename V>
  void Visit(V& v) {
    v(error), v(message);
  }
};

struct LeaseRequest {
  template <typename V>
  void Visit(V&) {}
};

struct LeaseGrant {
  std::uint64_t lease_id = 0;
  bool is_explicit = false;
  std::int32_t gpu = -1;             // node-wide index, for logs
  std::uint64_t executor_epoch = 0;  // another epoch at the same socket is another process
  std::string executor_socket;       // where Execution is served
  // The host image equals the session's memory after this command (BatchHeader), or is about to be
  // changed by none but later ones.
  std::uint64_t saved_command = 0;
  // The GPU has the memory as of `saved_command` only: the client replays all later commands.
  bool replays = false;

  template <typename V>
  void Visit(V& v) {
    v(lease_id), v(is_explicit), v(gpu), v(executor_epoch), v(executor_socket);
    v(saved_command), v(replays);
  }
};

struct LeaseAck {
  std::uint64_t lease_id = 0;

  template <typename V>
  void Visit(V& v) {
    v(lease_id);
  }
};

struct LeaseRevoke {
  std::uint64_t lease_id = 0;

  template <typename V>
  void Visit(V& v) {
    v(lease_id);
  }
};

struct LeaseReturned {
  std::uint64_t lease_id = 0;

  template <typename V>
  void Visit(V& v) {
    v(lease_id);
  }
};

struct LeaseLost {
  std::uint64_t lease_id = 0;
  std::int32_t error = 0;  // cudaError_t for the calls of this lease
  bool sticky = false;     // true: the session is lost for good
  std::string message;
  bool replays = false;  // the next grant lets the client replay: the calls of this lease wait

  template <typename V>
  void Visit(V& v) {
    v(lease_id), v(error), v(sticky), v(message), v(replays);
  }
};

// A write-back has ended: as LeaseGrant::saved_command.
struct MemorySaved {
  std::uint64_t saved_command = 0;

  template <typename V>
  void Visit(V& v) {
    v(saved_command);
  }
};

// Asks that the host image get all that the session has done up to now. Answered once.
struct SaveMemory {
  std::uint64_t save_id = 0;  // for the answer; never used again while the daemon lives

  template <typename V>
  void Visit(V& v) {
    v(save_id);
  }
};

struct SaveMemoryReply {
  enum Outcome : std::uint32_t {
    kSaved = 0,
    kNoLease = 1,  // the session has no GPU: the daemon knows what is missing
    kFailed = 2,
  };
  std::uint64_t save_id = 0;
  std::uint32_t outcome = kSaved;
  std::string message;  // of kFailed

  template <typename V>
  void Visit(V& v) {
    v(save_id), v(outcome), v(message);
  }
};

// The client cannot replay what the session has done since the host image was saved: the session
// has a sticky error from now on.
struct ReplayFailed {
  std::string reason;

  template <typename V>
  void Visit(V& v) {
    v(reason);
  }
};

// Device memory. Needs no lease. The address is 512-byte aligned.
struct Malloc {
  std::uint64_t request_id = 0;
  std::uint64_t bytes = 0;

  template <typename V>
  void Visit(V& v) {
    v(request_id), v(bytes);
  }
};

// The caller has synchronised: no running work uses the memory any more.
struct Free {
  std::uint64_t request_id = 0;
  std::uint64_t address = 0;

  template <typename V>
  void Visit(V& v) {
    v(request_id), v(address);
  }
};

// Memory of the host arena, mapped at the same address in client and executors. 4 KiB aligned.
struct HostAlloc {
  std::uint64_t request_id = 0;
  std::uint64_t bytes = 0;

  template <typename V>
  void Visit(V& v) {
    v(request_id), v(bytes);
  }
};

struct HostFree {
  std::uint64_t request_id = 0;
  std::uint64_t address = 0;

  template <typename V>
  void Visit(V& v) {
    v(request_id), v(address);
  }
};

// Answers Malloc, Free, HostAlloc and HostFree.
struct MemoryReply {
  std::uint64_t request_id = 0;
  std::int32_t error = 0;  // cudaError_t
  std::string message;
  std::uint64_t address = 0;

  template <typename V>
  void Visit(V& v) {
    v(request_id), v(error), v(message), v(address);
  }
};

struct MemGetInfo {
  std::uint64_t request_id = 0;

  template <typename V>
  void Visit(V& v) {
    v(request_id);
  }
};

struct MemGetInfoReply {
  std::uint64_t request_id = 0;
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;

  template <typename V>
  void Visit(V& v) {
    v(request_id), v(free_bytes), v(total_bytes);
  }
};

// Lets other processes of the function open the device memory that begins at `address`.
struct ShareMemory {
  std::uint64_t request_id = 0;
  std::uint64_t address = 0;

  template <typename V>
  void Visit(V& v) {
    v(request_id), v(address);
  }
};

struct ShareMemoryReply {
  std::uint64_t request_id = 0;
  std::int32_t error = 0;  // cudaError_t
  std::string message;
  std::array<std::uint8_t, 16> token{};  // constant while the memory is allocated

  template <typename V>
  void Visit(V& v) {
    v(request_id), v(error), v(message), v(token);
  }
};

// Opens device memory that another process of the function has shared. Sent once per process, by
// the primary session, whatever the device.
struct OpenMemory {
  std::uint64_t request_id = 0;
  std::uint64_t owner_session = 0;
  std::uint64_t address = 0;
  std::array<std::uint8_t, 16> token{};

  template <typename V>
  void Visit(V& v) {
    v(request_id), v(owner_session), v(address), v(token);
  }
};

struct OpenMemoryReply {
  std::uint64_t request_id = 0;
  std::int32_t error = 0;  // cudaError_t
  std::string message;
  std::uint64_t bytes = 0;  // from the address on, the same address in all processes
  std::int32_t device = 0;  // of the memory, as the function counts devices

  template <typename V>
  void Visit(V& v) {
    v(request_id), v(error), v(message), v(bytes), v(device);
  }
};

// The caller has synchronised, as for Free. Answered by a MemoryReply.
struct CloseMemory {
  std::uint64_t request_id = 0;
  std::uint64_t owner_session = 0;
  std::uint64_t address = 0;

  template <typename V>
  void Visit(V& v) {
    v(request_id), v(owner_session), v(address);
  }
};

// Append only: the index is the type on the wire.
using ClientMessage =
    std::variant<Hello, HelloAck, LeaseRequest, LeaseAck, LeaseReturned, Malloc, Free, HostAlloc,
                 HostFree, MemGetInfo, DeviceHello, ShareMemory, OpenMemory, CloseMemory, Inquiry,
                 ReplayFailed, Resume, SaveMemoryReply>;
using ServerMessage = std::variant<HelloReply, LeaseGrant, LeaseRevoke, LeaseLost, MemoryReply,
                                   MemGetInfoReply, ShareMemoryReply, OpenMemoryReply, InquiryReply,
                                   MemorySaved, ResumeReply, SaveMemory>;

template <typename Message>
std::vector<std::uint8_t> EncodeMessage(const Message& message) {
  std::vector<std::uint8_t> bytes;
  Writer writer(bytes);
  writer(static_cast<std::uint64_t>(message.index()));
  std::visit([&](const auto& alternative) { writer(alternative); }, message);
  return bytes;
}

// Decodes one message. Returns false if the bytes are not exactly one message of a known type;
// `message` is unspecified then.
template <typename Message, std::size_t... I>
bool DecodeMessage(std::span<const std::uint8_t> bytes, Message& message,
                   std::index_sequence<I...>) {
  Reader reader(bytes);
  std::uint64_t type = 0;
  reader(type);
  if (!reader.ok() || type >= sizeof...(I)) return false;
  ((type == I ? reader(message.template emplace<I>()) : void()), ...);
  return reader.done();
}
template <typename Message>
bool DecodeMessage(std::span<const std::uint8_t> bytes, Message& message) {
  return DecodeMessage(bytes, message, std::make_index_sequence<std::variant_size_v<Message>>());
}

}  // namespace torpor::wire
