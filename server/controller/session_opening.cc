#include "server/controller/session_opening.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/secret.h"
#include "server/controller/model/cuda_errors.h"

namespace torpor::server {

std::string Describe(const ClientSession& session) {
  return absl::StrCat("session ", session.id.value, " (", session.program, ", process ",
                      session.process_id, ")");
}

SessionOpening::SessionOpening(Options options, InstanceTable& instances,
                               const SessionTable& sessions, ExecutorTable& executors,
                               IsolationDomains& domains, DomainSeats& seats,
                               InstanceHealth& health, const MemoryLimits& limits,
                               SessionStorage& storage, SessionJournal& journal,
                               Telemetry& telemetry, TaskLoop& loop, Close close)
    : options_(std::move(options)),
      quotas_(instances, options_.max_sessions),
      instances_(instances),
      sessions_(sessions),
      executors_(executors),
      domains_(domains),
      seats_(seats),
      health_(health),
      limits_(limits),
      storage_(storage),
      journal_(journal),
      loop_(loop),
      close_(std::move(close)),
      wrong_tokens_(loop, telemetry, [this](const SessionPtr& session) {
        Refuse(session, kCudaErrorNotPermitted,
               "torpord knows no function with this token (TORPOR_TOKEN)");
      }) {}

void SessionOpening::Greet(const SessionPtr& session, const wire::Hello& hello) {
  Greet(session, hello, nullptr);
}

void SessionOpening::Greet(const SessionPtr& session, const wire::DeviceHello& hello) {
  Greet(session, hello.hello, &hello);
}

void SessionOpening::Greet(const SessionPtr& session, const wire::Inquiry& inquiry) {
  session->is_inquiry = true;
  Greet(session, inquiry.hello, nullptr);
}

void SessionOpening::Greet(const SessionPtr& session, const wire::Hello& hello,
                           const wire::DeviceHello* secondary) {
  session->process_id = hello.process_id;
  session->program = hello.program.substr(0, 256);
  if (hello.protocol_version != wire::kProtocolVersion) {
    return Refuse(session, kCudaErrorInsufficientDriver,
                  absl::StrCat("the client library speaks protocol ", hello.protocol_version,
                               ", this torpord ", wire::kProtocolVersion,
                               "; install the same version of both"));
  }
  const FunctionInstance* const instance = InstanceForToken(hello.token);
  if (!instance && !hello.token.empty()) return wrong_tokens_.Add(session);
  if (!instance) {
    return Refuse(session, kCudaErrorNotPermitted,
                  "torpord serves no programs without a token; set TORPOR_TOKEN");
  }
  if (is_stopped_) {
    return Refuse(session, kCudaErrorDevicesUnavailable, "torpord is shutting down");
  }
  session->instance = instance->id;
  session->primary = session->id;
  const absl::Status joined = secondary ? JoinProcess(*session, *secondary) : absl::OkStatus();
  if (!joined.ok()) return Refuse(session, kCudaErrorInvalidValue, std::string(joined.message()));
  session->state = ClientSession::State::kOpening;
  loop_.RunAt(loop_.Now() + options_.hello_timeout, [this, session] {
    if (session->state != ClientSession::State::kOpening) return;
    Refuse(session, kCudaErrorDevicesUnavailable, "no executor became ready; see torpord's log");
  });
  OpenWaiting();
}

FunctionInstance* SessionOpening::InstanceForToken(const std::string& token) {
  return token.empty() ? instances_.Find(options_.anonymous_function)
                       : instances_.FindByToken(token);
}

absl::Status SessionOpening::JoinProcess(ClientSession& session,
                                         const wire::DeviceHello& hello) const {
  using State = ClientSession::State;
  const FunctionInstance& instance = instances_.Of(session);
  const SessionPtr primary = sessions_.Find(SessionId{hello.primary_session});
  // The primary session's HelloAck may still be on its way, by another stream.
  const bool is_known = primary && primary->instance == session.instance && primary->has_arena() &&
                        (primary->state == State::kOffered || primary->state == State::kOpen) &&
                        SecretsEqual(primary->memory.key, hello.primary_key);
  if (!is_known) {
    return absl::PermissionDeniedError("no open session of this function has that id and key");
  }
  if (hello.device < 1 || static_cast<std::size_t>(hello.device) >= instance.shards.size()) {
    return absl::OutOfRangeError(absl::StrCat("function ", instance.config().name, " sees ",
                                              instance.shards.size(), " devices, not device ",
                                              hello.device, "; raise its gpus"));
  }
  for (const SessionPtr& sibling : sessions_.SiblingsOf(*primary)) {
    if (sibling->device_index == hello.device) {
      return absl::AlreadyExistsError("the process has a session for this device already");
    }
  }
  session.primary = primary->id;
  session.device_index = hello.device;
  return absl::OkStatus();
}

void SessionOpening::Refuse(const SessionPtr& session, std::int32_t error,
                            const std::string& message) {
  spdlog::warn("{} refused: {}", Describe(*session), message);
  wire::HelloReply reply;
  reply.error = error;
  reply.message = message;
  session->link->Send(reply);
  close_(session, message);
}

void SessionOpening::OpenWaiting() {
  if (!executors_.IsAnyReady()) return;
  const auto sessions = sessions_.all();
  for (const auto& [id, session] : sessions) {
    if (session->state != ClientSession::State::kOpening || session->memory.files) continue;
    const SessionPtr primary = sessions_.Find(session->primary);
    const bool is_ready =
        primary && (primary == session || primary->state == ClientSession::State::kOpen);
    if (!is_ready || !SettleDescription(instances_.Of(*session))) continue;
    if (session->is_inquiry) {
      AnswerInquiry(session);
    } else {
      Open(session);
    }
  }
}

void SessionOpening::AnswerInquiry(const SessionPtr& session) {
  const FunctionInstance& instance = instances_.Of(*session);
  wire::InquiryReply reply;
  reply.devices = DescribeDevices(instance);
  reply.is_emulated = options_.is_emulated;
  reply.free_bytes.reserve(reply.devices.size());
  for (std::size_t i = 0; i < reply.devices.size(); ++i) {
    reply.free_bytes.push_back(limits_.FreeBytes(instance, static_cast<int>(i)));
  }
  session->link->Send(reply);
  close_(session, "it is answered");
}

void SessionOpening::Open(const SessionPtr& session) {
  FunctionInstance& instance = instances_.Of(*session);
  if (const absl::Status admitted = quotas_.Admit(instance); !admitted.ok()) {
    return Refuse(session, kCudaErrorDevicesUnavailable, std::string(admitted.message()));
  }
  const absl::Status status =
      storage_.Create(*session, limits_.LimitOf(instance), SettleDomain(*session));
  if (!status.ok()) {
    return Refuse(session, kCudaErrorMemoryAllocation, std::string(status.message()));
  }
  instance.sessions.insert(session->id);
  seats_.StartAhead(session->domain);
  session->steps.Add([this, session](const StepQueue::Finish& finish) {
    session->is_announced = true;
    executors_.RunOnAll(session->domain, OpenMessage(*session),
                        [this, session, finish](const absl::Status& told) {
                          OnExecutorsTold(session, told);
                          finish();
                        });
  });
}

std::string SessionOpening::SettleDomain(ClientSession& session) {
  const SessionPtr primary = sessions_.Find(session.primary);
  const bool is_primary = !primary || primary->id == session.id;
  const std::string shares_as = is_primary ? domains_.SharesAs(instances_.Of(session).config())
                                           : primary->memory.tenant_blocks.tenant;
  session.domain = domains_.OfSharers(shares_as);
  return shares_as;
}

void SessionOpening::OnExecutorsTold(const SessionPtr& session, const absl::Status& status) {
  if (session->state != ClientSession::State::kOpening) return;
  if (status.ok()) return Offer(session);
  Refuse(session, kCudaErrorDevicesUnavailable,
         absl::StrCat("an executor cannot open the session: ", status.message()));
}

v1::DaemonMessage SessionOpening::OpenMessage(const ClientSession& session) const {
  const SessionAllocations& memory = session.memory;
  v1::DaemonMessage message;
  v1::SessionDescription& what = *message.mutable_open_session()->mutable_session();
  what.set_session_id(session.id.value);
  what.set_session_key(memory.key.data(), memory.key.size());
  what.set_function(instances_.Of(session).config().name);
  what.set_tenant(session.memory.tenant_blocks.tenant);
  what.set_device_base(memory.device_base);
  what.set_device_bytes(storage_.addresses().device_bytes);
  what.set_host_base(memory.host_base);
  what.set_host_bytes(session.has_arena() ? storage_.addresses().host_bytes : 0);
  what.set_window_bytes(options_.window_bytes);
  if (session.primary != session.id) what.set_primary_session_id(session.primary.value);
  what.set_peer_key(memory.peer_key.data(), memory.peer_key.size());
  what.set_is_stateless(!instances_.Of(session).config().survives());
  what.set_domain(domains_.NameOf(session.domain));
  return message;
}

void SessionOpening::Offer(const SessionPtr& session) {
  const FunctionInstance& instance = instances_.Of(*session);
  const SessionAllocations& memory = session->memory;
  wire::HelloReply reply;
  reply.session_id = session->id.value;
  reply.session_key = memory.key;
  reply.function = instance.config().name;
  reply.descriptor_socket = options_.descriptor_socket;
  reply.device_base = memory.device_base;
  reply.device_bytes = storage_.addresses().device_bytes;
  reply.memory_limit = limits_.LimitOf(instance);
  reply.host_base = memory.host_base;
  reply.host_bytes = session->has_arena() ? storage_.addresses().host_bytes : 0;
  reply.window_bytes = options_.window_bytes;
  reply.devices = DescribeDevices(instance);
  reply.is_emulated = options_.is_emulated;
  reply.has_peer_access = executors_.HasPeerAccess();
  reply.replays = instance.replays();
  session->state = ClientSession::State::kOffered;
  journal_.Begin(*session, instance, storage_.SizesOf(*session));
  session->link->Send(reply);
}

bool SessionOpening::SettleDescription(FunctionInstance& instance) const {
  std::vector<GpuIndex>& described = instance.described_as;
  for (const GpuIndex gpu : executors_.gpus()) {
    if (described.size() >= instance.shards.size()) break;
    const bool is_new = std::find(described.begin(), described.end(), gpu) == described.end();
    if (executors_.HasRegistered(gpu) && is_new) described.push_back(gpu);
  }
  std::sort(described.begin(), described.end());
  return described.size() == instance.shards.size();
}

std::vector<wire::DeviceDescription> SessionOpening::DescribeDevices(
    const FunctionInstance& instance) const {
  std::vector<wire::DeviceDescription> devices;
  for (const GpuIndex gpu : instance.described_as) {
    const v1::DeviceDescription& from = executors_.RegistrationOf(gpu).device();
    wire::DeviceDescription device;
    device.name = from.name();
    std::memcpy(device.uuid.data(), from.uuid().data(),
                std::min(device.uuid.size(), from.uuid().size()));
    device.total_bytes = limits_.LimitOf(instance);
    device.attributes.assign(from.attributes().begin(), from.attributes().end());
    device.driver_version = from.driver_version();
    device.pci_bus_id = from.pci_bus_id();
    devices.push_back(std::move(device));
  }
  return devices;
}

void SessionOpening::Acknowledge(const SessionPtr& session, const wire::HelloAck& ack) {
  if (session->state != ClientSession::State::kOffered) {
    return close_(session, "a second HelloAck");
  }
  if (ack.error != kCudaSuccess) {
    return close_(session, absl::StrCat("the client could not open it: ", ack.message));
  }
  session->state = ClientSession::State::kOpen;
  FunctionInstance& instance = instances_.Of(*session);
  spdlog::info("{} of {} opened", Describe(*session), instance.full_name);
  health_.Forgive(instance);
  OpenWaiting();
}

}  // namespace torpor::server
