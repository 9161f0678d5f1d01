#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/secret.h"
#include "server/controller/controller.h"
#include "server/controller/cuda_errors.h"

// A session's life, from Hello to the last executor that has let go of it.
namespace torpor::server {
namespace {

std::string Describe(const Session& session) {
  return absl::StrCat("session ", session.id.value, " (", session.program, ", process ",
                      session.process_id, ")");
}

}  // namespace

void Controller::OnSessionMessage(const std::shared_ptr<SessionLink>& link,
                                  wire::ClientMessage message) {
  SessionPtr& session = session_links_[link.get()];
  if (!session) {
    session = std::make_shared<Session>();
    session->id = SessionId{next_session_++};
    session->link = link;
    sessions_[session->id] = session;
  }
  const SessionPtr held = session;
  const bool is_first = held->state == Session::State::kNew;
  if (held->state == Session::State::kClosing) return;
  const bool is_hello = std::holds_alternative<wire::Hello>(message) ||
                        std::holds_alternative<wire::DeviceHello>(message) ||
                        std::holds_alternative<wire::Inquiry>(message);
  if (is_first != is_hello) {
    return CloseSession(held, "a session says Hello once, and first");
  }
  const bool is_early =
      held->state == Session::State::kOpening ||
      (held->state == Session::State::kOffered && !std::holds_alternative<wire::HelloAck>(message));
  if (is_early) return CloseSession(held, "the session spoke before it was open");
  std::visit([&](const auto& m) { Handle(held, m); }, message);
}

void Controller::OnSessionClosed(const std::shared_ptr<SessionLink>& link) {
  const auto entry = session_links_.extract(link.get());
  if (!entry.empty() && entry.mapped()) CloseSession(entry.mapped(), "its process has gone");
}

void Controller::Handle(const SessionPtr& session, const wire::Hello& hello) {
  Greet(session, hello, nullptr);
}

void Controller::Handle(const SessionPtr& session, const wire::DeviceHello& hello) {
  Greet(session, hello.hello, &hello);
}

void Controller::Handle(const SessionPtr& session, const wire::Inquiry& inquiry) {
  session->is_inquiry = true;
  Greet(session, inquiry.hello, nullptr);
}

void Controller::Greet(const SessionPtr& session, const wire::Hello& hello,
                       const wire::DeviceHello* further) {
  session->process_id = hello.process_id;
  session->program = hello.program.substr(0, 256);
  if (hello.protocol_version != wire::kProtocolVersion) {
    return Refuse(session, kCudaErrorInsufficientDriver,
                  absl::StrCat("the client library speaks protocol ", hello.protocol_version,
                               ", this torpord ", wire::kProtocolVersion,
                               "; install the same version of both"));
  }
  const Instance* instance = InstanceForToken(hello.token);
  if (!instance) {
    return Refuse(session, kCudaErrorNotPermitted,
                  hello.token.empty()
                      ? "torpord serves no programs without a token; set TORPOR_TOKEN"
                      : "torpord knows no function with this token (TORPOR_TOKEN)");
  }
  if (is_draining_) {
    return Refuse(session, kCudaErrorDevicesUnavailable, "torpord is shutting down");
  }
  session->instance = instance->id;
  session->first = session->id;
  const absl::Status joined = further ? JoinFamily(*session, *further) : absl::OkStatus();
  if (!joined.ok()) return Refuse(session, kCudaErrorInvalidValue, std::string(joined.message()));
  session->state = Session::State::kOpening;
  loop_.RunAt(loop_.Now() + options_.hello_timeout, [this, session] {
    if (session->state != Session::State::kOpening) return;
    Refuse(session, kCudaErrorDevicesUnavailable, "no executor became ready; see torpord's log");
  });
  OpenWaitingSessions();
}

Controller::Instance* Controller::InstanceForToken(const std::string& token) {
  if (token.empty()) return InstanceOf(options_.config.session.anonymous_function);
  Instance* found = nullptr;
  for (const auto& [function, secret] : options_.tokens) {
    if (SecretsEqual(secret, token)) found = InstanceOf(function);
  }
  return found;
}

void Controller::Refuse(const SessionPtr& session, std::int32_t error, const std::string& message) {
  spdlog::warn("{} refused: {}", Describe(*session), message);
  wire::HelloReply reply;
  reply.error = error;
  reply.message = message;
  session->link->Send(reply);
  CloseSession(session, message);
}

void Controller::OpenWaitingSessions() {
  const bool is_any_ready = std::any_of(executors_.begin(), executors_.end(), [](const auto& e) {
    return e.second.state() == Executor::State::kReady;
  });
  if (!is_any_ready) return;
  const auto sessions = sessions_;
  for (const auto& [id, session] : sessions) {
    if (session->state != Session::State::kOpening || session->memory) continue;
    const SessionPtr first = FindSession(session->first);
    if (!first || (first != session && first->state != Session::State::kOpen)) continue;
    if (!SettleDescription(instances_.at(session->instance))) continue;
    if (session->is_inquiry) {
      AnswerInquiry(session);
    } else {
      Open(session);
    }
  }
}

void Controller::AnswerInquiry(const SessionPtr& session) {
  const Instance& instance = instances_.at(session->instance);
  wire::InquiryReply reply;
  reply.devices = DescribeDevices(instance);
  reply.is_emulated = options_.config.is_emulated;
  reply.free_bytes.reserve(reply.devices.size());
  for (std::size_t i = 0; i < reply.devices.size(); ++i) {
    reply.free_bytes.push_back(FreeBytes(instance, static_cast<int>(i)));
  }
  session->link->Send(reply);
  CloseSession(session, "it is answered");
}

void Controller::Open(const SessionPtr& session) {
  Instance& instance = instances_.at(session->instance);
  if (const absl::Status status = CreateMemory(*session, instance); !status.ok()) {
    return Refuse(session, kCudaErrorMemoryAllocation, std::string(status.message()));
  }
  instance.sessions.insert(session->id);
  session->steps.Add([this, session](const StepQueue::Finish& finish) {
    session->is_announced = true;
    RunOnAll(OpenSessionMessage(*session), [this, session, finish](const absl::Status& status) {
      if (session->state == Session::State::kOpening) {
        if (status.ok()) {
          OfferHello(session);
        } else {
          Refuse(session, kCudaErrorDevicesUnavailable,
                 absl::StrCat("an executor cannot open the session: ", status.message()));
        }
      }
      finish();
    });
  });
}

absl::Status Controller::CreateMemory(Session& session, const Instance& instance) {
  const Bytes limit = MemoryLimit(instance);
  const bool is_apart = options_.config.device.address_mode == AddressMode::kTranslate;
  // Room for fragmentation, so that a program can really allocate all of its limit. What lies apart
  // takes up to twice its bytes of addresses.
  const Bytes room = is_apart ? 2 * limit + limit / 4 : limit + limit / 8;
  session.device_bytes =
      RoundUp(std::max(options_.config.session.address_range, room), ChunkBytes());
  const Bytes host_bytes = session.has_arena() ? kHostArenaBytes : 0;
  const auto address = addresses_.Reserve(session.device_bytes + host_bytes);
  if (!address) {
    return absl::ResourceExhaustedError(
        "no addresses are left for another session; close some, or lower address_range");
  }
  session.device_base = *address;
  session.host_base = *address + session.device_bytes;
  session.key = NewSessionKey();
  session.peer_key = NewSessionKey();
  auto memory = repository_.Create(session.id, session.key,
                                   {.image = session.device_bytes,
                                    .host_arena = host_bytes,
                                    .window = options_.config.session.window_bytes});
  if (!memory.ok()) {
    ReleaseAddresses(session);
    return memory.status();
  }
  session.memory = *std::move(memory);
  using Layout = memory::RangeAllocator::Layout;
  session.device.emplace(session.device_bytes, ChunkBytes(),
                         is_apart ? Layout::kApart : Layout::kDense);
  if (session.has_arena()) session.host.emplace(kHostArenaBytes, ChunkBytes());
  return absl::OkStatus();
}

void Controller::ReleaseAddresses(const Session& session) {
  const Bytes host_bytes = session.has_arena() ? kHostArenaBytes : 0;
  addresses_.Release(session.device_base, session.device_bytes + host_bytes);
}

v1::DaemonMessage Controller::OpenSessionMessage(const Session& session) const {
  v1::DaemonMessage message;
  v1::SessionDescription& what = *message.mutable_open_session()->mutable_session();
  what.set_session_id(session.id.value);
  what.set_session_key(session.key.data(), session.key.size());
  what.set_function(instances_.at(session.instance).config.name);
  what.set_device_base(session.device_base);
  what.set_device_bytes(session.device_bytes);
  what.set_host_base(session.host_base);
  what.set_host_bytes(session.has_arena() ? kHostArenaBytes : 0);
  what.set_window_bytes(options_.config.session.window_bytes);
  if (session.first != session.id) what.set_first_session_id(session.first.value);
  what.set_peer_key(session.peer_key.data(), session.peer_key.size());
  return message;
}

void Controller::OfferHello(const SessionPtr& session) {
  const Instance& instance = instances_.at(session->instance);
  wire::HelloReply reply;
  reply.session_id = session->id.value;
  reply.session_key = session->key;
  reply.function = instance.config.name;
  reply.descriptor_socket = options_.descriptor_socket;
  reply.device_base = session->device_base;
  reply.device_bytes = session->device_bytes;
  reply.memory_limit = MemoryLimit(instance);
  reply.host_base = session->host_base;
  reply.host_bytes = session->has_arena() ? kHostArenaBytes : 0;
  reply.window_bytes = options_.config.session.window_bytes;
  reply.devices = DescribeDevices(instance);
  reply.is_emulated = options_.config.is_emulated;
  reply.has_peer_access = HasPeerAccess();
  session->state = Session::State::kOffered;
  session->link->Send(reply);
}

bool Controller::SettleDescription(Instance& instance) const {
  std::vector<GpuIndex>& described = instance.described_as;
  for (const auto& [gpu, executor] : executors_) {
    if (described.size() >= instance.parts.size()) break;
    const bool has_registered = executor.registration().pool_bytes() > 0;
    const bool is_new = std::find(described.begin(), described.end(), gpu) == described.end();
    if (has_registered && is_new) described.push_back(gpu);
  }
  std::sort(described.begin(), described.end());
  return described.size() == instance.parts.size();
}

std::vector<wire::DeviceDescription> Controller::DescribeDevices(const Instance& instance) const {
  std::vector<wire::DeviceDescription> devices;
  for (const GpuIndex gpu : instance.described_as) {
    const v1::DeviceDescription& from = executors_.at(gpu).registration().device();
    wire::DeviceDescription device;
    device.name = from.name();
    std::memcpy(device.uuid.data(), from.uuid().data(),
                std::min(device.uuid.size(), from.uuid().size()));
    device.total_bytes = MemoryLimit(instance);
    device.attributes.assign(from.attributes().begin(), from.attributes().end());
    device.driver_version = from.driver_version();
    device.pci_bus_id = from.pci_bus_id();
    devices.push_back(std::move(device));
  }
  return devices;
}

void Controller::Handle(const SessionPtr& session, const wire::HelloAck& ack) {
  if (session->state != Session::State::kOffered) {
    return CloseSession(session, "a second HelloAck");
  }
  if (ack.error != kCudaSuccess) {
    return CloseSession(session, absl::StrCat("the client could not open it: ", ack.message));
  }
  session->state = Session::State::kOpen;
  spdlog::info("{} of {} opened", Describe(*session), instances_.at(session->instance).config.name);
  OpenWaitingSessions();
}

void Controller::CloseSession(const SessionPtr& session, const std::string& reason) {
  if (session->state == Session::State::kClosing) return;
  const bool takes_family_along = session->state == Session::State::kOpen || session->has_arena();
  session->state = Session::State::kClosing;
  // A program that watches its memory asks again and again.
  const auto level = session->is_inquiry ? spdlog::level::debug : spdlog::level::info;
  spdlog::log(level, "{} closed: {}", Describe(*session), reason);
  session->link->Close(reason);
  WithdrawImplicitRequest(*session);
  if (!session->memory) return ForgetSession(session);
  for (const SessionPtr& member : FamilyOf(*session)) {
    if (!takes_family_along) break;
    CloseSession(member, "another session of its process has closed");
  }
  session->steps.Add([this, session](const StepQueue::Finish& finish) {
    QuiesceFamily(session, [this, session, finish] {
      session->is_kept = IsOpenedByOthers(*session);
      if (!session->is_kept) return FinishClosing(session, finish);
      if (session->lease) EndMember(session, session->lease);
      finish();
    });
  });
}

void Controller::FinishClosing(const SessionPtr& session, const StepQueue::Finish& finish) {
  // What is copied from must not become another function's meanwhile.
  if (session->source && session->is_arriving) {
    session->on_arrival.push_back([this, session, finish] { FinishClosing(session, finish); });
    return;
  }
  session->is_announced = false;
  CloseOnExecutors(session, [this, session, finish] {
    ForgetSession(session);
    finish();
  });
}

void Controller::CloseOnExecutors(const SessionPtr& session, const TaskLoop::Task& then) {
  auto open = std::make_shared<std::size_t>(1);
  const auto one_done = [open, then](const OperationResult&) {
    if (--*open == 0) then();
  };
  v1::DaemonMessage message;
  message.mutable_close_session()->set_session_id(session->id.value);
  for (auto& [gpu, executor] : executors_) {
    if (!executor.is_attached()) continue;
    ++*open;
    Run(gpu, message, [this, session, gpu = gpu, one_done](const OperationResult& result) {
      const absl::Status& status = result.status;
      if (status.ok() || absl::IsNotFound(status) || result.is_executor_lost) {
        return one_done(result);
      }
      // What still runs there uses memory and addresses that others would get.
      Executor& stuck = *ExecutorOf(gpu);
      Condemn(stuck, absl::StrCat(Describe(*session), " does not close: ", status.ToString()));
      stuck.AwaitLoss(loop_.Now(), one_done);
    });
  }
  loop_.Post([one_done] { one_done({}); });
}

void Controller::ForgetSession(const SessionPtr& session) {
  session->resident.reset();
  OnArrived(*session);  // what of it was on its way is no more
  if (session->lease) EndMember(session, session->lease);
  session_links_.erase(session->link.get());
  sessions_.erase(session->id);
  if (!session->memory) return;
  CloseAllShared(*session);
  const InstanceId part = PartOf(*session);
  instances_.at(session->instance).sessions.erase(session->id);
  const Bytes charged = session->device->occupied_bytes() - session->unanswered_growth;
  Feed(scheduler::ImageShrunk{part, charged});
  repository_.Remove(session->id);
  ReleaseAddresses(*session);
  // The last reference frees the memory itself, which can take as long as a swap.
  auto memory = std::make_shared<std::shared_ptr<SessionFiles>>(std::move(session->memory));
  loop_.InBackground([memory] { memory->reset(); }, [] {});
}

}  // namespace torpor::server
